#include "proxy/access_log.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "runtime/clock.h"

static bool looks_secret(struct span name)
{
        static const char *const parts[] = {"key",  "token", "secret",   "pass", "pwd",  "auth",
                                            "sig",  "sess",  "sid",      "cred", "code", "jwt",
                                            "hash", "hmac",  "password", "otp"};
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                size_t n = strlen(parts[i]);
                for (size_t k = 0; k + n <= name.len; k++)
                        if (strncasecmp(name.ptr + k, parts[i], n) == 0)
                                return true;
        }
        return false;
}

static void put_safe(FILE *to, struct span s)
{
        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char)s.ptr[i];
                if (c > 0x20 && c < 0x7f)
                        fputc(c, to);
                else
                        fprintf(to, "%%%02X", c);
        }
}

char *access_log_url(const char *url)
{
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        if (!to)
                abort();
        const char *query = strchr(url, '?');
        if (!query)
                query = url + strlen(url);
        const char *start = strstr(url, "://");
        start = start ? start + 3 : url;
        size_t authority = strcspn(start, "/?#");
        const char *at = memrchr(start, '@', authority);
        if (at) { /* a user name and password */
                put_safe(to, (struct span){url, (size_t)(start - url)});
                fputs("***", to);
                url = at;
        }
        put_safe(to, (struct span){url, (size_t)(query - url)});
        while (*query) { /* at '?' or '&' */
                size_t n = strcspn(query + 1, "&");
                struct span pair = {query + 1, n};
                const char *equals = memchr(pair.ptr, '=', n);
                struct span name = {pair.ptr, equals ? (size_t)(equals - pair.ptr) : n};
                fputc(*query, to);
                if (equals && looks_secret(name)) {
                        put_safe(to, name);
                        fputs("=***", to);
                } else {
                        put_safe(to, pair);
                }
                query += 1 + n;
        }
        fclose(to);
        return text;
}

static double seconds(usec_t t)
{
        /* 10 us: no noise in the last digits. NOLINTNEXTLINE(bugprone-integer-division) */
        return (double)(t / 10) / 1e5;
}

void access_log_write(struct sink *sink, const struct access_entry *e)
{
        if (!sink)
                return;
        char time[CLOCK_TEXT_SIZE];
        char *url = access_log_url(e->url);
        json_t *o =
            json_pack("{s:s, s:s, s:s%, s:s, s:s?, s:s?, s:i, s:i, s:f, s:f, s:{s:s, s:f, s:f, "
                      "s:f}, s:I, s:I, s:s}",
                      "time", clock_text(e->real, time), "client", e->client, "method",
                      e->method.ptr ? e->method.ptr : "", e->method.len, "url", url, "scope",
                      e->scope, "class", e->class, "status", e->status, "attempts",
                      (int)e->attempts, "queued", seconds(e->queued), "duration",
                      seconds(e->duration), "upstream", "address", e->upstream.address, "connect",
                      seconds(e->upstream.connect), "first_byte", seconds(e->upstream.first_byte),
                      "total", seconds(e->upstream.total), "bytes_in", (json_int_t)e->bytes_in,
                      "bytes_out", (json_int_t)e->bytes_out, "outcome", outcome_name(e->outcome));
        free(url);
        if (o)
                sink_write(sink, o);
}
