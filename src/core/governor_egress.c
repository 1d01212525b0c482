/* Lanes that go through a pool: a ticket's turn, a limiter and an endpoint, all decided in one. */
#include <assert.h>

#include "core/governor_state.h"

/* --- what may go --- */

/* Do the circuit and the one limiter admit anything? Otherwise the lane wakes when they may. */
static bool admits(struct lane *l, usec_t now)
{
        struct lane_egress *x = l->egress;
        usec_t wake = USEC_MAX;
        if (x->circuit.closed && (now < x->circuit.until || x->circuit.probe_out)) {
                l->limiter_wake = x->circuit.probe_out ? USEC_MAX : x->circuit.until;
                return false;
        }
        if (x->by_endpoint || limiter_may_go(&l->limiter, now, &wake))
                return true;
        l->limiter_wake = usec_max(wake, now + 1);
        x->held_up = true;
        return false;
}

/* The endpoint by which the session of `t` goes; NULL: none as yet, or it has just lost it. */
static struct endpoint *bound_to(const struct ticket *t, usec_t now)
{
        struct endpoint *e = t->session ? t->session->endpoint : NULL;
        if (!e || (!endpoint_is_lost(e) && quarantine_until(t->host, e->id) <= now))
                return e;
        session_lose(t->session);
        return NULL;
}

struct search {
        struct governor *g;
        struct lane *l;
        const struct ticket *t;
        const struct endpoint *not_by;
        usec_t now;
        usec_t wake; /* when a limiter that refuses is to be asked again, the earliest of them */
};

static bool may_go_by(void *search, struct endpoint *e)
{
        struct search *s = search;
        if (e == s->not_by || quarantine_until(s->t->host, e->id) > s->now)
                return false;
        struct lane_slot *slot = s->l->egress->by_endpoint ? lane_slot_find(s->l, e) : NULL;
        if (slot && slot->memory)
                slot = governor_slot(s->g, s->l, e, s->now);
        if (!slot || lane_slot_may_go(slot, s->now))
                return true;
        s->wake = usec_min(s->wake, slot->wake);
        return false;
}

/* A free endpoint by which `t` may go, or NULL. only  that one or none; NULL: the best */
static struct endpoint *endpoint_for(struct governor *g, struct lane *l, const struct ticket *t,
                                     struct endpoint *only, usec_t now)
{
        struct egress_pool *pool = l->egress->pool;
        struct search s = {.g = g, .l = l, .t = t, .now = now, .wake = USEC_MAX};
        struct endpoint *e = NULL;
        const struct endpoint *own = t->session ? t->session->endpoint : NULL;
        if (t->not_by && t->not_by != own &&
            egress_pool_expected(pool, t->host, t->not_by, now) <= now)
                s.not_by = t->not_by;
        if (!only)
                e = egress_pool_choose(pool, t->session && pool->policy->sticky, &g->prng,
                                       may_go_by, &s);
        else if (endpoint_is_free(only) && may_go_by(&s, only))
                e = only;
        l->limiter_wake = usec_min(l->limiter_wake, s.wake);
        return e;
}

/* Is it possible that an endpoint is free and of no use to `t`? */
static bool is_choosy(const struct ticket *t, usec_t now)
{
        return t->not_by || quarantine_is_on(t->host, now);
}

/* --- what goes --- */

static void bind_session(struct lane *l, struct ticket *t, struct endpoint *e)
{
        struct session *one = t->session;
        if (!one || one->endpoint == e || !l->egress->pool->policy->sticky)
                return;
        t->moved = one->lost;
        session_bind(one, e);
}

/* `t`, which is nowhere in its lane, goes by `e`. */
static void go(struct governor *g, struct lane *l, struct ticket *t, struct endpoint *e, usec_t now)
{
        assert(e);
        struct lane_egress *x = l->egress;
        struct lane_slot *slot = x->by_endpoint ? governor_slot(g, l, e, now) : NULL;
        struct limiter *limiter = slot ? &slot->limiter : &l->limiter;
        bool *held_up = slot ? &slot->held_up : &x->held_up;
        /* Where it was the endpoints that were missing, more says nothing about the host. */
        bool limited = *held_up && t->waited && l->queued > 0;
        *held_up = false;
        t->at = e;
        t->endpoint = e->policy;
        t->by = e->pool->policy;
        if (t->by->hold)
                t->by->hold(t->by->owner);
        bind_session(l, t, e);
        endpoint_take(e);
        t->probes = x->circuit.closed;
        if (t->probes)
                hold_probe_sent(&x->circuit);
        g->stats.sent++;
        ++*(slot ? &slot->sent : &l->sent);
        governor_report(g, l, slot, limiter_go(limiter, limited, now, &g->prng, &t->pass), now);
}

/* The same for one that has waited. */
static void send(struct governor *g, struct lane *l, struct ticket *t, struct endpoint *e,
                 usec_t now)
{
        lane_leave(l, t);
        g->stats.queued--;
        t->waited = now > t->queued_at;
        go(g, l, t, e, now);
        governor_ready(g, t, TICKET_GRANTED, 0);
}

