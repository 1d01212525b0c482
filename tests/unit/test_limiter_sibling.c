#include "tests/unit/unit.h"

#include "core/limiter_sibling.h"
#include "core/limiter_state.h"

#define MS USEC_PER_MSEC
#define S USEC_PER_SEC

static const struct limiter_policy defaults = {
    .algorithm = LIMITER_ADAPTIVE,
    .start = 1,
    .floor = 1,
    .ceiling = 8,
    .max_hold = 900 * S,
    .aimd = {.increase = 1, .per = AIMD_PER_SUCCESS, .decrease = .5},
    .breaker = {.trip = 6, .cooldown = 30 * S},
};

static struct prng prng;
static usec_t now = 1000 * S;

static void begin(struct limiter *l, enum limiter_algorithm algorithm)
{
        struct limiter_policy policy = defaults;
        policy.algorithm = algorithm;
        limiter_init(l, &policy);
}

/* One request by itself, answered after 100 ms. */
static enum limiter_event one(struct limiter *l, enum answer_class class)
{
        struct limiter_pass pass;
        usec_t wake = 0;
        while (!limiter_may_go(l, now, &wake))
                now = wake;
        limiter_go(l, true, now, &prng, &pass);
        now += 100 * MS;
        struct answer a = {.class = class};
        enum limiter_event event = limiter_answer(l, &pass, &a, now, &prng);
        limiter_finish(l, &pass);
        return event;
}

static double rate(const struct limiter *l)
{
        struct limiter_view view;
        limiter_look(l, now, &view);
        return view.rate;
}

/* Settled at a limit of about `max` requests/s, on the way up from 90 % of it. */
static void settle(struct limiter *l, double max)
{
        begin(l, LIMITER_ADAPTIVE);
        one(l, ANSWER_SUCCESS);
        l->pace.slow_start = false;
        l->pace.rate = l->pace.low = .9 * max;
        l->pace.max = max;
}

static void a_new_one_begins_with_what_is_known(void **state)
{
        (void)state;
        struct limiter old, new;
        settle(&old, 20);
        one(&old, ANSWER_THROTTLED);
        begin(&new, LIMITER_ADAPTIVE);
        limiter_begin_as(&new, &old, now);
        assert_float_equal(rate(&new), rate(&old), 1e-9);
        assert_float_equal(new.pace.max, old.pace.max, 1e-9);
        assert_int_equal(new.srtt, old.srtt);
        usec_t wake = 0;
        assert_false(limiter_may_go(&new, now, &wake)); /* nor all at the same moment */
        assert_in_range(wake, now + 1, now + S / 5);
        for (unsigned i = 0; i < 1000; i++)
                one(&new, ANSWER_SUCCESS);
        assert_true(rate(&new) > old.pace.max); /* it finds its own */
}

static void nobody_begins_with_what_is_not_known(void **state)
{
        (void)state;
        struct limiter old, new;
        begin(&old, LIMITER_ADAPTIVE);
        for (unsigned i = 0; i < 5; i++)
                one(&old, ANSWER_SUCCESS); /* still in slow start */
        begin(&new, LIMITER_ADAPTIVE);
        limiter_begin_as(&new, &old, now);
        assert_true(rate(&new) == 0);

        settle(&old, 20);
        begin(&new, LIMITER_AIMD);
        limiter_begin_as(&new, &old, now);
        assert_true(rate(&new) == 0 && new.srtt == 0);

        begin(&new, LIMITER_ADAPTIVE);
        one(&new, ANSWER_SUCCESS); /* it has an answer of its own */
        double own = rate(&new);
        limiter_begin_as(&new, &old, now);
        assert_true(rate(&new) == own);
}

static void nor_with_its_holds(void **state)
{
        (void)state;
        struct limiter old, new;
        settle(&old, 20);
        for (unsigned i = 0; i < 6; i++)
                one(&old, ANSWER_THROTTLED);
        assert_true(old.hold.closed);
        begin(&new, LIMITER_ADAPTIVE);
        limiter_begin_as(&new, &old, now);
        usec_t wake = 0;
        assert_false(new.hold.closed || limiter_may_go(&new, now, &wake));
        assert_true(limiter_may_go(&new, wake, &wake));
}

static void heeds(void **state)
{
        (void)state;
        static const struct {
                const char *what;
                double max, rate; /* its own; 0: still in slow start */
                bool guessed, does;
        } cases[] = {
            {"the same, as far up", 20, 19.5, false, true},
            {"the same, a little beyond", 20, 20.5, false, true},
            {"nearly the same", 20.5, 20, false, true},
            {"the same, not up again as yet", 20, 17, false, false},
            {"the same, but it has been far beyond", 20, 22, false, false},
            {"another", 30, 20, false, false},
            {"a lower one", 15, 20, false, false},
            {"another, but that is a guess", 30, 20, true, true},
            {"the same, that a few refusals will find", 21.5, 20, false, true},
            {"not known", 0, 20, false, false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct limiter l, sibling;
                settle(&l, cases[i].max);
                l.pace.rate = cases[i].rate;
                l.pace.guessed = cases[i].guessed;
                l.pace.slow_start = cases[i].max <= 0;
                settle(&sibling, 20);
                sibling.pace.rate = 20;
                sibling.pace.x = .9;
                assert_int_equal(one(&sibling, ANSWER_THROTTLED), LIMITER_CUT);
                if (limiter_heed(&l, &sibling, now) != cases[i].does)
                        fail_msg("%s", cases[i].what);
                double wanted = cases[i].does ? rate(&sibling) : cases[i].rate;
                assert_float_equal(rate(&l), wanted, .001);
        }
}

static void sees_for_itself_now_and_then(void **state)
{
        (void)state;
        struct limiter l, sibling;
        settle(&l, 20);
        settle(&sibling, 20);
        unsigned heeded = 0;
        for (unsigned i = 0; i < 10; i++) {
                sibling.pace.rate = sibling.pace.max = l.pace.rate = l.pace.max = 20;
                heeded += limiter_heed(&l, &sibling, now);
        }
        assert_int_equal(heeded, 4);
        one(&l, ANSWER_THROTTLED); /* so it was its limit, too */
        sibling.pace.max = l.pace.rate = l.pace.max;
        assert_true(limiter_heed(&l, &sibling, now));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_new_one_begins_with_what_is_known),
            cmocka_unit_test(nobody_begins_with_what_is_not_known),
            cmocka_unit_test(nor_with_its_holds),
            cmocka_unit_test(heeds),
            cmocka_unit_test(sees_for_itself_now_and_then),
        };
        prng_init(&prng, 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
