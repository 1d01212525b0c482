#include "tests/unit/unit.h"

#include "base/prng.h"
#include "core/histogram.h"

static void buckets_join_without_gaps(void **state)
{
        (void)state;
        assert_int_equal(histogram_lower(0), 0);
        assert_int_equal(histogram_upper(0), 128);
        assert_int_equal(histogram_lower(HISTOGRAM_BUCKETS - 1), 1ull << 37);
        assert_int_equal(histogram_upper(HISTOGRAM_BUCKETS - 1), USEC_MAX);
        for (size_t i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
                assert_int_equal(histogram_upper(i), histogram_lower(i + 1));
                assert_true(histogram_upper(i) > histogram_lower(i));
                if (i > 0) /* no wider than a quarter of where it begins */
                        assert_true(histogram_upper(i) - histogram_lower(i) <=
                                    histogram_lower(i) / 4);
        }
}

static void values_go_where_the_bounds_say(void **state)
{
        (void)state;
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
                struct histogram h;
                histogram_init(&h);
                histogram_add(&h, histogram_lower(i));
                histogram_add(&h, histogram_upper(i) - 1);
                assert_int_equal(h.buckets[i], 2);
                assert_int_equal(h.min, histogram_lower(i));
                assert_int_equal(h.max, histogram_upper(i) - 1);
        }
        struct histogram h = {0};
        histogram_add(&h, USEC_MAX);
        assert_int_equal(h.buckets[HISTOGRAM_BUCKETS - 1], 1);
}

static void an_empty_one_knows_nothing(void **state)
{
        (void)state;
        struct histogram h, other = {0};
        histogram_init(&h);
        histogram_merge(&h, &other);
        assert_int_equal(h.count, 0);
        assert_int_equal(h.sum, 0);
        assert_int_equal(histogram_quantile(&h, 0.5), 0);
        assert_int_equal(histogram_quantile(&h, 1), 0);
}

static void counts_and_sums(void **state)
{
        (void)state;
        struct histogram a = {0}, b = {0};
        histogram_add(&a, 300);
        histogram_add(&a, 5 * USEC_PER_SEC);
        histogram_add(&b, 7);
        histogram_add(&b, 100);
        histogram_merge(&a, &b);
        histogram_merge(&a, &(struct histogram){0});
        assert_int_equal(a.count, 4);
        assert_int_equal(a.sum, 5000407);
        assert_int_equal(a.min, 7);
        assert_int_equal(a.max, 5 * USEC_PER_SEC);
        assert_int_equal(a.buckets[0], 2);

        struct histogram into_empty = {0};
        histogram_merge(&into_empty, &a);
        assert_memory_equal(&into_empty, &a, sizeof a);

        histogram_add(&a, USEC_MAX);
        assert_int_equal(a.sum, USEC_MAX); /* full, not wrapped */
}

static void one_value_is_every_quantile(void **state)
{
        (void)state;
        static const usec_t values[] = {0, 1, 127, 128, 350000, 1ull << 37, USEC_MAX};
        static const double shares[] = {-1, 0, 0.01, 0.5, 0.99, 1, 2};
        for (size_t i = 0; i < COUNT_OF(values); i++)
                for (size_t s = 0; s < COUNT_OF(shares); s++) {
                        struct histogram h = {0};
                        histogram_add(&h, values[i]);
                        assert_int_equal(histogram_quantile(&h, shares[s]), values[i]);
                }
}

/* Evenly spread values: the true quantile is known, the estimate is within a bucket of it. */
static void estimates_quantiles(void **state)
{
        (void)state;
        static const double shares[] = {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};
        struct histogram h = {0};
        struct prng prng;
        prng_init(&prng, 3);
        for (unsigned i = 0; i < 100000; i++)
                histogram_add(&h, prng_usec(&prng, 10 * USEC_PER_SEC));
        usec_t last = 0;
        for (size_t i = 0; i < COUNT_OF(shares); i++) {
                usec_t got = histogram_quantile(&h, shares[i]);
                double truth = shares[i] * 10 * (double)USEC_PER_SEC;
                assert_true((double)got > truth * 0.95 && (double)got < truth * 1.05);
                assert_true(got >= last);
                last = got;
        }
}

static void keeps_two_groups_apart(void **state)
{
        (void)state;
        struct histogram h = {0};
        for (unsigned i = 0; i < 90; i++)
                histogram_add(&h, 10 * USEC_PER_MSEC);
        for (unsigned i = 0; i < 10; i++)
                histogram_add(&h, 10 * USEC_PER_SEC);
        assert_in_range(histogram_quantile(&h, 0.5), 10000, 12499);
        assert_in_range(histogram_quantile(&h, 0.9), 10000, 12499);
        assert_in_range(histogram_quantile(&h, 0.91), 8000000, 10000000);
        assert_int_equal(histogram_quantile(&h, 1), 10 * USEC_PER_SEC);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(buckets_join_without_gaps),
            cmocka_unit_test(values_go_where_the_bounds_say),
            cmocka_unit_test(an_empty_one_knows_nothing),
            cmocka_unit_test(counts_and_sums),
            cmocka_unit_test(one_value_is_every_quantile),
            cmocka_unit_test(estimates_quantiles),
            cmocka_unit_test(keeps_two_groups_apart),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
