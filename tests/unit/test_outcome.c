#include "tests/unit/unit.h"

#include <string.h>

#include "core/outcome.h"

static void each_has_a_name_of_its_own(void **state)
{
        (void)state;
        for (int i = 0; i < OUTCOME_COUNT; i++) {
                const char *name = outcome_name((enum outcome)i);
                assert_non_null(name);
                assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
                assert_true(strlen(name) > 0);
                assert_true(strlen(outcome_text((enum outcome)i)) > 0);
                for (int other = 0; other < i; other++)
                        assert_string_not_equal(name, outcome_name((enum outcome)other));
        }
        assert_string_equal(outcome_name(OUTCOME_SERVED), "served");
        assert_string_equal(outcome_name(OUTCOME_CLOSING), "closing");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_has_a_name_of_its_own),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
