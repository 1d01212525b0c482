#include "config/endpoint_url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "config/value.h"

#define MAX_HOST 253
#define MAX_SOCKS_TEXT 255 /* RFC 1929: a length is one byte */
#define PLACE "\"http://proxy.example:8000\""
#define NO_VARIABLE "a variable is written ${NAME}; ${ that begins none is written %24{"

static const struct {
        const char *name;
        enum egress_kind kind;
} schemes[] = {{"http", EGRESS_HTTP},
               {"https", EGRESS_HTTPS},
               {"socks5", EGRESS_SOCKS5},
               {"socks5h", EGRESS_SOCKS5H}};
#define SCHEMES (sizeof schemes / sizeof schemes[0])

/* ---- variables ---- */

static bool is_name_start(char c)
{
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* The variable that the text begins with. ret_len   bytes that it takes; 0: there is none. */
static struct span variable(struct span text, size_t *ret_len)
{
        size_t n = 2;
        *ret_len = 0;
        if (text.len < 4 || text.ptr[0] != '$' || text.ptr[1] != '{' || !is_name_start(text.ptr[2]))
                return (struct span){NULL, 0};
        while (n < text.len &&
               (is_name_start(text.ptr[n]) || (text.ptr[n] >= '0' && text.ptr[n] <= '9')))
                n++;
        if (n == text.len || text.ptr[n] != '}')
                return (struct span){NULL, 0};
        *ret_len = n + 1;
        return (struct span){text.ptr + 2, n - 2};
}

static struct span behind(struct span text, size_t n)
{
        return (struct span){text.ptr + n, text.len - n};
}

static bool is_all_variables(struct span text)
{
        size_t len;
        while (text.len) {
                variable(text, &len);
                if (len == 0)
                        return false;
                text = behind(text, len);
        }
        return true;
}

static bool has_variable(struct span text)
{
        size_t len = 0;
        for (; text.len && len == 0; text = behind(text, 1))
                variable(text, &len);
        return len > 0;
}

static int hex(char c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* Takes one character, with the percent-encoding undone where `decode` says so; what is no encoding
 * is taken as it is. */
static char take(struct span *text, bool decode)
{
        size_t n = 1;
        char c = text->ptr[0];
        if (decode && c == '%' && text->len >= 3 && hex(text->ptr[1]) >= 0 &&
            hex(text->ptr[2]) >= 0) {
                c = (char)(16 * hex(text->ptr[1]) + hex(text->ptr[2]));
                n = 3;
        }
        *text = behind(*text, n);
        return c;
}

/* Puts the values in. Returns NULL, or what is wrong. */
static char *expand(struct span text, bool decode, char **ret)
{
        char *out = NULL;
        size_t room;
        FILE *to = open_memstream(&out, &room);
        char *fault = NULL;
        if (!to)
                abort(); /* out of memory */
        while (text.len && !fault) {
                size_t len;
                struct span name = variable(text, &len);
                if (len == 0) {
                        if (text.len > 1 && memcmp(text.ptr, "${", 2) == 0)
                                fault = xstrdup(NO_VARIABLE);
                        putc(take(&text, decode), to);
                        continue;
                }
                char *key = xspandup(name);
                /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this process sets any */
                const char *value = getenv(key);
                if (value)
                        fputs(value, to);
                else
                        fault = xasprintf("the environment has no variable %.64s", key);
                free(key);
                text = behind(text, len);
        }
        if (fclose(to) != 0)
                abort();
        if (fault)
                free(out);
        else
                *ret = out;
        return fault;
}

/* ---- the parts ---- */

/* Where they are in the text. */
struct parts {
        struct span scheme, user, password, host, port;
        bool has_user, has_password;
};

/* Up to the first of `stop`, outside of variables, and [...] is one host. */
static size_t until(struct span text, const char *stop)
{
        size_t at = 0, len;
        while (at < text.len && !strchr(stop, text.ptr[at])) {
                variable(behind(text, at), &len);
                at += len ? len : 1;
        }
        return at;
}

static const char *split_userinfo(struct span *authority, struct parts *p)
{
        const char *at = authority->len ? memrchr(authority->ptr, '@', authority->len) : NULL;
        if (!at)
                return NULL;
        struct span info = {authority->ptr, (size_t)(at - authority->ptr)};
        size_t n = until(info, ":");
        p->has_user = true;
        p->user = (struct span){info.ptr, n};
        p->has_password = n < info.len;
        if (p->has_password)
                p->password = behind(info, n + 1);
        *authority = behind(*authority, info.len + 1);
        return info.len ? NULL : "there is nothing before the @";
}

static const char *split_host(struct span authority, struct parts *p)
{
        const char *close = authority.len && authority.ptr[0] == '['
                                ? memchr(authority.ptr, ']', authority.len)
                                : NULL;
        size_t n = close ? (size_t)(close - authority.ptr) + 1 : until(authority, ":");
        p->host = (struct span){authority.ptr, n};
        if (n == 0)
                return "the host is missing, as in " PLACE;
        if (n == authority.len && !has_variable(p->host))
                return "the port is missing, as in " PLACE;
        if (n < authority.len && authority.ptr[n] != ':')
                return "expected a port behind the host, as in " PLACE;
        if (n < authority.len)
                p->port = behind(authority, n + 1);
        return NULL;
}

static const char *split(struct span text, struct parts *p)
{
        const char *colon = text.len ? memmem(text.ptr, text.len, "://", 3) : NULL;
        if (!colon)
                return "expected the URL of a proxy, such as " PLACE
                       ", or {source: ADDRESS}, or direct";
        p->scheme = (struct span){text.ptr, (size_t)(colon - text.ptr)};
        struct span authority = behind(text, p->scheme.len + 3);
        /* a password may hold what would end the authority, as it often does where it is pasted */
        const char *at = authority.len ? memrchr(authority.ptr, '@', authority.len) : NULL;
        size_t from = at ? (size_t)(at - authority.ptr) : 0;
        size_t end = from + until(behind(authority, from), "/?#");
        struct span rest = behind(authority, end);
        if (rest.len > 1 || (rest.len == 1 && rest.ptr[0] != '/'))
                return "a proxy's URL ends with its port";
        authority.len = end;
        const char *fault = split_userinfo(&authority, p);
        return fault ? fault : split_host(authority, p);
}

/* ---- the values ---- */

static char *fault_of(const char *text)
{
        return text ? xstrdup(text) : NULL;
}

static char *read_scheme(struct span text, enum egress_kind *ret)
{
        for (size_t i = 0; i < SCHEMES; i++)
                if (span_equal_nocase(text, span_of(schemes[i].name))) {
                        *ret = schemes[i].kind;
                        return NULL;
                }
        return xstrdup("expected http, https, socks5 or socks5h before the ://");
}

static bool is_host_name(const char *host)
{
        size_t len = strlen(host);
        if (len == 0 || len > MAX_HOST || host[0] == '.' || strstr(host, ".."))
                return false;
        for (const char *c = host; *c; c++)
                if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && !strchr("._-", *c))
                        return false;
        return true;
}

/* "[::1]" to "::1"; lower case. False: it is no host. */
static bool settle_host(char *host)
{
        struct in6_addr in6;
        size_t len = strlen(host);
        for (char *c = host; *c; c++)
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        if (host[0] != '[')
                return is_host_name(host);
        if (host[len - 1] != ']')
                return false;
        memmove(host, host + 1, len - 2);
        host[len - 2] = '\0';
        return inet_pton(AF_INET6, host, &in6) == 1;
}

static char *read_place(const struct parts *p, struct endpoint_url *u)
{
        char *port = NULL, *fault = expand(p->host, false, &u->host);
        if (fault)
                return fault;
        struct span colon = span_of(p->port.ptr ? NULL : strrchr(u->host, ':'));
        if (colon.ptr && !memchr(colon.ptr, ']', colon.len)) { /* the variable has both */
                port = xstrdup(colon.ptr + 1);
                u->host[colon.ptr - u->host] = '\0';
        } else {
                fault = expand(p->port, false, &port);
        }
        if (fault)
                return fault;
        if (!settle_host(u->host))
                fault = xstrdup("the host is no name and no address");
        else if (value_count(span_of(port), &u->port) < 0 || u->port < 1 || u->port > 65535)
                fault = xstrdup("expected a port from 1 to 65535 behind the host");
        free(port);
        return fault;
}

static bool is_sendable(const char *text, bool socks)
{
        for (const char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        return false;
        return !socks || strlen(text) <= MAX_SOCKS_TEXT;
}

/* What is behind a NUL would never be sent. */
static bool holds_nul(struct span text)
{
        while (text.len)
                if (take(&text, true) == '\0')
                        return true;
        return false;
}

static char *read_credentials(const struct parts *p, struct endpoint_url *u)
{
        bool socks = u->kind == EGRESS_SOCKS5 || u->kind == EGRESS_SOCKS5H;
        if (!p->has_user)
                return NULL;
        char *fault = expand(p->user, true, &u->user);
        if (!fault)
                fault = expand(p->password, true, &u->password);
        if (fault)
                return fault;
        if (holds_nul(p->user) || holds_nul(p->password) || !is_sendable(u->user, socks) ||
            !is_sendable(u->password, socks))
                return xstrdup("user name or password cannot be sent");
        if (!socks && strchr(u->user, ':')) /* RFC 7617, 2 */
                return xstrdup("a user name may not hold a colon");
        return NULL;
}

static char *read_parts(struct span text, struct endpoint_url *u)
{
        struct parts p = {0};
        char *fault = fault_of(split(text, &p));
        if (!fault)
                fault = read_scheme(p.scheme, &u->kind);
        if (!fault)
                fault = read_place(&p, u);
        if (!fault)
                fault = read_credentials(&p, u);
        if (!fault && !has_variable(p.host) && !has_variable(p.port))
                u->name = xasprintf(strchr(u->host, ':') ? "[%s]:%u" : "%s:%u", u->host, u->port);
        return fault;
}

char *endpoint_url_read(struct span text, struct endpoint_url *ret)
{
        struct endpoint_url u = {0};
        char *whole = NULL, *fault;
        size_t len;
        variable(text, &len);
        if (len) {
                /* No part of it is to be found in the text, nor may it be shown as a name. */
                fault = expand(text, false, &whole);
                if (!fault && has_variable(span_of(whole)))
                        fault = xstrdup("there is a variable within a variable");
                if (!fault)
                        fault = read_parts(span_of(whole), &u);
                free(u.name);
                u.name = NULL;
        } else {
                fault = read_parts(text, &u);
        }
        free(whole);
        if (fault)
                endpoint_url_done(&u);
        else
                *ret = u;
        return fault;
}

void endpoint_url_done(struct endpoint_url *u)
{
        free(u->host);
        free(u->user);
        free(u->password);
        free(u->name);
        *u = (struct endpoint_url){0};
}

char *endpoint_url_shown(struct span text)
{
        const char *colon = text.len ? memmem(text.ptr, text.len, "://", 3) : NULL;
        size_t from = colon ? (size_t)(colon - text.ptr) + 3 : 0;
        struct span rest = behind(text, from);
        const char *at = rest.len ? memrchr(rest.ptr, '@', rest.len) : NULL;
        if (!at)
                return xspandup(text);
        struct span info = {rest.ptr, (size_t)(at - rest.ptr)};
        size_t user = until(info, ":");
        struct span password = user < info.len ? behind(info, user + 1) : (struct span){NULL, 0};
        /* a user name by itself is a key, as often as not */
        bool hides_user = password.len == 0 && !is_all_variables((struct span){info.ptr, user});
        bool hides_password = !is_all_variables(password);
        return xasprintf("%.*s%.*s%s%.*s%.*s", (int)from, text.ptr, hides_user ? 3 : (int)user,
                         hides_user ? "***" : info.ptr, user < info.len ? ":" : "",
                         hides_password ? 3 : (int)password.len,
                         hides_password ? "***"
                         : password.len ? password.ptr
                                        : "",
                         (int)(text.len - from - info.len), at);
}

bool endpoint_url_is_probe(struct span text)
{
        static const char *const starts[] = {"http://", "https://"};
        for (size_t i = 0; i < text.len; i++)
                if ((unsigned char)text.ptr[i] <= ' ' || text.ptr[i] == 0x7f)
                        return false;
        for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
                size_t n = strlen(starts[i]);
                if (text.len <= n || strncasecmp(text.ptr, starts[i], n) != 0)
                        continue;
                struct span rest = behind(text, n);
                size_t end = until(rest, "/?#");
                return end > 0 && rest.ptr[0] != ':' && !memchr(rest.ptr, '@', end);
        }
        return false;
}
