#include "tests/unit/unit.h"

#include <math.h>

#include "core/limiter_memory.h"
#include "core/limiter_state.h"

#define MS USEC_PER_MSEC
#define S USEC_PER_SEC
#define HOUR (3600 * S)

static const struct limiter_policy defaults = {
    .algorithm = LIMITER_ADAPTIVE,
    .start = 4,
    .floor = 1,
    .ceiling = 32,
    .max_hold = 900 * S,
    .aimd = {.increase = 1, .per = AIMD_PER_SUCCESS, .decrease = .5},
    .breaker = {.trip = 6, .cooldown = 30 * S},
};

/* One limiter, its time, and what a lane does with it. */
struct bench {
        struct limiter l;
        struct prng prng;
        usec_t now;
        enum limiter_event event; /* of the last limiter_go */
};

static void begin(struct bench *b, const struct limiter_policy *policy)
{
        *b = (struct bench){.now = 100000 * S};
        prng_init(&b->prng, 1);
        limiter_init(&b->l, policy);
}

static struct limiter_pass go(struct bench *b)
{
        struct limiter_pass pass;
        usec_t wake = 0;
        while (!limiter_may_go(&b->l, b->now, &wake))
                b->now = wake;
        b->event = limiter_go(&b->l, true, b->now, &b->prng, &pass);
        return pass;
}

/* One request by itself, answered after 100 ms. */
static enum limiter_event one(struct bench *b, enum answer_class class, usec_t wait)
{
        struct limiter_pass pass = go(b);
        b->now += 100 * MS;
        struct answer a = {.class = class, .wait_named = wait > 0, .wait = wait};
        enum limiter_event event = limiter_answer(&b->l, &pass, &a, b->now, &b->prng);
        limiter_finish(&b->l, &pass);
        return event;
}

static struct limiter_view look(const struct bench *b)
{
        struct limiter_view view;
        limiter_look(&b->l, b->now, &view);
        return view;
}

/* Up by slow start, one refusal, and some way up again. */
static void learn(struct bench *b)
{
        begin(b, &defaults);
        for (int i = 0; i < 60; i++)
                one(b, ANSWER_SUCCESS, 0);
        one(b, ANSWER_THROTTLED, S);
        for (int i = 0; i < 60; i++)
                one(b, ANSWER_SUCCESS, 0);
}

/* What another process makes of it, `later`, on a monotonic clock that reads `now`. */
static void carry_over(const struct bench *from, struct bench *to, usec_t later, usec_t now,
                       const struct limiter_policy *policy)
{
        struct limiter_memory m;
        assert_true(limiter_export(&from->l, from->now, &m));
        limiter_memory_age(&m, later);
        *to = (struct bench){.now = now};
        prng_init(&to->prng, 1);
        limiter_import(&to->l, policy, &m, now);
}

static void nothing_learned(void **state)
{
        (void)state;
        static const enum limiter_algorithm algorithms[] = {LIMITER_ADAPTIVE, LIMITER_AIMD,
                                                            LIMITER_FIXED};
        for (size_t i = 0; i < COUNT_OF(algorithms); i++) {
                struct limiter_policy policy = defaults;
                struct limiter_memory m;
                struct bench b;
                policy.algorithm = algorithms[i];
                begin(&b, &policy);
                assert_false(limiter_export(&b.l, b.now, &m));
                one(&b, ANSWER_FAILED, 0);
                assert_false(limiter_export(&b.l, b.now, &m));
                one(&b, ANSWER_SUCCESS, 0);
                assert_int_equal(limiter_export(&b.l, b.now, &m),
                                 policy.algorithm != LIMITER_FIXED);
        }
}

