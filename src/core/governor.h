/* core/governor.h - the single owner of "how many right now": lanes, queues, tickets and their
 * limiters. */
#ifndef WEIR_CORE_GOVERNOR_H
#define WEIR_CORE_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/prng.h"
#include "base/span.h"
#include "base/usec.h"
#include "core/answer.h"
#include "core/endpoint.h"
#include "core/limiter.h"
#include "core/limiter_memory.h"
#include "core/series.h"

struct governor;
struct lane;

/* What a rule says of its lanes. `generation` grows with each reload: a lane takes over the policy
 * of the first ticket that carries a newer one. */
struct lane_policy {
        struct limiter_policy limit;
        bool refuse_when_open; /* breaker.when_open: refuse */
        unsigned queue_max; /* tickets waiting, asleep or queued; retries are admitted above it */
        double retry_share; /* retries of failures, as a share of the requests admitted */
        /* With a pool. The scope names the endpoint: a limiter for each of them instead of one. */
        bool by_endpoint;
        bool session_order; /* the requests of one session go strictly one after the other */
        unsigned generation;
};

/* 0 to 9, higher first. Strictly so, but for this: a priority that was passed over 16 times in a
 * row is next, so that none waits for ever. */
#define TICKET_PRIORITIES 10
#define TICKET_PRIORITY_DEFAULT 5
#define TICKET_MOST_PASSED 16

enum ticket_state {
        TICKET_IDLE,      /* with its owner */
        TICKET_SLEEPING,  /* until `not_before` */
        TICKET_QUEUED,    /* in its lane */
        TICKET_READY,     /* decided; on its way to its worker (governor_take) */
        TICKET_IN_FLIGHT, /* granted and sent; holds a slot until governor_finish */
        TICKET_KEEPING    /* governor_keep: it has an endpoint to itself, and no slot any more */
};

/* Where in its lane a QUEUED one is. */
enum ticket_place {
        TICKET_IN_TURNS,
        TICKET_PARKED, /* it has had its turn, and goes by one endpoint alone */
        TICKET_ASIDE,  /* the same, by some alone */
        TICKET_HELD    /* another one of its session is to end first */
};

enum ticket_reply {
        TICKET_GRANTED,
        TICKET_WAITING,
        TICKET_QUEUE_FULL,   /* queue.max tickets wait already */
        TICKET_TOO_LONG,     /* cannot go before its deadline, or that has passed */
        TICKET_CIRCUIT_OPEN, /* and breaker.when_open is refuse */
        TICKET_NO_ENDPOINT,  /* none of the pool will be of use before its deadline */
        TICKET_CLOSING,      /* governor_close was called */
};

/* One request that wants to go. Lives in its owner; zeroed before first use. */
struct ticket {
        struct list link;        /* in its client's queue, or in the list of ready tickets */
        struct heap_node wake;   /* asleep: by not_before; queued again: by arrived */
        struct heap_node expiry; /* asleep or queued: by deadline */
        struct lane *lane;       /* NULL when it is in none */
        struct turns_client *client;
        usec_t arrived, deadline;
        usec_t queued_at; /* when it joined its client's queue */
        usec_t wait;      /* with a refusal: when trying again may help, from then; 0 unknown */
        unsigned worker;  /* free for the owner's shell: whose mailbox */
        unsigned priority;
        enum ticket_state state;
        enum ticket_reply reply; /* valid from READY on */
        bool waited;             /* it was queued for some time before it was granted */
        struct limiter_pass pass;
        /* With a pool, from the grant until it is finished, requeued or cancelled: by which it
         * goes. */
        const struct endpoint_policy *endpoint;
        bool moved; /* with a grant: its session had another endpoint before, which it has lost */
        /* The governor's own. */
        enum ticket_place place;
        struct lane_slot *slot;        /* PARKED: there */
        struct session *session;       /* NULL: none */
        struct quarantine_host *host;  /* with a pool */
        struct endpoint *at;           /* from the grant on, as `endpoint` */
        const struct pool_policy *by;  /* held for as long as `endpoint` is of use */
        const struct endpoint *not_by; /* only compared: where there are others */
        bool probes;                   /* whether endpoints are still being blocked */
};

