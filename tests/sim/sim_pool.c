/* What a pool brings: hosts that limit by address, crawled through many of them in virtual time. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/xalloc.h"
#include "core/governor.h"
#include "tests/sim/origin.h"

#define MSEC USEC_PER_MSEC
#define SEC USEC_PER_SEC

enum { MOST_ENDPOINTS = 50, MOST_LANES = 4 };

/* Workers of one lane; each has a request under way or waiting at all times. */
struct crawl {
        size_t workers;
        size_t sessions; /* each worker is of one of them; 0: of none */
        size_t lane;
};

struct scenario {
        const char *name;
        size_t endpoints, lanes;
        bool by_endpoint;
        struct origin_config origin; /* one for each address, or where !by_endpoint for each lane */
        usec_t latency, warm_up, duration;
        struct crawl crawls[2];
        double
            spread; /* the last address may have so much more than the first, the others between */
};

struct worker {
        struct ticket ticket;
        struct heap_node answer;
        const struct crawl *crawl;
        size_t endpoint, serial;
        enum origin_verdict verdict;
        usec_t wait;
};

/* After the warm-up. */
struct result {
        size_t served[2], refused; /* the former by crawl */
        unsigned most_in_flight;
        double rate;
};

struct world {
        const struct scenario *scenario;
        struct governor *g;
        struct prng prng;
        usec_t now, start;
        struct heap answers;
        struct worker *workers;
        size_t worker_count;
        struct origin origins[MOST_ENDPOINTS];
        char names[MOST_ENDPOINTS][32];
        struct endpoint_policy endpoints[MOST_ENDPOINTS];
        struct pool_policy pool;
        struct lane_policy policy;
        unsigned in_flight[MOST_ENDPOINTS];
        size_t session_at[100]; /* 1 + endpoint */
        struct result result;
};

static void sent(struct world *w, struct worker *one)
{
        size_t e = (size_t)(one->ticket.endpoint - w->endpoints);
        struct origin *o = &w->origins[w->scenario->by_endpoint ? e : one->crawl->lane];
        one->endpoint = e;
        if (++w->in_flight[e] > w->result.most_in_flight)
                w->result.most_in_flight = w->in_flight[e];
        if (one->crawl->sessions) {
                size_t *at = &w->session_at[one->serial % one->crawl->sessions];
                assert_true(*at == 0 || *at == 1 + e);
                *at = 1 + e;
        }
        one->wait = 0;
        one->verdict = origin_arrive(o, w->now + w->scenario->latency / 2, &one->wait);
        one->wait = (one->wait + SEC - 1) / SEC * SEC; /* Retry-After has whole seconds alone */
        heap_set(&w->answers, &one->answer,
                 w->now + w->scenario->latency * 3 / 4 +
                     prng_usec(&w->prng, w->scenario->latency / 2));
}

static struct ticket_wish wish_of(const struct world *w, const struct worker *one)
{
        static char key[64], client[32], session[32];
        snprintf(key, sizeof key, "host%zu:80 %s=p", one->crawl->lane,
                 w->scenario->by_endpoint ? "endpoint" : "pool");
        snprintf(client, sizeof client, "c%zu", (size_t)(one->crawl - w->scenario->crawls));
        snprintf(session, sizeof session, "s%zu",
                 one->crawl->sessions ? one->serial % one->crawl->sessions : 0);
        return (struct ticket_wish){.key = span_of(key),
                                    .client = span_of(client),
                                    .policy = &w->policy,
                                    .pool = &w->pool,
                                    .host = span_of("host"),
                                    .session = span_of(one->crawl->sessions ? session : ""),
                                    .arrived = w->now,
                                    .deadline = USEC_MAX};
}

static void ask(struct world *w, struct worker *one)
{
        struct ticket_wish wish = wish_of(w, one);
        enum ticket_reply reply = governor_ask(w->g, &one->ticket, &wish, w->now);
        if (reply == TICKET_GRANTED)
                sent(w, one);
        else
                assert_int_equal(reply, TICKET_WAITING);
}

static void take(struct world *w)
{
        struct list ready;
        list_init(&ready);
        governor_take(w->g, w->now, &ready);
        while (!list_empty(&ready)) {
                struct ticket *t = LIST_ENTRY_OF(ready.next, struct ticket, link);
                assert_int_equal(governor_accept(w->g, t), TICKET_GRANTED);
                sent(w, LIST_ENTRY_OF(t, struct worker, ticket));
        }
}

