#include "tests/unit/unit.h"

#include "core/limiter_state.h"

#define MS USEC_PER_MSEC
#define S USEC_PER_SEC

static const struct limiter_policy defaults = {
    .algorithm = LIMITER_ADAPTIVE,
    .start = 4,
    .floor = 1,
    .ceiling = 32,
    .max_hold = 900 * S,
    .aimd = {.increase = 1, .per = AIMD_PER_SUCCESS, .decrease = .5},
    .breaker = {.trip = 6, .cooldown = 30 * S},
};

/* One limiter, its time, and a shorthand for what a lane does with it. */
struct bench {
        struct limiter l;
        struct prng prng;
        usec_t now;
};

static void begin(struct bench *b, const struct limiter_policy *policy)
{
        *b = (struct bench){.now = 1000 * S};
        prng_init(&b->prng, 1);
        limiter_init(&b->l, policy);
}

static bool may(struct bench *b)
{
        usec_t wake = 0;
        return limiter_may_go(&b->l, b->now, &wake);
}

/* Waits until one may go, by the wake moments alone. */
static void wait_to_go(struct bench *b)
{
        usec_t wake = 0;
        while (!limiter_may_go(&b->l, b->now, &wake)) {
                assert_true(wake > b->now && wake < USEC_MAX);
                b->now = wake;
        }
}

static struct limiter_pass go(struct bench *b)
{
        struct limiter_pass pass;
        wait_to_go(b);
        limiter_go(&b->l, true, b->now, &b->prng, &pass);
        return pass;
}

static enum limiter_event answer(struct bench *b, struct limiter_pass *pass,
                                 enum answer_class class, usec_t wait)
{
        enum limiter_event event = limiter_answer(&b->l, pass, class, wait, b->now, &b->prng);
        limiter_finish(&b->l, pass);
        return event;
}

/* One request by itself, answered after 100 ms. */
static enum limiter_event one(struct bench *b, enum answer_class class, usec_t wait)
{
        struct limiter_pass pass = go(b);
        b->now += 100 * MS;
        return answer(b, &pass, class, wait);
}

static struct limiter_view look(const struct bench *b)
{
        struct limiter_view view;
        limiter_look(&b->l, b->now, &view);
        return view;
}

static void first_answers(void **state)
{
        (void)state;
        static const struct {
                enum answer_class class;
                usec_t wait;
                enum limiter_event event;
                double rate;
                usec_t closed; /* from the answer on, not counting jitter */
                bool settled;
        } cases[] = {
            {ANSWER_SUCCESS, 0, LIMITER_GREW, 50, 0, false}, /* start / srtt, +1/srtt */
            {ANSWER_BLOCKED, 0, LIMITER_UNCHANGED, 0, 0, false},
            {ANSWER_FAILED, 0, LIMITER_UNCHANGED, 0, 0, false},
            {ANSWER_THROTTLED, 0, LIMITER_CUT, 10, 250 * MS, false},
            {ANSWER_THROTTLED, 100 * MS, LIMITER_CUT, 10, 250 * MS, false},
            {ANSWER_THROTTLED, 3 * S, LIMITER_CUT, 10, 3 * S, false},
            {ANSWER_THROTTLED, 3600 * S, LIMITER_CUT, 10, 900 * S, false}, /* max_hold */
            {ANSWER_OVERLOADED, 0, LIMITER_CUT, 10, 1 * S, false},
            {ANSWER_OVERLOADED, 2 * S, LIMITER_CUT, 10, 2 * S, false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench b;
                begin(&b, &defaults);
                assert_int_equal(one(&b, cases[i].class, cases[i].wait), cases[i].event);
                struct limiter_view v = look(&b);
                assert_float_equal(v.rate, cases[i].rate, .01);
                assert_int_equal(v.closed_until, cases[i].closed ? b.now + cases[i].closed : 0);
                assert_int_equal(v.settled, cases[i].settled);
                assert_int_equal(v.in_flight, 0);
        }
}

static void starts_with_a_few(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_pass passes[4];
        begin(&b, &defaults);
        for (unsigned i = 0; i < 4; i++) {
                assert_true(may(&b));
                passes[i] = go(&b);
                assert_int_equal(passes[i].in_flight, i + 1);
        }
        usec_t wake = 0;
        assert_false(limiter_may_go(&b.l, b.now, &wake));
        assert_true(wake == USEC_MAX); /* only an answer or an end can change it */
        limiter_finish(&b.l, &passes[0]);
        assert_true(may(&b));
}

static void probe_decides(void **state)
{
        (void)state;
        static const struct {
                enum answer_class class;
                bool answered, closed, at_once;
        } cases[] = {
            {ANSWER_SUCCESS, true, false, false},  {ANSWER_BLOCKED, true, false, false},
            {ANSWER_THROTTLED, true, true, false}, {ANSWER_OVERLOADED, true, true, false},
            {ANSWER_FAILED, true, true, false},    {ANSWER_SUCCESS, false, true, true},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench b;
                begin(&b, &defaults);
                one(&b, ANSWER_THROTTLED, 0);
                struct limiter_pass probe = go(&b);
                assert_true(probe.probe);
                usec_t wake = 0;
                assert_false(limiter_may_go(&b.l, b.now, &wake));
                assert_true(wake == USEC_MAX);
                b.now += 100 * MS;
                if (cases[i].answered)
                        limiter_answer(&b.l, &probe, cases[i].class, 0, b.now, &b.prng);
                limiter_finish(&b.l, &probe);
                assert_int_equal(look(&b).closed_until != 0, cases[i].closed);
                assert_int_equal(may(&b), cases[i].at_once);
                if (cases[i].closed && !cases[i].at_once) /* twice the back-off of 250 ms */
                        assert_true(look(&b).closed_until >= b.now + 500 * MS);
                wait_to_go(&b);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(first_answers),
            cmocka_unit_test(starts_with_a_few),
            cmocka_unit_test(probe_decides),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
