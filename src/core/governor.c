#include "core/governor.h"

#include <assert.h>

#include "core/lane.h"

/* Records of changes that are kept: 6 MB at most, and enough of one scope for a graph. */
#define SERIES_MAX ((size_t)1 << 16)
#define SERIES_MAX_EACH 256

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
};

/* --- reports and predictions --- */

static void report(struct governor *g, struct lane *l, enum limiter_event event, usec_t now)
{
        if (event == LIMITER_UNCHANGED)
                return;
        struct governor_change change = {.now = now,
                                         .key = l->key,
                                         .event = event,
                                         .queued = l->queued,
                                         .sleeping = l->sleeping,
                                         .sent = l->sent};
        const struct limiter_view *view = &change.view;
        limiter_look(&l->limiter, now, &change.view);
        series_add(&l->series, &g->series,
                   &(struct series_record){
                       .at = now,
                       .event = event,
                       .rate = view->rate,
                       .concurrency = view->concurrency,
                       .in_flight = view->in_flight,
                       .queued = l->queued,
                       .closed_until = view->closed_until,
                   });
        if (g->config.on_change)
                g->config.on_change(g->config.arg, &change);
}

static double lower(double rate, double bound)
{
        return bound > 0 && (rate <= 0 || bound < rate) ? bound : rate;
}

/* Requests/s that the lane can be expected to send at most; 0 where nothing is known. */
static double expected_rate(const struct lane *l, const struct limiter_view *view)
{
        const struct limiter_policy *limit = &l->policy.limit;
        double rate = lower(view->settled ? view->rate : 0, limit->max_rate);
        return limit->min_delay ? lower(rate, 1 / usec_seconds(limit->min_delay)) : rate;
}

static usec_t time_to_send(size_t tickets, double rate)
{
        return rate > 0 ? usec_from_seconds((double)tickets / rate) : 0;
}

/* How long a ticket will wait behind `ahead` others, as far as can be told. */
static usec_t expected_wait(const struct lane *l, const struct limiter_view *view, size_t ahead,
                            usec_t now)
{
        return usec_add(usec_sub(view->closed_until, now),
                        time_to_send(ahead, expected_rate(l, view)));
}

/*
 * Would a ticket of this wish certainly wait beyond its deadline? The rate that counts is twice the
 * present one: one that is low for a moment must refuse nobody who would have been served.
 */
static bool is_too_long(const struct lane *l, const struct limiter_view *view,
                        const struct ticket_wish *wish, usec_t now)
{
        usec_t start = usec_max(usec_max(now, wish->not_before), view->closed_until);
        if (start > wish->deadline)
                return true;
        if (wish->not_before > now)
                return false; /* who queues when its sleep ends is not known yet */
        double rate = 2 * expected_rate(l, view);
        usec_t left = wish->deadline - start;
        return time_to_send(l->queued, rate) > left &&
               time_to_send(lane_ahead(l, wish->priority, wish->client, wish->arrived), rate) >
                   left;
}

static bool refuses_all(const struct lane *l, const struct limiter_view *view, usec_t now)
{
        return l->policy.refuse_when_open && view->circuit_open && view->closed_until > now;
}

/* --- steps of a ticket --- */

static void make_ready(struct governor *g, struct ticket *t, enum ticket_reply reply, usec_t wait)
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

/* Ends the waiting of `t`. Its lane may be left idle: settle() it afterwards. */
static void refuse(struct governor *g, struct ticket *t, enum ticket_reply reply, usec_t wait)
{
        take_out(g, t);
        t->lane->tickets--;
        t->lane = NULL;
        make_ready(g, t, reply, wait);
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
        report(g, l, limiter_go(&l->limiter, limited, now, &g->prng, &t->pass), now);
}

/* Grants in turn what the limiter admits. */
static void pump(struct governor *g, struct lane *l, usec_t now)
{
        while (l->queued > 0 && may_go(l, now)) {
                struct ticket *t = lane_next(l);
                g->stats.queued--;
                t->waited = now > t->queued_at;
                send(g, l, t, t->waited && l->queued > 0, now);
                make_ready(g, t, TICKET_GRANTED, 0);
        }
}

