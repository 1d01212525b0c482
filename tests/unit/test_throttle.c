#include "tests/unit/unit.h"

#include "core/throttle.h"

#define SEC USEC_PER_SEC

static struct throttle *t;

static int setup(void **state)
{
        (void)state;
        t = throttle_new(3, 10, 6 * SEC);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        throttle_free(t);
        return 0;
}

static const uint8_t *key(uint8_t n)
{
        static uint8_t keys[256][THROTTLE_KEY_SIZE];
        keys[n][15] = n;
        return keys[n];
}

static void some_are_free(void **state)
{
        (void)state;
        for (int i = 0; i < 10; i++) {
                assert_int_equal(throttle_wait(t, key(1), SEC), 0);
                throttle_fail(t, key(1), SEC);
        }
        assert_int_equal(throttle_wait(t, key(1), SEC), 6 * SEC);
        assert_int_equal(throttle_wait(t, key(2), SEC), 0); /* another one's */
        assert_int_equal(throttle_wait(t, key(1), 6 * SEC), SEC);
        assert_int_equal(throttle_wait(t, key(1), 7 * SEC), 0);
        throttle_fail(t, key(1), 7 * SEC);
        assert_int_equal(throttle_wait(t, key(1), 7 * SEC), 6 * SEC);
        /* after a minute all of them are free again, and no more than these */
        for (int i = 0; i < 10; i++) {
                assert_int_equal(throttle_wait(t, key(1), 1000 * SEC), 0);
                throttle_fail(t, key(1), 1000 * SEC);
        }
        assert_true(throttle_wait(t, key(1), 1000 * SEC) > 0);
}

static void the_debt_is_bounded(void **state)
{
        (void)state;
        for (int i = 0; i < 1000; i++)
                throttle_fail(t, key(1), SEC);
        assert_int_equal(throttle_wait(t, key(1), SEC), 31 * 6 * SEC);
        assert_int_equal(throttle_wait(t, key(1), 187 * SEC), 0);
}

static void keys_are_bounded(void **state)
{
        (void)state;
        for (uint8_t n = 1; n <= 3; n++)
                for (int i = 0; i < 20; i++)
                        throttle_fail(t, key(n), SEC);
        throttle_fail(t, key(1), 2 * SEC); /* 2 is the one whose failures are oldest now */
        throttle_fail(t, key(4), 2 * SEC);
        assert_true(throttle_wait(t, key(1), 2 * SEC) > 0);
        assert_int_equal(throttle_wait(t, key(2), 2 * SEC), 0);
        assert_true(throttle_wait(t, key(3), 2 * SEC) > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(some_are_free, setup, teardown),
            cmocka_unit_test_setup_teardown(the_debt_is_bounded, setup, teardown),
            cmocka_unit_test_setup_teardown(keys_are_bounded, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
