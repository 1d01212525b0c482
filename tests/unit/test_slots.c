#include "tests/unit/unit.h"

#include "core/slots.h"

/* Past slow start, with `known` in flight learned. */
static struct slots knows(unsigned known, unsigned floor, unsigned ceiling)
{
        struct slots s;
        slots_init(&s, floor, ceiling);
        slots_refused(&s, known + 1, true);
        return s;
}

static void bounds_make_sense(void **state)
{
        (void)state;
        static const struct {
                unsigned floor, ceiling, limit;
        } cases[] = {{1, 32, 32}, {0, 0, 1}, {9, 3, 3}, {4, 4, 4}};
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct slots s;
                slots_init(&s, cases[i].floor, cases[i].ceiling);
                assert_int_equal(s.limit, cases[i].limit);
                assert_int_equal(s.known, 0);
        }
}

static void slow_start_ends_one_below(void **state)
{
        (void)state;
        static const struct {
                unsigned floor, ceiling, in_flight, known;
        } cases[] = {{1, 32, 9, 8}, {1, 32, 1, 1}, {1, 32, 2, 1}, {4, 32, 3, 4}, {1, 8, 32, 8}};
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct slots s;
                slots_init(&s, cases[i].floor, cases[i].ceiling);
                slots_refused(&s, cases[i].in_flight, true);
                assert_int_equal(s.known, cases[i].known);
                assert_int_equal(s.limit, cases[i].known);
                assert_false(s.confirmed);
        }
}

static void a_trial_succeeds_or_not(void **state)
{
        (void)state;
        struct slots s = knows(8, 1, 32);
        for (unsigned i = 0; i < 8; i++)
                slots_grow(&s, 8);
        assert_int_equal(s.limit, 10);
        for (unsigned i = 0; i < 3; i++) /* max(4, 2 * 2) accepted above C are wanted */
                slots_grow(&s, 9);
        slots_grow(&s, 8); /* is not above */
        assert_int_equal(s.known, 8);
        slots_grow(&s, 10);
        assert_int_equal(s.known, 10);
        assert_false(s.confirmed);

        for (unsigned i = 0; s.limit == 10 && i < 11; i++)
                slots_grow(&s, 10);
        assert_int_equal(s.limit, 12);
        slots_refused(&s, 11, false);
        assert_int_equal(s.limit, 10);
        assert_true(s.confirmed);
        for (unsigned i = 0; i < 199; i++) /* now rarely */
                slots_grow(&s, 10);
        assert_int_equal(s.limit, 10);
        slots_grow(&s, 10);
        slots_grow(&s, 10);
        assert_int_equal(s.limit, 12);
}

static void three_in_a_row_at_the_limit(void **state)
{
        (void)state;
        static const struct {
                unsigned in_flight[6]; /* 0 ends it */
                unsigned known;
        } cases[] = {
            {{8, 8}, 8},       {{8, 8, 8}, 7},    {{8, 8, 5, 8, 8}, 8},
            {{8, 8, 9, 8}, 8}, {{5, 5, 5, 5}, 8}, {{8, 8, 5, 8, 8, 8}, 7},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct slots s = knows(8, 1, 32);
                for (size_t k = 0; k < 6 && cases[i].in_flight[k]; k++)
                        slots_refused(&s, cases[i].in_flight[k], false);
                assert_int_equal(s.known, cases[i].known);
                assert_int_equal(s.limit, cases[i].known);
        }
}

static void bounds_hold(void **state)
{
        (void)state;
        struct slots s = knows(4, 3, 5);
        for (unsigned i = 0; i < 100; i++)
                slots_refused(&s, s.known, false);
        assert_int_equal(s.known, 3);
        for (unsigned i = 0; i < 10000; i++)
                slots_grow(&s, s.limit);
        assert_int_equal(s.known, 5);
        assert_int_equal(s.limit, 5);
        slots_bound(&s, 1, 2); /* a reload */
        assert_int_equal(s.known, 2);
        assert_int_equal(s.limit, 2);
        slots_bound(&s, 6, 64);
        assert_int_equal(s.limit, 6);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(bounds_make_sense),
            cmocka_unit_test(slow_start_ends_one_below),
            cmocka_unit_test(a_trial_succeeds_or_not),
            cmocka_unit_test(three_in_a_row_at_the_limit),
            cmocka_unit_test(bounds_hold),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