/* Refuses with TOO_LONG whoever waits beyond a deadline before `until`. */
static void expire(struct governor *g, struct lane *l, usec_t until, usec_t now)
{
        struct ticket *t = lane_expired(l, until);
        if (!t)
                return;
        struct limiter_view view;
        limiter_look(&l->limiter, now, &view);
        usec_t wait = expected_wait(l, &view, l->queued, now);
        for (; t; t = lane_expired(l, until))
                refuse(g, t, TICKET_TOO_LONG, wait);
}

/* After a change of the limiter: refuses at once those who would wait for nothing. */
static void sweep(struct governor *g, struct lane *l, usec_t now)
{
        struct limiter_view view;
        limiter_look(&l->limiter, now, &view);
        if (view.closed_until <= now)
                return;
        if (refuses_all(l, &view, now))
                for (struct ticket *t; (t = lane_expired(l, USEC_MAX));)
                        refuse(g, t, TICKET_CIRCUIT_OPEN, view.closed_until - now);
        else
                expire(g, l, view.closed_until, now);
}

/* --- lanes --- */

static void forget(struct governor *g, struct lane *l)
{
        if (g->export == l)
                g->export = l->hh.next;
        if (g->look == l)
                g->look = l->hh.next;
        series_done(&l->series, &g->series);
        list_remove(&l->idle);
        heap_remove(&g->due, &l->due);
        HASH_DEL(g->lanes, l);
        lane_free(l);
}

/* Puts the lane where it belongs after an operation. It may be forgotten here. Afterwards there are
 * at most max_lanes, or none is idle. */
