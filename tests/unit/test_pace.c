#include "tests/unit/unit.h"

#include <math.h>

#include "core/pace.h"

#define MS USEC_PER_MSEC
#define S USEC_PER_SEC

static const usec_t now = 5000 * S;

/* Past slow start: R as given, last refused at `max`. */
static struct pace at(double rate, double max, double x)
{
        struct pace p;
        pace_init(&p);
        p.rate = rate;
        p.low = rate;
        p.max = max;
        p.x = x;
        p.slow_start = false;
        return p;
}

static void starts_from_the_first_answer(void **state)
{
        (void)state;
        struct pace p;
        pace_init(&p);
        assert_true(p.slow_start && p.rate <= 0);
        pace_start_accepted(&p, 4, 200 * MS);
        assert_float_equal(p.rate, 20, 1e-9);
        pace_init(&p);
        pace_start_refused(&p, 50 * MS);
        assert_float_equal(p.rate, 20, 1e-9);
        assert_float_equal(p.max, 20, 1e-9);
        assert_true(p.slow_start);
}

static void slow_start_doubles_each_round_trip(void **state)
{
        (void)state;
        struct pace p;
        pace_init(&p);
        pace_start_accepted(&p, 4, 100 * MS);
        for (unsigned i = 0; i < 4; i++) /* what one round trip carries at 40/s */
                pace_grow(&p, 100 * MS);
        assert_float_equal(p.rate, 80, 1e-9);
}

static void requests_go_evenly(void **state)
{
        (void)state;
        static const struct {
                double rate;
                bool late;
                usec_t idle; /* since the place fell due */
                usec_t next; /* after now */
        } cases[] = {
            {10, false, 0, 100 * MS},     {10, false, 50 * MS, 100 * MS}, /* no credit for idling */
            {10, true, 1 * MS, 99 * MS},  {10, true, 4 * MS, 96 * MS},
            {10, true, 50 * MS, 96 * MS}, {2000, false, 0, 500},
            {2000, true, 4 * MS, 0},      {0, false, 0, 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct pace p;
                pace_init(&p);
                p.next = now - cases[i].idle;
                pace_go(&p, cases[i].rate, cases[i].late, now);
                usec_t wanted = cases[i].next ? now + cases[i].next : now;
                if (cases[i].rate > 0 && cases[i].next == 0)
                        wanted = now - 4 * MS + 500; /* catching up */
                assert_int_equal(p.next, wanted);
        }
}

static void counts_the_last_second(void **state)
{
        (void)state;
        struct pace p;
        unsigned n = 0;
        pace_init(&p);
        for (unsigned i = 0; i < 40; i++) /* every 50 ms */
                n = pace_go(&p, 0, false, now + i * 50 * MS);
        assert_int_equal(n, 20);
        assert_int_equal(pace_go(&p, 0, false, now + 2500 * MS), 9); /* 8 since 1.6 s, and itself */
        assert_int_equal(pace_go(&p, 0, false, now + 3600 * S), 1);
}

static void the_cubic(void **state)
{
        (void)state;
        static const struct {
                double x, rate;
        } cases[] = {
            {.1, 100 - 10 * .729},       {.5, 100 - 10 * .125}, {.9, 100 - 10 * .001}, {1, 100},
            {1.5, 100 * (1 + .04 * 27)},
        };
        struct pace p = at(90, 100, 0);
        pace_budget(&p, 100 * MS, 1, 0);
        assert_float_equal(p.requests, 200, 1e-9);
        assert_int_equal(p.time, 2 * S);
        p.requests = 1e5; /* fine steps */
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                while (p.x < cases[i].x)
                        pace_grow(&p, 100 * MS);
                assert_float_equal(p.rate, cases[i].rate, .02);
        }
}

static void the_climb_takes_requests_and_time(void **state)
{
        (void)state;
        static const struct {
                double rate;
                usec_t srtt, silence;
                unsigned refusals;
                bool steady;
                double requests;
                usec_t time;
        } cases[] = {
            {10, 100 * MS, 0, 0, false, 200, 2 * S},  {10, 100 * MS, 0, 3, false, 600, 2 * S},
            {10, S, 0, 1, false, 200, 8 * S},         {10, S, 1 * S, 1, false, 200, 20 * S},
            {10, S, 1 * S, 1, true, 200, 60 * S},     {50, 100 * MS, 0, 3, false, 600, 2 * S},
            {120, 100 * MS, 0, 2, false, 400, 2 * S},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct pace p = at(cases[i].rate, 100, .7);
                p.steady = cases[i].steady;
                pace_budget(&p, cases[i].srtt, cases[i].refusals, cases[i].silence);
                assert_float_equal(p.requests, cases[i].requests, 1e-9);
                assert_int_equal(p.time, cases[i].time);
                assert_float_equal(p.x, 0, 1e-9);
                assert_float_equal(p.low, cases[i].rate, 1e-9);
                pace_grow(&p, cases[i].srtt);
                double slower = cases[i].rate * usec_seconds(cases[i].time);
                double share = cases[i].rate < p.max ? cases[i].rate / p.max : 1;
                slower = fmax(slower, cases[i].requests * share);
                assert_float_equal((p.x * slower), 1, 1e-6);
        }
}

