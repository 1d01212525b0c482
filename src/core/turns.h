/* core/turns.h - a queue in which the higher priority goes first, and within a priority the clients
 * take turns. */
#ifndef WEIR_CORE_TURNS_H
#define WEIR_CORE_TURNS_H

#include <stddef.h>

#include "base/list.h"
#include "base/span.h"
#include "base/usec.h"
#include "core/governor.h"

/* The clients with a ticket of one priority. */
struct turns_level {
        struct turns_client *clients; /* those that a ticket has joined for, by name */
        struct list turns;            /* of clients with a ticket queued, the next one first */
        size_t turn_count;
        size_t queued;
        unsigned passed; /* how often a higher priority went, one after the other, while this one
                            had somebody queued */
};

/* Nothing here is slower than O(log n) in the number of tickets, whatever is taken out and from
 * where. All zeroes until turns_init. */
struct turns {
        struct turns_level levels[TICKET_PRIORITIES];
        size_t queued;
};

void turns_init(struct turns *q); /* once every ticket has left there is nothing to undo */

/* `t` (with t->priority set) is counted among those of `client`, and may be queued from now on. */
void turns_join(struct turns *q, struct ticket *t, struct span client);
void turns_leave(struct ticket *t); /* not while it is queued */

/* Leaves the one queue and joins the other, for the same client. Not while it is queued. */
void turns_move(struct ticket *t, struct turns *to);

/* Queues `t`, which has joined: behind its client's tickets of its priority that arrived earlier,
 * and ahead of those that arrived later (t->arrived). It becomes QUEUED. */
void turns_add(struct ticket *t, usec_t now);
void turns_remove(struct ticket *t); /* takes it out from wherever it stands; its state stays */

/*
 * The ticket whose turn it is, or NULL when none is queued: of the highest priority, or of one that
 * was passed over TICKET_MOST_PASSED times; within a priority clients take turns.
 */
struct ticket *turns_first(const struct turns *q);

/* Takes that one out: its client goes to the end of the round. Its state stays. */
void turns_take_first(struct turns *q);

/* How many of the queued tickets will at least go before one of that priority and client that
 * arrived at `arrived` and is queued now. Exact while all are of one priority, and of 32 clients at
 * most. */
size_t turns_ahead(const struct turns *q, unsigned priority, struct span client, usec_t arrived);

#endif
