#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "cli/practice_limit.h"

#define MS USEC_PER_MSEC
#define SEC USEC_PER_SEC

static struct practice_policy policy_of(const char *text)
{
        struct practice_policy p;
        assert_int_equal(practice_policy_parse(span_of(text), &p), 0);
        return p;
}

static void policies_are_read(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                struct practice_policy want;
                const char *phrase;
        } cases[] = {
            {"none", {PRACTICE_NONE, 0, 0, 0}, "any number of requests"},
            {"fixed:30/1s", {PRACTICE_FIXED, 30, SEC, 0}, "30 requests in each window of 1s"},
            {"fixed:0/s", {PRACTICE_FIXED, 0, SEC, 0}, "0 requests in each window of 1s"},
            {"fixed:600/min", {PRACTICE_FIXED, 600, 60 * SEC, 0}, NULL},
            {"fixed:5000/h", {PRACTICE_FIXED, 5000, 3600 * SEC, 0}, NULL},
            {"sliding:7/250ms", {PRACTICE_SLIDING, 7, 250 * MS, 0}, "7 requests in any 250ms"},
            {"token:30/s:5", {PRACTICE_TOKEN, 30, SEC, 5}, "30 requests in 1s, 5 at once"},
            {"token:30/10s", {PRACTICE_TOKEN, 30, 10 * SEC, 1}, NULL},
            {"concurrency:10", {PRACTICE_CONCURRENCY, 10, 0, 0}, "10 requests at a time"},
            {"sliding:1000000/1s", {PRACTICE_SLIDING, 1000000, SEC, 0}, NULL},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct practice_policy p = policy_of(cases[i].text);
                assert_int_equal(p.kind, cases[i].want.kind);
                assert_int_equal(p.count, cases[i].want.count);
                assert_int_equal(p.window, cases[i].want.window);
                assert_int_equal(p.burst, cases[i].want.burst);
                char *phrase = practice_policy_describe(&p);
                if (cases[i].phrase)
                        assert_string_equal(phrase, cases[i].phrase);
                free(phrase);
        }
}

static void faults_are_refused(void **state)
{
        (void)state;
        static const char *const texts[] = {
            "",           "fixed",         "fixed:",        "fixed:30",        "fixed:30/",
            "fixed:/1s",  "fixed:-1/1s",   "fixed:30/0s",   "fixed:3.5/s",     "fixed:30/fortnight",
            "none:1",     "None",          "none:",         "token:0/s:5",     "token:30/s:0",
            "token:30",   "concurrency:0", "concurrency:",  "concurrency",     "concurrency:3/s",
            "sliding:1x", "gcra:30/1s",    "token:1/s:2:3", "fixed:1000001/s",
        };
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
                struct practice_policy p = {PRACTICE_TOKEN, 77, 77, 77};
                assert_true(practice_policy_parse(span_of(texts[i]), &p) < 0);
                assert_int_equal(p.count, 77); /* untouched */
        }
}

/* Each policy against a course of requests: at `at`, `want` of `n` get in, the first refused one of
 * them is told to wait `wait`. */
struct step {
        usec_t at;
        unsigned n, want;
        usec_t wait;
};

static void run_steps(const char *policy, const struct step *steps, size_t count)
{
        struct practice_policy p = policy_of(policy);
        struct practice_limit l;
        practice_limit_init(&l, &p);
        for (size_t i = 0; i < count; i++) {
                unsigned in = 0;
                usec_t first_wait = 0;
                for (unsigned k = 0; k < steps[i].n; k++) {
                        usec_t wait = 12345;
                        if (practice_limit_admit(&l, steps[i].at, &wait)) {
                                assert_int_equal(wait, 12345); /* untouched */
                                in++;
                        } else if (first_wait == 0) {
                                first_wait = wait;
                        }
                }
                if (in != steps[i].want || first_wait != steps[i].wait)
                        fail_msg("%s, step %zu: %u let in, wait %llu", policy, i, in,
                                 (unsigned long long)first_wait);
        }
        practice_limit_done(&l);
}

static void fixed_windows_open_with_a_request(void **state)
{
        (void)state;
        static const struct step steps[] = {
            {5 * SEC, 2, 2, 0},
            {5 * SEC + 900 * MS, 3, 1, 100 * MS},
            {6 * SEC - 1, 1, 0, 1},
            {6 * SEC, 4, 3, SEC}, /* so six within 100 ms and a bit: the window's weakness */
            {7 * SEC + 500 * MS, 1, 1, 0},
            {8 * SEC + 400 * MS, 3, 2, 100 * MS}, /* this window began half a second late */
        };
        run_steps("fixed:3/1s", steps, COUNT_OF(steps));
        static const struct step closed[] = {{0, 3, 0, SEC}, {SEC, 1, 0, SEC}};
        run_steps("fixed:0/1s", closed, COUNT_OF(closed));
}

