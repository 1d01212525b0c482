/* base/span.h - a borrowed run of bytes: a pointer and a length, not NUL-terminated. */
#ifndef WEIR_BASE_SPAN_H
#define WEIR_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct span {
        const char *ptr;
        size_t len;
};

static inline struct span span_of(const char *s)
{
        return (struct span){s, s ? strlen(s) : 0};
}

static inline bool span_equal(struct span a, struct span b)
{
        return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ASCII letters compare equal whatever their case, as HTTP names do. */
static inline bool span_equal_nocase(struct span a, struct span b)
{
        return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

/* Is `part` anywhere in `text`, compared in the same way? An empty one is. */
static inline bool span_contains_nocase(struct span text, struct span part)
{
        for (size_t i = 0; part.len > 0 && i + part.len <= text.len; i++)
                if (strncasecmp(text.ptr + i, part.ptr, part.len) == 0)
                        return true;
        return part.len == 0;
}

/* Without the spaces and tabs at both ends (OWS, RFC 9110, 5.6.3). */
static inline struct span span_trim(struct span s)
{
        while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
                s.ptr++, s.len--;
        while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
                s.len--;
        return s;
}

/*
 * Takes the part before the first `sep` off the front of *rest, trimmed. False when nothing is
 * left. for (struct span item; span_next(&rest, ',', &item);) ...
 */
static inline bool span_next(struct span *rest, char sep, struct span *ret_item)
{
        if (!rest->ptr)
                return false;
        const char *at = rest->len ? memchr(rest->ptr, sep, rest->len) : NULL;
        size_t n = at ? (size_t)(at - rest->ptr) : rest->len;
        *ret_item = span_trim((struct span){rest->ptr, n});
        if (at)
                *rest = (struct span){at + 1, rest->len - n - 1};
        else
                *rest = (struct span){NULL, 0};
        return true;
}

#endif
