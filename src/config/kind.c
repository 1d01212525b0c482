#include "config/kind.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/http_text.h"
#include "base/xalloc.h"
#include "config/endpoint_url.h"
#include "config/value.h"

#define MOST_AUTO_WORKERS 8

void kind_fault(const struct reading *r, const struct node *n, const char *format, ...)
{
        va_list ap;
        va_start(ap, format);
        char *what = xvasprintf(format, ap);
        va_end(ap);
        config_faults_add(r->faults, n->line, n->column, r->path, "%s", what);
        free(what);
}

void kind_fault_expected(const struct reading *r, const struct node *n, const char *expected)
{
        char got[NODE_DESCRIPTION_MAX];
        node_describe(n, got);
        kind_fault(r, n, "expected %s, got %s", expected, got);
}

/* --- numbers of every sort: parsed to one of these, compared, stored, shown --- */

union number {
        unsigned count;
        double number;
        usec_t duration;
        size_t size;
};

static unsigned auto_workers(void)
{
        cpu_set_t cpus;
        if (sched_getaffinity(0, sizeof cpus, &cpus) < 0)
                return 1;
        unsigned n = (unsigned)CPU_COUNT(&cpus);
        return n > MOST_AUTO_WORKERS ? MOST_AUTO_WORKERS : n ? n : 1;
}

static int parse_number(enum setting_kind kind, struct span text, union number *ret)
{
        switch (kind) {
        case KIND_WORKERS:
                if (span_equal(text, span_of("auto"))) {
                        ret->count = auto_workers();
                        return 0;
                }
                return value_count(text, &ret->count);
        case KIND_COUNT:
                return value_count(text, &ret->count);
        case KIND_NUMBER:
                return value_number(text, &ret->number);
        case KIND_DURATION:
                return value_duration(text, &ret->duration);
        case KIND_SIZE:
                return value_size(text, &ret->size);
        case KIND_RATE:
                return value_rate(text, &ret->number);
        case KIND_SHARE:
                return value_share(text, &ret->number);
        default:
                return -EINVAL;
        }
}

static bool is_less(enum setting_kind kind, const union number *a, const union number *b)
{
        switch (kind) {
        case KIND_DURATION:
                return a->duration < b->duration;
        case KIND_SIZE:
                return a->size < b->size;
        case KIND_NUMBER:
        case KIND_RATE:
        case KIND_SHARE:
                return a->number < b->number;
        default:
                return a->count < b->count;
        }
}

/* Is it within "LOWEST to HIGHEST"? A rate of 0 is none, which has no bounds. */
static bool in_range(const struct setting *s, const union number *n)
{
        union number low, high;
        const char *to = s->range ? strstr(s->range, " to ") : NULL;
        if (!to || (s->kind == KIND_RATE && !(n->number > 0)))
                return true;
        struct span lowest = {s->range, (size_t)(to - s->range)}, highest = span_of(to + 4);
        if (parse_number(s->kind, lowest, &low) < 0 || parse_number(s->kind, highest, &high) < 0)
                abort(); /* the table is wrong */
        return !is_less(s->kind, n, &low) && !is_less(s->kind, &high, n);
}

static void read_number(const struct reading *r, const struct node *n)
{
        const struct setting *s = r->setting;
        union number value;
        int error =
            n->kind == NODE_SCALAR ? parse_number(s->kind, span_of(n->text), &value) : -EINVAL;
        if (error == -EINVAL)
                kind_fault_expected(r, n, kind_expected(s->kind));
        else if (error < 0 || !in_range(s, &value))
                kind_fault_expected(r, n, s->range);
        else
                memcpy(setting_field(s, r->config, r->part), &value, s->size);
}

static void show_number(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        union number n;
        char text[VALUE_TEXT_MAX];
        memcpy(&n, setting_field(s, (struct config *)c, (void *)part), s->size);
        switch (s->kind) {
        case KIND_NUMBER:
                value_number_text(n.number, text);
                break;
        case KIND_DURATION:
                value_duration_text(n.duration, text);
                break;
        case KIND_SIZE:
                value_size_text(n.size, text);
                break;
        case KIND_RATE:
                value_rate_text(n.number, text);
                break;
        case KIND_SHARE:
                value_share_text(n.number, text);
                break;
        default:
                snprintf(text, sizeof text, "%u", n.count);
        }
        fputs(text, to);
}

/* --- bool and choices --- */

static void read_bool(const struct reading *r, const struct node *n)
{
        bool value;
        if (n->kind != NODE_SCALAR || value_bool(span_of(n->text), &value) < 0)
                kind_fault_expected(r, n, kind_expected(KIND_BOOL));
        else
                memcpy(setting_field(r->setting, r->config, r->part), &value, sizeof value);
}