static void sliding_windows_count_back(void **state)
{
        (void)state;
        static const struct step steps[] = {
            {0, 2, 2, 0},          {900 * MS, 2, 1, 100 * MS},  {SEC - 1, 1, 0, 1},
            {SEC, 3, 2, 900 * MS}, {1900 * MS, 2, 1, 100 * MS}, {10 * SEC, 5, 3, SEC},
        };
        run_steps("sliding:3/1s", steps, COUNT_OF(steps));
        static const struct step closed[] = {{0, 3, 0, 2 * SEC}};
        run_steps("sliding:0/2s", closed, COUNT_OF(closed));
}

static void tokens_refill_evenly(void **state)
{
        (void)state;
        static const struct step steps[] = {
            {3 * SEC, 7, 5, 100 * MS + 1},
            {3 * SEC + 50 * MS, 1, 0, 50 * MS + 1},
            {3 * SEC + 100 * MS, 2, 1, 100 * MS + 1},
            {3 * SEC + 400 * MS, 4, 3, 100 * MS + 1},
            {60 * SEC, 6, 5, 100 * MS + 1}, /* never more than the burst */
        };
        run_steps("token:10/s:5", steps, COUNT_OF(steps));
}

/* A wait that was told is long enough, to the microsecond. */
static void a_named_wait_is_enough(void **state)
{
        (void)state;
        static const char *const policies[] = {"fixed:3/1s", "sliding:7/333ms", "token:7/s:3",
                                               "token:1/7s", "token:30/s:1"};
        for (size_t i = 0; i < COUNT_OF(policies); i++) {
                struct practice_policy p = policy_of(policies[i]);
                struct practice_limit l;
                usec_t now = 77, wait;
                practice_limit_init(&l, &p);
                for (unsigned refusals = 0; refusals < 50;) {
                        if (practice_limit_admit(&l, now, &wait))
                                continue;
                        refusals++;
                        assert_true(wait > 0);
                        now += wait;
                        assert_true(practice_limit_admit(&l, now, &wait));
                }
                practice_limit_done(&l);
        }
}

/* No more than the limit in any window, whatever the course; sliding is the strictest. */
static void sliding_never_lets_more_in(void **state)
{
        (void)state;
        struct practice_policy p = policy_of("sliding:10/1s");
        struct practice_limit l;
        usec_t in[4000], now = 0, wait;
        size_t count = 0;
        practice_limit_init(&l, &p);
        for (unsigned i = 0; i < 4000; i++) {
                now += (i * 7919) % 31 * MS;
                if (practice_limit_admit(&l, now, &wait))
                        in[count++] = now;
        }
        assert_true(count > 500);
        for (size_t i = 10; i < count; i++)
                assert_true(in[i] - in[i - 10] >= SEC);
        practice_limit_done(&l);
}

static void concurrency_counts_those_inside(void **state)
{
        (void)state;
        struct practice_policy p = policy_of("concurrency:2");
        struct practice_limit l;
        usec_t wait = 0;
        practice_limit_init(&l, &p);
        assert_true(practice_limit_admit(&l, 0, &wait));
        assert_true(practice_limit_admit(&l, 0, &wait));
        assert_false(practice_limit_admit(&l, 5 * SEC, &wait));
        assert_int_equal(wait, SEC);
        practice_limit_release(&l);
        assert_true(practice_limit_admit(&l, 5 * SEC, &wait));
        assert_false(practice_limit_admit(&l, 5 * SEC, &wait));
        practice_limit_done(&l);
}

static void no_limit_lets_all_in(void **state)
{
        (void)state;
        static const struct step steps[] = {{0, 100000, 100000, 0}};
        run_steps("none", steps, COUNT_OF(steps));
}

static void tolerated_is_rate_times_time(void **state)
{
        (void)state;
        static const struct {
                const char *policy;
                usec_t span, latency;
                double want;
        } cases[] = {
            {"fixed:30/1s", 25 * SEC, 350 * MS, 750},
            {"fixed:30/1s", 100 * MS, 350 * MS, 30}, /* the first window is there at once */
            {"fixed:100/1m", 25 * SEC, 0, 100},
            {"fixed:100/1m", 90 * SEC, 0, 150},
            {"sliding:30/1s", 10 * SEC, 0, 300},
            {"token:30/s:5", 10 * SEC, 0, 305},
            {"concurrency:10", 10 * SEC, 500 * MS, 200},
            {"concurrency:10", 10 * SEC, 0, HUGE_VAL},
            {"none", 10 * SEC, 350 * MS, HUGE_VAL},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct practice_policy p = policy_of(cases[i].policy);
                double got = practice_policy_tolerated(&p, cases[i].span, cases[i].latency);
                if (cases[i].want == HUGE_VAL)
                        assert_true(got == HUGE_VAL);
                else
                        assert_true(fabs(got - cases[i].want) < 1e-6);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(policies_are_read),
            cmocka_unit_test(faults_are_refused),
            cmocka_unit_test(fixed_windows_open_with_a_request),
            cmocka_unit_test(sliding_windows_count_back),
            cmocka_unit_test(tokens_refill_evenly),
            cmocka_unit_test(a_named_wait_is_enough),
            cmocka_unit_test(sliding_never_lets_more_in),
            cmocka_unit_test(concurrency_counts_those_inside),
            cmocka_unit_test(no_limit_lets_all_in),
            cmocka_unit_test(tolerated_is_rate_times_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