/* A limiter that was carried over does exactly what the one that stayed does. */
static void goes_on_as_before(void **state)
{
        (void)state;
        struct bench a, b;
        learn(&a);
        carry_over(&a, &b, 20 * S, 7 * S, &defaults); /* the machine was booted in between */
        struct limiter_view before = look(&a), after = look(&b);
        assert_true(before.settled && after.settled);
        assert_true(before.rate > 10 && before.concurrency == after.concurrency);
        assert_true(before.rate == after.rate && before.refused_rate == after.refused_rate);
        assert_true(a.l.pace.guessed && b.l.pace.guessed);
        for (int i = 0; i < 12000; i++) {
                one(&a, ANSWER_SUCCESS, 0);
                one(&b, ANSWER_SUCCESS, 0);
                assert_true(fabs(look(&a).rate - look(&b).rate) < 1e-9 * look(&a).rate);
        }
        assert_true(look(&a).rate > before.refused_rate); /* and both have passed the old limit */
}

static void slow_start_goes_on(void **state)
{
        (void)state;
        struct bench a, b;
        begin(&a, &defaults);
        for (int i = 0; i < 40; i++)
                one(&a, ANSWER_SUCCESS, 0);
        carry_over(&a, &b, S, 7 * S, &defaults);
        assert_false(look(&b).settled);
        assert_true(look(&b).rate == look(&a).rate && look(&b).rate > 40);
        one(&b, ANSWER_SUCCESS, 0);
        assert_true(look(&b).rate > look(&a).rate + 9); /* 1/srtt more */
}

static void holds_end_by_the_wall_clock(void **state)
{
        (void)state;
        static const struct {
                usec_t wait, later, want; /* closed for, when carried over */
                bool circuit;             /* opened by six refusals in a row */
        } cases[] = {
            {60 * S, 0, 60 * S, false}, {60 * S, 20 * S, 40 * S, false},
            {60 * S, 60 * S, 0, false}, /* over, and half-open still */
            {60 * S, HOUR, 0, false},   {0, 10 * S, 20 * S, true},
            {0, 40 * S, 0, true},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench a, b;
                learn(&a);
                one(&a, ANSWER_THROTTLED, cases[i].wait);
                while (cases[i].circuit && !look(&a).circuit_open)
                        one(&a, ANSWER_THROTTLED, 0);
                carry_over(&a, &b, cases[i].later, 7 * S, &defaults);
                usec_t left = usec_sub(look(&b).closed_until, b.now);
                assert_true(left >= cases[i].want && left <= cases[i].want + 3 * S);
                assert_int_equal(look(&b).circuit_open, cases[i].circuit && cases[i].want > 0);
                struct limiter_pass pass = go(&b);
                assert_true(pass.probe && pass.sent >= 7 * S + cases[i].want);
        }
}

/* The end of a hold that needs no probe may lie in the time when nobody ran. */
static void short_hold_reopens(void **state)
{
        (void)state;
        struct bench a, b;
        learn(&a);
        one(&a, ANSWER_THROTTLED, 500 * MS);
        carry_over(&a, &b, 10 * S, 7 * S, &defaults);
        double rate = look(&b).rate;
        struct limiter_pass pass = go(&b);
        assert_false(pass.probe);
        assert_int_equal(b.event, LIMITER_REOPENED);
        assert_true(look(&b).rate == rate);
}

static void policy_bounds_it(void **state)
{
        (void)state;
        struct bench a, b;
        struct limiter_policy tight = defaults;
        learn(&a);
        one(&a, ANSWER_THROTTLED, 600 * S);
        tight.max_hold = tight.breaker.cooldown = 10 * S;
        tight.ceiling = 2;
        tight.max_rate = 5;
        carry_over(&a, &b, 0, 7 * S, &tight);
        assert_true(look(&b).closed_until <= 7 * S + 66 * S); /* the longest back-off, jittered */
        assert_true(look(&b).concurrency <= 2 && look(&b).rate == 5);
}