static void show_bool(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        bool value;
        memcpy(&value, setting_field(s, (struct config *)c, (void *)part), sizeof value);
        fputs(value ? "true" : "false", to);
}

/* The name of a choice without the parentheses of those that are not available as yet. */
static struct span choice_name(struct span item, bool *ret_available)
{
        *ret_available = item.len == 0 || item.ptr[0] != '(';
        return *ret_available ? item : (struct span){item.ptr + 1, item.len - 2};
}

/* "text or json", "error, warn, info or debug" */
static char *choices_available(const struct setting *s)
{
        struct span rest = span_of(s->range), item = {0};
        char *list = NULL, *last = NULL;
        while (span_next(&rest, ',', &item)) {
                bool available;
                struct span name = choice_name(item, &available);
                if (!available)
                        continue;
                char *longer = list ? xasprintf("%s, %s", list, last) : last ? xstrdup(last) : NULL;
                free(list);
                free(last);
                list = longer;
                last = xspandup(name);
        }
        char *all = list ? xasprintf("%s or %s", list, last) : xstrdup(last);
        free(list);
        free(last);
        return all;
}

static void store_choice(const struct reading *r, unsigned value)
{
        void *field = setting_field(r->setting, r->config, r->part);
        bool yes = value != 0;
        if (r->setting->size == sizeof yes)
                memcpy(field, &yes, sizeof yes);
        else
                memcpy(field, &value, sizeof value);
}

static void read_choice(const struct reading *r, const struct node *n)
{
        struct span rest = span_of(r->setting->range), item;
        for (unsigned i = 0; n->kind == NODE_SCALAR && span_next(&rest, ',', &item); i++) {
                bool available;
                if (!span_equal(choice_name(item, &available), span_of(n->text)))
                        continue;
                if (available)
                        store_choice(r, i);
                else
                        kind_fault(r, n, "%s is not available in this version", n->text);
                return;
        }
        char *choices = choices_available(r->setting);
        kind_fault_expected(r, n, choices);
        free(choices);
}

static void show_choice(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        const void *field = setting_field(s, (struct config *)c, (void *)part);
        unsigned value;
        bool yes;
        if (s->size == sizeof yes) {
                memcpy(&yes, field, sizeof yes);
                value = yes;
        } else {
                memcpy(&value, field, sizeof value);
        }
        struct span rest = span_of(s->range), item = {0};
        while (span_next(&rest, ',', &item) && value-- > 0)
                ;
        bool ignored;
        struct span name = choice_name(item, &ignored);
        fprintf(to, "%.*s", (int)name.len, name.ptr);
}

/* --- texts --- */

static void read_text(const struct reading *r, const struct node *n)
{
        struct sockaddr_storage ignored;
        const struct setting *s = r->setting;
        if (n->kind != NODE_SCALAR || node_is_null(n)) {
                kind_fault_expected(r, n, kind_expected(s->kind));
                return;
        }
        struct span text = span_of(n->text);
        if (s->kind == KIND_ADDRESS && text.len && value_address(text, &ignored) < 0) {
                kind_fault_expected(r, n, kind_expected(s->kind));
                return;
        }
        char *copy = pool_dup(r->pool, text);
        memcpy(setting_field(s, r->config, r->part), &copy, sizeof copy);
}

static void read_name(const struct reading *r, const struct node *n)
{
        if (n->kind != NODE_SCALAR || node_is_null(n) || !value_is_name(n->text))
                kind_fault_expected(r, n, kind_expected(KIND_NAME));
        else
                read_text(r, n);
}

static void read_field_name(const struct reading *r, const struct node *n)
{
        if (n->kind != NODE_SCALAR || node_is_null(n) ||
            (n->text[0] && !http_text_is_token(span_of(n->text))))
                kind_fault_expected(r, n, kind_expected(KIND_FIELD_NAME));
        else
                read_text(r, n);
}

static void read_url(const struct reading *r, const struct node *n)
{
        if (n->kind != NODE_SCALAR || node_is_null(n) ||
            (n->text[0] && !endpoint_url_is_probe(span_of(n->text))))
                kind_fault_expected(r, n, kind_expected(KIND_URL));
        else
                read_text(r, n);
}

/* Of what was UTF-8 when it was read. ret_len   bytes that it takes */
static unsigned code_point(const char *text, size_t *ret_len)
{
        unsigned first = (unsigned char)text[0];
        size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        unsigned c = len == 1 ? first : first & (0x7fu >> len);
        for (size_t i = 1; i < len; i++)
                c = c << 6 | ((unsigned char)text[i] & 0x3fu);
        *ret_len = len;
        return c;
}

