/* core/lane.h - the queue of one scope: who waits in it, and whose turn is next. */
#ifndef WEIR_CORE_LANE_H
#define WEIR_CORE_LANE_H

#include <stddef.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/span.h"
#include "base/usec.h"
#include "base/xalloc.h"
#include "core/governor.h"
#include "core/limiter.h"
#include "core/limiter_memory.h"
#include "core/limiter_state.h"
#include "core/retry.h"
#include "core/series.h"

#define uthash_malloc(size) xmalloc(size)
#define uthash_free(p, size) free(p)
#define uthash_fatal(text) abort()
#include <uthash.h>

/* The clients with a ticket of one priority. */
struct lane_level {
        struct lane_client *clients; /* those with a ticket asleep or queued, by name */
        struct list turns;           /* of clients with a ticket queued, the next one first */
        size_t turn_count;
        size_t queued;
        unsigned passed; /* how often a higher priority went, one after the other, while this one
                            had somebody queued */
};

/* What is known of a scope that nobody has asked for since it was restored. */
struct lane_memory {
        usec_t at; /* when it was taken over; what it says was true then */
        struct limiter_memory learned;
};

/*
 * Everything of one scope. The queue is kept by the functions below; the governor keeps the rest
 * and decides. Nothing here is slower than O(log n) in the number of tickets, whatever is taken out
 * and from where.
 */
struct lane {
        UT_hash_handle hh;          /* by key, for the governor */
        struct list idle;           /* in the governor's list of idle lanes while `tickets` is 0 */
        struct heap_node due;       /* in the governor's heap */
        struct limiter limiter;     /* set up anew by lane_recall where there is a memory */
        struct lane_memory *memory; /* NULL in most; owned */
        struct series series;       /* kept by the governor, with its pool */
        struct retry_budget budget;
        struct lane_policy policy;
        size_t tickets;      /* asleep, queued, or holding a slot */
        uint64_t sent;       /* attempts, since the lane was made */
        usec_t limiter_wake; /* while tickets are queued: when to ask the limiter again */

        size_t queued, sleeping;
        struct lane_level levels[TICKET_PRIORITIES];
        struct heap expiries; /* tickets asleep or queued, by deadline */
        struct heap sleepers; /* tickets asleep, by the end of their sleep */
        char key[];
};

struct lane *lane_new(struct span key, const struct lane_policy *policy);
void lane_free(struct lane *l); /* no ticket may be left in it */

/* A lane with no policy as yet and the memory of a limiter. lane_recall ends that state, and is due
 * before any ticket joins. */
struct lane *lane_new_remembered(struct span key, const struct limiter_memory *m, usec_t now);
void lane_recall(struct lane *l, const struct lane_policy *policy, usec_t now);

/* What the lane has learned or still remembers; false where that is nothing. */
bool lane_export(const struct lane *l, usec_t now, struct limiter_memory *ret);

void lane_look(const struct lane *l, usec_t now, struct limiter_view *ret_view);

/* Both want t->priority, `arrived` and `deadline` set. */

/* Puts `t` to sleep until `until`, on behalf of `client`; it becomes SLEEPING. */
void lane_sleep(struct lane *l, struct ticket *t, struct span client, usec_t until);

/* Queues `t` on behalf of `client`: behind that client's tickets of its priority that arrived
 * earlier, and ahead of those that arrived later. It becomes QUEUED. */
void lane_enqueue(struct lane *l, struct ticket *t, struct span client, usec_t now);

/* Queues every ticket whose sleep has ended. */
void lane_wake(struct lane *l, usec_t now);

/*
 * Takes out the ticket whose turn it is, or NULL when none is queued: of the highest priority, or
 * of one that was passed over TICKET_MOST_PASSED times; within a priority clients take turns, and
 * its client goes to the end of the round. The ticket's state is left for the caller to set.
 */
struct ticket *lane_next(struct lane *l);

/* Takes out `t` (SLEEPING or QUEUED), whose state is left for the caller to set. */
void lane_take_out(struct lane *l, struct ticket *t);

/* A ticket asleep or queued whose deadline is before `until`, the earliest first; or NULL. */
struct ticket *lane_expired(const struct lane *l, usec_t until);

/* How many of the queued tickets will at least go before one of that priority and client that
 * arrived at `arrived` and joins now. Exact while all are of one priority, and of 32 clients at
 * most. */
size_t lane_ahead(const struct lane *l, unsigned priority, struct span client, usec_t arrived);

/* When the next ticket wakes or expires, or the limiter wants to be asked for a queued one;
 * USEC_MAX when nothing of this will come by itself. */
usec_t lane_due(const struct lane *l);

/* Gives back what only a waiting ticket needs; when the lane has become idle. */
void lane_rest(struct lane *l);

#endif
