/* core/lane_egress.h - what a lane has beside its queue where it goes through a pool. */
#ifndef WEIR_CORE_LANE_EGRESS_H
#define WEIR_CORE_LANE_EGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/usec.h"
#include "core/egress_pool.h"
#include "core/hold.h"
#include "core/lane.h"

/* Tickets put aside in one lane at most. */
#define LANE_MOST_ASIDE 16

/* A lane and one endpoint of its pool. */
struct lane_slot {
        struct lane *lane;
        struct endpoint *endpoint;
        /* Where the scope names the endpoint; limiter.ceiling is 0 else. */
        struct limiter limiter;
        struct lane_memory *memory; /* as in a lane */
        struct series series;
        char *key; /* of its own; NULL where it has no limiter */
        usec_t
            wake; /* not before is the limiter to be asked; USEC_MAX: not until it is told more */
        uint64_t sent; /* attempts, where it has a limiter */
        bool held_up;  /* the limiter has refused since the last request went */

        struct turns *parked;    /* tickets that can go by this endpoint alone; NULL: none */
        struct list waiting;     /* in the endpoint's list while there are any */
        struct list with_parked; /* and in the lane's */
};

struct lane_egress {
        struct lane *lane;
        struct egress_pool *pool;
        struct list of_pool; /* in the pool's list of lanes */
        struct list waiting; /* in the pool's list while any endpoint would do for who is next */
        uint64_t turn;       /* when it got an endpoint last, or began to wait for one */
        bool by_endpoint;    /* each endpoint has a limiter of its own */
        bool starved;        /* when looked at last, all that is queued waited for endpoints */
        bool held_up;        /* as in a slot, where there is one limiter for all */
        bool has_parked;     /* since it rested last */
        bool last_parked;    /* the last one that went had been parked */
        struct hold circuit; /* blocked by one endpoint after the other */
        const struct lane_slot *refused; /* last, of the endpoints' limiters; NULL: none was */
        struct lane_slot **slots;        /* by the endpoint's id; NULL where there is none as yet */
        size_t room, count;
        struct list with_parked; /* slots */
        struct list aside; /* tickets that have had their turn, and for which the endpoint that
                              was free is none */
        size_t aside_count;
        struct list stranded; /* sleepers for whom there was no endpoint at all */
        struct {
                struct limiter_view view;
                usec_t until; /* it serves so long; 0: it does not */
        } seen;
};

/* The lane goes through the pool from now on. */
void lane_egress_attach(struct lane *l, struct egress_pool *pool, bool by_endpoint);
void lane_egress_free(struct lane_egress *x); /* NULL is fine; its slots' series must be done */

/* The lane's policy, or an endpoint's, has changed: so do the bounds of the endpoints' limiters. */
void lane_egress_configure(struct lane_egress *x);

/* Gives back what only a waiting ticket needs. */
void lane_egress_rest(struct lane_egress *x);

/* Made where there is none. */
struct lane_slot *lane_slot_for(struct lane *l, struct endpoint *e, usec_t now);

static inline struct lane_slot *lane_slot_find(const struct lane *l, const struct endpoint *e)
{
        const struct lane_egress *x = l->egress;
        return e->id < x->room ? x->slots[e->id] : NULL;
}

/* The endpoint's limiter was refused, and cut: those at the same rate heed it, and new ones will
 * begin as it does. */
void lane_slot_refused(struct lane_slot *slot, usec_t now);

/* Nothing may be parked there, and its series is done. */
void lane_slot_free(struct lane_slot *slot);

/* The memory of an endpoint's limiter, for later; and its recall, before the limiter is asked. */
void lane_slot_remember(struct lane_slot *slot, const struct limiter_memory *m, usec_t now);
void lane_slot_recall(struct lane_slot *slot, usec_t now);

bool lane_slot_export(const struct lane_slot *slot, usec_t now, struct limiter_memory *ret);
void lane_slot_look(const struct lane_slot *slot, usec_t now, struct limiter_view *ret_view);

/* May the endpoint's limiter let one go? It is asked again no sooner than that may have changed. */
bool lane_slot_may_go(struct lane_slot *slot, usec_t now);

/* The lane is about to wait for an endpoint, for any or for one: behind those that do already. */
void lane_egress_begin_to_wait(struct lane_egress *x);

/* Where a ticket waits that has had its turn. It is nowhere in the lane; becomes QUEUED. */
void lane_park(struct lane *l, struct ticket *t, struct endpoint *e, usec_t now);
void lane_put_aside(struct lane *l, struct ticket *t);

/* Takes the first of those parked there, whose turn it is; it is nowhere in the lane then. */
void lane_unpark_first(struct lane_slot *slot);

/* Back into the queue with `t`, which is nowhere in the lane; with all those parked there; with all
 * those aside. They have waited since when they had. */
void lane_queue_again(struct lane *l, struct ticket *t, usec_t now);
void lane_unpark_all(struct lane_slot *slot, usec_t now);
void lane_take_back(struct lane *l, usec_t now);

/* The endpoints' limiters together: the sums of their rates and of what is in flight; closed while
 * all are. Or the one limiter; and the circuit on top of either. */
void lane_egress_look(const struct lane *l, usec_t now, struct limiter_view *ret_view);

/* Takes a ticket out that is not in the lane's turns: lane_unqueue. */
void lane_egress_unqueue(struct lane *l, struct ticket *t);

#endif
