/* core/lane.h - everything of one scope: its limiter, its budget, and who waits in it. */
#ifndef WEIR_CORE_LANE_H
#define WEIR_CORE_LANE_H

#include <stddef.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/span.h"
#include "base/usec.h"
#include "core/governor.h"
#include "core/limiter.h"
#include "core/limiter_memory.h"
#include "core/limiter_state.h"
#include "core/retry.h"
#include "core/series.h"
#include "core/turns.h"

/* What is known of a limiter that nobody has asked for since it was restored. */
struct lane_memory {
        usec_t at; /* when it was taken over; what it says was true then */
        struct limiter_memory learned;
};

/*
 * The queue is kept by the functions below; the governor keeps the rest and decides. Nothing here
 * is slower than O(log n) in the number of tickets, whatever is taken out and from where.
 */
struct lane {
        UT_hash_handle hh;          /* by key, for the governor */
        struct list idle;           /* in the governor's list of idle lanes while `tickets` is 0 */
        struct list touched;        /* in the governor's list of those that are to be looked at */
        struct heap_node due;       /* in the governor's heap */
        struct limiter limiter;     /* set up anew by lane_recall where there is a memory */
        struct lane_memory *memory; /* NULL in most; owned */
        struct series series;       /* kept by the governor, with its pool */
        struct retry_budget budget;
        struct lane_policy policy;
        struct lane_egress *egress; /* NULL: it goes directly. Owned; see core/lane_egress.h */
        bool unclaimed; /* its policy is not known yet, only what was learned of its endpoints */
        size_t tickets; /* asleep, queued, held, or holding a slot */
        uint64_t sent;  /* attempts, but for those that are an endpoint's limiter's matter */
        usec_t limiter_wake; /* while tickets are queued: when to ask the limiter again */

        size_t queued; /* those parked or put aside included */
        size_t sleeping;
        size_t held;          /* by their sessions, until it is their turn there */
        struct turns turns;   /* those queued that have not had their turn */
        struct heap expiries; /* tickets asleep, queued or held, by deadline */
        struct heap sleepers; /* tickets asleep, by the end of their sleep */
        char key[];
};

struct lane *lane_new(struct span key, const struct lane_policy *policy);
void lane_free(struct lane *l); /* no ticket may be left in it */

/* A lane with no policy as yet and the memory of a limiter. lane_recall ends that state, and is due
 * before any ticket joins. */
struct lane *lane_new_remembered(struct span key, const struct limiter_memory *m, usec_t now);
void lane_recall(struct lane *l, const struct lane_policy *policy, usec_t now);

struct lane_memory *lane_memory_new(const struct limiter_memory *m, usec_t now);

/* The same memory as it is at `now`. */
void lane_memory_read(const struct lane_memory *memory, usec_t now, struct limiter_memory *ret);

/* What the lane has learned or still remembers; false where that is nothing. */
bool lane_export(const struct lane *l, usec_t now, struct limiter_memory *ret);

void lane_look(const struct lane *l, usec_t now, struct limiter_view *ret_view);

/* All of these want t->priority, `arrived` and `deadline` set. */

/* Puts `t` to sleep until `until`, on behalf of `client`; it becomes SLEEPING. */
void lane_sleep(struct lane *l, struct ticket *t, struct span client, usec_t until);

/* `t` is in the lane on behalf of `client`, but nowhere in it. */
void lane_join(struct lane *l, struct ticket *t, struct span client);

/* Sleeping and queueing for one that is nowhere in it: after lane_join, lane_unqueue, lane_awake.
 */
void lane_doze(struct lane *l, struct ticket *t, usec_t until);
void lane_queue(struct lane *l, struct ticket *t, usec_t now);

/* Takes out of the sleepers one whose sleep has ended, which is then nowhere in the lane; or NULL.
 */
struct ticket *lane_awake(struct lane *l, usec_t now);

/* Takes out the ticket whose turn it is, or NULL when none is queued. The ticket's state is left
 * for the caller to set. */
struct ticket *lane_next(struct lane *l);

/* The same, but it stays in the lane, nowhere in it; there is one. */
void lane_take_turn(struct lane *l);

/* Takes `t` (SLEEPING or QUEUED) out of where it waits; it is nowhere in the lane then. */
void lane_unqueue(struct lane *l, struct ticket *t);

/* Takes out `t`, which is nowhere in the lane, or SLEEPING or QUEUED. Its state is left for the
 * caller to set. */
void lane_leave(struct lane *l, struct ticket *t);
void lane_take_out(struct lane *l, struct ticket *t);

/* A ticket asleep or queued whose deadline is before `until`, the earliest first; or NULL. */
struct ticket *lane_expired(const struct lane *l, usec_t until);

/* When the next ticket wakes or expires, or the limiter wants to be asked for a queued one;
 * USEC_MAX when nothing of this will come by itself. */
usec_t lane_due(const struct lane *l);

/* Gives back what only a waiting ticket needs; when the lane has become idle. */
void lane_rest(struct lane *l);

#endif
