#include "base/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
        if (!p) {
                fputs("weir: out of memory\n", stderr);
                abort();
        }
        return p;
}

void *xmalloc(size_t size)
{
        return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
        return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
        return checked(realloc(p, size ? size : 1));
}

char *xstrdup(const char *s)
{
        return checked(strdup(s));
}

char *xspandup(struct span s)
{
        char *p = xmalloc(s.len + 1);
        if (s.len)
                memcpy(p, s.ptr, s.len);
        p[s.len] = '\0';
        return p;
}

char *xvasprintf(const char *format, va_list ap)
{
        char *p = NULL;
        if (vasprintf(&p, format, ap) < 0)
                p = NULL;
        return checked(p);
}

char *xasprintf(const char *format, ...)
{
        va_list ap;
        va_start(ap, format);
        char *p = xvasprintf(format, ap);
        va_end(ap);
        return p;
}
