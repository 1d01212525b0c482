#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/gate.h"

#define SEC USEC_PER_SEC

static const struct lane_policy policy = {
    .limit = {.start = 4, .floor = 1, .ceiling = 32, .max_hold = 900 * SEC},
    .queue_max = 100,
    .generation = 1,
};

static struct gate *g;

static int setup(void **state)
{
        (void)state;
        g = gate_new(1, 1000, NULL);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        gate_free(g);
        return 0;
}

static void one(const char *key, enum answer_class class, usec_t wait)
{
        struct ticket t = {0};
        struct ticket_wish w = {.key = span_of(key),
                                .client = span_of("a"),
                                .policy = &policy,
                                .deadline = USEC_MAX - 1};
        assert_int_equal(gate_ask(g, &t, &w), TICKET_GRANTED);
        gate_answer(g, &t, &(struct answer){.class = class, .wait_named = wait > 0, .wait = wait});
        gate_finish(g, &t);
}

/* ---- looking ---- */

static bool seen[300];

/* It may use the gate: the mutex is not held. */
static void on_look(void *arg, const struct governor_change *view)
{
        struct governor_stats stats;
        size_t *count = arg;
        char *end;
        unsigned long i = strtoul(view->key, &end, 10);
        gate_stats(g, &stats);
        assert_true(*end == '\0' && i < COUNT_OF(seen) && !seen[i]);
        seen[i] = true;
        ++*count;
}

static void sees_every_scope_once(void **state)
{
        (void)state;
        char key[8];
        size_t count = 0;
        for (unsigned i = 0; i < COUNT_OF(seen); i++) {
                snprintf(key, sizeof key, "%u", i);
                one(key, ANSWER_SUCCESS, 0);
        }
        gate_look(g, on_look, &count);
        assert_int_equal(count, COUNT_OF(seen));
}

/* ---- the series of one ---- */

static void a_series_is_copied_out(void **state)
{
        (void)state;
        struct series_record *list = NULL;
        size_t count = 7;
        usec_t before = clock_now();
        one("a", ANSWER_THROTTLED, 60 * SEC);
        assert_true(gate_series(g, span_of("a"), 0, &list, &count));
        assert_int_equal(count, 1);
        assert_int_equal(list[0].event, LIMITER_CUT);
        assert_in_range(list[0].at, before, clock_now());
        assert_in_range(list[0].closed_until, before + 60 * SEC, clock_now() + 60 * SEC);
        usec_t last = list[0].at;
        free(list);
        assert_true(gate_series(g, span_of("a"), last, &list, &count));
        assert_int_equal(count, 0);
        free(list);
}

static void a_long_series_is_whole(void **state)
{
        (void)state;
        struct series_record *list = NULL;
        size_t count = 0;
        one("a", ANSWER_SUCCESS, 0);
        for (unsigned i = 0; i < 300; i++) /* each of them is a record */
                assert_true(gate_reset(g, span_of("a")));
        assert_true(gate_series(g, span_of("a"), 0, &list, &count));
        assert_int_equal(count, 256);
        for (size_t i = 1; i < count; i++)
                assert_true(list[i].event == LIMITER_RESET && list[i].at >= list[i - 1].at);
        free(list);
}

static void unknown_scopes_are_told_from_silent_ones(void **state)
{
        (void)state;
        struct series_record *list = NULL;
        size_t count = 7;
        assert_false(gate_series(g, span_of("a"), 0, &list, &count));
        assert_true(list == NULL && count == 7); /* untouched */
        assert_false(gate_reset(g, span_of("a")));
        struct ticket t = {0};
        struct ticket_wish w = {.key = span_of("a"),
                                .client = span_of("a"),
                                .policy = &policy,
                                .deadline = USEC_MAX - 1};
        gate_ask(g, &t, &w);
        gate_cancel(g, &t);
        assert_true(gate_series(g, span_of("a"), 0, &list, &count));
        assert_int_equal(count, 0);
        free(list);
}

/* ---- pools: more of everything than is looked at under one hold of the mutex ---- */

enum { ENDPOINTS = 100 };

static struct endpoint_policy ways[ENDPOINTS];
static char names[ENDPOINTS][32];
static bool told[ENDPOINTS];