static void settle(struct governor *g, struct lane *l)
{
        usec_t due = lane_due(l);
        if (!l->due.place || l->due.at != due)
                heap_set(&g->due, &l->due, due);
        if (l->tickets == 0) {
                lane_rest(l);
                list_remove(&l->idle);
                list_append(&g->idle, &l->idle);
        }
        while (HASH_COUNT(g->lanes) > g->config.max_lanes && !list_empty(&g->idle))
                forget(g, LIST_ENTRY_OF(g->idle.next, struct lane, idle));
}

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
static struct lane *find(const struct governor *g, struct span key)
{
        struct lane *l;
        HASH_FIND(hh, g->lanes, key.ptr, key.len, l);
        return l;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct lane *add(struct governor *g, struct lane *l, struct span key)
{
        HASH_ADD_KEYPTR(hh, g->lanes, l->key, key.len, l);
        return l;
}

static struct lane *lane_for(struct governor *g, const struct ticket_wish *wish, usec_t now)
{
        const struct lane_policy *policy = wish->policy;
        struct lane *l = find(g, wish->key);
        if (!l) {
                l = add(g, lane_new(wish->key, policy), wish->key);
        } else if (l->memory) {
                lane_recall(l, policy, now);
                report(g, l, LIMITER_RESTORED, now);
        } else if (policy->generation > l->policy.generation) {
                l->policy = *policy;
                limiter_configure(&l->limiter, &policy->limit);
                sweep(g, l, now);
                pump(g, l, now);
        }
        return l;
}

static void run_due(struct governor *g, struct lane *l, usec_t now)
{
        expire(g, l, now, now);
        size_t sleeping = l->sleeping;
        lane_wake(l, now);
        g->stats.sleeping -= sleeping - l->sleeping;
        g->stats.queued += sleeping - l->sleeping;
        pump(g, l, now);
        expire(g, l, usec_add(now, 1), now); /* the last chance was now */
        settle(g, l);
}

/* --- the interface --- */

struct governor *governor_new(const struct governor_config *config)
{
        struct governor *g = xmalloc(sizeof *g);
        *g = (struct governor){.config = *config};
        prng_init(&g->prng, config->seed);
        heap_init(&g->due);
        list_init(&g->idle);
        list_init(&g->ready);
        series_pool_init(&g->series, SERIES_MAX, SERIES_MAX_EACH);
        return g;
}

void governor_free(struct governor *g)
{
        if (!g)
                return;
        while (g->lanes) {
                assert(g->lanes->tickets == 0);
                forget(g, g->lanes);
        }
        assert(list_empty(&g->ready));
        series_pool_done(&g->series);
        heap_done(&g->due);
        free(g);
}

/* WAITING, or why a ticket of this wish may not wait; *ret_wait then as ticket.wait. */
static enum ticket_reply may_wait(const struct lane *l, const struct ticket_wish *wish, usec_t now,
                                  usec_t *ret_wait)
{
        struct limiter_view view;
        limiter_look(&l->limiter, now, &view);
        *ret_wait =
            usec_max(expected_wait(l, &view, l->queued, now), usec_sub(wish->not_before, now));
        if (refuses_all(l, &view, now))
                return TICKET_CIRCUIT_OPEN;
        if (!wish->retry && l->queued + l->sleeping >= l->policy.queue_max)
                return TICKET_QUEUE_FULL;
        if (is_too_long(l, &view, wish, now))
                return TICKET_TOO_LONG;
        *ret_wait = 0;
        return TICKET_WAITING;
}

/* Grants, admits or refuses `t`, which is in no list yet. */
static enum ticket_reply decide(struct governor *g, struct lane *l, struct ticket *t,
                                const struct ticket_wish *wish, usec_t now)
{
        bool sleeps = wish->not_before > now;
        if (!sleeps && l->queued == 0 && wish->deadline >= now && may_go(l, now)) {
                send(g, l, t, false, now);
                t->state = TICKET_IN_FLIGHT;
                g->stats.in_flight++;
                return TICKET_GRANTED;
        }
        enum ticket_reply reply = may_wait(l, wish, now, &t->wait);
        if (reply != TICKET_WAITING)
                return reply;
        if (sleeps) {
                lane_sleep(l, t, wish->client, wish->not_before);
                g->stats.sleeping++;
        } else {
                lane_enqueue(l, t, wish->client, now);
                g->stats.queued++;
        }
        return TICKET_WAITING;
}

static struct span not_null(struct span s)
{
        return s.ptr ? s : span_of("");
}

static void begin(struct ticket *t, const struct ticket_wish *wish)
{
        list_init(&t->link);
        t->arrived = wish->arrived;
        t->deadline = wish->deadline;
        t->priority = wish->priority;
        t->wait = 0;
        t->waited = false;
}

enum ticket_reply governor_ask(struct governor *g, struct ticket *t, const struct ticket_wish *wish,
                               usec_t now)
{
        assert(t->state == TICKET_IDLE && wish->priority < TICKET_PRIORITIES);
        struct ticket_wish w = *wish;
        w.key = not_null(w.key);
        w.client = not_null(w.client);
        begin(t, &w);
        t->lane = NULL;
        if (g->closing)
                return t->reply = TICKET_CLOSING;
        struct lane *l = lane_for(g, &w, now);
        t->reply = decide(g, l, t, &w, now);
        if (t->state != TICKET_IDLE) {
                t->lane = l;
                if (l->tickets++ == 0)
                        list_remove(&l->idle);
                if (!w.retry)
                        retry_budget_deposit(&l->budget, l->policy.retry_share);
        }
        enum ticket_reply reply = t->reply;
        settle(g, l);
        return reply;
}

enum answer_class governor_answer(struct governor *g, struct ticket *t, const struct answer *answer,
                                  usec_t now)
{
        assert(t->state == TICKET_IN_FLIGHT);
        struct lane *l = t->lane;
        enum limiter_event event = limiter_answer(&l->limiter, &t->pass, answer, now, &g->prng);
        report(g, l, event, now);
        if (event != LIMITER_UNCHANGED)
                sweep(g, l, now);
        pump(g, l, now);
        settle(g, l);
        return t->pass.blocked ? ANSWER_BLOCKED : answer->class;
}

/* `t` leaves its lane for good. */
static void leave(struct governor *g, struct ticket *t, usec_t now)
{
        struct lane *l = t->lane;
        t->lane = NULL;
        t->state = TICKET_IDLE;
        l->tickets--;
        pump(g, l, now);
        settle(g, l);
}

void governor_finish(struct governor *g, struct ticket *t, usec_t now)
{
        assert(t->state == TICKET_IN_FLIGHT);
        g->stats.in_flight--;
        limiter_finish(&t->lane->limiter, &t->pass);
        leave(g, t, now);
}

bool governor_requeue(struct governor *g, struct ticket *t, const struct ticket_wish *wish,
                      usec_t now)
{
        assert(t->state == TICKET_IN_FLIGHT && wish->retry && wish->priority < TICKET_PRIORITIES);
        struct lane *l = t->lane;
        usec_t ignored;
        if (g->closing || may_wait(l, wish, now, &ignored) != TICKET_WAITING ||
            (wish->budgeted && !retry_budget_withdraw(&l->budget)))
                return false;
        g->stats.in_flight--;
        limiter_finish(&l->limiter, &t->pass);
        begin(t, wish);
        lane_sleep(l, t, not_null(wish->client), wish->not_before);
        g->stats.sleeping++;
        pump(g, l, now);
        settle(g, l);
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
                governor_finish(g, t, now);
                return;
        }
}

