#include "tests/unit/unit.h"

#include <math.h>

#include "base/usec.h"

static void adds_and_subtracts_within_bounds(void **state)
{
        (void)state;
        static const struct {
                usec_t a, b, sum, difference;
        } rows[] = {
            {0, 0, 0, 0},
            {5, 3, 8, 2},
            {3, 5, 8, 0},
            {USEC_MAX, 0, USEC_MAX, USEC_MAX},
            {USEC_MAX, 1, USEC_MAX, USEC_MAX - 1},
            {USEC_MAX - 1, 1, USEC_MAX, USEC_MAX - 2},
            {USEC_MAX, USEC_MAX, USEC_MAX, 0},
            {1, USEC_MAX, USEC_MAX, 0},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                assert_int_equal(usec_add(rows[i].a, rows[i].b), rows[i].sum);
                assert_int_equal(usec_sub(rows[i].a, rows[i].b), rows[i].difference);
                assert_int_equal(usec_min(rows[i].a, rows[i].b),
                                 rows[i].a < rows[i].b ? rows[i].a : rows[i].b);
                assert_int_equal(usec_max(rows[i].a, rows[i].b),
                                 rows[i].a < rows[i].b ? rows[i].b : rows[i].a);
        }
}

static void converts_seconds(void **state)
{
        (void)state;
        const struct {
                double seconds;
                usec_t usec;
        } rows[] = {
            {0, 0},
            {1, 1000000},
            {0.35, 350000},
            {1e-7, 0},
            {-1, 0},
            {(double)-INFINITY, 0},
            {(double)NAN, 0},
            {(double)INFINITY, USEC_MAX},
            {1e300, USEC_MAX},
            {18446744073709.0, USEC_MAX},
            {1e9, 1000000000000000u},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++)
                if (usec_from_seconds(rows[i].seconds) != rows[i].usec)
                        fail_msg("%g s: %llu µs", rows[i].seconds,
                                 (unsigned long long)usec_from_seconds(rows[i].seconds));
        assert_true(usec_seconds(1500000) > 1.4999 && usec_seconds(1500000) < 1.5001);
        assert_true(usec_seconds(0) <= 0);
}

static void converts_to_timeval(void **state)
{
        (void)state;
        struct timeval tv = usec_timeval(12 * USEC_PER_SEC + 345678);
        assert_int_equal(tv.tv_sec, 12);
        assert_int_equal(tv.tv_usec, 345678);
        tv = usec_timeval(USEC_MAX); /* never: in range for all that */
        assert_true(tv.tv_sec > 0 && tv.tv_usec >= 0 && tv.tv_usec < 1000000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(adds_and_subtracts_within_bounds),
            cmocka_unit_test(converts_seconds),
            cmocka_unit_test(converts_to_timeval),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
