#include "core/governor.h"

#include <assert.h>

#include "core/governor_state.h"

/* Records of changes that are kept: 6 MB at most, and enough of one scope for a graph. */
#define SERIES_MAX ((size_t)1 << 16)
#define SERIES_MAX_EACH 256

/* --- steps of a ticket --- */

void governor_ready(struct governor *g, struct ticket *t, enum ticket_reply reply, usec_t wait)
{
        t->state = TICKET_READY;
        t->reply = reply;
        t->wait = wait;
        list_append(&g->ready, &t->link);
        g->stats.ready++;
}

static void take_out(struct governor *g, struct ticket *t)
{
        if (t->state == TICKET_SLEEPING)
                g->stats.sleeping--;
        else
                g->stats.queued--;
        lane_take_out(t->lane, t);
}

void governor_refuse(struct governor *g, struct ticket *t, enum ticket_reply reply, usec_t wait,
                     usec_t now)
{
        take_out(g, t);
        governor_touch(g, t->lane);
        t->lane->tickets--;
        t->lane = NULL;
        governor_leave_session(g, t, now);
        governor_ready(g, t, reply, wait);
}

static bool may_go(struct lane *l, usec_t now)
{
        usec_t wake = USEC_MAX;
        if (limiter_may_go(&l->limiter, now, &wake))
                return true;
        l->limiter_wake = usec_max(wake, now + 1); /* later than now, or nothing would end */
        return false;
}

static void send(struct governor *g, struct lane *l, struct ticket *t, bool limited, usec_t now)
{
        g->stats.sent++;
        l->sent++;
        governor_report(g, l, NULL, limiter_go(&l->limiter, limited, now, &g->prng, &t->pass), now);
}

void governor_pump(struct governor *g, struct lane *l, usec_t now)
{
        if (l->egress) {
                governor_egress_pump(g, l, now);
                return;
        }
        while (l->queued > 0 && may_go(l, now)) {
                struct ticket *t = lane_next(l);
                g->stats.queued--;
                t->waited = now > t->queued_at;
                send(g, l, t, t->waited && l->queued > 0, now);
                governor_ready(g, t, TICKET_GRANTED, 0);
        }
}

/* Refuses with TOO_LONG whoever waits beyond a deadline before `until`. */
static void expire(struct governor *g, struct lane *l, usec_t until, usec_t now)
{
        struct ticket *t = lane_expired(l, until);
        if (!t)
                return;
        struct limiter_view view;
        governor_view(l, now, &view);
        usec_t wait = governor_expected_wait(l, &view, l->queued, now);
        for (; t; t = lane_expired(l, until))
                governor_refuse(g, t, TICKET_TOO_LONG, wait, now);
}

/* After a change of a limiter: refuses at once those who would wait for nothing. */
static void sweep(struct governor *g, struct lane *l, usec_t now)
{
        struct limiter_view view;
        governor_view(l, now, &view);
        if (view.closed_until <= now)
                return;
        if (governor_refuses_all(l, &view, now))
                for (struct ticket *t; (t = lane_expired(l, USEC_MAX));)
                        governor_refuse(g, t, TICKET_CIRCUIT_OPEN, view.closed_until - now, now);
        else
                expire(g, l, view.closed_until, now);
}

/* Where `t` waits from now on that is nowhere in its lane. */
static void place(struct governor *g, struct lane *l, struct ticket *t, usec_t now)
{
        g->stats.queued++;
        if (governor_session_admits(l, t))
                lane_queue(l, t, now);
        else
                governor_session_hold(l, t, now);
}

/* --- lanes --- */

static void configure(struct lane *l, const struct lane_policy *policy)
{
        l->policy = *policy;
        l->unclaimed = false;
        limiter_configure(&l->limiter, &policy->limit);
        if (l->egress)
                lane_egress_configure(l->egress);
}

