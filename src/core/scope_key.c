#include "core/scope_key.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/xalloc.h"

static const char *const part_names[] = {
    [SCOPE_HOST] = "host",
    [SCOPE_PORT] = "port",
    [SCOPE_RULE] = "rule",
    [SCOPE_CLIENT] = "client",
};

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

static void put_escaped(struct builder *b, struct span s)
{
        static const char hex[] = "0123456789ABCDEF";
        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char)s.ptr[i];
                if (c > ' ' && c < 0x7f && c != '%' && c != '=') {
                        b->text[b->len++] = (char)c;
                        continue;
                }
                b->text[b->len++] = '%';
                b->text[b->len++] = hex[c >> 4];
                b->text[b->len++] = hex[c & 15];
        }
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

static void put_part(struct builder *b, enum scope_part_kind kind, const struct scope_subject *s)
{
        if (kind == SCOPE_HOST) {
                put_authority(b, s);
                return;
        }
        put(b, part_names[kind]);
        put(b, "=");
        if (kind == SCOPE_PORT)
                put_port(b, s->port);
        else
                put_escaped(b, kind == SCOPE_RULE ? s->rule : s->client);
}

char *scope_key_new(const struct scope_part *parts, size_t count,
                    const struct scope_subject *subject)
{
        if (count == 0)
                return xstrdup("*");
        /* Each part may take the longest of the texts, escaped, and 32 for its name, brackets and
         * port. */
        size_t longest = subject->host.len;
        longest = subject->rule.len > longest ? subject->rule.len : longest;
        longest = subject->client.len > longest ? subject->client.len : longest;
        struct builder b = {xmalloc(count * (3 * longest + 32) + 1), 0};
        for (size_t i = 0; i < count; i++) {
                put(&b, i > 0 ? " " : "");
                put_part(&b, parts[i].kind, subject);
        }
        b.text[b.len] = '\0';
        return b.text;
}

int scope_part_parse(struct span text, struct scope_part *ret_part)
{
        for (size_t i = 0; i < sizeof part_names / sizeof part_names[0]; i++) {
                if (!span_equal(text, span_of(part_names[i])))
                        continue;
                ret_part->kind = (enum scope_part_kind)i;
                return 0;
        }
        return -EINVAL;
}
