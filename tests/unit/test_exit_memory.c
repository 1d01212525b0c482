#include "tests/unit/unit.h"

#include <stdio.h>

#include "egress/exit_memory.h"

static void keeps_what_was_told(void **state)
{
        (void)state;
        struct exit_memory m = {0};
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 1, "127.0.0.2", 2), "");
        exit_memory_set(&m, "127.0.0.1", 1, "127.0.0.2", 2, "192.0.2.1");
        exit_memory_set(&m, "127.0.0.1", 1, "127.0.0.2", 3, "192.0.2.2");
        exit_memory_set(&m, "127.0.0.1", 12, "127.0.0.2", 2, "192.0.2.3");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 1, "127.0.0.2", 2), "192.0.2.1");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 1, "127.0.0.2", 3), "192.0.2.2");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 12, "127.0.0.2", 2), "192.0.2.3");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 2, "127.0.0.2", 1), "");
        /* the same ends again are another connection */
        exit_memory_set(&m, "127.0.0.1", 1, "127.0.0.2", 2, "192.0.2.4");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 1, "127.0.0.2", 2), "192.0.2.4");
        exit_memory_set(&m, "127.0.0.1", 1, "127.0.0.2", 2, "");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 1, "127.0.0.2", 2), "");
        exit_memory_done(&m);
        exit_memory_done(&m);
}

static void forgets_the_oldest(void **state)
{
        (void)state;
        struct exit_memory m = {0};
        for (int i = 1; i <= 10000; i++)
                exit_memory_set(&m, "127.0.0.1", i, "::1", 80, "x");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 1, "::1", 80), "");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 5904, "::1", 80), "");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 5905, "::1", 80), "x");
        assert_string_equal(exit_memory_get(&m, "127.0.0.1", 10000, "::1", 80), "x");
        exit_memory_done(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(keeps_what_was_told),
            cmocka_unit_test(forgets_the_oldest),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