static struct lane *lane_for(struct governor *g, const struct ticket_wish *wish, usec_t now)
{
        const struct lane_policy *policy = wish->policy;
        struct lane *l = governor_find(g, wish->key);
        bool found = l, recalled = l && l->memory;
        if (!found)
                l = governor_add(g, lane_new(wish->key, policy), wish->key);
        else if (recalled)
                lane_recall(l, policy, now);
        if (wish->pool)
                governor_egress_claim(g, l, wish->pool, policy->by_endpoint, now);
        if (recalled) {
                governor_report(g, l, NULL, LIMITER_RESTORED, now);
        } else if (found && (l->unclaimed || policy->generation > l->policy.generation)) {
                configure(l, policy);
                sweep(g, l, now);
                if (l->egress)
                        governor_touch(g, l);
                else
                        governor_pump(g, l, now);
        }
        return l;
}

static void run_due(struct governor *g, struct lane *l, usec_t now)
{
        expire(g, l, now, now);
        for (struct ticket *t; (t = lane_awake(l, now));) {
                g->stats.sleeping--;
                place(g, l, t, now);
        }
        governor_pump(g, l, now);
        expire(g, l, usec_add(now, 1), now); /* the last chance was now */
        list_remove(&l->touched);
        governor_settle(g, l);
}

void governor_work_off(struct governor *g, usec_t now)
{
        for (;;) {
                if (!list_empty(&g->offers)) {
                        struct endpoint *e = LIST_ENTRY_OF(g->offers.next, struct endpoint, offer);
                        list_remove(&e->offer);
                        governor_egress_offer(g, e, now);
                } else if (!list_empty(&g->touched)) {
                        struct lane *l = LIST_ENTRY_OF(g->touched.next, struct lane, touched);
                        list_remove(&l->touched);
                        governor_pump(g, l, now);
                        governor_settle(g, l);
                } else {
                        break;
                }
        }
        if (g->pools_rest)
                governor_rest_pools(g);
}

/* Ends an operation on `l`. An endpoint that has become free goes to the lane whose turn it is,
 * before `l` looks for one. */
static void done(struct governor *g, struct lane *l, usec_t now)
{
        governor_touch(g, l);
        governor_work_off(g, now);
}

/* --- the interface --- */

struct governor *governor_new(const struct governor_config *config)
{
        struct governor *g = xmalloc(sizeof *g);
        *g = (struct governor){.config = *config};
        prng_init(&g->prng, config->seed);
        heap_init(&g->due);
        heap_init(&g->recoveries);
        list_init(&g->idle);
        list_init(&g->ready);
        list_init(&g->offers);
        list_init(&g->touched);
        sessions_init(&g->sessions);
        series_pool_init(&g->series, SERIES_MAX, SERIES_MAX_EACH);
        return g;
}

void governor_free(struct governor *g)
{
        if (!g)
                return;
        while (g->lanes) {
                assert(g->lanes->tickets == 0);
                governor_forget(g, g->lanes);
        }
        for (struct egress_pool *p = g->pools; p; p = p->hh.next)
                p->gone = true;
        governor_rest_pools(g);
        assert(!g->pools && list_empty(&g->ready));
        sessions_done(&g->sessions);
        series_pool_done(&g->series);
        heap_done(&g->due);
        heap_done(&g->recoveries);
        free(g);
}

/* Grants, admits or refuses `t`, which is in no list yet. */
static enum ticket_reply decide(struct governor *g, struct lane *l, struct ticket *t,
                                const struct ticket_wish *wish, usec_t now)
{
        bool sleeps = wish->not_before > now;
        bool may = !sleeps && wish->deadline >= now && governor_session_admits(l, t);
        if (may && l->egress) {
                may = governor_egress_try(g, l, t, now);
        } else if (may) {
                may = l->queued == 0 && may_go(l, now);
                if (may)
                        send(g, l, t, false, now);
        }
        if (may) {
                t->state = TICKET_IN_FLIGHT;
                g->stats.in_flight++;
                return TICKET_GRANTED;
        }
        enum ticket_reply reply = governor_may_wait(l, t, wish, now, &t->wait);
        if (reply != TICKET_WAITING)
                return reply;
        lane_join(l, t, wish->client);
        if (sleeps) {
                lane_doze(l, t, wish->not_before);
                g->stats.sleeping++;
        } else {
                place(g, l, t, now);
                if (l->egress && turns_first(&l->turns) == t) /* else nothing has changed */
                        governor_touch(g, l);
        }
        return TICKET_WAITING;
}