/* What YAML takes as it is, inside of quotes on one line. */
static bool is_plain(unsigned c)
{
        bool control = c < ' ' || (c >= 0x7f && c <= 0x9f);
        bool line_break = c == 0x2028 || c == 0x2029;
        return !control && !line_break && c != 0xfeff && c != 0xfffe && c != 0xffff;
}

void kind_show_text(const char *text, FILE *to)
{
        size_t len;
        putc('"', to);
        for (; *text; text += len) {
                unsigned c = code_point(text, &len);
                if (c == '"' || c == '\\')
                        fprintf(to, "\\%c", (char)c);
                else if (is_plain(c))
                        fwrite(text, 1, len, to);
                else
                        fprintf(to, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
        }
        putc('"', to);
}

static void show_text(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        const char *text;
        memcpy(&text, setting_field(s, (struct config *)c, (void *)part), sizeof text);
        kind_show_text(text, to);
}

/* In quotes only where YAML would take it for something else. */
static void show_name(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        const char *text;
        memcpy(&text, setting_field(s, (struct config *)c, (void *)part), sizeof text);
        if (isalnum((unsigned char)text[0]) && strcasecmp(text, "null") != 0)
                fputs(text, to);
        else
                kind_show_text(text, to);
}

/* --- the table --- */

static const struct {
        const char *expected;
        void (*read)(const struct reading *r, const struct node *n);
        void (*show)(const struct setting *s, const struct config *c, const void *part, FILE *to);
} kinds[] = {
    [KIND_NONE] = {"nothing", NULL, NULL},
    [KIND_BOOL] = {"true or false", read_bool, show_bool},
    [KIND_COUNT] = {"a whole number", read_number, show_number},
    [KIND_WORKERS] = {"a whole number or auto", read_number, show_number},
    [KIND_NUMBER] = {"a number such as 0.5", read_number, show_number},
    [KIND_DURATION] = {"a duration such as 250ms, 30s or 1h30m", read_number, show_number},
    [KIND_SIZE] = {"a size such as 64KiB or 16MiB", read_number, show_number},
    [KIND_RATE] = {"a rate such as 10/s, 600/min or 5000/h, or none", read_number, show_number},
    [KIND_SHARE] = {"a percentage such as 20%", read_number, show_number},
    [KIND_CHOICE] = {"one of a few words", read_choice, show_choice},
    [KIND_TEXT] = {"a text", read_text, show_text},
    [KIND_NAME] = {"a name of at most 64 letters, digits, dots, dashes and underscores", read_name,
                   show_name},
    [KIND_ADDRESS] = {"an address and port such as 127.0.0.1:8081 or [::1]:8081, or \"\"",
                      read_text, show_text},
    [KIND_ADDRESSES] = {"an address and port such as 127.0.0.1:8080 or [::1]:8080, or unix:/PATH",
                        kind_read_addresses, kind_show_addresses},
    [KIND_NETWORKS] = {"a network such as 10.0.0.0/8 or 2001:db8::/32, an address, loopback, "
                       "private, link-local or multicast",
                       kind_read_networks, kind_show_networks},
    [KIND_PORTS] = {"a port from 1 to 65535", kind_read_ports, kind_show_ports},
    [KIND_SCOPE] = {"host, domain, port, rule, endpoint, client, session, path:N or "
                    "header:NAME",
                    kind_read_scope, kind_show_scope},
    [KIND_HOSTS] = {"a host name or address, *.HOST, or *", kind_read_hosts, kind_show_hosts},
    [KIND_RETRY_ON] = {"a status from 400 to 599, connect, timeout or reset", kind_read_retry_on,
                       kind_show_retry_on},
    [KIND_CLASSIFY] = {"a rule such as {status: [403], header: \"server: cloudflare\", "
                       "body: \"slow down\", as: throttled}",
                       kind_read_classify, kind_show_classify},
    [KIND_FIELD_NAME] = {"the name of a header field, or \"\"", read_field_name, show_text},
    [KIND_URL] = {"a URL of http or https without credentials, or \"\"", read_url, show_text},
    [KIND_ENDPOINTS] = {"the URL of a proxy, direct, or keys such as {source: \"192.0.2.7\"}",
                        kind_read_endpoints, kind_show_endpoints},
};

const char *kind_expected(enum setting_kind kind)
{
        return kinds[kind].expected;
}

void kind_read(const struct reading *r, const struct node *n)
{
        if (n->kind != NODE_BAD)
                kinds[r->setting->kind].read(r, n);
}

void kind_show(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        kinds[s->kind].show(s, c, part, to);
}
