/*
 * The governor in virtual time: hours of scopes, clients, hosts that refuse and clients that go
 * away at any moment. What must hold is checked after every single event.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "core/governor.h"

#define MSEC USEC_PER_MSEC
#define SEC USEC_PER_SEC
#define HOUR (3600 * SEC)

enum step { ARRIVE, ACCEPT, ANSWER, FINISH };

struct request {
        struct ticket ticket;
        struct heap_node next;  /* of the world's steps */
        struct heap_node leave; /* of the world's leaves: its client goes away */
        usec_t arrived, deadline;
        size_t scope, client;
        unsigned priority;
        enum step step;
        unsigned attempts, ended;
        bool mailed; /* taken, and not yet accepted */
};

struct scope {
        char key[40];
        struct lane_policy policy;
        unsigned per_second; /* what the host tolerates; 0 any */
        usec_t latency, retry_after;
        double failing; /* share of requests that it fails */
        bool moody;     /* refuses everything every now and then */
        unsigned served;
        usec_t window;
        unsigned in_flight;
        unsigned inside; /* tickets of it in the governor, as far as can be seen from outside */
};

struct plan {
        const char *name;
        size_t requests, scopes, clients, max_lanes;
        usec_t length;
        usec_t patience;     /* until the deadline, on average; 0: no deadlines */
        unsigned priorities; /* 0: all of one */
        double leaving;      /* share of requests whose client goes away */
        unsigned queue_max;
        usec_t closing; /* 0: never */
};

struct world {
        const struct plan *plan;
        struct governor *g;
        struct prng prng;
        usec_t now;
        struct heap steps, leaves;
        struct request *requests;
        struct scope *scopes;
        struct list mailbox;
        size_t ended, busy_scopes;
        size_t replies[TICKET_CLOSING + 1];
        size_t cancelled[TICKET_IN_FLIGHT + 1], cancelled_in_mail;
        bool closed;
};

static bool chance(struct world *w, double share)
{
        return prng_unit(&w->prng) < share;
}

static size_t pick(struct world *w, size_t count)
{
        return (size_t)(prng_unit(&w->prng) * (double)count);
}

static void schedule(struct world *w, struct request *r, enum step step, usec_t wait)
{
        r->step = step;
        heap_set(&w->steps, &r->next, w->now + wait);
}

/* --- where a request stands --- */

static void enter(struct world *w, struct request *r)
{
        if (w->scopes[r->scope].inside++ == 0)
                w->busy_scopes++;
}

static void go_out(struct world *w, struct request *r)
{
        if (--w->scopes[r->scope].inside == 0)
                w->busy_scopes--;
}

static void end(struct world *w, struct request *r)
{
        assert_int_equal(r->ticket.state, TICKET_IDLE);
        assert_int_equal(r->ended++, 0);
        w->ended++;
        heap_remove(&w->steps, &r->next);
        heap_remove(&w->leaves, &r->leave);
}

static void sent(struct world *w, struct request *r)
{
        struct scope *s = &w->scopes[r->scope];
        s->in_flight++;
        assert_true(s->in_flight <= s->policy.limit.ceiling);
        assert_true(w->now <= r->deadline || r->mailed);
        r->attempts++;
        schedule(w, r, ANSWER, s->latency / 2 + prng_usec(&w->prng, s->latency));
}

static struct ticket_wish wish_of(const struct world *w, const struct request *r)
{
        static char client[16];
        const struct scope *s = &w->scopes[r->scope];
        snprintf(client, sizeof client, "client%zu", r->client);
        return (struct ticket_wish){
            .key = span_of(s->key),
            .client = span_of(client),
            .policy = &s->policy,
            .arrived = r->arrived,
            .deadline = r->deadline,
            .priority = r->priority,
        };
}

static void ask(struct world *w, struct request *r)
{
        struct ticket_wish wish = wish_of(w, r);
        enum ticket_reply reply = governor_ask(w->g, &r->ticket, &wish, w->now);
        w->replies[reply]++;
        if (reply == TICKET_GRANTED || reply == TICKET_WAITING)
                enter(w, r);
        if (reply == TICKET_GRANTED)
                sent(w, r);
        else if (reply != TICKET_WAITING)
                end(w, r);
}

