/* core/series.h - the last changes of each scope's limiter, bounded for each and for all together.
 */
#ifndef WEIR_CORE_SERIES_H
#define WEIR_CORE_SERIES_H

#include <stddef.h>

#include "base/list.h"
#include "base/usec.h"
#include "core/limiter.h"

/* What of a change is kept. */
struct series_record {
        usec_t at;
        usec_t closed_until; /* 0: open */
        double rate, concurrency;
        size_t queued;
        unsigned in_flight;
        enum limiter_event event;
};

/* The records of all scopes, allocated as they come. The oldest give way to new ones. */
struct series_pool {
        struct list records; /* the oldest first */
        size_t count, max, max_each;
};

/* The records of one scope. */
struct series {
        struct list records; /* the oldest first */
        size_t count;
};

/* max and max_each: records kept in all, and of one scope; at least 1 */
void series_pool_init(struct series_pool *p, size_t max, size_t max_each);
void series_pool_done(struct series_pool *p); /* every series of it must be done */

void series_init(struct series *s);
void series_done(struct series *s, struct series_pool *p);

/* Adds the newest record. Where a bound is reached it takes the place of the oldest one of the
 * scope, or of all. */
void series_add(struct series *s, struct series_pool *p, const struct series_record *record);

/* Calls `each` for those later than `since`, the oldest first; borrowed for the call. */
void series_read(const struct series *s, usec_t since,
                 void (*each)(void *arg, const struct series_record *record), void *arg);

#endif