static void another_algorithm_keeps_the_hold(void **state)
{
        (void)state;
        struct bench a, b;
        struct limiter_policy aimd = defaults, fixed = defaults;
        aimd.algorithm = LIMITER_AIMD;
        fixed.algorithm = LIMITER_FIXED;
        learn(&a);
        one(&a, ANSWER_THROTTLED, 60 * S);
        carry_over(&a, &b, 0, 7 * S, &aimd);
        assert_true(look(&b).rate == 0 && look(&b).concurrency == 4);
        assert_int_equal(look(&b).closed_until, 67 * S);
        carry_over(&a, &b, 0, 7 * S, &fixed);
        assert_int_equal(look(&b).closed_until, 67 * S);
        begin(&a, &aimd);
        for (int i = 0; i < 20; i++) { /* three at a time: a window not half used does not grow */
                struct limiter_pass p[3] = {go(&a), go(&a), go(&a)};
                a.now += 100 * MS;
                for (int k = 0; k < 3; k++) {
                        limiter_answer(&a.l, &p[k], &(struct answer){.class = ANSWER_SUCCESS},
                                       a.now, &a.prng);
                        limiter_finish(&a.l, &p[k]);
                }
        }
        assert_true(look(&a).concurrency > 5);
        carry_over(&a, &b, 0, 7 * S, &aimd);
        assert_true(look(&b).concurrency == look(&a).concurrency);
        carry_over(&a, &b, HOUR, 7 * S, &aimd);
        assert_true(look(&b).concurrency < look(&a).concurrency && look(&b).concurrency >= 4);
}

/* What a file may hold that no limiter wrote: it must be usable all the same. */
static void nonsense_is_bounded(void **state)
{
        (void)state;
        static const struct limiter_memory cases[] = {
            {0},
            {.pace = {.rate = 1e12,
                      .max = 1e12,
                      .low = 1e12,
                      .x = 1e12,
                      .requests = 1e12,
                      .time = 1000000000 * S,
                      .resume = 1e12},
             .slots = 1000000000,
             .window = 1e12,
             .srtt = 1000000000 * S,
             .back_off = 1000000000 * S,
             .refusals = 1000000000,
             .episode_refusals = 1000000000,
             .refused_epochs = 1000000000,
             .cycle_accepted = 1000000000000000},
            {.pace = {.rate = 1e-300, .max = 1e-300, .low = 1e12, .resume = 1e-300},
             .slots = 1,
             .srtt = 1,
             .cycle_age = USEC_MAX},
            {.pace = {.rate = 10}, .srtt = 0},
            {.pace = {.rate = 0, .max = 10}, .srtt = S},
            {.closed = true,
             .closed_length = USEC_MAX,
             .closed_age = USEC_MAX,
             .half_open = true,
             .circuit_open = true,
             .idle = USEC_MAX},
            {.closed = true, .closed_length = USEC_MAX, .pace = {.rate = 1, .max = .1}, .srtt = S},
            {.algorithm = LIMITER_AIMD, .window = 1e12, .srtt = S},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                static const enum limiter_algorithm algorithms[] = {LIMITER_ADAPTIVE, LIMITER_AIMD};
                struct limiter_policy policy = defaults;
                struct bench b = {.now = 7 * S};
                prng_init(&b.prng, 1);
                policy.algorithm = algorithms[cases[i].algorithm == LIMITER_AIMD];
                limiter_import(&b.l, &policy, &cases[i], b.now);
                for (int k = 0; k < 200; k++) {
                        one(&b, k % 19 == 18 ? ANSWER_THROTTLED : ANSWER_SUCCESS, 0);
                        struct limiter_view view = look(&b);
                        assert_true(isfinite(view.rate) && view.rate >= 0 && view.rate <= 1e6);
                        assert_true(view.concurrency >= 1 && view.concurrency <= 32);
                }
                assert_true(b.now < 100 * HOUR); /* it never waited without end */
        }
}

/* ---- idleness ---- */

static void idle_for_less_than_an_hour(void **state)
{
        (void)state;
        struct bench b;
        learn(&b);
        double rate = look(&b).rate;
        b.now += HOUR - 200 * MS;
        go(&b);
        assert_int_equal(b.event, LIMITER_UNCHANGED);
        assert_true(look(&b).rate == rate);
}

/* From the start to half the known rate it doubles, one 1/srtt for each request; then it climbs
 * within about 200 requests to what was refused. */
