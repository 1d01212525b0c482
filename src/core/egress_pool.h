/* core/egress_pool.h - the endpoints of one pool: which of them can take a request, and which gets
 * it. */
#ifndef WEIR_CORE_EGRESS_POOL_H
#define WEIR_CORE_EGRESS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/prng.h"
#include "base/usec.h"
#include "core/endpoint.h"
#include "core/quarantine.h"
#include "core/sessions.h"

/* After a fault of its own an endpoint backs off: the first time for the one, then for twice as
 * long each time, up to the other; then one request at a time probes it. */
#define ENDPOINT_BACK_OFF_MIN USEC_PER_SEC
#define ENDPOINT_BACK_OFF_MAX (300 * USEC_PER_SEC)

/* After so many faults in a row its sessions go elsewhere. */
#define ENDPOINT_LOST_FAULTS 3

struct endpoint {
        struct egress_pool *pool;
        const struct endpoint_policy *policy; /* NULL once it is retired */
        size_t id;                            /* its place in the pool's `endpoints` */
        struct list free;                     /* among the pool's while it can take a request */
        struct list offer;                    /* the governor's: it is to be offered */
        struct heap_node recovery;            /* the governor's: the end of its back-off */
        struct list waiting;                  /* of lane_slots with tickets parked here, in turn */
        unsigned in_flight;
        bool down; /* it backs off, until then */
        usec_t until;
        unsigned faults_in_row;
        usec_t fault_at;
        double served; /* requests by weight, as a virtual time (egress_pool_choose) */
        uint64_t uses, faults, blocks; /* since the start */
        size_t sessions;
        char exit[ENDPOINT_EXIT_MAX]; /* the address that hosts see, as told last; "" */
        char name[];
};

struct egress_pool {
        UT_hash_handle hh; /* the governor's, by name */
        const struct pool_policy *policy;
        struct endpoint **endpoints; /* by id; NULL where there is none */
        size_t room;
        size_t up;           /* neither retired nor backing off */
        struct list free;    /* endpoints that can take a request */
        struct list lanes;   /* that go through it */
        struct list waiting; /* of lanes, for any endpoint, in turn */
        uint64_t turns;      /* counts places in both kinds of waiting lists */
        double served;       /* of the endpoint chosen last */
        struct sessions sessions;
        struct quarantine quarantine;
        bool gone; /* the configuration has it no more */
        char name[];
};

struct egress_pool *egress_pool_new(const struct pool_policy *policy);
void egress_pool_free(struct egress_pool *p); /* nothing may be in flight, and no lane left */

/* Takes over a changed policy. Endpoints that it does not name are retired: they take nothing any
 * more, have no sessions, and stay until egress_pool_drop. */
void egress_pool_configure(struct egress_pool *p, const struct pool_policy *policy);

/* Frees a retired endpoint with nothing in flight. Its id may be that of another one later. */
void egress_pool_drop(struct endpoint *e);

struct endpoint *egress_pool_find(const struct egress_pool *p, const char *name); /* or NULL */

static inline bool endpoint_is_up(const struct endpoint *e)
{
        return e->policy && !e->down;
}

static inline bool endpoint_is_free(const struct endpoint *e)
{
        return !list_empty(&e->free);
}

/* Do sessions go elsewhere, whatever host they are for? */
static inline bool endpoint_is_lost(const struct endpoint *e)
{
        return !e->policy || e->faults_in_row >= ENDPOINT_LOST_FAULTS;
}

/* Each of these returns whether the endpoint can take a request now that it could not take before.
 */
bool endpoint_release(struct endpoint *e); /* one request less in flight */
bool endpoint_works(struct endpoint *e); /* an answer came through it: no row of faults any more */
bool endpoint_recover(struct endpoint *e); /* its back-off has ended; it may be probed */

void endpoint_take(struct endpoint *e); /* one request more: it is free */

/*
 * A fault of its own in an attempt that was sent at `sent`. It backs off until e->until, with a
 * tenth of jitter at most. Returns false where it had backed off since: nothing new.
 */
bool endpoint_fail(struct endpoint *e, usec_t sent, usec_t now, struct prng *prng);

/*
 * Of the free endpoints to which `may` says yes that which is to go next, or NULL. Each has its
 * part by its weight, whichever of them are free when: of those equally used the one with the
 * smallest `served`, which grows by 1 / weight with each request and never lags behind for what was
 * missed while it was not free.
 *
 * for_session  it is for good: where the least used is wanted, that with the fewest sessions; and
 *              one that failed last only where there is no other, while a single request may try
 */
struct endpoint *egress_pool_choose(struct egress_pool *p, bool for_session, struct prng *prng,
                                    bool (*may)(void *arg, struct endpoint *e), void *arg);

/*
 * When will there be an endpoint for that host, `not` left out (NULL: none is)? `now` where there
 * is one, though it may be busy; USEC_MAX where none will be by itself.
 */
usec_t egress_pool_expected(const struct egress_pool *p, const struct quarantine_host *h,
                            const struct endpoint * not, usec_t now);

#endif