static void begin(struct ticket *t, const struct ticket_wish *wish)
{
        list_init(&t->link);
        t->arrived = wish->arrived;
        t->deadline = wish->deadline;
        t->priority = wish->priority;
        t->wait = 0;
        t->waited = false;
        t->moved = false;
}

enum ticket_reply governor_ask(struct governor *g, struct ticket *t, const struct ticket_wish *wish,
                               usec_t now)
{
        assert(t->state == TICKET_IDLE && wish->priority < TICKET_PRIORITIES);
        struct ticket_wish w = *wish;
        w.key = governor_not_null(w.key);
        w.client = governor_not_null(w.client);
        begin(t, &w);
        t->lane = NULL;
        t->not_by = NULL;
        if (g->closing)
                return t->reply = TICKET_CLOSING;
        struct lane *l = lane_for(g, &w, now);
        t->lane = l;
        governor_enter_session(g, l, t, &w, now);
        enum ticket_reply reply = t->reply = decide(g, l, t, &w, now);
        if (t->state != TICKET_IDLE) {
                if (l->tickets++ == 0)
                        list_remove(&l->idle);
                if (!w.retry)
                        retry_budget_deposit(&l->budget, l->policy.retry_share);
        } else {
                t->lane = NULL;
                governor_leave_session(g, t, now);
        }
        governor_settle(g, l);
        governor_work_off(g, now);
        return reply;
}

enum answer_class governor_answer(struct governor *g, struct ticket *t, const struct answer *answer,
                                  usec_t now)
{
        assert(t->state == TICKET_IN_FLIGHT);
        struct lane *l = t->lane;
        struct lane_slot *slot;
        struct limiter *limiter = governor_limiter(l, t, &slot);
        enum limiter_event event = answer->by_endpoint
                                       ? LIMITER_UNCHANGED
                                       : limiter_answer(limiter, &t->pass, answer, now, &g->prng);
        enum answer_class class = t->pass.blocked ? ANSWER_BLOCKED : answer->class;
        if (slot && (event == LIMITER_CUT || event == LIMITER_CIRCUIT_OPEN))
                lane_slot_refused(slot, now);
        governor_report(g, l, slot, event, now);
        if (t->at)
                governor_egress_answered(g, l, t, class, now);
        if (event != LIMITER_UNCHANGED)
                sweep(g, l, now);
        done(g, l, now);
        return class;
}

/* The attempt of `t` is over for its lane. */
static void end_attempt(struct governor *g, struct ticket *t)
{
        struct lane_slot *slot;
        struct limiter *limiter = governor_limiter(t->lane, t, &slot);
        g->stats.in_flight--;
        limiter_finish(limiter, &t->pass);
        if (slot)
                slot->wake = 0;
        if (t->probes)
                hold_probe_cancelled(&t->lane->egress->circuit);
        t->probes = false;
}

/* `t` leaves its lane for good. */
static void leave(struct governor *g, struct ticket *t, usec_t now)
{
        struct lane *l = t->lane;
        t->lane = NULL;
        t->state = TICKET_IDLE;
        l->tickets--;
        governor_leave_session(g, t, now);
        done(g, l, now);
}

void governor_finish(struct governor *g, struct ticket *t, usec_t now)
{
        if (t->state == TICKET_KEEPING) {
                t->state = TICKET_IDLE;
                governor_leave_session(g, t, now);
                governor_egress_release(g, t);
                governor_work_off(g, now);
                return;
        }
        assert(t->state == TICKET_IN_FLIGHT);
        end_attempt(g, t);
        if (t->at)
                governor_egress_release(g, t);
        leave(g, t, now);
}

