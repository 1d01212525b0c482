#include "proxy/upgrade.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "proxy/target.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443

unsigned upgrade_port(unsigned port)
{
        return port == HTTP_PORT ? HTTPS_PORT : port;
}

char *upgrade_location(struct span value, const char *host)
{
        char *url = xspandup(value), *location = NULL;
        struct target t;
        const char *fault = target_read(&t, url);
        /* Asked for by http, port 80 would become 443: that redirect goes where it says. */
        if (!fault && span_equal_nocase(t.scheme, span_of("https")) && t.port != HTTP_PORT &&
            strcmp(t.host, host) == 0) {
                struct span authority = t.authority;
                const char *rest = t.authority.ptr + t.authority.len;
                const char *port = ":443";
                if (t.port == HTTPS_PORT && authority.len > strlen(port))
                        authority.len -= strlen(port);
                location = xasprintf("http://%.*s%s", (int)authority.len, authority.ptr, rest);
        }
        target_done(&t);
        free(url);
        return location;
}

/* Secure, with a value or without (RFC 6265, 5.2.5). */
static bool is_secure(struct span attribute)
{
        struct span name;
        return span_next(&attribute, '=', &name) && span_equal_nocase(name, span_of("Secure"));
}

char *upgrade_cookie(struct span value)
{
        char *cookie = xmalloc(value.len + 1), *end = cookie;
        const char *at = value.ptr, *stop = value.ptr + value.len;
        bool first = true, changed = false;
        for (struct span attribute; span_next(&value, ';', &attribute); first = false) {
                const char *next = value.ptr ? value.ptr - 1 : stop;
                if (!first && is_secure(attribute))
                        changed = true;
                else
                        end = mempcpy(end, at, (size_t)(next - at));
                at = next;
        }
        *end = '\0';
        if (changed)
                return cookie;
        free(cookie);
        return NULL;
}
