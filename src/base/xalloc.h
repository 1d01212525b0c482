/* base/xalloc.h - allocation that cannot fail: out of memory ends the process, here and nowhere
 * else. */
#ifndef WEIR_BASE_XALLOC_H
#define WEIR_BASE_XALLOC_H

#include <stdarg.h>
#include <stddef.h>

#include "base/span.h"

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xspandup(struct span s); /* NUL-terminated copy */
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

#endif