static void answered(struct world *w, struct worker *one)
{
        bool refused = one->verdict == ORIGIN_REFUSES,
             counts = w->now >= w->start + w->scenario->warm_up;
        struct answer a = {.class = refused ? ANSWER_THROTTLED : ANSWER_SUCCESS,
                           .wait_named = refused && one->wait > 0,
                           .wait = refused ? one->wait : 0};
        struct ticket_wish wish = wish_of(w, one);
        heap_remove(&w->answers, &one->answer);
        governor_answer(w->g, &one->ticket, &a, w->now);
        w->in_flight[one->endpoint]--;
        if (refused) {
                w->result.refused += counts;
                wish.retry = true;
                wish.not_before = w->now + one->wait;
                assert_true(governor_requeue(w->g, &one->ticket, &wish, w->now));
                return;
        }
        w->result.served[one->crawl - w->scenario->crawls] += counts;
        governor_finish(w->g, &one->ticket, w->now);
        ask(w, one);
}

static void set_up(struct world *w)
{
        const struct scenario *s = w->scenario;
        for (size_t i = 0; i < s->endpoints; i++) {
                snprintf(w->names[i], sizeof w->names[i], "e%zu", i);
                w->endpoints[i] =
                    (struct endpoint_policy){.name = w->names[i], .max_in_flight = 1, .weight = 1};
        }
        for (size_t i = 0; i < MOST_ENDPOINTS; i++) {
                origin_init(&w->origins[i], &s->origin, w->start);
                w->origins[i].scale = 1 + s->spread * (double)i / (double)(s->endpoints - 1);
        }
        w->pool = (struct pool_policy){.name = "p",
                                       .endpoints = w->endpoints,
                                       .endpoint_count = s->endpoints,
                                       .sticky = true,
                                       .sticky_ttl = 3600 * SEC,
                                       .quarantine = {1, 600 * SEC},
                                       .generation = 1};
        w->policy = (struct lane_policy){.limit = {.algorithm = LIMITER_ADAPTIVE,
                                                   .start = 4,
                                                   .floor = 1,
                                                   .ceiling = 32,
                                                   .max_hold = 900 * SEC,
                                                   .breaker = {.trip = 6, .cooldown = 30 * SEC}},
                                         .queue_max = 100000,
                                         .retry_share = .2,
                                         .by_endpoint = s->by_endpoint,
                                         .generation = 1};
        w->worker_count = s->crawls[0].workers + s->crawls[1].workers;
        w->workers = xcalloc(w->worker_count, sizeof *w->workers);
}

static struct result run(const struct scenario *s, uint64_t seed)
{
        struct world *w = xcalloc(1, sizeof *w);
        w->scenario = s;
        w->now = w->start = 1000 * SEC;
        prng_init(&w->prng, seed);
        w->g = governor_new(&(struct governor_config){.max_lanes = 100, .seed = seed});
        set_up(w);
        for (size_t i = 0; i < w->worker_count; i++) {
                w->workers[i].crawl = &s->crawls[i >= s->crawls[0].workers];
                w->workers[i].serial = i;
                ask(w, &w->workers[i]);
        }
        while (w->now < w->start + s->warm_up + s->duration) {
                struct heap_node *n = heap_first(&w->answers);
                usec_t wake = governor_next_wake(w->g);
                w->now = usec_min(n ? n->at : USEC_MAX, usec_max(wake, w->now));
                if (n && n->at == w->now)
                        answered(w, LIST_ENTRY_OF(n, struct worker, answer));
                take(w);
        }
        for (size_t i = 0; i < w->worker_count; i++)
                governor_cancel(w->g, &w->workers[i].ticket, w->now);
        struct result result = w->result;
        result.rate = (double)(result.served[0] + result.served[1]) / usec_seconds(s->duration);
        governor_free(w->g);
        for (size_t i = 0; i < MOST_ENDPOINTS; i++)
                origin_done(&w->origins[i]);
        heap_done(&w->answers);
        free(w->workers);
        free(w);
        return result;
}

/* --- hosts that limit --- */

