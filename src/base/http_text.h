/* base/http_text.h - the smallest pieces of HTTP's text: tokens and lines. */
#ifndef WEIR_BASE_HTTP_TEXT_H
#define WEIR_BASE_HTTP_TEXT_H

#include <stdbool.h>

#include "base/span.h"

/* Is it a token, as the names of methods and fields are (RFC 9110, 5.6.2)? An empty one is not. */
static inline bool http_text_is_token(struct span s)
{
        static const bool tchar[256] = {
            ['!'] = 1,         ['#' ... '\''] = 1, ['*'] = 1,         ['+'] = 1,
            ['-'] = 1,         ['.'] = 1,          ['0' ... '9'] = 1, ['A' ... 'Z'] = 1,
            ['^' ... 'z'] = 1, ['|'] = 1,          ['~'] = 1};

        for (size_t i = 0; i < s.len; i++)
                if (!tchar[(unsigned char)s.ptr[i]])
                        return false;
        return s.len > 0;
}

/* Takes the next line off the front of *rest, which is not empty: without its CRLF, or the lone LF
 * that counts as well (RFC 9112, 2.2). The last one may lack either. */
static inline struct span http_text_line(struct span *rest)
{
        const char *end = memchr(rest->ptr, '\n', rest->len);
        size_t n = end ? (size_t)(end - rest->ptr) : rest->len, taken = n + (end != NULL);
        struct span line = {rest->ptr, n};
        *rest = (struct span){rest->ptr + taken, rest->len - taken};
        if (line.len && line.ptr[line.len - 1] == '\r')
                line.len--;
        return line;
}

#endif
