#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "proxy/steering.h"

#define SEC USEC_PER_SEC

static const struct {
        const char *name, *value;
        const char *session; /* NULL: none */
        unsigned priority;
        usec_t deadline;
        bool no_retry;
} good[] = {
    {"Weir-Session", "abc123", "abc123", 5, USEC_MAX, false},
    {"weir-session", " a=b;c ", "a=b;c", 5, USEC_MAX, false},
    {"Weir-Session", "!~", "!~", 5, USEC_MAX, false},
    {"Weir-Priority", "0", NULL, 0, USEC_MAX, false},
    {"WEIR-PRIORITY", "9", NULL, 9, USEC_MAX, false},
    {"Weir-Priority", "\t7 ", NULL, 7, USEC_MAX, false},
    {"Weir-Deadline", "30", NULL, 5, 30 * SEC, false},
    {"Weir-Deadline", "0.25", NULL, 5, SEC / 4, false},
    {"Weir-Deadline", "30s", NULL, 5, 30 * SEC, false},
    {"Weir-Deadline", "1m30s", NULL, 5, 90 * SEC, false},
    {"Weir-Deadline", "250ms", NULL, 5, SEC / 4, false},
    {"Weir-Deadline", "99999999999999999999999", NULL, 5, USEC_MAX, false},
    {"Weir-Retry", "no", NULL, 5, USEC_MAX, true},
    {"Weir-Retry", "No", NULL, 5, USEC_MAX, true},
    {"Weir-Retry", "yes", NULL, 5, USEC_MAX, false},
    {"Weir-Attempts", "3", NULL, 5, USEC_MAX, false}, /* weir's own, and says nothing */
    {"Weir-", "x", NULL, 5, USEC_MAX, false},
};

static void reads_what_is_given(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(good); i++) {
                struct steering s;
                const char *fault = "not set";
                steering_init(&s);
                assert_true(
                    steering_take(&s, span_of(good[i].name), span_of(good[i].value), &fault));
                assert_null(fault);
                assert_true(span_equal(s.session, span_of(good[i].session)));
                assert_int_equal(s.priority, good[i].priority);
                assert_int_equal(s.deadline, good[i].deadline);
                assert_int_equal(s.no_retry, good[i].no_retry);
        }
}

static const struct {
        const char *name, *value;
} bad[] = {
    {"Weir-Session", ""},        {"Weir-Session", " "},        {"Weir-Session", "a b"},
    {"Weir-Session", "a\tb"},    {"Weir-Session", "\xc3\xa9"}, {"Weir-Session", "a\x7f"},
    {"Weir-Priority", ""},       {"Weir-Priority", "10"},      {"Weir-Priority", "-1"},
    {"Weir-Priority", "high"},   {"Weir-Priority", "5.0"},     {"Weir-Priority", "+5"},
    {"Weir-Deadline", ""},       {"Weir-Deadline", "0"},       {"Weir-Deadline", "0s"},
    {"Weir-Deadline", "-1"},     {"Weir-Deadline", "soon"},    {"Weir-Deadline", "30 s"},
    {"Weir-Deadline", "1e3"},    {"Weir-Deadline", "nan"},     {"Weir-Deadline", "0.0000001"},
    {"Weir-Deadline", "30s, 5"}, {"Weir-Retry", ""},           {"Weir-Retry", "never"},
    {"Weir-Retry", "0"},         {"Weir-Retry", "nono"},
};

static void refuses_what_is_wrong(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
                struct steering s;
                const char *fault = NULL;
                steering_init(&s);
                assert_true(steering_take(&s, span_of(bad[i].name), span_of(bad[i].value), &fault));
                if (!fault || !strstr(fault, bad[i].name) || fault[strlen(fault) - 1] != '.')
                        fail_msg("%s: '%s': %s", bad[i].name, bad[i].value,
                                 fault ? fault : "was taken");
        }
}

static void refuses_a_second_one(void **state)
{
        (void)state;
        static const char *const twice[][2] = {{"Weir-Session", "a"},
                                               {"Weir-Priority", "1"},
                                               {"Weir-Deadline", "9"},
                                               {"Weir-Retry", "no"}};
        struct steering s;
        steering_init(&s);
        for (int round = 0; round < 2; round++)
                for (size_t i = 0; i < COUNT_OF(twice); i++) {
                        const char *fault;
                        assert_true(
                            steering_take(&s, span_of(twice[i][0]), span_of(twice[i][1]), &fault));
                        assert_int_equal(fault != NULL, round);
                        if (fault)
                                assert_non_null(strstr(fault, "more than one"));
                }
}

static void leaves_others_alone(void **state)
{
        (void)state;
        static const char *const names[] = {"", "Weir", "X-Weir-Session", "Weird-Session", "Wei-r"};
        for (size_t i = 0; i < COUNT_OF(names); i++) {
                struct steering s;
                const char *fault = "untouched";
                steering_init(&s);
                assert_false(steering_take(&s, span_of(names[i]), span_of("x"), &fault));
                assert_string_equal(fault, "untouched");
                assert_int_equal(s.seen, 0);
        }
}

static void bounds_the_session(void **state)
{
        (void)state;
        char text[STEERING_MAX_SESSION + 1];
        memset(text, 'x', sizeof text);
        struct steering s;
        const char *fault;
        steering_init(&s);
        steering_take(&s, span_of("Weir-Session"), (struct span){text, sizeof text - 1}, &fault);
        assert_null(fault);
        steering_init(&s);
        steering_take(&s, span_of("Weir-Session"), (struct span){text, sizeof text}, &fault);
        assert_non_null(fault);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_what_is_given),  cmocka_unit_test(refuses_what_is_wrong),
            cmocka_unit_test(refuses_a_second_one), cmocka_unit_test(leaves_others_alone),
            cmocka_unit_test(bounds_the_session),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