void governor_keep(struct governor *g, struct ticket *t, usec_t now)
{
        assert(t->state == TICKET_IN_FLIGHT);
        if (!t->at) {
                governor_finish(g, t, now);
                return;
        }
        struct lane *l = t->lane;
        end_attempt(g, t);
        t->lane = NULL;
        t->state = TICKET_KEEPING;
        l->tickets--;
        done(g, l, now);
}

bool governor_requeue(struct governor *g, struct ticket *t, const struct ticket_wish *wish,
                      usec_t now)
{
        assert(t->state == TICKET_IN_FLIGHT && wish->retry && wish->priority < TICKET_PRIORITIES);
        struct lane *l = t->lane;
        enum ticket_reply reply =
            g->closing ? TICKET_CLOSING : governor_may_wait(l, t, wish, now, &t->wait);
        if (reply == TICKET_WAITING && wish->elsewhere &&
            !governor_egress_may_move(t, wish->deadline, now))
                reply = TICKET_NO_ENDPOINT;
        t->reply = reply == TICKET_WAITING ? TICKET_GRANTED : reply;
        if (reply != TICKET_WAITING || (wish->budgeted && !retry_budget_withdraw(&l->budget)))
                return false;
        end_attempt(g, t);
        t->not_by = wish->elsewhere ? t->at : NULL;
        if (t->at)
                governor_egress_release(g, t);
        begin(t, wish);
        lane_sleep(l, t, governor_not_null(wish->client), wish->not_before);
        g->stats.sleeping++;
        done(g, l, now);
        return true;
}

void governor_cancel(struct governor *g, struct ticket *t, usec_t now)
{
        switch (t->state) {
        case TICKET_IDLE:
                return;
        case TICKET_SLEEPING:
        case TICKET_QUEUED:
                take_out(g, t);
                leave(g, t, now);
                return;
        case TICKET_READY:
                list_remove(&t->link);
                if (governor_accept(g, t) == TICKET_GRANTED)
                        governor_finish(g, t, now);
                return;
        case TICKET_IN_FLIGHT:
        case TICKET_KEEPING:
                governor_finish(g, t, now);
                return;
        }
}

static bool has_recovered(struct governor *g, usec_t now)
{
        struct heap_node *n = heap_first(&g->recoveries);
        if (!n || n->at > now)
                return false;
        struct endpoint *e = LIST_ENTRY_OF(n, struct endpoint, recovery);
        heap_remove(&g->recoveries, n);
        endpoint_recover(e);
        governor_offer_later(g, e);
        return true;
}

void governor_take(struct governor *g, usec_t now, struct list *ret_ready)
{
        for (struct heap_node *n;;) {
                if ((n = heap_first(&g->due)) && n->at <= now)
                        run_due(g, LIST_ENTRY_OF(n, struct lane, due), now);
                else if (!has_recovered(g, now))
                        break;
                governor_work_off(g, now);
        }
        list_splice(ret_ready, &g->ready);
}

enum ticket_reply governor_accept(struct governor *g, struct ticket *t)
{
        assert(t->state == TICKET_READY);
        list_remove(&t->link);
        g->stats.ready--;
        if (t->reply == TICKET_GRANTED) {
                t->state = TICKET_IN_FLIGHT;
                g->stats.in_flight++;
        } else {
                t->state = TICKET_IDLE;
        }
        return t->reply;
}

usec_t governor_next_wake(const struct governor *g)
{
        if (!list_empty(&g->ready))
                return 0;
        const struct heap_node *n = heap_first(&g->due), *e = heap_first(&g->recoveries);
        return usec_min(n ? n->at : USEC_MAX, e ? e->at : USEC_MAX);
}

void governor_close(struct governor *g, usec_t now)
{
        g->closing = true;
        for (struct lane *l = g->lanes, *next; l; l = next) {
                next = l->hh.next;
                for (struct ticket *t; (t = lane_expired(l, USEC_MAX));)
                        governor_refuse(g, t, TICKET_CLOSING, 0, now);
        }
        governor_work_off(g, now);
}
