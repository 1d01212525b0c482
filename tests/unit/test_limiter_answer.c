/* The limiter: what it makes of quotas, of refusals for what others did, and of those that no wait
 * ends. */
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

static struct limiter_pass go(struct bench *b)
{
        struct limiter_pass pass;
        usec_t wake = 0;
        while (!limiter_may_go(&b->l, b->now, &wake)) {
                assert_true(wake > b->now && wake < USEC_MAX);
                b->now = wake;
        }
        limiter_go(&b->l, true, b->now, &b->prng, &pass);
        return pass;
}

static enum limiter_event answered(struct bench *b, struct limiter_pass *pass,
                                   const struct answer *answer)
{
        enum limiter_event event = limiter_answer(&b->l, pass, answer, b->now, &b->prng);
        limiter_finish(&b->l, pass);
        return event;
}

/* One request by itself, answered after 100 ms. */
static struct limiter_pass one(struct bench *b, const struct answer *answer)
{
        struct limiter_pass pass = go(b);
        b->now += 100 * MS;
        answered(b, &pass, answer);
        return pass;
}

static struct limiter_view look(const struct bench *b)
{
        struct limiter_view view;
        limiter_look(&b->l, b->now, &view);
        return view;
}

static struct answer quota(enum answer_class class, uint64_t limit, uint64_t remaining,
                           usec_t reset)
{
        return (struct answer){.class = class,
                               .quota = {.count = 1, .windows = {{limit, remaining, reset, 0}}}};
}

static const struct answer success = {.class = ANSWER_SUCCESS};

/* --- quotas --- */

static void a_quota_sets_the_pace(void **state)
{
        (void)state;
        static const struct {
                enum limiter_algorithm algorithm;
                double rate;
        } cases[] = {{LIMITER_ADAPTIVE, 3}, {LIMITER_AIMD, 3}, {LIMITER_FIXED, 0}};
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench b;
                struct limiter_policy policy = defaults;
                policy.algorithm = cases[i].algorithm;
                begin(&b, &policy);
                struct answer a = quota(ANSWER_SUCCESS, 31, 30, 10 * S + 100 * MS);
                one(&b, &a);
                assert_float_equal(look(&b).rate, cases[i].rate, .001);
                struct limiter_pass first = go(&b), second = go(&b);
                assert_int_equal(second.sent - first.sent,
                                 cases[i].rate > 0 ? usec_from_seconds(1 / cases[i].rate) : 0);
                if (cases[i].rate > 0)
                        assert_int_equal(second.why, LIMITER_QUOTA);
        }
}

static void a_quota_never_speeds_up(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        one(&b, &success);
        double rate = look(&b).rate;
        struct answer a = quota(ANSWER_FAILED, 100000, 100000, 10 * S);
        one(&b, &a);
        assert_float_equal(look(&b).rate, rate, .001);
}

/* What the quota held back says nothing about more. */
static void nothing_grows_behind_a_quota(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        struct answer a = quota(ANSWER_SUCCESS, 30, 30, 10 * S);
        one(&b, &a);
        one(&b, &a); /* this one found no bound yet */
        double learned = b.l.pace.rate;
        for (unsigned i = 0; i < 20; i++)
                one(&b, &a);
        assert_float_equal(b.l.pace.rate, learned, .001);
}

/* The requests sent since the answered one was are on the host's account already. */
static void counts_what_is_under_way(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        struct limiter_pass first = go(&b), second = go(&b), third = go(&b);
        struct answer a = quota(ANSWER_SUCCESS, 30, 22, 10 * S);
        answered(&b, &first, &a);
        assert_float_equal(look(&b).rate, 2, .001);
        a.quota.windows[0].remaining = 21;
        answered(&b, &second, &a);
        assert_float_equal(look(&b).rate, 2, .001);
        a.quota.windows[0].remaining = 20;
        answered(&b, &third, &a);
        assert_float_equal(look(&b).rate, 2, .001);
}