static void cuts(void **state)
{
        (void)state;
        static const struct {
                const char *what;
                double rate, max, x; /* max 0: slow start */
                struct pace_refusal refusal;
                double new_rate, new_max;
                bool steady;
        } cases[] = {
            {"slow start, by the sends of the last second",
             100,
             0,
             0,
             {.first = true, .recent = 50},
             40,
             63.2456,
             false},
            {"slow start, few sends", 100, 0, 0, {.first = true, .recent = 5}, 25, 50, false},
            {"slow start, many sends", 100, 0, 0, {.first = true, .recent = 99}, 70, 83.666, false},
            {"slow start, more than was sent",
             100,
             0,
             0,
             {.first = true, .recent = 20, .most = 40},
             16,
             25.2982,
             false},
            {"slow start, overloaded",
             100,
             0,
             0,
             {.first = true, .recent = 99, .overloaded = true},
             50,
             70.7107,
             false},
            {"at the known limit", 99, 100, .8, {.first = true}, 95.04, 99, true},
            {"a little above it", 103, 100, 1.4, {.first = true}, 98.88, 103, true},
            {"accelerating", 110, 100, 1.5, {.first = true, .delivered = 90}, 77, 110, false},
            {"accelerating, little delivered",
             110,
             100,
             1.5,
             {.first = true, .delivered = 60},
             57.6,
             110,
             false},
            {"soon after a cut", 90, 100, .1, {.first = true, .delivered = 90}, 81, 90, false},
            {"the same, with a wait",
             90,
             100,
             .1,
             {.first = true, .delivered = 90, .wait_named = true},
             76.5,
             90,
             false},
            {"the same, nothing delivered", 90, 100, .1, {.first = true}, 45, 90, false},
            {"overloaded", 99, 100, .8, {.first = true, .overloaded = true}, 49.5, 99, true},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct pace p = at(cases[i].rate, cases[i].max, cases[i].x);
                p.slow_start = cases[i].max <= 0;
                struct pace_refusal refusal = cases[i].refusal;
                if (refusal.most <= 0)
                        refusal.most = HUGE_VAL;
                pace_cut(&p, &refusal);
                if (p.steady != cases[i].steady)
                        print_error("%s\n", cases[i].what);
                assert_float_equal(p.rate, cases[i].new_rate, .001);
                assert_float_equal(p.max, cases[i].new_max, .001);
                assert_int_equal(p.steady, cases[i].steady);
                assert_false(p.slow_start);
        }
}

static void only_the_first_refusal_judges_steadiness(void **state)
{
        (void)state;
        struct pace p = at(99, 100, .8);
        pace_cut(&p, &(struct pace_refusal){.first = true});
        pace_budget(&p, 100 * MS, 1, 0);
        pace_cut(&p, &(struct pace_refusal){.first = false, .delivered = 90});
        assert_true(p.steady);
}

static void never_stops(void **state)
{
        (void)state;
        struct pace p = at(10, 10, .1);
        for (unsigned i = 0; i < 100; i++) {
                pace_cut(&p, &(struct pace_refusal){.first = true});
                pace_budget(&p, S, 1, 0);
        }
        pace_go(&p, p.rate, false, now);
        assert_int_equal(p.next, now + 60 * S);
}

static void adopts_a_quota(void **state)
{
        (void)state;
        static const struct {
                double cycle_rate;
                usec_t silence;
                bool steady;
                double rate;
                usec_t time;
        } cases[] = {
            {5, 40 * S, false, 4.8, 80 * S},
            {1, 40 * S, false, 2.5, 80 * S}, /* not by more than a factor of 4 */
            {9, 40 * S, false, 10, 800 * S}, /* the cycle carried what was sent: no quota */
            {5, 1 * S, false, 10, 20 * S},   /* too short to tell */
            {5, 40 * S, true, 10, 2400 * S}, /* the limit was known */
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct pace p = at(10, 12, .3);
                p.steady = cases[i].steady;
                pace_reopen(&p, cases[i].cycle_rate, cases[i].silence, 100 * MS, 1);
                assert_float_equal(p.rate, cases[i].rate, .001);
                assert_int_equal(p.time, cases[i].time);
                assert_float_equal(p.low, p.rate, .001);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(starts_from_the_first_answer),
            cmocka_unit_test(slow_start_doubles_each_round_trip),
            cmocka_unit_test(requests_go_evenly),
            cmocka_unit_test(counts_the_last_second),
            cmocka_unit_test(the_cubic),
            cmocka_unit_test(the_climb_takes_requests_and_time),
            cmocka_unit_test(cuts),
            cmocka_unit_test(only_the_first_refusal_judges_steadiness),
            cmocka_unit_test(never_stops),
            cmocka_unit_test(adopts_a_quota),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
