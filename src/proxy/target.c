#include "proxy/target.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static bool parse_port(struct span text, unsigned *ret)
{
        unsigned port = 0;
        if (text.len == 0 || text.len > 5)
                return false;
        for (size_t i = 0; i < text.len; i++) {
                if (!isdigit((unsigned char)text.ptr[i]))
                        return false;
                port = 10 * port + (unsigned)(text.ptr[i] - '0');
        }
        if (port == 0 || port > 65535)
                return false;
        *ret = port;
        return true;
}

/* Takes the host off the front of *rest. */
static bool take_host(struct span *rest, struct span *ret)
{
        const char *end = rest->ptr + rest->len;
        if (rest->len && rest->ptr[0] == '[') {
                const char *bracket = memchr(rest->ptr, ']', rest->len);
                if (!bracket)
                        return false;
                *ret = (struct span){rest->ptr + 1, (size_t)(bracket - rest->ptr) - 1};
                *rest = (struct span){bracket + 1, (size_t)(end - bracket) - 1};
                if (strspn(ret->ptr, "0123456789abcdefABCDEF:.") < ret->len)
                        return false;
                return rest->len == 0 || rest->ptr[0] == ':';
        }
        const char *colon = rest->len ? memchr(rest->ptr, ':', rest->len) : NULL;
        *ret = (struct span){rest->ptr, colon ? (size_t)(colon - rest->ptr) : rest->len};
        *rest = (struct span){ret->ptr + ret->len, rest->len - ret->len};
        for (size_t i = 0; i < ret->len; i++)
                if (!isalnum((unsigned char)ret->ptr[i]) && !strchr("-._~", ret->ptr[i]))
                        return false;
        return true;
}

const char *target_read_authority(struct target *ret, struct span authority)
{
        struct span host, rest = authority;
        ret->authority = authority;
        ret->port = 0;
        if (authority.len == 0)
                return "The target names no host.";
        if (memchr(authority.ptr, '@', authority.len))
                return "A user name in the target is not allowed.";
        if (!take_host(&rest, &host))
                return "The host in the target is malformed.";
        /* "example.com." is "example.com", written as absolute (RFC 1034, 3.1): one name, one
         * limit. */
        if (host.len > 0 && host.ptr[host.len - 1] == '.')
                host.len--;
        if (host.len == 0 || host.len > 255)
                return "The target names no host.";
        if (rest.len > 1 && !parse_port((struct span){rest.ptr + 1, rest.len - 1}, &ret->port))
                return "The port in the target is not one from 1 to 65535.";
        ret->host = xspandup(host);
        for (char *p = ret->host; *p; p++)
                *p = (char)tolower((unsigned char)*p);
        return NULL;
}

const char *target_read(struct target *ret, const char *url)
{
        *ret = (struct target){0};
        const char *colon = strstr(url, "://");
        if (!colon)
                return "The target is not a URL.";
        ret->scheme = (struct span){url, (size_t)(colon - url)};
        const char *start = colon + 3;
        size_t len = strcspn(start, "/?#");
        const char *fault = target_read_authority(ret, (struct span){start, len});
        if (fault)
                return fault;
        /* A query without a path belongs to "/". */
        const char *rest = start + len;
        size_t rest_len = strcspn(rest, "#");
        ret->path = xasprintf("%s%.*s", *rest == '/' ? "" : "/", (int)rest_len, rest);
        return NULL;
}

void target_done(struct target *t)
{
        free(t->host);
        free(t->path);
        *t = (struct target){0};
}
