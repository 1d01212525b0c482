#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/egress_pool.h"

#define SEC USEC_PER_SEC
#define MOST 4

static struct endpoint_policy ways[MOST];
static struct pool_policy policy;
static struct egress_pool *p;
static struct prng prng;
static unsigned held;

static void hold(void *owner)
{
        ++*(unsigned *)owner;
}

static void drop(void *owner)
{
        --*(unsigned *)owner;
}

static void make(enum egress_choose choose, size_t count, const unsigned *weights, unsigned most)
{
        static const char *const names[MOST] = {"a", "b", "c", "d"};
        for (size_t i = 0; i < MOST; i++)
                ways[i] = (struct endpoint_policy){names[i], most, weights ? weights[i] : 1, NULL};
        policy = (struct pool_policy){.name = "p",
                                      .endpoints = ways,
                                      .endpoint_count = count,
                                      .choose = choose,
                                      .sticky_ttl = 100 * SEC,
                                      .quarantine = {1, 600 * SEC},
                                      .owner = &held,
                                      .hold = hold,
                                      .drop = drop};
        prng_init(&prng, 1);
        p = egress_pool_new(&policy);
        assert_int_equal(held, 1);
}

static int teardown(void **state)
{
        (void)state;
        egress_pool_free(p);
        p = NULL;
        return held != 0;
}

static bool any(void *arg, struct endpoint *e)
{
        (void)arg;
        (void)e;
        return true;
}

static bool all_but(void *arg, struct endpoint *e)
{
        return strcmp(e->name, arg) != 0;
}

static struct endpoint *named(const char *name)
{
        struct endpoint *e = egress_pool_find(p, name);
        assert_non_null(e);
        return e;
}

static struct endpoint *go(void)
{
        struct endpoint *e = egress_pool_choose(p, false, &prng, any, NULL);
        if (e)
                endpoint_take(e);
        return e;
}

/* --- whose turn it is --- */

static const struct {
        enum egress_choose choose;
        unsigned weights[MOST];
        double slack; /* of an exact share */
} shares[] = {
    {EGRESS_ROUND_ROBIN, {1, 1, 1, 1}, 1}, {EGRESS_ROUND_ROBIN, {1, 2, 5, 2}, 1},
    {EGRESS_LEAST_USED, {1, 1, 1, 1}, 1},  {EGRESS_LEAST_USED, {4, 1, 2, 3}, 1},
    {EGRESS_RANDOM, {1, 1, 1, 1}, 60},     {EGRESS_RANDOM, {1, 2, 5, 2}, 60},
};

/* One after the other, each ended before the next. */
static void shares_by_weight(void **state)
{
        (void)state;
        enum { ROUNDS = 1000 };
        for (size_t i = 0; i < COUNT_OF(shares); i++) {
                unsigned sum = 0;
                make(shares[i].choose, MOST, shares[i].weights, 1);
                for (size_t k = 0; k < MOST; k++)
                        sum += shares[i].weights[k];
                for (unsigned n = 0; n < ROUNDS; n++)
                        endpoint_release(go());
                for (size_t k = 0; k < MOST; k++) {
                        double share = (double)ROUNDS * shares[i].weights[k] / sum;
                        double off = (double)named(ways[k].name)->uses - share;
                        if (off > shares[i].slack || off < -shares[i].slack)
                                fail_msg("row %zu, %s: %.0f off %.0f", i, ways[k].name, off, share);
                }
                teardown(NULL);
        }
}

static void takes_turns_while_all_are_busy(void **state)
{
        (void)state;
        make(EGRESS_LEAST_USED, 3, NULL, 2);
        const char *order[] = {"a", "b", "c", "a", "b", "c"};
        for (size_t i = 0; i < COUNT_OF(order); i++)
                assert_string_equal(go()->name, order[i]);
        assert_null(go());
        assert_true(endpoint_release(named("b")));
        assert_false(endpoint_release(named("b"))); /* it was free already */
        assert_string_equal(go()->name, "b");
        assert_true(endpoint_release(named("a")));
        assert_true(endpoint_release(named("c")));
        assert_string_equal(go()->name, "a"); /* one each: b has gone more often */
        assert_string_equal(go()->name, "c"); /* and b the same */
        for (const char *s = "aabcc"; *s; s++) {
                const char name[] = {*s, '\0'};
                endpoint_release(named(name));
        }
}