static const struct pool_policy *make_pool(void)
{
        static const struct pool_policy pool = {.name = "p",
                                                .endpoints = ways,
                                                .endpoint_count = ENDPOINTS,
                                                .sticky = true,
                                                .sticky_ttl = 600 * SEC,
                                                .quarantine = {1, 600 * SEC},
                                                .generation = 1};
        for (size_t i = 0; i < ENDPOINTS; i++) {
                snprintf(names[i], sizeof names[i], "%zu", i);
                ways[i] = (struct endpoint_policy){names[i], 1, 1, NULL};
        }
        gate_pools(g, (const struct pool_policy *const[]){&pool}, 1);
        return &pool;
}

static void tell(void *arg, const char *name)
{
        unsigned long i = strtoul(name, NULL, 10);
        assert_true(i < ENDPOINTS && !told[i]);
        told[i] = true;
        ++*(size_t *)arg;
}

static void on_endpoint(void *arg, const struct endpoint_view *view)
{
        assert_string_equal(view->pool, "p");
        assert_int_equal(view->in_flight, 0);
        assert_true(view->uses == 1 && view->blocks == 1 && view->sessions == 0);
        tell(arg, view->name);
}

static void on_quarantine(void *arg, const struct quarantine_view *view)
{
        assert_string_equal(view->host, "h");
        assert_true(view->until > clock_now());
        tell(arg, view->endpoint);
}

static void on_session(void *arg, const struct session_view *view)
{
        assert_string_equal(view->pool, "p");
        assert_true(view->used > 0 && view->tickets == 0);
        tell(arg, view->session);
}

static void on_limiter(void *arg, const struct governor_change *view)
{
        if (strcmp(view->key, "k endpoint=p") != 0)
                tell(arg, view->key + strlen("k endpoint=p/"));
}

static void on_memory(void *arg, const char *key, const struct limiter_memory *m)
{
        (void)m;
        tell(arg, key + strlen("k endpoint=p/"));
}

#define ASSERT_TOLD(n, call)                  \
        do {                                  \
                size_t count = 0;             \
                memset(told, 0, sizeof told); \
                call;                         \
                assert_int_equal(count, n);   \
        } while (0)

static void tells_of_pools(void **state)
{
        (void)state;
        static struct lane_policy each;
        const struct pool_policy *pool = make_pool();
        char session[32];
        each = policy;
        each.by_endpoint = true;
        for (size_t i = 0; i < 2 * ENDPOINTS; i++) { /* blocked by each, and served by each */
                bool first = i < ENDPOINTS;
                struct ticket t = {0};
                struct ticket_wish w = {.key = span_of("k endpoint=p"),
                                        .client = span_of("a"),
                                        .policy = &each,
                                        .pool = pool,
                                        .host = span_of(first ? "h" : "other"),
                                        .deadline = USEC_MAX - 1};
                snprintf(session, sizeof session, "%zu", i - ENDPOINTS);
                if (!first)
                        w.session = span_of(session);
                assert_int_equal(gate_ask(g, &t, &w), TICKET_GRANTED);
                gate_answer(g, &t,
                            &(struct answer){.class = first ? ANSWER_BLOCKED : ANSWER_SUCCESS});
                gate_finish(g, &t);
                if (i + 1 == ENDPOINTS)
                        ASSERT_TOLD(ENDPOINTS, gate_look_endpoints(g, on_endpoint, &count));
        }
        ASSERT_TOLD(ENDPOINTS, gate_look_quarantines(g, on_quarantine, &count));
        ASSERT_TOLD(ENDPOINTS, gate_look_sessions(g, 1000, on_session, &count));
        ASSERT_TOLD(70, gate_look_sessions(g, 70, on_session, &count));
        ASSERT_TOLD(ENDPOINTS, gate_look(g, on_limiter, &count));
        ASSERT_TOLD(ENDPOINTS, gate_export(g, on_memory, &count));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(sees_every_scope_once, setup, teardown),
            cmocka_unit_test_setup_teardown(a_series_is_copied_out, setup, teardown),
            cmocka_unit_test_setup_teardown(a_long_series_is_whole, setup, teardown),
            cmocka_unit_test_setup_teardown(tells_of_pools, setup, teardown),
            cmocka_unit_test_setup_teardown(unknown_scopes_are_told_from_silent_ones, setup,
                                            teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
