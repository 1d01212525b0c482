/*
 * What one operation of the governor costs, in nanoseconds, uncontended: many lanes, many tickets.
 * Each figure is the best of some rounds, the least disturbed by what else the machine does.
 *
 * governor [LANES [TICKETS]]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/xalloc.h"
#include "core/governor.h"

enum { ROUNDS = 7, OPERATIONS = 200000 };

/* A pool with a request at a time for each endpoint; all endpoints are taken. */
enum { ENDPOINTS = 100 };

struct bench {
        struct governor *g;
        struct pool_policy pool; /* of no name: none */
        struct endpoint_policy endpoints[ENDPOINTS];
        char names[ENDPOINTS][32];
        size_t sessions; /* 0: none */
        struct ticket *going[ENDPOINTS];
        size_t going_count;
        usec_t step;
        struct ticket *tickets, **in_flight; /* of each lane, in_turn */
        struct lane_policy policy;
        char (*keys)[32], (*clients)[16];
        size_t lanes, count, clients_count;
        struct prng prng;
        usec_t now;
};

static double nanoseconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static enum ticket_reply ask(struct bench *b, struct ticket *t, size_t lane)
{
        struct ticket_wish wish = {
            .key = span_of(b->keys[lane]),
            .client = span_of(b->clients[prng_next(&b->prng) % b->clients_count]),
            .policy = &b->policy,
            .arrived = b->now,
            .deadline = b->now + 100000 * USEC_PER_SEC,
            .pool = b->pool.name ? &b->pool : NULL,
            .host = span_of("host.example"),
        };
        char session[32];
        if (b->sessions > 0) {
                snprintf(session, sizeof session, "s%zu", (size_t)(t - b->tickets) % b->sessions);
                wish.session = span_of(session);
        }
        return governor_ask(b->g, t, &wish, b->now);
}

/* Accepts what is ready; the last of them, or NULL. */
static struct ticket *take(struct bench *b)
{
        struct list ready;
        struct ticket *last = NULL;
        list_init(&ready);
        governor_take(b->g, b->now, &ready);
        while (!list_empty(&ready)) {
                last = LIST_ENTRY_OF(ready.next, struct ticket, link);
                if (governor_accept(b->g, last) != TICKET_GRANTED)
                        abort(); /* nobody is to be refused here */
        }
        return last;
}

static void start(struct bench *b)
{
        b->now = USEC_PER_SEC;
        b->g = governor_new(&(struct governor_config){.max_lanes = b->lanes, .seed = 1});
        b->tickets = xcalloc(b->count, sizeof *b->tickets);
        b->in_flight = xcalloc(b->lanes, sizeof *b->in_flight);
        prng_init(&b->prng, 1);
}

static void stop(struct bench *b)
{
        for (size_t i = 0; i < b->count; i++)
                governor_cancel(b->g, &b->tickets[i], b->now);
        governor_free(b->g);
        free(b->tickets);
        free(b->in_flight);
}

/* Every request may go: ask, answer, finish, take, in a random lane. Four operations. */
static void pass_through(struct bench *b)
{
        for (size_t i = 0; i < OPERATIONS / 4; i++) {
                struct ticket *t = &b->tickets[i % b->count];
                b->now++;
                if (ask(b, t, prng_next(&b->prng) % b->lanes) != TICKET_GRANTED)
                        abort();
                governor_answer(b->g, t, &(struct answer){.class = ANSWER_SUCCESS}, b->now);
                governor_finish(b->g, t, b->now);
                take(b);
        }
}

static void fill(struct bench *b)
{
        for (size_t i = 0; i < b->count; i++)
                if (ask(b, &b->tickets[i], i % b->lanes) == TICKET_GRANTED)
                        b->in_flight[i % b->lanes] = &b->tickets[i];
}

/* All tickets wait or are in flight, one of each lane: a random one that is in flight ends, the
 * next of its lane goes, and it asks again at the end of the queue. Five operations, accept
 * included. */
static void in_turn(struct bench *b)
{
        for (size_t i = 0; i < OPERATIONS / 5; i++) {
                size_t lane = prng_next(&b->prng) % b->lanes;
                struct ticket *t = b->in_flight[lane];
                b->now++;
                governor_answer(b->g, t, &(struct answer){.class = ANSWER_SUCCESS}, b->now);
                governor_finish(b->g, t, b->now);
                b->in_flight[lane] = take(b);
                ask(b, t, lane);
        }
}

/* A random waiting ticket goes away, and asks anew. Two operations. */
static void cancel(struct bench *b)
{
        for (size_t i = 0; i < OPERATIONS / 2; i++) {
                size_t n = prng_next(&b->prng) % b->count;
                struct ticket *t = &b->tickets[n];
                if (t->state == TICKET_IN_FLIGHT)
                        continue;
                b->now++;
                governor_cancel(b->g, t, b->now);
                ask(b, t, n % b->lanes);
        }
}

/* Accepts what is ready, and remembers what is in flight. */
static void take_all(struct bench *b)
{
        struct list ready;
        list_init(&ready);
        governor_take(b->g, b->now, &ready);
        while (!list_empty(&ready)) {
                struct ticket *t = LIST_ENTRY_OF(ready.next, struct ticket, link);
                if (governor_accept(b->g, t) != TICKET_GRANTED)
                        abort();
                b->going[b->going_count++] = t;
        }
}