static void resumes_slowly(struct bench *b, double known, double refused)
{
        usec_t since = b->now;
        unsigned requests = 1;
        assert_true(fabs(look(b).rate - fmin(4 / .1, known / 2)) < .01 * known);
        for (; look(b).rate < known / 2; requests++)
                one(b, ANSWER_SUCCESS, 0);
        assert_true(look(b).rate <= known / 2 * 1.001);
        assert_true(requests < known / 2 * .1 + 3 && b->now - since < 6 * S);
        double last = look(b).rate;
        for (requests = 0; look(b).rate < refused; requests++) {
                one(b, ANSWER_SUCCESS, 0);
                assert_true(look(b).rate >= last);
                last = look(b).rate;
        }
        assert_true(requests >= 150 && requests < 1000);
}

static void idle_for_an_hour(void **state)
{
        (void)state;
        struct bench a, b;
        learn(&a);
        double known = look(&a).rate, refused = look(&a).refused_rate;
        carry_over(&a, &b, HOUR, 7 * S, &defaults);
        assert_true(look(&b).refused_rate == refused && look(&b).settled);
        resumes_slowly(&b, known, refused);

        a.now += HOUR;
        struct limiter_pass pass = go(&a);
        assert_int_equal(a.event, LIMITER_RESUMED);
        assert_true(look(&a).rate <= known / 2 && look(&a).refused_rate == refused);
        limiter_finish(&a.l, &pass);
        go(&a);
        assert_int_equal(a.event, LIMITER_UNCHANGED); /* once is enough */
}

static void idle_at_a_high_rate(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        for (int i = 0; i < 100; i++)
                one(&b, ANSWER_SUCCESS, 0);
        one(&b, ANSWER_THROTTLED, 0);
        for (int i = 0; i < 60; i++)
                one(&b, ANSWER_SUCCESS, 0);
        double known = look(&b).rate, refused = look(&b).refused_rate;
        assert_true(known > 80);
        b.now += 24 * HOUR;
        struct limiter_pass pass = go(&b);
        limiter_finish(&b.l, &pass);
        resumes_slowly(&b, known, refused);
}

static void refused_while_resuming(void **state)
{
        (void)state;
        struct bench b;
        learn(&b);
        double known = look(&b).rate;
        b.now += 2 * HOUR;
        one(&b, ANSWER_THROTTLED, 0);
        assert_true(look(&b).rate < known / 2);
        for (int i = 0; i < 20; i++)
                one(&b, ANSWER_SUCCESS, 0);
        /* no slow start any more: the host has said that the limit is lower now */
        assert_true(look(&b).rate < known * .55);
}

static void never_refused_starts_again(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        for (int i = 0; i < 100; i++)
                one(&b, ANSWER_SUCCESS, 0);
        assert_true(look(&b).rate > 500);
        b.now += HOUR;
        go(&b);
        assert_int_equal(b.event, LIMITER_RESUMED);
        assert_true(look(&b).rate < 41 && !look(&b).settled);
}

/* Whoever waited for a long hold was not idle. */
static void a_hold_is_no_idleness(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_policy patient = defaults;
        patient.max_hold = 24 * HOUR;
        learn(&b);
        limiter_configure(&b.l, &patient);
        one(&b, ANSWER_THROTTLED, 5 * HOUR);
        double rate = look(&b).rate;
        struct limiter_pass pass = go(&b); /* right at the end of the hold */
        assert_true(pass.probe && look(&b).rate == rate);
        assert_int_equal(b.event, LIMITER_UNCHANGED);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(nothing_learned),
            cmocka_unit_test(goes_on_as_before),
            cmocka_unit_test(slow_start_goes_on),
            cmocka_unit_test(holds_end_by_the_wall_clock),
            cmocka_unit_test(short_hold_reopens),
            cmocka_unit_test(policy_bounds_it),
            cmocka_unit_test(another_algorithm_keeps_the_hold),
            cmocka_unit_test(nonsense_is_bounded),
            cmocka_unit_test(idle_for_less_than_an_hour),
            cmocka_unit_test(idle_for_an_hour),
            cmocka_unit_test(idle_at_a_high_rate),
            cmocka_unit_test(refused_while_resuming),
            cmocka_unit_test(never_refused_starts_again),
            cmocka_unit_test(a_hold_is_no_idleness),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