/* --- the host --- */

static enum answer_class host(struct world *w, struct scope *s, usec_t *ret_wait)
{
        if (w->now / SEC != s->window) {
                s->window = w->now / SEC;
                s->served = 0;
        }
        bool closed = s->moody && w->now / (200 * SEC) % 3 == 0;
        if (closed || (s->per_second && s->served >= s->per_second)) {
                *ret_wait = chance(w, .5) ? s->retry_after : 0;
                return chance(w, .1) ? ANSWER_OVERLOADED : ANSWER_THROTTLED;
        }
        s->served++;
        if (chance(w, s->failing))
                return ANSWER_FAILED;
        return chance(w, .01) ? ANSWER_BLOCKED : ANSWER_SUCCESS;
}

static void finish(struct world *w, struct request *r)
{
        w->scopes[r->scope].in_flight--;
        governor_finish(w->g, &r->ticket, w->now);
        go_out(w, r);
}

static void answered(struct world *w, struct request *r)
{
        usec_t wait = 0;
        enum answer_class class = host(w, &w->scopes[r->scope], &wait);
        if (!chance(w, .02)) /* sometimes nothing can be learned */
                governor_answer(w->g, &r->ticket, &(struct answer){.class = class, .wait = wait},
                                w->now);
        bool again =
            class == ANSWER_THROTTLED || class == ANSWER_OVERLOADED || class == ANSWER_FAILED;
        struct ticket_wish wish = wish_of(w, r);
        wish.retry = true;
        wish.budgeted = class == ANSWER_FAILED;
        wish.not_before = w->now + (wait ? wait : prng_usec(&w->prng, SEC << r->attempts));
        if (again && r->attempts < 4 && governor_requeue(w->g, &r->ticket, &wish, w->now))
                w->scopes[r->scope].in_flight--;
        else
                schedule(w, r, FINISH, chance(w, .5) ? 0 : prng_usec(&w->prng, 200 * MSEC));
}

/* --- events --- */

static void accepted(struct world *w, struct request *r)
{
        enum ticket_reply reply = governor_accept(w->g, &r->ticket);
        w->replies[reply]++;
        if (reply == TICKET_GRANTED) {
                sent(w, r);
                r->mailed = false;
        } else {
                go_out(w, r);
                end(w, r);
        }
}

static void step(struct world *w, struct request *r)
{
        heap_remove(&w->steps, &r->next);
        switch (r->step) {
        case ARRIVE:
                ask(w, r);
                break;
        case ACCEPT:
                accepted(w, r);
                break;
        case ANSWER:
                answered(w, r);
                break;
        case FINISH:
                finish(w, r);
                end(w, r);
                break;
        }
}

static void leave(struct world *w, struct request *r)
{
        enum ticket_state state = r->ticket.state;
        w->cancelled[state]++;
        w->cancelled_in_mail += r->mailed;
        governor_cancel(w->g, &r->ticket, w->now);
        if (state == TICKET_IN_FLIGHT)
                w->scopes[r->scope].in_flight--;
        if (state != TICKET_IDLE)
                go_out(w, r);
        end(w, r);
}

/* Hands over what is ready; some of it takes a while to reach its worker. */
static void take(struct world *w)
{
        struct list ready;
        list_init(&ready);
        governor_take(w->g, w->now, &ready);
        while (!list_empty(&ready)) {
                struct ticket *t = LIST_ENTRY_OF(ready.next, struct ticket, link);
                struct request *r = LIST_ENTRY_OF(t, struct request, ticket);
                list_remove(&t->link);
                list_append(&w->mailbox, &t->link);
                r->mailed = true;
                schedule(w, r, ACCEPT, chance(w, .5) ? 0 : prng_usec(&w->prng, 500 * MSEC));
        }
}

static void check(const struct world *w)
{
        struct governor_stats s;
        governor_stats(w->g, &s);
        assert_true(governor_next_wake(w->g) > w->now);
        size_t most = w->plan->max_lanes > w->busy_scopes ? w->plan->max_lanes : w->busy_scopes;
        assert_true(s.lanes <= most);
        assert_true(!w->closed || s.queued + s.sleeping == 0);
}

