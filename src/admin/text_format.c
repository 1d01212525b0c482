#include "admin/text_format.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Upper bounds of the buckets that are shown: 2^10 us, about a millisecond, to 2^29 us, 9 minutes.
 */
#define FIRST_BOUND 10
#define LAST_BOUND 29

void text_format_head(struct evbuffer *to, const struct metrics_info *info)
{
        static const char *const types[] = {"counter", "gauge", "histogram"};
        evbuffer_add_printf(to, "# HELP %s %s\n# TYPE %s %s\n", info->name, info->help, info->name,
                            types[info->type]);
}

static void begin(struct evbuffer *to, const char *name, const char *labels)
{
        if (labels[0])
                evbuffer_add_printf(to, "%s{%s} ", name, labels);
        else
                evbuffer_add_printf(to, "%s ", name);
}

void text_format_count(struct evbuffer *to, const char *name, const char *labels, uint64_t value)
{
        begin(to, name, labels);
        evbuffer_add_printf(to, "%" PRIu64 "\n", value);
}

void text_format_real(struct evbuffer *to, const char *name, const char *labels, double value)
{
        begin(to, name, labels);
        evbuffer_add_printf(to, "%.15g\n", value);
}

void text_format_histogram(struct evbuffer *to, const char *name, const struct histogram *h)
{
        uint64_t below = 0;
        size_t bucket = 0;
        for (unsigned bits = FIRST_BOUND; bits <= LAST_BOUND; bits++) {
                usec_t bound = (usec_t)1 << bits;
                while (bucket < HISTOGRAM_BUCKETS && histogram_upper(bucket) <= bound)
                        below += h->buckets[bucket++];
                evbuffer_add_printf(to, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", name,
                                    usec_seconds(bound), below);
        }
        evbuffer_add_printf(to, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, h->count);
        evbuffer_add_printf(to, "%s_sum %.15g\n%s_count %" PRIu64 "\n", name, usec_seconds(h->sum),
                            name, h->count);
}

char *text_format_label(const char *name, const char *value)
{
        char *text = NULL;
        size_t len = 0;
        FILE *to = open_memstream(&text, &len);
        if (!to)
                abort(); /* out of memory */
        fprintf(to, "%s=\"", name);
        for (const char *c = value; *c; c++) {
                unsigned char u = (unsigned char)*c;
                if (u == '\n')
                        fputs("\\n", to);
                else if (u < ' ' || u == 0x7f)
                        fprintf(to, "\\\\x%02x", u);
                else if (u == '"' || u == '\\')
                        fprintf(to, "\\%c", u);
                else
                        fputc(u, to);
        }
        fputc('"', to);
        if (fclose(to) != 0)
                abort();
        return text;
}
