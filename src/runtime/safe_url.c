#include "runtime/safe_url.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/span.h"

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

char *safe_url(const char *url)
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
