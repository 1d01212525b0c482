#include "core/scope_key.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/http_text.h"
#include "base/xalloc.h"

static const char *const part_names[] = {
    [SCOPE_HOST] = "host", [SCOPE_DOMAIN] = "domain", [SCOPE_PORT] = "port",
    [SCOPE_RULE] = "rule", [SCOPE_CLIENT] = "client", [SCOPE_SESSION] = "session",
    [SCOPE_PATH] = "path", [SCOPE_HEADER] = "header", [SCOPE_ENDPOINT] = "endpoint",
};
#define KINDS (sizeof part_names / sizeof part_names[0])

/* Enough for a part's own name, the brackets and port of an authority, and what is between. */
#define PART_OVERHEAD 32

/* A text that grows within room measured beforehand. */
struct builder {
        char *text;
        size_t len;
};

static void put(struct builder *b, const char *s)
{
        size_t n = strlen(s);
        memcpy(b->text + b->len, s, n);
        b->len += n;
}

/* also   one more byte to be escaped; 0: none */
static void put_escaped_with(struct builder *b, struct span s, char also)
{
        static const char hex[] = "0123456789ABCDEF";
        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char)s.ptr[i];
                if (c > ' ' && c < 0x7f && c != '%' && c != '=' && s.ptr[i] != also) {
                        b->text[b->len++] = (char)c;
                        continue;
                }
                b->text[b->len++] = '%';
                b->text[b->len++] = hex[c >> 4];
                b->text[b->len++] = hex[c & 15];
        }
}

static void put_escaped(struct builder *b, struct span s)
{
        put_escaped_with(b, s, 0);
}

static void put_port(struct builder *b, unsigned port)
{
        char digits[16];
        snprintf(digits, sizeof digits, "%u", port);
        put(b, digits);
}

static void put_authority(struct builder *b, const struct scope_subject *s)
{
        bool is_v6 = s->host.len > 0 && memchr(s->host.ptr, ':', s->host.len);
        put(b, is_v6 ? "[" : "");
        put_escaped(b, s->host);
        put(b, is_v6 ? "]:" : ":");
        put_port(b, s->port);
}

static struct span path_group(struct span target, unsigned segments)
{
        const char *query = target.len ? memchr(target.ptr, '?', target.len) : NULL;
        size_t end = query ? (size_t)(query - target.ptr) : target.len, at = 0;
        for (unsigned i = 0; i < segments && at < end; i++) {
                const char *slash =
                    end > at + 1 ? memchr(target.ptr + at + 1, '/', end - at - 1) : NULL;
                at = slash ? (size_t)(slash - target.ptr) : end;
        }
        at = at < SCOPE_MAX_PATH_BYTES ? at : SCOPE_MAX_PATH_BYTES;
        while (at > 1 && target.ptr[at - 1] == '/')
                at--;
        return (struct span){target.ptr, at};
}

/* What varies in a part; `digest` is that of a header field. */
static struct span part_text(const struct scope_part *part, const struct scope_subject *s,
                             struct span digest)
{
        switch (part->kind) {
        case SCOPE_HOST:
                return s->host;
        case SCOPE_DOMAIN:
                return s->domain;
        case SCOPE_RULE:
                return s->rule;
        case SCOPE_CLIENT:
                return s->client;
        case SCOPE_SESSION:
                return s->session;
        case SCOPE_PATH:
                return path_group(s->path, part->segments);
        case SCOPE_HEADER:
                return digest;
        case SCOPE_PORT:
        case SCOPE_ENDPOINT:
                break;
        }
        return (struct span){NULL, 0};
}

static void put_part(struct builder *b, const struct scope_part *part,
                     const struct scope_subject *s, struct span text)
{
        if (part->kind == SCOPE_HOST) {
                put_authority(b, s);
                return;
        }
        put(b, part_names[part->kind]);
        if (part->kind == SCOPE_HEADER) {
                put(b, ":");
                put_escaped(b, part->name);
        }
        put(b, "=");
        if (part->kind == SCOPE_PORT)
                put_port(b, s->port);
        else
                put_escaped(b, text);
}

static void put_pool(struct builder *b, struct span pool, bool by_endpoint)
{
        if (pool.len == 0)
                return;
        put(b, b->len > 0 ? " " : "");
        put(b, by_endpoint ? "endpoint=" : "pool=");
        put_escaped(b, pool);
}

