/* core/governor_state.h - the inside of the governor, for the files that make it up. */
#ifndef WEIR_CORE_GOVERNOR_STATE_H
#define WEIR_CORE_GOVERNOR_STATE_H

#include "base/heap.h"
#include "base/list.h"
#include "base/prng.h"
#include "core/governor.h"
#include "core/lane.h"
#include "core/lane_egress.h"
#include "core/sessions.h"

struct governor {
        struct governor_config config;
        struct prng prng;
        struct lane *lanes;  /* hash by key */
        struct heap due;     /* lanes by the next moment at which something happens in them */
        struct list idle;    /* lanes without a ticket, idle for longest first */
        struct list ready;   /* tickets decided and not yet taken */
        struct lane *export; /* the next one to copy out; NULL: none */
        struct lane *look;   /* and to look at */
        struct series_pool series;
        struct governor_stats stats;
        bool closing;

        struct sessions sessions;  /* of what goes directly */
        struct egress_pool *pools; /* hash by name */
        bool pools_told;           /* governor_pools was called: others are gone */
        bool pools_rest;           /* one that is gone may be used by nothing any more */
        size_t limiters;           /* of endpoints */
        struct heap recoveries;    /* endpoints by the end of their back-off */
        /* Left to be done before an operation ends: endpoints that can take a request, and lanes to
         * be pumped and settled. */
        struct list offers, touched;
};

/* --- governor.c: steps --- */

void governor_ready(struct governor *g, struct ticket *t, enum ticket_reply reply, usec_t wait);

/* Ends the waiting of `t`. Its lane may be left idle: it is touched. */
void governor_refuse(struct governor *g, struct ticket *t, enum ticket_reply reply, usec_t wait,
                     usec_t now);

static inline void governor_touch(struct governor *g, struct lane *l)
{
        if (list_empty(&l->touched))
                list_append(&g->touched, &l->touched);
}

static inline void governor_offer_later(struct governor *g, struct endpoint *e)
{
        if (endpoint_is_free(e) && list_empty(&e->offer))
                list_append(&g->offers, &e->offer);
}

/* Puts the lane where it belongs after an operation. It may be forgotten here. */
void governor_settle(struct governor *g, struct lane *l);
void governor_forget(struct governor *g, struct lane *l);

/* Grants in turn what may go. */
void governor_pump(struct governor *g, struct lane *l, usec_t now);

struct lane *governor_find(const struct governor *g, struct span key);
struct lane *governor_add(struct governor *g, struct lane *l, struct span key);

/* Does all that is left to be done. Any lane that is idle may be forgotten. */
void governor_work_off(struct governor *g, usec_t now);

static inline struct span governor_not_null(struct span s)
{
        return s.ptr ? s : span_of("");
}

/* --- governor_wait.c: reports and predictions --- */

/* slot  NULL: the lane's own limiter */
void governor_report(struct governor *g, struct lane *l, struct lane_slot *slot,
                     enum limiter_event event, usec_t now);

/* As lane_look; of a scope with many limiters it may be a tenth of a second old. */
void governor_view(struct lane *l, usec_t now, struct limiter_view *ret_view);

/* How long a ticket will wait behind `ahead` others, as far as can be told. */
usec_t governor_expected_wait(const struct lane *l, const struct limiter_view *view, size_t ahead,
                              usec_t now);

bool governor_refuses_all(const struct lane *l, const struct limiter_view *view, usec_t now);

/* WAITING, or why a ticket of this wish may not wait; *ret_wait then as ticket.wait. */
enum ticket_reply governor_may_wait(struct lane *l, const struct ticket *t,
                                    const struct ticket_wish *wish, usec_t now, usec_t *ret_wait);

/* --- governor_session.c: sessions --- */

/* `t` is of the wish's session from now on, and for its host: until governor_leave_session. */
void governor_enter_session(struct governor *g, struct lane *l, struct ticket *t,
                            const struct ticket_wish *wish, usec_t now);
void governor_leave_session(struct governor *g, struct ticket *t, usec_t now);

/* Is it the turn of `t` in its session? If so it stays so until `t` leaves it. */
bool governor_session_admits(const struct lane *l, struct ticket *t);

/* `t`, which is nowhere in its lane, waits for that. It becomes QUEUED. */
void governor_session_hold(struct lane *l, struct ticket *t, usec_t now);

/* --- governor_pools.c: pools, their lanes, and what is learned of endpoints --- */

/* Makes `l` a lane that goes through a pool, if it is none yet. */
void governor_egress_claim(struct governor *g, struct lane *l, const struct pool_policy *policy,
                           bool by_endpoint, usec_t now);

/* Frees those that are gone from the configuration and not used by anything any more. */
void governor_rest_pools(struct governor *g);

/* What there is for a lane and an endpoint, ready to be asked. */
struct lane_slot *governor_slot(struct governor *g, struct lane *l, struct endpoint *e, usec_t now);

/* The limiter that has let `t` go. *ret_slot: as governor_report wants it. */
struct limiter *governor_limiter(struct lane *l, const struct ticket *t,
                                 struct lane_slot **ret_slot);

/* What an answer of that class says of the endpoint that `t` went by. */
void governor_egress_answered(struct governor *g, struct lane *l, struct ticket *t,
                              enum answer_class class, usec_t now);

/* May `t` (IN_FLIGHT) be made again elsewhere, as its wish says? */
bool governor_egress_may_move(const struct ticket *t, usec_t deadline, usec_t now);

/* `t` gives its endpoint back. */
void governor_egress_release(struct governor *g, struct ticket *t);

/* --- governor_egress.c: a turn, a limiter and an endpoint, all in one --- */

/* Lets `t` (IDLE) go, if nobody is before it and all admit it. */
bool governor_egress_try(struct governor *g, struct lane *l, struct ticket *t, usec_t now);

void governor_egress_pump(struct governor *g, struct lane *l, usec_t now);

/* An endpoint can take a request: whose turn is it? */
void governor_egress_offer(struct governor *g, struct endpoint *e, usec_t now);

#endif
