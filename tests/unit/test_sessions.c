#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/egress_pool.h"
#include "core/sessions.h"

#define SEC USEC_PER_SEC
#define TTL (60 * SEC)

static struct sessions s;
static struct endpoint *e;
static struct egress_pool *pool;

static const struct endpoint_policy way = {"e", 1, 1, NULL};
static const struct pool_policy policy = {.name = "p", .endpoints = &way, .endpoint_count = 1};

static int setup(void **state)
{
        (void)state;
        sessions_init(&s);
        pool = egress_pool_new(&policy);
        e = egress_pool_find(pool, "e");
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        sessions_done(&s);
        size_t left = e->sessions;
        egress_pool_free(pool);
        return left != 0;
}

static struct session *enter(const char *key, usec_t now)
{
        return sessions_enter(&s, span_of(key), TTL, now);
}

static void lasts_for_its_time(void **state)
{
        (void)state;
        struct session *a = enter("a", 10);
        session_bind(a, e);
        assert_ptr_equal(enter("a", 20), a);
        session_leave(a, 30);
        session_leave(a, 10 * SEC); /* counted from here */
        a = enter("a", 10 * SEC + TTL - 1);
        assert_ptr_equal(a->endpoint, e);
        session_leave(a, 20 * SEC);
        a = enter("a", 20 * SEC + TTL);
        assert_null(a->endpoint);
        assert_false(a->lost);
        assert_int_equal(e->sessions, 0);
        session_leave(a, 20 * SEC + TTL);
        assert_null(s.table); /* it never had one */
}

static void is_not_over_while_it_is_used(void **state)
{
        (void)state;
        struct session *a = enter("a", 10);
        session_bind(a, e);
        assert_ptr_equal(enter("a", 10 * TTL)->endpoint, e);
        session_leave(a, 10 * TTL);
        struct session *b = enter("b", 20 * TTL); /* what is over goes, but for what is in use */
        assert_int_equal(HASH_COUNT(s.table), 2);
        session_leave(a, 20 * TTL);
        session_leave(b, 20 * TTL);
        b = enter("b", 21 * TTL);
        assert_int_equal(HASH_COUNT(s.table), 1);
        session_leave(b, 21 * TTL);
}

static void loses_and_gets_another(void **state)
{
        (void)state;
        struct session *a = enter("a", 10), *b = enter("b", 10);
        session_bind(a, e);
        assert_int_equal(e->sessions, 1);
        sessions_lose_endpoint(&s, e);
        assert_true(!a->endpoint && a->lost && !b->lost);
        assert_int_equal(e->sessions, 0);
        session_leave(a, 10);
        assert_ptr_equal(enter("a", 11), a); /* that it moves is to be told yet */
        session_bind(a, e);
        assert_false(a->lost);
        session_lose(a);
        assert_true(a->lost && e->sessions == 0);
        session_leave(a, 12);
        session_leave(b, 12);
}

static void is_bounded(void **state)
{
        (void)state;
        char key[32];
        struct session *kept = enter("kept", 1);
        session_bind(kept, e);
        for (size_t i = 0; i < SESSIONS_MAX + 100; i++) {
                snprintf(key, sizeof key, "%zu", i);
                struct session *one = enter(key, 2 + i);
                session_bind(one, e);
                session_leave(one, 2 + i);
        }
        assert_int_equal(HASH_COUNT(s.table), SESSIONS_MAX);
        struct session *old = enter("100", SESSIONS_MAX + 200);
        struct session *last = enter("102", SESSIONS_MAX + 200);
        assert_null(old->endpoint); /* used longest ago */
        assert_non_null(last->endpoint);
        assert_ptr_equal(kept->endpoint, e);
        session_leave(old, SESSIONS_MAX + 200);
        session_leave(last, SESSIONS_MAX + 200);
        session_leave(kept, SESSIONS_MAX + 200);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(lasts_for_its_time, setup, teardown),
            cmocka_unit_test_setup_teardown(is_not_over_while_it_is_used, setup, teardown),
            cmocka_unit_test_setup_teardown(loses_and_gets_another, setup, teardown),
            cmocka_unit_test_setup_teardown(is_bounded, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