/* There is no endpoint for the host of `t`, which is nowhere in its lane, before `at`. */
static void strand(struct governor *g, struct lane *l, struct ticket *t, usec_t at, usec_t now)
{
        lane_doze(l, t, at);
        g->stats.queued--;
        g->stats.sleeping++;
        if (at > t->deadline)
                governor_refuse(g, t, TICKET_NO_ENDPOINT, at < USEC_MAX ? at - now : 0, now);
        else
                list_append(&l->egress->stranded, &t->link);
}

/* --- whose turn it is --- */

static bool send_aside(struct governor *g, struct lane *l, struct endpoint *only, usec_t now)
{
        list_foreach_safe (it, &l->egress->aside) {
                struct ticket *t = LIST_ENTRY_OF(it, struct ticket, link);
                struct endpoint *e = NULL;
                if (!bound_to(t, now) && !(e = endpoint_for(g, l, t, only, now)))
                        continue;
                lane_unqueue(l, t);
                if (e) {
                        send(g, l, t, e, now);
                        return true;
                }
                lane_queue_again(l, t, now); /* its session has got an endpoint since */
        }
        return false;
}

static bool is_anybody_parked(const struct lane *l, const struct endpoint *e)
{
        const struct lane_slot *slot = lane_slot_find(l, e);
        return slot && slot->parked && slot->parked->queued > 0;
}

/* The turn of `t`, whose session has the endpoint `e`, while only `only` is asked for (NULL: any).
 * True: it goes; false: it waits there. */
static bool send_or_park(struct governor *g, struct lane *l, struct ticket *t, struct endpoint *e,
                         const struct endpoint *only, usec_t now)
{
        bool is_asked_for = !only || only == e;
        lane_take_turn(l);
        if (is_asked_for && !is_anybody_parked(l, e) && endpoint_for(g, l, t, e, now) == e) {
                send(g, l, t, e, now);
                return true;
        }
        governor_slot(g, l, e, now);
        lane_park(l, t, e, now);
        if (!is_asked_for)
                governor_offer_later(g, e);
        return false;
}

/*
 * Sends the next whose turn it is. Those who have had theirs and cannot go are moved out of the way
 * of the others.
 *
 * only  by that endpoint; NULL: by the best
 */
static bool send_in_turn(struct governor *g, struct lane *l, struct endpoint *only, usec_t now)
{
        struct lane_egress *x = l->egress;
        struct egress_pool *pool = x->pool;
        if (send_aside(g, l, only, now))
                return true;
        for (struct ticket *t; (t = turns_first(&l->turns));) {
                struct endpoint *e = bound_to(t, now);
                if (e) {
                        if (send_or_park(g, l, t, e, only, now))
                                return true;
                        continue;
                }
                usec_t at = egress_pool_expected(pool, t->host, NULL, now);
                if (at > now && quarantine_is_on(t->host, now)) {
                        lane_take_turn(l);
                        strand(g, l, t, at, now);
                        continue;
                }
                e = endpoint_for(g, l, t, only, now);
                if (e) {
                        lane_take_turn(l);
                        send(g, l, t, e, now);
                        return true;
                }
                if (!is_choosy(t, now) || x->aside_count >= LANE_MOST_ASIDE ||
                    list_empty(&pool->free))
                        return false;
                lane_take_turn(l);
                lane_put_aside(l, t);
        }
        return false;
}

/* Sends the next of those parked there. */
static bool send_parked(struct governor *g, struct lane *l, struct lane_slot *slot, usec_t now)
{
        struct endpoint *e = slot->endpoint;
        while (slot->parked && slot->parked->queued > 0) {
                struct ticket *t = turns_first(slot->parked);
                struct endpoint *bound = bound_to(t, now);
                if (bound == e && endpoint_for(g, l, t, e, now) != e)
                        return false;
                lane_unpark_first(slot);
                if (bound == e) {
                        send(g, l, t, e, now);
                        return true;
                }
                lane_queue_again(l, t, now); /* its session has moved on */
        }
        return false;
}

static bool send_any_parked(struct governor *g, struct lane *l, usec_t now)
{
        struct lane_egress *x = l->egress;
        list_foreach_safe (it, &x->with_parked) {
                struct lane_slot *slot = LIST_ENTRY_OF(it, struct lane_slot, with_parked);
                if (!endpoint_is_free(slot->endpoint) || !send_parked(g, l, slot, now))
                        continue;
                if (!list_empty(&slot->with_parked)) { /* in turn with the other endpoints' */
                        list_remove(&slot->with_parked);
                        list_append(&x->with_parked, &slot->with_parked);
                }
                return true;
        }
        return false;
}

static bool is_anybody_in_turns(const struct lane *l)
{
        return l->turns.queued > 0 || l->egress->aside_count > 0;
}

/* Those parked go first, having had their turns; but not two of them while others wait too.
 * e  by that endpoint; NULL: by any */
