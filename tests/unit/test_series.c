#include "tests/unit/unit.h"

#include "core/governor.h"
#include "core/series.h"

#define SEC USEC_PER_SEC

static struct series_pool pool;

struct seen {
        usec_t at[1000];
        struct series_record last;
        size_t count;
};

static void on_record(void *arg, const struct series_record *record)
{
        struct seen *seen = arg;
        assert_true(seen->count < COUNT_OF(seen->at));
        assert_true(seen->count == 0 || record->at >= seen->at[seen->count - 1]);
        seen->at[seen->count++] = record->at;
        seen->last = *record;
}

static const struct seen *read_since(const struct series *s, usec_t since)
{
        static struct seen seen;
        seen.count = 0;
        series_read(s, since, on_record, &seen);
        assert_true(seen.count <= s->count);
        return &seen;
}

static void add(struct series *s, usec_t at)
{
        series_add(s, &pool, &(struct series_record){.at = at, .rate = (double)at});
}

static void one_scope(void **state)
{
        (void)state;
        struct series s;
        series_pool_init(&pool, 100, 4);
        series_init(&s);
        assert_int_equal(read_since(&s, 0)->count, 0);
        for (usec_t at = 1; at <= 10; at++) {
                add(&s, at);
                const struct seen *seen = read_since(&s, 0);
                assert_int_equal(seen->count, at < 4 ? at : 4);
                assert_int_equal(seen->at[0], at < 4 ? 1 : at - 3);
                assert_int_equal(seen->last.at, at);
                assert_true(seen->last.rate == (double)at);
        }
        assert_int_equal(read_since(&s, 8)->count, 2); /* 9 and 10 */
        assert_int_equal(read_since(&s, 10)->count, 0);
        assert_int_equal(pool.count, 4);
        series_done(&s, &pool);
        assert_int_equal(pool.count, 0);
        series_pool_done(&pool);
}

/* The oldest of all gives way, whosever it is: also the last one of a scope, or one's own. */
static void all_together(void **state)
{
        (void)state;
        struct series a, b, c;
        series_pool_init(&pool, 4, 3);
        series_init(&a);
        series_init(&b);
        series_init(&c);
        add(&a, 1);
        add(&b, 2);
        add(&b, 3);
        add(&a, 4);
        add(&b, 5); /* in place of 1 */
        assert_int_equal(read_since(&a, 0)->count, 1);
        assert_int_equal(read_since(&b, 0)->count, 3);
        add(&b, 6); /* b has its 3: in place of 2 */
        assert_int_equal(read_since(&b, 0)->at[0], 3);
        add(&c, 7); /* 3 */
        add(&c, 8); /* 4 */
        assert_int_equal(read_since(&a, 0)->count, 0);
        assert_int_equal(read_since(&b, 0)->at[0], 5);
        assert_int_equal(read_since(&c, 0)->count, 2);
        add(&a, 9); /* 5; and a scope that lost all has records again */
        assert_int_equal(read_since(&a, 0)->at[0], 9);
        assert_int_equal(pool.count, 4);
        series_done(&b, &pool);
        assert_int_equal(pool.count, 3);
        add(&a, 10);
        add(&a, 11); /* in place of 7 */
        assert_int_equal(read_since(&c, 0)->at[0], 8);
        series_done(&a, &pool);
        series_done(&c, &pool);
        series_pool_done(&pool);
}

static void smallest_bounds(void **state)
{
        (void)state;
        struct series a, b;
        series_pool_init(&pool, 1, 1);
        series_init(&a);
        series_init(&b);
        add(&a, 1);
        add(&a, 2);
        add(&b, 3);
        assert_int_equal(read_since(&a, 0)->count, 0);
        assert_int_equal(read_since(&b, 0)->count, 1);
        series_done(&a, &pool);
        series_done(&b, &pool);
        series_pool_done(&pool);
}

/* ---- the governor's ---- */

static const struct lane_policy policy = {
    .limit = {.algorithm = LIMITER_ADAPTIVE,
              .start = 4,
              .floor = 1,
              .ceiling = 32,
              .max_hold = 900 * SEC,
              .breaker = {.trip = 6, .cooldown = 30 * SEC}},
    .queue_max = 100,
    .generation = 1,
};

static void one(struct governor *g, const char *key, enum answer_class class, usec_t wait,
                usec_t now)
{
        struct ticket t = {0};
        struct answer answer = {.class = class, .wait_named = wait > 0, .wait = wait};
        struct ticket_wish wish = {
            .key = span_of(key), .policy = &policy, .arrived = now, .deadline = now};
        assert_int_equal(governor_ask(g, &t, &wish, now), TICKET_GRANTED);
        governor_answer(g, &t, &answer, now);
        governor_finish(g, &t, now);
}

static void of_the_governor(void **state)
{
        (void)state;
        struct governor *g = governor_new(&(struct governor_config){.max_lanes = 2, .seed = 1});
        struct seen seen = {.count = 0};
        assert_false(governor_series(g, span_of("a"), 0, on_record, &seen));
        one(g, "a", ANSWER_FAILED, 0, SEC);
        assert_true(governor_series(g, span_of("a"), 0, on_record, &seen));
        assert_int_equal(seen.count, 0); /* nothing has changed */
        one(g, "a", ANSWER_THROTTLED, 10 * SEC, 2 * SEC);
        assert_true(governor_series(g, span_of("a"), 0, on_record, &seen));
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.last.event, LIMITER_CUT);
        assert_int_equal(seen.last.at, 2 * SEC);
        assert_int_equal(seen.last.closed_until, 12 * SEC);
        assert_true(seen.last.rate > 0 && seen.last.concurrency > 0);
        assert_int_equal(seen.last.in_flight, 1);
        one(g, "b", ANSWER_THROTTLED, 10 * SEC, 3 * SEC);
        one(g, "a", ANSWER_SUCCESS, 0, 13 * SEC);
        seen.count = 0;
        assert_true(governor_series(g, span_of("a"), 2 * SEC, on_record, &seen));
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.last.event, LIMITER_REOPENED);
        assert_int_equal(seen.last.closed_until, 0);
        one(g, "c", ANSWER_THROTTLED, 0, 14 * SEC); /* b is forgotten, with its records */
        assert_false(governor_series(g, span_of("b"), 0, on_record, &seen));
        governor_free(g);
}

static void is_bounded_in_the_governor(void **state)
{
        (void)state;
        struct governor *g = governor_new(&(struct governor_config){.max_lanes = 2, .seed = 1});
        struct seen seen = {.count = 0};
        for (usec_t i = 1; i <= 600; i++)
                one(g, "a", i % 2 ? ANSWER_THROTTLED : ANSWER_SUCCESS, 2 * SEC, 100 * i * SEC);
        assert_true(governor_series(g, span_of("a"), 0, on_record, &seen));
        assert_int_equal(seen.count, 256);
        assert_int_equal(seen.last.at, 60000 * SEC);
        governor_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(one_scope),
            cmocka_unit_test(all_together),
            cmocka_unit_test(smallest_bounds),
            cmocka_unit_test(of_the_governor),
            cmocka_unit_test(is_bounded_in_the_governor),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