void governor_take(struct governor *g, usec_t now, struct list *ret_ready)
{
        for (struct heap_node *n; (n = heap_first(&g->due)) && n->at <= now;)
                run_due(g, LIST_ENTRY_OF(n, struct lane, due), now);
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
        const struct heap_node *n = heap_first(&g->due);
        return n ? n->at : USEC_MAX;
}

void governor_close(struct governor *g, usec_t now)
{
        (void)now; /* nothing depends on it: what is refused here has no reason to come back */
        g->closing = true;
        for (struct lane *l = g->lanes, *next; l; l = next) {
                next = l->hh.next;
                if (l->tickets == 0)
                        continue;
                for (struct ticket *t; (t = lane_expired(l, USEC_MAX));)
                        refuse(g, t, TICKET_CLOSING, 0);
                settle(g, l); /* may forget this lane, but no other: see there */
        }
}

void governor_stats(const struct governor *g, struct governor_stats *ret_stats)
{
        *ret_stats = g->stats;
        ret_stats->lanes = HASH_COUNT(g->lanes);
}

bool governor_look(struct governor *g, bool begin, size_t lanes, usec_t now,
                   void (*each)(void *arg, const struct governor_change *view), void *arg)
{
        if (begin)
                g->look = g->lanes;
        for (; g->look && lanes > 0; lanes--, g->look = g->look->hh.next) {
                const struct lane *l = g->look;
                struct governor_change change = {.now = now,
                                                 .key = l->key,
                                                 .queued = l->queued,
                                                 .sleeping = l->sleeping,
                                                 .sent = l->sent};
                lane_look(l, now, &change.view);
                each(arg, &change);
        }
        return g->look != NULL;
}

bool governor_reset(struct governor *g, struct span key, usec_t now)
{
        struct lane *l = find(g, not_null(key));
        if (!l)
                return false;
        g->stats.resets++;
        if (l->memory) { /* it is nothing but that */
                forget(g, l);
                return true;
        }
        limiter_reset(&l->limiter, now);
        retry_budget_init(&l->budget);
        report(g, l, LIMITER_RESET, now);
        pump(g, l, now);
        settle(g, l);
        return true;
}

bool governor_series(const struct governor *g, struct span key, usec_t since,
                     void (*each)(void *arg, const struct series_record *record), void *arg)
{
        const struct lane *l = find(g, not_null(key));
        if (l)
                series_read(&l->series, since, each, arg);
        return l != NULL;
}

bool governor_export(struct governor *g, bool begin, size_t lanes, usec_t now,
                     void (*each)(void *arg, const char *key, const struct limiter_memory *m),
                     void *arg)
{
        struct limiter_memory m;
        if (begin)
                g->export = g->lanes;
        for (; g->export && lanes > 0; lanes--, g->export = g->export->hh.next)
                if (lane_export(g->export, now, &m))
                        each(arg, g->export->key, &m);
        return g->export != NULL;
}

void governor_import(struct governor *g, struct span key, const struct limiter_memory *m,
                     usec_t now)
{
        key = not_null(key);
        if (!find(g, key))
                settle(g, add(g, lane_new_remembered(key, m, now), key));
}