struct ticket_wish {
        struct span key;                  /* scope key; copied */
        struct span client;               /* who asks: turns go round between clients; copied */
        const struct lane_policy *policy; /* borrowed for the call */
        const struct pool_policy *pool;   /* NULL: none, it goes directly. The same for one key */
        struct span host; /* with a pool: whom it is for, as quarantines go by; copied */
        struct span
            session;    /* whose requests go by one endpoint, and in order; copied; empty: none */
        const char *by; /* with a session that nobody else uses: by that endpoint, while it is of
                           use; NULL: any. Borrowed for the call */
        usec_t arrived; /* first arrival of the request: a retry keeps it and so goes ahead */
        usec_t not_before; /* 0, or the end of a retry's own wait */
        usec_t deadline;   /* later than this it is refused with TICKET_TOO_LONG */
        unsigned priority; /* within its lane: below TICKET_PRIORITIES */
        bool retry;        /* admitted although the queue is full */
        bool budgeted;  /* a retry on the account of its lane's retry budget (governor_requeue) */
        bool elsewhere; /* a retry that is to go by another endpoint than before, if there is one */
};

/* One change of one limiter, for the series; or how a scope stands. */
struct governor_change {
        usec_t now;
        const char *key; /* borrowed: valid during the callback */
        enum limiter_event event;
        struct limiter_view view;
        size_t queued, sleeping;
        uint64_t sent; /* attempts that this limiter let go, since this governor was made */
};

struct governor_config {
        size_t max_lanes; /* beyond it the lane that has been idle longest is forgotten */
        uint64_t seed;
        /* NULL: none. Called from within the operations below; it must call none of them. */
        void (*on_change)(void *arg, const struct governor_change *change);
        void *arg;
};

struct governor_stats {
        size_t lanes, sleeping, queued, in_flight, ready;
        uint64_t sent;   /* attempts, since the start */
        uint64_t resets; /* the same of governor_reset */
};

struct governor *governor_new(const struct governor_config *config);
void governor_free(struct governor *g); /* no ticket may be left in it */

/*
 * Asks for `t` (IDLE) to go. GRANTED: it is IN_FLIGHT. WAITING: governor_take hands it over later.
 * Anything else is a refusal: it stays IDLE, and t->wait tells when trying again may help.
 */
enum ticket_reply governor_ask(struct governor *g, struct ticket *t, const struct ticket_wish *wish,
                               usec_t now);

/*
 * The answer to `t` (IN_FLIGHT). At most once for each grant; not at all where nothing can be
 * learned (refused by the address guard, client gone). Tickets that cannot go before their
 * deadlines any more are refused here, not when those pass.
 *
 * Returns its class in the light of those before it: a throttled one that is just the last of many,
 * however long nothing was sent between them, is ANSWER_BLOCKED (limiter_answer).
 */
enum answer_class governor_answer(struct governor *g, struct ticket *t, const struct answer *answer,
                                  usec_t now);

/*
 * The attempt of `t` (IN_FLIGHT) is over and wants to be made again in the same lane:
 * governor_finish and governor_ask in one step, so that a refusal costs nothing. `wish` is that of
 * a retry; its key is not looked at.
 *
 * True: its slot is given back, a budgeted wish has taken one retry off the lane's budget, and it
 * sleeps until wish->not_before; governor_take hands it over later even where that has passed.
 * False: it would be refused (t->reply and t->wait tell why), or the budget is used up (GRANTED, as
 * it was); it is IN_FLIGHT still and holds its slot. A wish for elsewhere is not granted either
 * where there will be no other endpoint before its deadline, or where its session has the one that
 * it went by, and does not lose it.
 *
 * The budget grows with each ticket that is admitted and is no retry.
 */
bool governor_requeue(struct governor *g, struct ticket *t, const struct ticket_wish *wish,
                      usec_t now);

/*
 * The endpoint of `t` (IN_FLIGHT, with one) is to blame for how its attempt ended, not the host: it
 * backs off, and nothing is learned about the host. To be followed by governor_requeue or
 * governor_finish.
 *
 * ret_wait  until an endpoint is expected to be of use to the host: 0 where one is, though it may
 *           be busy; USEC_MAX: none will be by itself
 *
 * Returns whether that is news: false where the endpoint had begun to back off since.
 */
bool governor_endpoint_failed(struct governor *g, struct ticket *t, usec_t now, usec_t *ret_wait);

/* What was asked of the host is done, but `t` (IN_FLIGHT) goes on to use its endpoint: gives the
 * slot back alone. It is KEEPING then, until governor_finish; IDLE where it has no endpoint. */
void governor_keep(struct governor *g, struct ticket *t, usec_t now);

/* The attempt of `t` (IN_FLIGHT, KEEPING) is over: gives its slot back; it is IDLE then. */
void governor_finish(struct governor *g, struct ticket *t, usec_t now);

/* Takes `t` out from wherever it is; it is IDLE then, as it may have been before. READY: also out
 * of the list that governor_take put it into, which therefore wants the same lock as the governor,
 * and a slot granted to it is given back. */
void governor_cancel(struct governor *g, struct ticket *t, usec_t now);

