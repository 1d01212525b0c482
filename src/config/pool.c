#include "config/pool.h"

#include <stdlib.h>

#include "base/xalloc.h"

static void *keep(struct pool *pool, void *p)
{
        if ((pool->count & (pool->count - 1)) == 0) /* 0, 1, 2, 4, 8 …: full */
                pool->list =
                    xrealloc(pool->list, (pool->count ? 2 * pool->count : 1) * sizeof *pool->list);
        pool->list[pool->count++] = p;
        return p;
}

void *pool_alloc(struct pool *pool, size_t n, size_t size)
{
        return keep(pool, xcalloc(n, size));
}

char *pool_dup(struct pool *pool, struct span text)
{
        return keep(pool, xspandup(text));
}

void pool_done(struct pool *pool)
{
        for (size_t i = 0; i < pool->count; i++)
                free(pool->list[i]);
        free(pool->list);
        *pool = (struct pool){0};
}
