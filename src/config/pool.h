/* config/pool.h - memory that lives as long as one configuration does. */
#ifndef WEIR_CONFIG_POOL_H
#define WEIR_CONFIG_POOL_H

#include <stddef.h>

#include "base/span.h"

struct pool {
        void **list;
        size_t count;
};

void *pool_alloc(struct pool *pool, size_t n, size_t size); /* zeroed */
char *pool_dup(struct pool *pool, struct span text);        /* NUL-terminated */
void pool_done(struct pool *pool);                          /* frees all of it */

#endif
