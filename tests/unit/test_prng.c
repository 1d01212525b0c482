#include "tests/unit/unit.h"

#include "base/prng.h"

/* The published first numbers of SplitMix64 from the seed 1234567. */
static void makes_the_known_numbers(void **state)
{
        (void)state;
        static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u,
                                         9817491932198370423u, 4593380528125082431u,
                                         16408922859458223821u};
        struct prng p;
        prng_init(&p, 1234567);
        for (size_t i = 0; i < COUNT_OF(known); i++)
                assert_int_equal(prng_next(&p), known[i]);
}

static void units_are_even(void **state)
{
        (void)state;
        struct prng p;
        unsigned counts[10] = {0};
        prng_init(&p, 0);
        for (unsigned i = 0; i < 100000; i++) {
                double u = prng_unit(&p);
                assert_true(u >= 0 && u < 1);
                counts[(unsigned)(u * 10)]++;
        }
        for (size_t i = 0; i < COUNT_OF(counts); i++)
                assert_in_range(counts[i], 9600, 10400);
}

static void usecs_reach_both_ends(void **state)
{
        (void)state;
        struct prng p;
        unsigned counts[4] = {0};
        prng_init(&p, 42);
        for (unsigned i = 0; i < 40000; i++) {
                usec_t t = prng_usec(&p, 3);
                assert_in_range(t, 0, 3);
                counts[t]++;
        }
        for (size_t i = 0; i < COUNT_OF(counts); i++)
                assert_in_range(counts[i], 9600, 10400);
        assert_int_equal(prng_usec(&p, 0), 0);
        usec_t most = 0;
        for (unsigned i = 0; i < 1000; i++)
                most = usec_max(most, prng_usec(&p, USEC_MAX));
        assert_true(most > USEC_MAX / 100 * 98);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(makes_the_known_numbers),
            cmocka_unit_test(units_are_even),
            cmocka_unit_test(usecs_reach_both_ends),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