/* A slow one does not get all that it has missed, once it is fast. */
static void catches_up_with_nothing(void **state)
{
        (void)state;
        make(EGRESS_ROUND_ROBIN, 2, NULL, 1);
        struct endpoint *slow = go();
        for (unsigned n = 0; n < 1000; n++)
                endpoint_release(go());
        endpoint_release(slow);
        uint64_t before = slow->uses;
        for (unsigned n = 0; n < 100; n++)
                endpoint_release(go());
        assert_in_range(slow->uses - before, 49, 51);
}

static void asks_which_may(void **state)
{
        (void)state;
        char a[] = "a", b[] = "b";
        for (enum egress_choose c = EGRESS_LEAST_USED; c <= EGRESS_RANDOM; c++) {
                make(c, 2, NULL, 1);
                assert_string_equal(egress_pool_choose(p, false, &prng, all_but, a)->name, "b");
                assert_string_equal(egress_pool_choose(p, false, &prng, all_but, b)->name, "a");
                endpoint_take(named("b"));
                assert_null(egress_pool_choose(p, false, &prng, all_but, a));
                endpoint_release(named("b"));
                teardown(NULL);
        }
}

static void spreads_sessions(void **state)
{
        (void)state;
        make(EGRESS_LEAST_USED, 3, NULL, 5);
        named("a")->sessions = 2;
        named("b")->sessions = 1;
        named("c")->sessions = 3;
        endpoint_take(named("b"));
        assert_string_equal(egress_pool_choose(p, true, &prng, any, NULL)->name, "b");
        assert_string_equal(egress_pool_choose(p, false, &prng, any, NULL)->name, "a");
        endpoint_release(named("b"));
}

static void keeps_sessions_from_what_failed_last(void **state)
{
        (void)state;
        for (enum egress_choose c = EGRESS_LEAST_USED; c <= EGRESS_RANDOM; c++) {
                make(c, 2, NULL, 5);
                struct endpoint *a = named("a");
                endpoint_fail(a, SEC, SEC, &prng);
                endpoint_recover(a); /* one request may try */
                named("b")->sessions = 3;
                for (unsigned i = 0; i < 20; i++)
                        assert_string_equal(egress_pool_choose(p, true, &prng, any, NULL)->name,
                                            "b");
                char b[] = "b";
                assert_string_equal(egress_pool_choose(p, true, &prng, all_but, b)->name, "a");
                endpoint_works(a);
                if (c == EGRESS_LEAST_USED)
                        assert_string_equal(egress_pool_choose(p, true, &prng, any, NULL)->name,
                                            "a");
                teardown(NULL);
        }
}

/* --- faults --- */

static void backs_off(void **state)
{
        (void)state;
        make(EGRESS_LEAST_USED, 1, NULL, 2);
        struct endpoint *e = named("a");
        usec_t now = 10 * SEC, back_off = SEC;
        for (unsigned i = 1; i < 15; i++) {
                assert_true(endpoint_fail(e, now, now, &prng));
                assert_int_equal(p->up, 0);
                assert_false(endpoint_is_free(e) || endpoint_is_up(e));
                assert_in_range(e->until - now, back_off, back_off + back_off / 10);
                assert_int_equal(endpoint_is_lost(e), i >= ENDPOINT_LOST_FAULTS);
                assert_false(endpoint_fail(e, now, now + 1, &prng)); /* it does already */
                now = e->until;
                assert_true(endpoint_recover(e));
                assert_int_equal(p->up, 1);
                assert_int_equal(go(), e); /* a probe, */
                assert_null(go());         /* and no second one */
                endpoint_release(e);
                back_off = usec_min(2 * back_off, 300 * SEC);
        }
        assert_true(e->faults == 28 && e->faults_in_row == 14);
        assert_int_equal(go(), e);
        assert_false(endpoint_fail(e, now - 400 * SEC, now, &prng)); /* sent before the last one */
        assert_true(endpoint_works(e));
        assert_int_equal(go(), e);
        assert_false(endpoint_works(e));
        assert_false(endpoint_is_lost(e));
        endpoint_release(e);
        endpoint_release(e);
}