static bool send_one(struct governor *g, struct lane *l, struct endpoint *e, usec_t now)
{
        struct lane_egress *x = l->egress;
        struct lane_slot *slot = e ? lane_slot_find(l, e) : NULL;
        bool parked_first = !x->last_parked || !is_anybody_in_turns(l);
        for (unsigned i = 0; i < 2; i++) {
                bool parked = (i == 0) == parked_first;
                bool sent = !parked ? send_in_turn(g, l, e, now)
                            : e     ? slot && send_parked(g, l, slot, now)
                                    : send_any_parked(g, l, now);
                if (sent) {
                        x->last_parked = parked;
                        return true;
                }
        }
        return false;
}

/* --- waiting for endpoints --- */

static void starve(struct lane *l)
{
        struct lane_egress *x = l->egress;
        x->starved = true;
        x->held_up = false;
        if (!is_anybody_in_turns(l)) {
                list_remove(&x->waiting);
        } else if (list_empty(&x->waiting)) {
                lane_egress_begin_to_wait(x);
                list_append(&x->pool->waiting, &x->waiting);
        }
}

/* Nobody can go before an endpoint has recovered. */
static void refuse_hopeless(struct governor *g, struct lane *l, usec_t now)
{
        usec_t at = egress_pool_expected(l->egress->pool, NULL, NULL, now);
        for (struct ticket *t; (t = lane_expired(l, at));)
                governor_refuse(g, t, TICKET_NO_ENDPOINT, at < USEC_MAX ? at - now : 0, now);
}

void governor_egress_pump(struct governor *g, struct lane *l, usec_t now)
{
        struct lane_egress *x = l->egress;
        if (x->pool->up == 0)
                refuse_hopeless(g, l, now);
        x->starved = false;
        while (l->queued > 0) {
                l->limiter_wake = USEC_MAX;
                if (list_empty(&x->pool->free)) {
                        starve(l);
                        return;
                }
                if (!admits(l, now))
                        break;
                l->limiter_wake = USEC_MAX;
                if (!send_one(g, l, NULL, now)) {
                        starve(l);
                        return;
                }
        }
        list_remove(&x->waiting);
}

bool governor_egress_try(struct governor *g, struct lane *l, struct ticket *t, usec_t now)
{
        struct lane_egress *x = l->egress;
        struct endpoint *e = bound_to(t, now);
        if (is_anybody_in_turns(l) || (l->queued > 0 && !x->starved) || !admits(l, now))
                return false;
        if (e)
                e = is_anybody_parked(l, e) ? NULL : endpoint_for(g, l, t, e, now);
        else
                e = endpoint_for(g, l, t, NULL, now);
        if (!e)
                return false;
        go(g, l, t, e, now);
        return true;
}

/* Where it waits. */
static void to_the_end(struct list *of, struct list *link)
{
        if (list_empty(link))
                return;
        list_remove(link);
        list_append(of, link);
}

/* Has the lane anything to send by it? */
static bool serve(struct governor *g, struct lane *l, struct endpoint *e, usec_t now)
{
        struct lane_egress *x = l->egress;
        struct lane_slot *slot = lane_slot_find(l, e);
        bool sent = false;
        l->limiter_wake = USEC_MAX;
        if (!admits(l, now)) {
                x->starved = false;
                list_remove(&x->waiting);
        } else {
                sent = send_one(g, l, e, now);
        }
        if (!is_anybody_in_turns(l))
                list_remove(&x->waiting);
        if (!sent)
                return false;
        x->turn = ++x->pool->turns;
        to_the_end(&x->pool->waiting, &x->waiting);
        if (slot)
                to_the_end(&e->waiting, &slot->waiting);
        return true;
}

static struct lane *lane_parked_at(const struct endpoint *e, struct list *at)
{
        return at == &e->waiting ? NULL : LIST_ENTRY_OF(at, struct lane_slot, waiting)->lane;
}

static struct lane *lane_waiting(const struct endpoint *e, struct list *at)
{
        return at == &e->pool->waiting ? NULL
                                       : LIST_ENTRY_OF(at, struct lane_egress, waiting)->lane;
}

/* The lane whose turn it is, of those parked there and those that wait for any, from `*a` and `*b`
 * on, which are moved behind it; or NULL. */
static struct lane *next_waiting(const struct endpoint *e, struct list **a, struct list **b)
{
        struct lane *parked = lane_parked_at(e, *a), *l = lane_waiting(e, *b);
        struct list *next_a = (*a)->next, *next_b = (*b)->next;
        bool both = parked == l;
        bool parked_first = parked && (!l || parked->egress->turn < l->egress->turn);
        if (both || parked_first)
                *a = next_a;
        if (both || !parked_first)
                *b = next_b;
        return parked_first ? parked : l;
}

void governor_egress_offer(struct governor *g, struct endpoint *e, usec_t now)
{
        for (bool sent = true; sent && endpoint_is_free(e);) {
                struct list *a = e->waiting.next, *b = e->pool->waiting.next;
                sent = false;
                for (struct lane *l; !sent && (l = next_waiting(e, &a, &b));) {
                        sent = serve(g, l, e, now);
                        governor_settle(g, l);
                }
        }
}