static void check_thoroughly(const struct world *w)
{
        size_t in[TICKET_IN_FLIGHT + 1] = {0};
        for (size_t i = 0; i < w->plan->requests; i++)
                in[w->requests[i].ticket.state]++;
        struct governor_stats s;
        governor_stats(w->g, &s);
        assert_int_equal(s.sleeping, in[TICKET_SLEEPING]);
        assert_int_equal(s.queued, in[TICKET_QUEUED]);
        assert_int_equal(s.ready, in[TICKET_READY]);
        assert_int_equal(s.in_flight, in[TICKET_IN_FLIGHT]);
}

static bool advance(struct world *w)
{
        struct heap_node *next = heap_first(&w->steps), *gone = heap_first(&w->leaves);
        usec_t wake = governor_next_wake(w->g), at = wake;
        if (next)
                at = usec_min(at, next->at);
        if (gone)
                at = usec_min(at, gone->at);
        if (at == USEC_MAX)
                return false;
        w->now = at;
        if (w->plan->closing && at >= w->plan->closing && !w->closed) {
                governor_close(w->g, w->now);
                w->closed = true;
        } else if (gone && gone->at == at) {
                leave(w, LIST_ENTRY_OF(gone, struct request, leave));
        } else if (next && next->at == at) {
                step(w, LIST_ENTRY_OF(next, struct request, next));
        }
        take(w);
        check(w);
        return true;
}

/* --- the making of a world --- */

static void make_scope(struct world *w, size_t i)
{
        static const unsigned tolerated[] = {0, 1, 5, 30};
        static const usec_t named[] = {0, SEC, 10 * SEC, 300 * SEC};
        struct scope *s = &w->scopes[i];
        snprintf(s->key, sizeof s->key, "host%zu.example:80", i);
        s->policy = (struct lane_policy){
            .limit = {.algorithm = i % 5 == 3   ? LIMITER_AIMD
                                   : i % 5 == 4 ? LIMITER_FIXED
                                                : LIMITER_ADAPTIVE,
                      .start = 4,
                      .floor = 1,
                      .ceiling = i % 7 ? 32 : 2,
                      .max_rate = i % 11 ? 0 : 3,
                      .min_delay = i % 13 ? 0 : 100 * MSEC,
                      .max_hold = 900 * SEC,
                      .aimd = {1, AIMD_PER_SUCCESS, .5},
                      .breaker = {.trip = 6, .cooldown = 30 * SEC}},
            .refuse_when_open = i % 4 == 1,
            .queue_max = w->plan->queue_max,
            .retry_share = .2,
            .generation = 1,
        };
        if (s->policy.limit.start > s->policy.limit.ceiling)
                s->policy.limit.start = s->policy.limit.ceiling;
        s->per_second = tolerated[pick(w, COUNT_OF(tolerated))];
        s->retry_after = named[pick(w, COUNT_OF(named))];
        s->latency = 20 * MSEC + prng_usec(&w->prng, 600 * MSEC);
        s->failing = i % 3 ? 0 : .3;
        s->moody = i % 4 < 2;
}

/* Arrivals come in bursts: half of the scopes' requests within a minute somewhere. */
static void make_request(struct world *w, size_t i)
{
        const struct plan *plan = w->plan;
        struct request *r = &w->requests[i];
        r->scope = pick(w, 1 + pick(w, plan->scopes)); /* some far more often than others */
        r->client = pick(w, plan->clients);
        r->priority = (unsigned)pick(w, plan->priorities);
        r->arrived = SEC + (i % 2 ? prng_usec(&w->prng, plan->length)
                                  : plan->length / 3 + prng_usec(&w->prng, 60 * SEC));
        r->deadline = USEC_MAX;
        if (plan->patience)
                r->deadline = r->arrived + prng_usec(&w->prng, 2 * plan->patience);
        schedule(w, r, ARRIVE, r->arrived);
        if (chance(w, plan->leaving))
                heap_set(&w->leaves, &r->leave,
                         r->arrived + (chance(w, .5) ? prng_usec(&w->prng, 30 * SEC)
                                                     : prng_usec(&w->prng, SEC)));
}