static void a_spent_quota_closes(void **state)
{
        (void)state;
        static const struct {
                usec_t reset, closed; /* from the answer on; 0: not */
                enum answer_class class;
                bool half_open;
        } cases[] = {
            {7 * S, 7 * S, ANSWER_SUCCESS, false},     {0, QUOTA_HOLD_MIN, ANSWER_SUCCESS, false},
            {3600 * S, 900 * S, ANSWER_SUCCESS, true}, /* max_hold ends it, not the host */
            {7 * S, 7 * S, ANSWER_FAILED, false},      {7 * S, 0, ANSWER_BLOCKED, false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench b;
                begin(&b, &defaults);
                one(&b, &success);
                double rate = b.l.pace.rate;
                struct limiter_pass pass = go(&b);
                struct answer a = quota(cases[i].class, 30, 0, cases[i].reset);
                enum limiter_event event = answered(&b, &pass, &a);
                usec_t until = cases[i].closed ? b.now + cases[i].closed : 0;
                assert_int_equal(look(&b).closed_until, until);
                assert_int_equal(event == LIMITER_CLOSED, cases[i].closed > 0);
                struct limiter_pass next = go(&b);
                assert_int_equal(next.probe, cases[i].half_open);
                if (until) /* and then one by one */
                        assert_in_range(b.now, until, until + usec_from_seconds(1 / rate));
                assert_true(b.l.pace.rate >= rate); /* nothing was refused: nothing is cut */
        }
}

static void a_refusal_with_a_spent_quota_waits_for_it(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        one(&b, &success);
        struct limiter_pass pass = go(&b);
        struct answer a = quota(ANSWER_THROTTLED, 30, 0, 7 * S);
        a.wait = 2 * S; /* whichever is longer */
        assert_int_equal(answered(&b, &pass, &a), LIMITER_CUT);
        assert_int_equal(look(&b).closed_until, b.now + 7 * S);
}

static void a_probe_that_spends_the_quota_closes_anew(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        one(&b, &success);
        one(&b, &(struct answer){.class = ANSWER_THROTTLED, .wait = 5 * S});
        struct limiter_pass probe = go(&b);
        assert_true(probe.probe);
        struct answer a = quota(ANSWER_SUCCESS, 30, 0, 7 * S);
        assert_int_equal(answered(&b, &probe, &a), LIMITER_CLOSED);
        assert_int_equal(look(&b).closed_until, b.now + 7 * S);
        assert_false(go(&b).probe);
}

/* An answer from before a hold speaks of a quota that is whole again by now. */
static void passes_over_an_old_quota(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        one(&b, &success);
        struct limiter_pass late = go(&b), pass = go(&b);
        struct answer spent = quota(ANSWER_SUCCESS, 30, 0, 7 * S);
        answered(&b, &pass, &spent);
        pass = go(&b);
        assert_int_equal(answered(&b, &late, &spent), LIMITER_UNCHANGED);
        assert_int_equal(look(&b).closed_until, 0);
        spent.quota.windows[0].remaining = 1;
        assert_true(look(&b).rate > 1);
        answered(&b, &pass, &spent);
        assert_float_equal(look(&b).rate, 1. / 7, .001);
}

/* --- not this client's fault --- */

static void others_faults_cut_nothing(void **state)
{
        (void)state;
        static const usec_t waits[] = {0, 500 * MS, 20 * S};
        for (size_t i = 0; i < COUNT_OF(waits); i++) {
                struct bench b;
                begin(&b, &defaults);
                one(&b, &success);
                double rate = b.l.pace.rate;
                struct answer a = {.class = ANSWER_THROTTLED, .wait = waits[i]};
                a.quota.shared = true;
                struct limiter_pass pass = go(&b);
                assert_int_equal(answered(&b, &pass, &a), LIMITER_CLOSED);
                usec_t least = waits[i] ? waits[i] : HOLD_BACK_OFF_MIN;
                assert_in_range(look(&b).closed_until, b.now + least, b.now + least + least / 10);
                one(&b, &success);
                assert_int_equal(look(&b).closed_until, 0);
                assert_true(b.l.pace.rate >= rate);
                assert_float_equal(look(&b).refused_rate, 0, 0);
        }
}

static void others_faults_open_no_circuit(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        one(&b, &success);
        struct answer a = {.class = ANSWER_THROTTLED, .wait = S};
        a.quota.shared = true;
        for (unsigned i = 0; i < 20; i++) {
                assert_false(one(&b, &a).blocked);
                assert_false(look(&b).circuit_open);
        }
}

/* --- no matter of the rate --- */

static void what_no_wait_ends_is_a_block(void **state)
{
        (void)state;
        static const struct {
                const char *what;
                struct answer answer;
                unsigned refusals; /* until it counts as blocked; 0: never, in 30 */
        } cases[] = {
            {"named waits, three of them whole", {.class = ANSWER_THROTTLED, .wait = 2 * S}, 4},
            {"longer than what is believed", {.class = ANSWER_THROTTLED, .wait = 1000 * S}, 9},
            {"no wait named: the circuit's count", {.class = ANSWER_THROTTLED}, 9},
            {"overload is none", {.class = ANSWER_OVERLOADED, .wait = 2 * S}, 0},
            {"nor is failure", {.class = ANSWER_FAILED, .wait = 2 * S}, 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench b;
                unsigned count = 0;
                begin(&b, &defaults);
                one(&b, &success);
                do
                        count++;
                while (!one(&b, &cases[i].answer).blocked && count < 30);
                if (count != (cases[i].refusals ? cases[i].refusals : 30))
                        fail_msg("%s: %u", cases[i].what, count);
                if (!cases[i].refusals)
                        continue;
                assert_true(look(&b).closed_until > b.now); /* held all the same */
                assert_true(one(&b, &cases[i].answer).blocked);
                assert_false(one(&b, &success).blocked);
                assert_int_equal(look(&b).closed_until, 0);
                for (unsigned k = 1; k < cases[i].refusals; k++) /* the row begins anew */
                        assert_false(one(&b, &cases[i].answer).blocked);
        }
}

/* A refusal beside others that are under way may well be about them. */
static void only_alone_is_a_block(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        struct limiter_pass slow = go(&b);
        one(&b, &success);
        struct answer a = {.class = ANSWER_THROTTLED, .wait = 2 * S};
        for (unsigned i = 0; i < 30; i++)
                assert_false(one(&b, &a).blocked);
        answered(&b, &slow, &a);
        one(&b, &a);
        one(&b, &a);
        assert_true(one(&b, &a).blocked);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_quota_sets_the_pace),
            cmocka_unit_test(a_quota_never_speeds_up),
            cmocka_unit_test(nothing_grows_behind_a_quota),
            cmocka_unit_test(counts_what_is_under_way),
            cmocka_unit_test(a_spent_quota_closes),
            cmocka_unit_test(a_refusal_with_a_spent_quota_waits_for_it),
            cmocka_unit_test(a_probe_that_spends_the_quota_closes_anew),
            cmocka_unit_test(passes_over_an_old_quota),
            cmocka_unit_test(others_faults_cut_nothing),
            cmocka_unit_test(others_faults_open_no_circuit),
            cmocka_unit_test(what_no_wait_ends_is_a_block),
            cmocka_unit_test(only_alone_is_a_block),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