/* Does what has become due at `now`, and moves every READY ticket to the tail of `ret_ready`, where
 * it stays READY until its owner calls governor_accept (or governor_cancel). */
void governor_take(struct governor *g, usec_t now, struct list *ret_ready);

/* The owner takes note of a READY ticket. GRANTED: it is IN_FLIGHT; a refusal: it is IDLE. */
enum ticket_reply governor_accept(struct governor *g, struct ticket *t);

/* The earliest moment at which governor_take has something to do: 0 while READY tickets wait to be
 * taken, USEC_MAX when nothing will happen by itself. Right after governor_take( , now, ) it is
 * later than `now`. */
usec_t governor_next_wake(const struct governor *g);

/* Refuses all that waits with TICKET_CLOSING, and whatever asks from now on. */
void governor_close(struct governor *g, usec_t now);

void governor_stats(const struct governor *g, struct governor_stats *ret_stats);

/* Calls `each` for the changes of one scope later than `since`, the oldest first: the last 256, or
 * fewer where many scopes change. False: there is no such scope. */
bool governor_series(const struct governor *g, struct span key, usec_t since,
                     void (*each)(void *arg, const struct series_record *record), void *arg);

/*
 * Copies out what was learned, so that a later governor can go on with it. In portions, so that the
 * lock around it is never held for long: other operations may come between them, and may make or
 * forget lanes.
 *
 * begin  starts with the first lane; false goes on where the last portion ended
 * lanes  that are looked at in this portion, at most; each limiter of an endpoint counts as one
 * each   gets those that have learned something; `key` and `m` are borrowed for the call
 *
 * Returns whether there is more.
 */
bool governor_export(struct governor *g, bool begin, size_t lanes, usec_t now,
                     void (*each)(void *arg, const char *key, const struct limiter_memory *m),
                     void *arg);

/* Takes over what a former governor had learned of a scope, as it is at `now`. Its lane is idle
 * until the scope is asked for. Import the scopes used longest ago first: with more than max_lanes
 * those are forgotten. A lane that is there already stays as it is. */
void governor_import(struct governor *g, struct span key, const struct limiter_memory *m,
                     usec_t now);

/* How the scopes stand, in portions: as governor_export does, with a place of its own to go on
 * from. `event` is LIMITER_UNCHANGED. */
bool governor_look(struct governor *g, bool begin, size_t lanes, usec_t now,
                   void (*each)(void *arg, const struct governor_change *view), void *arg);

/* Forgets what was learned of a scope, and opens it; its queue and what is in flight stay. False:
 * there is no such scope. */
bool governor_reset(struct governor *g, struct span key, usec_t now);

/* --- pools --- */

/* What a new configuration says: all of its pools, before the first ticket that was asked for under
 * it. Others serve those that have them of an older one. */
void governor_pools(struct governor *g, const struct pool_policy *const *pools, size_t count,
                    usec_t now);

/* How the endpoints stand. Names are borrowed for the call. */
struct endpoint_view {
        const char *pool, *name;
        unsigned in_flight, max_in_flight; /* the latter 0: it is gone, but for those in flight */
        uint64_t uses, faults, blocks;     /* since the start; faults of its own */
        unsigned faults_in_row;
        usec_t back_off_until; /* 0: it does not */
        size_t sessions;
        char exit[ENDPOINT_EXIT_MAX]; /* the address that hosts see, as told last; "" */
};

struct quarantine_view {
        const char *pool, *endpoint, *host;
        usec_t until; /* the host avoids it until then */
};

struct session_view {
        const char *pool, *endpoint, *session;
        usec_t used;    /* last */
        size_t tickets; /* that are of it */
};

/* The address that hosts see for the endpoint of `t` (IN_FLIGHT or KEEPING, with one). Not "": it
 * is noted; "": filled with what was noted last. */
void governor_exit(struct governor *g, const struct ticket *t, char exit[ENDPOINT_EXIT_MAX]);

/* Each tells `count` of them at most, beginning with number `from`; returns how many. Others may
 * come and go between two portions, so that one may be missed or told twice. */
size_t governor_look_endpoints(const struct governor *g, size_t from, size_t count,
                               void (*each)(void *arg, const struct endpoint_view *view),
                               void *arg);
size_t governor_look_quarantines(const struct governor *g, size_t from, size_t count, usec_t now,
                                 void (*each)(void *arg, const struct quarantine_view *view),
                                 void *arg);
size_t governor_look_sessions(const struct governor *g, size_t from, size_t count,
                              void (*each)(void *arg, const struct session_view *view), void *arg);

/* A quarantine of a former governor, no longer than one would be now; after governor_pools, which
 * has to name its endpoint. */
void governor_import_quarantine(struct governor *g, const struct quarantine_view *q, usec_t now);

#endif