static void count_change(void *arg, const struct governor_change *change)
{
        ((size_t *)arg)[change->event]++;
}

static void none_is_left(void *arg, const struct governor_change *view)
{
        (void)arg;
        assert_int_equal(view->view.in_flight, 0);
        assert_int_equal(view->queued, 0);
}

static void run(const struct plan *plan, uint64_t seed, size_t *replies, size_t *cancelled,
                size_t *events)
{
        struct world w = {.plan = plan};
        prng_init(&w.prng, seed);
        list_init(&w.mailbox);
        w.g = governor_new(&(struct governor_config){
            .max_lanes = plan->max_lanes, .seed = seed, .on_change = count_change, .arg = events});
        w.requests = xcalloc(plan->requests, sizeof *w.requests);
        w.scopes = xcalloc(plan->scopes, sizeof *w.scopes);
        for (size_t i = 0; i < plan->scopes; i++)
                make_scope(&w, i);
        for (size_t i = 0; i < plan->requests; i++)
                make_request(&w, i);
        for (size_t n = 0; advance(&w); n++) {
                assert_true(n < 100 * plan->requests); /* it comes to an end */
                if (n % 1000 == 0)
                        check_thoroughly(&w);
        }
        if (w.ended != plan->requests)
                fail_msg("%s, seed %lu: %zu of %zu ended: the rest is parked", plan->name,
                         (unsigned long)seed, w.ended, plan->requests);
        check_thoroughly(&w);
        assert_true(list_empty(&w.mailbox));
        governor_look(w.g, true, SIZE_MAX, w.now, none_is_left, NULL);
        for (size_t i = 0; i <= TICKET_CLOSING; i++)
                replies[i] += w.replies[i];
        for (size_t i = 0; i <= TICKET_IN_FLIGHT; i++)
                cancelled[i] += w.cancelled[i];
        cancelled[TICKET_IDLE] += w.cancelled_in_mail;
        governor_free(w.g);
        heap_done(&w.steps);
        heap_done(&w.leaves);
        free(w.requests);
        free(w.scopes);
}

/* --- tests --- */

static const struct plan plans[] = {
    {.name = "an hour",
     .requests = 20000,
     .scopes = 60,
     .clients = 20,
     .max_lanes = 20,
     .length = HOUR,
     .patience = 120 * SEC,
     .leaving = .2,
     .queue_max = 100},
    {.name = "no deadlines: only the limiter's wakes carry on",
     .requests = 5000,
     .scopes = 30,
     .clients = 5,
     .max_lanes = 1000,
     .length = HOUR,
     .leaving = 0,
     .queue_max = 100000},
    {.name = "one scope, all in a hurry",
     .requests = 3000,
     .scopes = 1,
     .clients = 300,
     .max_lanes = 1,
     .length = 60 * SEC,
     .patience = 20 * SEC,
     .priorities = TICKET_PRIORITIES,
     .leaving = .5,
     .queue_max = 1000},
    {.name = "closed in the middle",
     .requests = 5000,
     .scopes = 40,
     .clients = 10,
     .max_lanes = 10,
     .length = HOUR / 10,
     .priorities = 3,
     .patience = 120 * SEC,
     .leaving = .1,
     .queue_max = 1000,
     .closing = HOUR / 20},
};

/* Each run checks the rules; together they must have been through everything. */
static void every_ticket_ends_once(void **state)
{
        (void)state;
        size_t replies[TICKET_CLOSING + 1] = {0}, cancelled[TICKET_IN_FLIGHT + 1] = {0};
        size_t events[LIMITER_REOPENED + 1] = {0};
        for (size_t i = 0; i < COUNT_OF(plans); i++)
                for (uint64_t seed = 1; seed <= 5; seed++)
                        run(&plans[i], seed, replies, cancelled, events);
        for (size_t i = 0; i < COUNT_OF(replies); i++)
                if (i != TICKET_NO_ENDPOINT && replies[i] < 10) /* there is no pool here */
                        fail_msg("reply %zu: only %zu times", i, replies[i]);
        for (size_t i = 0; i < COUNT_OF(cancelled); i++) /* IDLE counts those in the mailbox */
                if (cancelled[i] < 10)
                        fail_msg("cancelled in state %zu: only %zu times", i, cancelled[i]);
        for (size_t i = LIMITER_GREW; i < COUNT_OF(events); i++)
                if (events[i] < 10)
                        fail_msg("%s: only %zu times", limiter_event_name((enum limiter_event)i),
                                 events[i]);
}