char *scope_key_new(const struct scope_part *parts, size_t count,
                    const struct scope_subject *subject)
{
        struct span texts[SCOPE_MAX_PARTS];
        size_t room = 2 + PART_OVERHEAD + 3 * subject->pool.len, headers = 0;
        for (size_t i = 0; i < count; i++) {
                struct span digest = {NULL, 0};
                if (parts[i].kind == SCOPE_HEADER)
                        digest = subject->header_digests[headers++];
                texts[i] = part_text(&parts[i], subject, digest);
                room += 3 * (parts[i].name.len + texts[i].len) + PART_OVERHEAD;
        }
        struct builder b = {xmalloc(room), 0};
        bool by_endpoint = false;
        for (size_t i = 0; i < count; i++) {
                if (parts[i].kind == SCOPE_ENDPOINT) {
                        by_endpoint = true;
                        continue;
                }
                put(&b, b.len > 0 ? " " : "");
                put_part(&b, &parts[i], subject, texts[i]);
        }
        if (b.len == 0 && !(by_endpoint && subject->pool.len > 0))
                put(&b, "*");
        put_pool(&b, subject->pool, by_endpoint);
        b.text[b.len] = '\0';
        return b.text;
}

char *scope_key_of_endpoint(struct span key, struct span name)
{
        struct builder b = {xmalloc(key.len + 3 * name.len + 2), key.len};
        if (key.len > 0)
                memcpy(b.text, key.ptr, key.len);
        put(&b, "/");
        put_escaped_with(&b, name, '/');
        b.text[b.len] = '\0';
        return b.text;
}

static const char endpoint_word[] = "endpoint=";

bool scope_key_split_endpoint(struct span key, struct span *ret_scope, struct span *ret_name)
{
        const char *slash = key.len ? memrchr(key.ptr, '/', key.len) : NULL;
        if (!slash)
                return false;
        struct span scope = {key.ptr, (size_t)(slash - key.ptr)};
        const char *space = scope.len ? memrchr(scope.ptr, ' ', scope.len) : NULL;
        const char *last = space ? space + 1 : scope.ptr;
        size_t len = strlen(endpoint_word);
        if ((size_t)(slash - last) < len || memcmp(last, endpoint_word, len) != 0)
                return false;
        *ret_scope = scope;
        *ret_name = (struct span){slash + 1, key.len - scope.len - 1};
        return true;
}

static int hex_value(char c)
{
        static const char digits[] = "0123456789ABCDEF";
        const char *at = c ? strchr(digits, c) : NULL;
        return at ? (int)(at - digits) : -1;
}

static char *unescaped(struct span s)
{
        char *text = xmalloc(s.len + 1), *to = text;
        for (size_t i = 0; i < s.len; i++) {
                int high = i + 2 < s.len ? hex_value(s.ptr[i + 1]) : -1;
                int low = high >= 0 ? hex_value(s.ptr[i + 2]) : -1;
                if (s.ptr[i] == '%' && low >= 0) {
                        *to++ = (char)(high << 4 | low);
                        i += 2;
                } else {
                        *to++ = s.ptr[i];
                }
        }
        *to = '\0';
        return text;
}

bool scope_key_read_endpoint(struct span key, char **ret_pool, char **ret_name)
{
        struct span scope, name;
        if (!scope_key_split_endpoint(key, &scope, &name))
                return false;
        const char *space = memrchr(scope.ptr, ' ', scope.len);
        const char *pool = (space ? space + 1 : scope.ptr) + strlen(endpoint_word);
        *ret_pool = unescaped((struct span){pool, (size_t)(scope.ptr + scope.len - pool)});
        *ret_name = unescaped(name);
        return true;
}

static int parse_segments(struct span text, unsigned *ret)
{
        unsigned n = 0;
        if (text.len == 0 || text.len > 2 || text.ptr[0] == '0')
                return -EINVAL;
        for (size_t i = 0; i < text.len; i++) {
                if (text.ptr[i] < '0' || text.ptr[i] > '9')
                        return -EINVAL;
                n = 10 * n + (unsigned)(text.ptr[i] - '0');
        }
        if (n > SCOPE_MAX_SEGMENTS)
                return -EINVAL;
        *ret = n;
        return 0;
}

int scope_part_parse(struct span text, struct scope_part *ret_part)
{
        const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
        struct span word = colon ? (struct span){text.ptr, (size_t)(colon - text.ptr)} : text;
        struct scope_part part = {0};
        size_t i = 0;
        while (i < KINDS && !span_equal(word, span_of(part_names[i])))
                i++;
        if (i == KINDS)
                return -EINVAL;
        part.kind = (enum scope_part_kind)i;
        bool takes_more = part.kind == SCOPE_PATH || part.kind == SCOPE_HEADER;
        if (takes_more != (colon != NULL))
                return -EINVAL;
        if (takes_more)
                part.name = (struct span){colon + 1, text.len - word.len - 1};
        if (part.kind == SCOPE_HEADER && !http_text_is_token(part.name))
                return -EINVAL;
        if (part.kind == SCOPE_PATH) {
                if (parse_segments(part.name, &part.segments) < 0)
                        return -EINVAL;
                part.name = (struct span){NULL, 0};
        }
        *ret_part = part;
        return 0;
}

const char *scope_part_name(enum scope_part_kind kind)
{
        return part_names[kind];
}
