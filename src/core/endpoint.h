/* core/endpoint.h - a way out of a pool as the governor sees it: what the configuration says of it.
 */
#ifndef WEIR_CORE_ENDPOINT_H
#define WEIR_CORE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/usec.h"

/* Which of the endpoints that could take a request gets it. Each has its part by its weight. */
enum egress_choose {
        EGRESS_LEAST_USED, /* with the fewest requests in flight, then the one that lags behind */
        EGRESS_ROUND_ROBIN,
        EGRESS_RANDOM
};

/* Enough for an address, or what a provider shows instead of one. */
#define ENDPOINT_EXIT_MAX 64

struct endpoint_policy {
        const char *name;       /* no other of its pool has it */
        unsigned max_in_flight; /* requests at a time, from 1 on */
        unsigned weight;        /* from 1 on */
        const void *egress;     /* how it is reached: nothing that the governor looks at */
};

/*
 * What the configuration says of a pool. An endpoint is known by the names of its pool and itself:
 * what is known of it outlives a reload that keeps both, whatever else has changed.
 *
 * It is used beyond the call that it is handed over with: the governor holds the `owner`, the
 * snapshot that it is part of, for as long as it does so. hold and drop may be called with the
 * governor's lock held; NULL where there is no need.
 */
struct pool_policy {
        const char *name;
        const struct endpoint_policy *endpoints;
        size_t endpoint_count; /* at least 1 */
        enum egress_choose choose;
        bool sticky;       /* a session keeps its endpoint … */
        usec_t sticky_ttl; /* … for so long after its last request */
        struct {
                unsigned after; /* blocks in a row, from 1 on, with which … */
                usec_t time;    /* … a host avoids the endpoint for so long */
        } quarantine;
        unsigned generation; /* as in lane_policy */
        void *owner;
        void (*hold)(void *owner);
        void (*drop)(void *owner);
};

#endif