static void one_that_answers_is_up(void **state)
{
        (void)state;
        make(EGRESS_LEAST_USED, 2, NULL, 2);
        struct endpoint *e = named("a");
        endpoint_take(e);
        assert_true(endpoint_fail(e, 1, 2, &prng));
        assert_int_equal(p->up, 1);
        assert_true(endpoint_works(e)); /* another request of it was served */
        assert_int_equal(p->up, 2);
        endpoint_release(e);
}

static void tells_when_there_will_be_one(void **state)
{
        (void)state;
        make(EGRESS_LEAST_USED, 2, NULL, 1);
        struct endpoint *a = named("a"), *b = named("b");
        struct quarantine_host *h = quarantine_enter(&p->quarantine, span_of("h"));
        usec_t now = 10 * SEC;
        assert_int_equal(egress_pool_expected(p, h, NULL, now), now);
        endpoint_take(a);
        endpoint_take(b);
        assert_int_equal(egress_pool_expected(p, h, NULL, now), now); /* busy, but there */
        quarantine_blocked(h, a->id, 1, 600 * SEC, now);
        assert_int_equal(egress_pool_expected(p, h, NULL, now), now);
        assert_int_equal(egress_pool_expected(p, h, b, now), now + 600 * SEC);
        endpoint_fail(b, now, now, &prng);
        assert_int_equal(egress_pool_expected(p, h, NULL, now), b->until);
        assert_int_equal(egress_pool_expected(p, NULL, NULL, now), now);
        endpoint_fail(a, now, now, &prng);
        usec_t first = usec_min(a->until, b->until);
        assert_int_equal(egress_pool_expected(p, NULL, NULL, now), first);
        assert_int_equal(egress_pool_expected(p, h, b, now), now + 600 * SEC);
        endpoint_release(a);
        endpoint_release(b);
        quarantine_leave(h, now);
}

/* --- reload --- */

static void knows_endpoints_by_name(void **state)
{
        (void)state;
        make(EGRESS_LEAST_USED, 3, NULL, 1);
        struct endpoint *a = named("a"), *b = named("b");
        struct session *s = sessions_enter(&p->sessions, span_of("s"), SEC, 1);
        session_bind(s, b);
        endpoint_take(a);
        endpoint_take(b);
        endpoint_fail(a, 1, 1, &prng);
        unsigned later = 0;
        struct endpoint_policy fewer[] = {{"c", 1, 1, NULL}, {"a", 3, 1, NULL}, {"e", 1, 1, NULL}};
        struct pool_policy next = policy;
        next.endpoints = fewer;
        next.endpoint_count = COUNT_OF(fewer);
        next.owner = &later;
        egress_pool_configure(p, &next);
        assert_true(held == 0 && later == 1);
        assert_ptr_equal(named("a"), a);
        assert_true(a->policy == &fewer[1] && a->faults_in_row == 1 && a->in_flight == 1);
        assert_int_equal(p->up, 2); /* c and e */
        assert_true(!b->policy && endpoint_is_lost(b) && !endpoint_is_free(b));
        assert_true(!s->endpoint && s->lost && b->sessions == 0);
        assert_string_equal(named("e")->name, "e");
        held = 0;
        egress_pool_configure(p, &policy); /* as before: b is back */
        assert_ptr_equal(named("b"), b);
        assert_true(b->policy == &ways[1] && !endpoint_is_free(b));
        assert_false(named("e")->policy);
        egress_pool_drop(named("e"));
        assert_null(egress_pool_find(p, "e"));
        endpoint_release(a);
        assert_true(endpoint_release(b));
        session_leave(s, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(shares_by_weight),
            cmocka_unit_test_teardown(takes_turns_while_all_are_busy, teardown),
            cmocka_unit_test_teardown(catches_up_with_nothing, teardown),
            cmocka_unit_test(asks_which_may),
            cmocka_unit_test_teardown(spreads_sessions, teardown),
            cmocka_unit_test(keeps_sessions_from_what_failed_last),
            cmocka_unit_test_teardown(backs_off, teardown),
            cmocka_unit_test_teardown(one_that_answers_is_up, teardown),
            cmocka_unit_test_teardown(tells_when_there_will_be_one, teardown),
            cmocka_unit_test_teardown(knows_endpoints_by_name, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