/* All endpoints are taken, or wait for their limiters, and the other tickets wait: a random one
 * that is in flight ends, whoever is next goes, and it asks again. Five operations, accept
 * included. */
static void by_pool(struct bench *b)
{
        for (size_t i = 0; i < OPERATIONS / 5; i++) {
                b->now += b->step;
                take_all(b);
                if (b->going_count == 0)
                        continue;
                size_t n = prng_next(&b->prng) % b->going_count;
                struct ticket *t = b->going[n];
                b->going[n] = b->going[--b->going_count];
                governor_answer(b->g, t, &(struct answer){.class = ANSWER_SUCCESS}, b->now);
                governor_finish(b->g, t, b->now);
                take_all(b);
                if (ask(b, t, (size_t)(t - b->tickets) % b->lanes) == TICKET_GRANTED)
                        b->going[b->going_count++] = t;
        }
}

static void fill_pool(struct bench *b)
{
        b->going_count = 0;
        for (size_t i = 0; i < b->count; i++)
                if (ask(b, &b->tickets[i], i % b->lanes) == TICKET_GRANTED)
                        b->going[b->going_count++] = &b->tickets[i];
}

static void measure(struct bench b, const char *name, bool filled, void (*run)(struct bench *b))
{
        double best = 1e18;
        start(&b);
        if (b.pool.name)
                fill_pool(&b);
        else if (filled)
                fill(&b);
        for (int i = 0; i < ROUNDS; i++) {
                double began = nanoseconds();
                run(&b);
                double each = (nanoseconds() - began) / OPERATIONS;
                best = each < best ? each : best;
        }
        printf("%-44s %6zu lanes %6zu tickets %7.0f ns\n", name, b.lanes, b.count, best);
        stop(&b);
}

static void name_all(struct bench *b)
{
        b->keys = xcalloc(b->lanes, sizeof *b->keys);
        b->clients = xcalloc(b->clients_count, sizeof *b->clients);
        for (size_t i = 0; i < b->lanes; i++)
                snprintf(b->keys[i], sizeof b->keys[i], "host%zu.example:443", i % 1000000);
        for (size_t i = 0; i < b->clients_count; i++)
                snprintf(b->clients[i], sizeof b->clients[i], "192.0.2.%zu", i % 256);
}

static void make_pool(struct bench *b)
{
        for (size_t i = 0; i < ENDPOINTS; i++) {
                snprintf(b->names[i], sizeof b->names[i], "e%zu", i);
                b->endpoints[i] =
                    (struct endpoint_policy){.name = b->names[i], .max_in_flight = 1, .weight = 1};
        }
        b->pool = (struct pool_policy){.name = "pool",
                                       .endpoints = b->endpoints,
                                       .endpoint_count = ENDPOINTS,
                                       .sticky = true,
                                       .sticky_ttl = 3600 * USEC_PER_SEC,
                                       .quarantine = {1, 600 * USEC_PER_SEC},
                                       .generation = 1};
}

/* A hundred endpoints and ten thousand tickets. */
static void measure_pools(struct bench b)
{
        b.count = 10000;
        b.policy.limit.start = b.policy.limit.ceiling = 1000;
        b.lanes = 1;
        b.step = 1;
        make_pool(&b);
        measure(b, "100 endpoints, one limiter", false, by_pool);
        b.sessions = 1000;
        measure(b, "100 endpoints, one limiter, 1000 sessions", false, by_pool);
        b.sessions = 0;
        b.policy.by_endpoint = true;
        measure(b, "100 endpoints, a limiter for each", false, by_pool);
        b.policy.limit.max_rate = 10;
        b.step = 1000; /* as many requests as they let go */
        measure(b, "100 endpoints, a limiter each, paced", false, by_pool);
        b.policy.limit.max_rate = 0;
        b.step = 1;
        b.sessions = 1000;
        measure(b, "100 endpoints, a limiter each, 1000 sessions", false, by_pool);
        b.policy.by_endpoint = false;
        b.sessions = 0;
        b.lanes = 1000;
        measure(b, "100 endpoints, 1000 scopes", false, by_pool);
}

int main(int argc, char **argv)
{
        struct bench b = {
            .lanes = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000,
            .count = argc > 2 ? strtoul(argv[2], NULL, 10) : 50000,
            .clients_count = 200,
            .policy = {.limit = {.algorithm = LIMITER_FIXED, .start = 1, .floor = 1, .ceiling = 1},
                       .queue_max = 1000000,
                       .generation = 1},
        };
        if (b.lanes == 0 || b.lanes > 1000000 || b.count < 2 * b.lanes) {
                fprintf(stderr, "usage: governor [LANES [TICKETS]], TICKETS >= 2 * LANES > 0\n");
                return 2;
        }
        name_all(&b);
        measure(b, "granted at once: ask, answer, finish, take", false, pass_through);
        measure(b, "in turn: answer, finish, take, accept, ask", true, in_turn);
        measure(b, "cancelled while queued: cancel, ask", true, cancel);
        b.lanes = 1;
        measure(b, "in turn", true, in_turn);
        measure(b, "cancelled while queued", true, cancel);
        measure_pools(b);
        free(b.keys);
        free(b.clients);
        return 0;
}
