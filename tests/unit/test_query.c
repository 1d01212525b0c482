#include "tests/unit/unit.h"

#include "admin/query.h"

static void times(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                usec_t time;
        } cases[] = {
            {"0", 0},
            {"1", 1000000},
            {"1732951200", 1732951200000000},
            {"1732951200.5", 1732951200500000},
            {"1732951200.123456", 1732951200123456},
            {"1732951200.1234569", 1732951200123456},
            {"1970-01-01T00:00:01Z", 1000000},
            {"2024-11-30T07:20:00Z", 1732951200000000},
            {"2024-11-30T07:20:00.123Z", 1732951200123000},
            {"1969-12-31T23:59:59Z", 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                usec_t t = 7;
                print_message("%s\n", cases[i].text);
                assert_true(query_parse_time(cases[i].text, &t));
                assert_int_equal(t, cases[i].time);
        }
}

static void no_times(void **state)
{
        (void)state;
        static const char *const cases[] = {
            "",
            "x",
            "-1",
            "+1",
            "1.",
            ".5",
            "1.x",
            "1x",
            "1e9",
            " 1",
            "1 ",
            "1732951200Z",
            "1.5Z",
            "9999999999999",
            "2024-11-30",
            "2024-11-30T07:20:00",
            "2024-11-30T07:20:00+01:00",
            "2024-11-30T07:20:00.Z",
            "2024-13-30T07:20:00Z",
            "2024-11-30T07:20:00Zx",
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                usec_t t = 7;
                print_message("%s\n", cases[i]);
                assert_false(query_parse_time(cases[i], &t));
                assert_int_equal(t, 7); /* untouched */
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(times),
            cmocka_unit_test(no_times),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