/* Eight addresses that may have 80 requests/s together, from the first request on; for a minute. */
static const struct {
        const char *name;
        struct origin_config origin; /* of each, or of the first */
        double spread;
        size_t sessions;
        double least, most_refused; /* of the 80/s; of what is served */
} addresses[] = {
    {"a sliding second", {.kind = ORIGIN_SLIDING, .rate = 10, .period = SEC}, 0, 0, .95, .006},
    {"the same, all with sessions",
     {.kind = ORIGIN_SLIDING, .rate = 10, .period = SEC},
     0,
     24,
     .95,
     .006},
    {"a window by the clock",
     {.kind = ORIGIN_FIXED_WINDOW, .rate = 10, .period = SEC},
     0,
     0,
     .95,
     .008},
    {"a token bucket", {.kind = ORIGIN_TOKEN_BUCKET, .rate = 10, .burst = 10}, 0, 0, .95, .008},
    {"each a little more than the last",
     {.kind = ORIGIN_TOKEN_BUCKET, .rate = 9.8, .burst = 5},
     .04,
     0,
     .94,
     .006},
    {"from a rate to its double",
     {.kind = ORIGIN_TOKEN_BUCKET, .rate = 20. / 3, .burst = 5},
     1,
     0,
     .87,
     .009},
};

static void assert_uses(const char *name, const struct scenario *s, double least,
                        double most_refused)
{
        double rate = 0, served = 0, refused = 0;
        for (uint64_t seed = 1; seed <= 3; seed++) {
                struct result r = run(s, seed);
                assert_int_equal(r.most_in_flight, 1);
                rate += r.rate / 3;
                served += (double)r.served[0];
                refused += (double)r.refused;
        }
        if (rate < least * 80)
                fail_msg("%s: only %.1f/s", name, rate);
        if (refused >= most_refused * served)
                fail_msg("%s: %.2f %% refused", name, 100 * refused / served);
}

static void uses_what_all_addresses_may_have(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(addresses); i++) {
                struct scenario s = {.endpoints = 8,
                                     .lanes = 1,
                                     .by_endpoint = true,
                                     .origin = addresses[i].origin,
                                     .latency = 40 * MSEC,
                                     .duration = 60 * SEC,
                                     .crawls = {{100, addresses[i].sessions, 0}},
                                     .spread = addresses[i].spread};
                assert_uses(addresses[i].name, &s, addresses[i].least, addresses[i].most_refused);
        }
}

static void uses_what_an_account_may_have(void **state)
{
        (void)state;
        const struct scenario s = {.endpoints = 50,
                                   .lanes = 1,
                                   .origin = {.kind = ORIGIN_SLIDING, .rate = 80, .period = SEC},
                                   .latency = 40 * MSEC,
                                   .warm_up = 20 * SEC,
                                   .duration = 60 * SEC,
                                   .crawls = {{100, 0, 0}}};
        assert_uses("an account with fifty addresses", &s, .95, .002);
}

/* --- who gets the endpoints --- */

static const struct scenario shared[] = {
    {"a lane with few shares two endpoints with one that has many",
     2,
     2,
     false,
     {.kind = ORIGIN_UNLIMITED},
     40 * MSEC,
     20 * SEC,
     20 * SEC,
     {{500, 0, 0}, {5, 0, 1}},
     0},
    {"so it does where each endpoint has a limiter",
     2,
     2,
     true,
     {.kind = ORIGIN_UNLIMITED},
     40 * MSEC,
     20 * SEC,
     20 * SEC,
     {{500, 0, 0}, {5, 0, 1}},
     0},
    {"sessions and others, in two lanes",
     2,
     2,
     false,
     {.kind = ORIGIN_UNLIMITED},
     40 * MSEC,
     20 * SEC,
     20 * SEC,
     {{50, 2, 0}, {50, 0, 1}},
     0},
    {"sessions and others, in one lane",
     2,
     1,
     false,
     {.kind = ORIGIN_UNLIMITED},
     40 * MSEC,
     20 * SEC,
     20 * SEC,
     {{50, 2, 0}, {50, 0, 0}},
     0},
};

static void shares_endpoints(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(shared); i++) {
                struct result r = run(&shared[i], 1);
                assert_int_equal(r.most_in_flight, 1);
                double all = (double)(r.served[0] + r.served[1]);
                if (r.rate < .95 * 50) /* two, each for 40 ms */
                        fail_msg("%s: only %.1f/s", shared[i].name, r.rate);
                if ((double)r.served[0] < .48 * all || (double)r.served[1] < .48 * all)
                        fail_msg("%s: %zu to %zu", shared[i].name, r.served[0], r.served[1]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(uses_what_all_addresses_may_have),
            cmocka_unit_test(uses_what_an_account_may_have),
            cmocka_unit_test(shares_endpoints),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
