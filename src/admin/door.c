#include "admin/door.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/secret.h"
#include "base/span.h"

static bool is_address(int family, struct span text)
{
        char copy[INET6_ADDRSTRLEN + 1];
        unsigned char address[16];
        if (text.len == 0 || text.len >= sizeof copy)
                return false;
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
        return inet_pton(family, copy, address) == 1;
}

/* Nothing, or ":" and digits. */
static bool is_port(struct span text)
{
        if (text.len == 0)
                return true;
        if (text.ptr[0] != ':' || text.len > 6)
                return false;
        for (size_t i = 1; i < text.len; i++)
                if (!isdigit((unsigned char)text.ptr[i]))
                        return false;
        return true;
}

bool door_host_is_safe(const char *host)
{
        struct span all = span_of(host);
        if (!host)
                return true;
        if (host[0] == '[') {
                const char *end = strchr(host, ']');
                return end &&
                       is_address(AF_INET6, (struct span){host + 1, (size_t)(end - host - 1)}) &&
                       is_port(span_of(end + 1));
        }
        const char *colon = strchr(host, ':');
        struct span name = {host, colon ? (size_t)(colon - host) : all.len};
        return (is_address(AF_INET, name) || span_equal_nocase(name, span_of("localhost"))) &&
               is_port(span_of(colon));
}

bool door_token_fits(const char *authorization, const char *token)
{
        static const char scheme[] = "Bearer ";
        size_t n = sizeof scheme - 1;
        if (!authorization || strncasecmp(authorization, scheme, n) != 0)
                return false;
        return secret_equal(span_of(token), span_trim(span_of(authorization + n)));
}

bool door_origin_is_ours(const char *origin, const char *site, const char *host)
{
        static const char scheme[] = "http://";
        size_t n = sizeof scheme - 1;
        if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
                return false;
        if (!origin)
                return true;
        return host && strncmp(origin, scheme, n) == 0 && strcasecmp(origin + n, host) == 0;
}