static const struct lane_policy one_slot = {
    .limit = {.algorithm = LIMITER_FIXED, .start = 1, .floor = 1, .ceiling = 1},
    .queue_max = 1000000,
    .generation = 1,
};

static struct ticket *take_one(struct governor *g, usec_t now)
{
        struct list ready;
        list_init(&ready);
        governor_take(g, now, &ready);
        assert_false(list_empty(&ready));
        struct ticket *t = LIST_ENTRY_OF(ready.next, struct ticket, link);
        assert_int_equal(governor_accept(g, t), TICKET_GRANTED);
        assert_true(list_empty(&ready));
        return t;
}

/* One client queues 50,000; then nine come with one each, and one with ten. */
static void fifty_thousand_starve_nobody(void **state)
{
        (void)state;
        enum { MANY = 50000, OTHERS = 9, TEN = 10 };
        struct governor *g = governor_new(&(struct governor_config){.max_lanes = 10, .seed = 1});
        struct ticket *t = xcalloc(MANY + OTHERS + TEN, sizeof *t);
        struct ticket_wish w = {
            .key = span_of("host:80"), .policy = &one_slot, .arrived = 1, .deadline = USEC_MAX};
        for (size_t i = 0; i < MANY + OTHERS + TEN; i++) {
                char name[] = {i < MANY ? 'm' : i < MANY + OTHERS ? (char)('0' + i - MANY) : 't'};
                w.client = (struct span){name, 1};
                governor_ask(g, &t[i], &w, 1);
        }
        struct ticket *in_flight = &t[0];
        size_t ten = 0, grants = 0;
        for (; ten < TEN; grants++) {
                governor_finish(g, in_flight, 2 + grants);
                in_flight = take_one(g, 2 + grants);
                ten += in_flight >= &t[MANY + OTHERS];
        }
        /* Ten rounds: each has one turn of the many, the first one each of the others as well. */
        assert_int_equal(grants, 2 * TEN + OTHERS);
        for (size_t i = 0; i < MANY + OTHERS + TEN; i++)
                governor_cancel(g, &t[i], 100);
        governor_free(g);
        free(t);
}

/* A crawl of priority 9 that never ends, and a request of each other priority; what is served of
 * whom, and when. */
static void priorities_share(void **state)
{
        (void)state;
        enum { HIGH = 1000, GRANTS = 600 };
        struct governor *g = governor_new(&(struct governor_config){.max_lanes = 10, .seed = 1});
        struct ticket *t = xcalloc(HIGH + 9, sizeof *t);
        struct ticket_wish w = {.key = span_of("host:80"),
                                .client = span_of("a"),
                                .policy = &one_slot,
                                .arrived = 1,
                                .deadline = USEC_MAX};
        for (size_t i = 0; i < HIGH + 9; i++) {
                w.priority = i < HIGH ? 9 : (unsigned)(i - HIGH);
                governor_ask(g, &t[i], &w, 1);
        }
        size_t served_at[9] = {0};
        struct ticket *in_flight = &t[0];
        for (size_t n = 1; n <= GRANTS; n++) {
                governor_finish(g, in_flight, 1 + n);
                in_flight = take_one(g, 1 + n);
                if (in_flight >= &t[HIGH])
                        served_at[in_flight - &t[HIGH]] = n;
        }
        /* The highest wait for 16 to pass, the others for those before them as well. */
        for (size_t p = 0; p < 9; p++)
                assert_int_equal(served_at[p], 16 + 9 - p);
        for (size_t i = 0; i < HIGH + 9; i++)
                governor_cancel(g, &t[i], 2 * GRANTS);
        governor_free(g);
        free(t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_ticket_ends_once),
            cmocka_unit_test(fifty_thousand_starve_nobody),
            cmocka_unit_test(priorities_share),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
