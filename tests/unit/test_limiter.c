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

static enum limiter_event answer_pass(struct bench *b, struct limiter_pass *pass,
                                      enum answer_class class, usec_t wait)
{
        struct answer a = {.class = class, .wait_named = wait > 0, .wait = wait};
        return limiter_answer(&b->l, pass, &a, b->now, &b->prng);
}

static enum limiter_event answer(struct bench *b, struct limiter_pass *pass,
                                 enum answer_class class, usec_t wait)
{
        enum limiter_event event = answer_pass(b, pass, class, wait);
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
                enum limiter_event event;
                usec_t wait; /* named */
                double rate;
                usec_t closed; /* from the answer on, not counting jitter */
                bool settled;
        } cases[] = {
            {ANSWER_SUCCESS, LIMITER_GREW, 0, 50, 0, false}, /* start / srtt, +1/srtt */
            {ANSWER_BLOCKED, LIMITER_UNCHANGED, 0, 0, 0, false},
            {ANSWER_FAILED, LIMITER_UNCHANGED, 0, 0, 0, false},
            {ANSWER_THROTTLED, LIMITER_CUT, 0, 10, 250 * MS, false},
            {ANSWER_THROTTLED, LIMITER_CUT, 100 * MS, 10, 250 * MS, false},
            {ANSWER_THROTTLED, LIMITER_CUT, 3 * S, 10, 3 * S, false},
            {ANSWER_THROTTLED, LIMITER_CUT, 3600 * S, 10, 900 * S, false}, /* max_hold */
            {ANSWER_OVERLOADED, LIMITER_CUT, 0, 10, 1 * S, false},
            {ANSWER_OVERLOADED, LIMITER_CUT, 2 * S, 10, 2 * S, false},
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
                        answer_pass(&b, &probe, cases[i].class, 0);
                limiter_finish(&b.l, &probe);
                assert_int_equal(look(&b).closed_until != 0, cases[i].closed);
                assert_int_equal(may(&b), cases[i].at_once);
                if (cases[i].closed && !cases[i].at_once) /* twice the back-off of 250 ms */
                        assert_true(look(&b).closed_until >= b.now + 500 * MS);
                wait_to_go(&b);
        }
}

static void one_cut_for_each_epoch(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_pass passes[4];
        begin(&b, &defaults);
        one(&b, ANSWER_SUCCESS, 0);
        for (unsigned i = 0; i < 4; i++)
                passes[i] = go(&b);
        b.now += 20 * MS;
        assert_int_equal(answer(&b, &passes[0], ANSWER_THROTTLED, 0), LIMITER_CUT);
        double rate = look(&b).rate;
        for (unsigned i = 1; i < 4; i++) /* sent before the cut */
                assert_int_equal(answer(&b, &passes[i], ANSWER_THROTTLED, 0), LIMITER_UNCHANGED);
        assert_float_equal(look(&b).rate, rate, 1e-9);
        assert_true(look(&b).settled);
        assert_int_equal(look(&b).closed_until, 0); /* no wait was named, and it was the first */
        assert_int_equal(one(&b, ANSWER_THROTTLED, 0), LIMITER_CUT);
        assert_true(look(&b).rate < rate);
        assert_true(look(&b).closed_until > b.now); /* the second in a row backs off */
}

static void a_first_burst_tells_no_rate(void **state)
{
        (void)state;
        static const usec_t waits[] = {0, S};
        for (size_t i = 0; i < COUNT_OF(waits); i++) {
                struct bench b;
                struct limiter_pass passes[4];
                begin(&b, &defaults);
                for (unsigned k = 0; k < 4; k++)
                        passes[k] = go(&b);
                b.now += 100 * MS;
                answer(&b, &passes[0], ANSWER_SUCCESS, 0);
                double rate = look(&b).rate;
                enum limiter_event event = answer(&b, &passes[1], ANSWER_THROTTLED, waits[i]);
                assert_int_equal(event, waits[i] ? LIMITER_CLOSED : LIMITER_UNCHANGED);
                assert_int_equal(look(&b).closed_until, waits[i] ? b.now + waits[i] : 0);
                assert_float_equal(look(&b).rate, rate, 1e-9);
                assert_false(look(&b).settled); /* slow start goes on */
                wait_to_go(&b);
                assert_int_equal(one(&b, ANSWER_THROTTLED, 0), LIMITER_CUT);
                assert_true(look(&b).rate < rate);
        }
}

/* Takes `n` in flight, refuses the last one and accepts the others. */
static void refused_at(struct bench *b, unsigned n)
{
        struct limiter_pass passes[32];
        for (unsigned i = 0; i < n; i++)
                passes[i] = go(b);
        b->now += 100 * MS;
        answer(b, &passes[n - 1], ANSWER_THROTTLED, 0);
        for (unsigned i = 0; i < n - 1; i++)
                answer(b, &passes[i], ANSWER_SUCCESS, 0);
        one(b, ANSWER_SUCCESS, 0); /* ends the episode */
}

static void two_refusals_in_flight_are_not_for_the_rate(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        b.l.pace = (struct pace){.rate = 1e4, .max = 1e4, .low = 1e4, .x = 1, .requests = 200};
        b.l.srtt = 100 * MS;
        refused_at(&b, 6);
        assert_int_equal(look(&b).concurrency, 32);
        refused_at(&b, 6);
        assert_int_equal(look(&b).concurrency, 5);
        assert_true(look(&b).rate >= 5 / .1 && look(&b).refused_rate >= 1.5 * 5 / .1);
        double rate = look(&b).rate;
        b.l.slots.limit = 6; /* a trial */
        refused_at(&b, 6);
        assert_int_equal(look(&b).concurrency, 5);
        assert_true(look(&b).rate >= rate && b.l.pace.steady);
}

static void old_news_lengthens_the_hold(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_pass passes[3];
        begin(&b, &defaults);
        one(&b, ANSWER_SUCCESS, 0);
        for (unsigned i = 0; i < 3; i++)
                passes[i] = go(&b);
        b.now += 20 * MS;
        answer(&b, &passes[0], ANSWER_THROTTLED, S);
        usec_t until = b.now + S;
        assert_int_equal(look(&b).closed_until, until);
        b.now += 10 * MS;
        assert_int_equal(answer(&b, &passes[1], ANSWER_THROTTLED, 0), LIMITER_UNCHANGED);
        assert_int_equal(look(&b).closed_until, until);
        assert_int_equal(look(&b).in_flight, 1); /* kept its slot while closed */
        assert_int_equal(answer(&b, &passes[2], ANSWER_THROTTLED, 2 * S), LIMITER_CLOSED);
        assert_int_equal(look(&b).closed_until, b.now + 2 * S);
}

static void a_short_hold_reopens_by_itself(void **state)
{
        (void)state;
        static const struct {
                usec_t wait;
                bool probe;
        } cases[] = {{S, false}, {1001 * MS, true}}; /* 5 * max(srtt, 200 ms) */
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench b;
                struct limiter_pass pass;
                begin(&b, &defaults);
                one(&b, ANSWER_SUCCESS, 0);
                assert_int_equal(one(&b, ANSWER_THROTTLED, cases[i].wait), LIMITER_CUT);
                usec_t until = b.now + cases[i].wait;
                wait_to_go(&b);
                assert_true(b.now >= until);
                enum limiter_event event = limiter_go(&b.l, true, b.now, &b.prng, &pass);
                assert_int_equal(event, cases[i].probe ? LIMITER_UNCHANGED : LIMITER_REOPENED);
                assert_int_equal(pass.probe, cases[i].probe);
                if (!cases[i].probe) /* and then one by one */
                        assert_true(b.now > until && !may(&b));
                event = answer(&b, &pass, ANSWER_SUCCESS, 0);
                assert_int_equal(event == LIMITER_REOPENED, cases[i].probe);
                assert_int_equal(look(&b).closed_until, 0);
        }
}

static void six_refusals_open_the_circuit(void **state)
{
        (void)state;
        for (enum limiter_algorithm a = LIMITER_ADAPTIVE; a <= LIMITER_FIXED; a++) {
                struct bench b;
                struct limiter_policy policy = defaults;
                policy.algorithm = a;
                begin(&b, &policy);
                for (unsigned i = 0; i < 5; i++) {
                        assert_int_not_equal(one(&b, ANSWER_THROTTLED, 0), LIMITER_CIRCUIT_OPEN);
                        assert_false(look(&b).circuit_open);
                }
                assert_int_equal(one(&b, ANSWER_THROTTLED, 0), LIMITER_CIRCUIT_OPEN);
                assert_true(look(&b).circuit_open);
                assert_in_range(look(&b).closed_until, b.now + 30 * S, b.now + 33 * S);
                struct limiter_pass probe = go(&b);
                assert_true(probe.probe);
                assert_false(look(&b).circuit_open); /* half-open: it may be tried */
                assert_int_equal(answer(&b, &probe, ANSWER_THROTTLED, 40 * S), LIMITER_CLOSED);
                assert_true(look(&b).circuit_open);
                assert_true(look(&b).closed_until >= b.now + 40 * S);
                assert_int_equal(one(&b, ANSWER_SUCCESS, 0), LIMITER_REOPENED);
                assert_int_equal(one(&b, ANSWER_THROTTLED, 0) == LIMITER_CIRCUIT_OPEN, false);
        }
}

static void overload_calms_it_down(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        one(&b, ANSWER_SUCCESS, 0);
        for (unsigned i = 0; i < 50; i++)
                one(&b, ANSWER_SUCCESS, 0);
        b.l.pace.rate = 16;
        double rate = 16;
        assert_int_equal(one(&b, ANSWER_OVERLOADED, 0), LIMITER_CUT);
        usec_t calm = b.now + 2 * S;
        assert_true(look(&b).rate <= rate / 2 * 1.0001);
        assert_int_equal(look(&b).closed_until, b.now + S);
        rate = look(&b).rate;
        unsigned calm_ones = 0;
        for (; b.now + 100 * MS < calm; calm_ones++) {
                one(&b, ANSWER_SUCCESS, 0);
                assert_true(look(&b).rate <= rate + 1e-9);
        }
        assert_true(calm_ones > 0);
        b.now = calm;
        one(&b, ANSWER_SUCCESS, 0);
        assert_true(look(&b).rate > rate);
}

static void isolated_refusals_are_forgiven(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        for (unsigned i = 0; i < 20; i++) {
                one(&b, ANSWER_SUCCESS, 0);
                one(&b, ANSWER_THROTTLED, 0);
                assert_int_equal(look(&b).closed_until, 0); /* never a second in a row */
        }
}

static void grows_only_from_what_it_held_back(void **state)
{
        (void)state;
        static const struct {
                enum answer_class class;
                bool limited, grows;
                double max_rate;
        } cases[] = {
            {ANSWER_SUCCESS, true, true, 0},   {ANSWER_SUCCESS, false, false, 0},
            {ANSWER_BLOCKED, true, false, 0},  {ANSWER_FAILED, true, false, 0},
            {ANSWER_SUCCESS, true, false, 20}, /* the operator held it back, not what was learned */
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench b;
                struct limiter_policy policy = defaults;
                policy.max_rate = cases[i].max_rate;
                begin(&b, &policy);
                one(&b, ANSWER_SUCCESS, 0);
                one(&b, ANSWER_SUCCESS, 0);
                double rate = b.l.pace.rate;
                for (unsigned k = 0; k < 10; k++) {
                        struct limiter_pass first = go(&b), second;
                        wait_to_go(&b);
                        limiter_go(&b.l, cases[i].limited, b.now, &b.prng, &second);
                        limiter_finish(&b.l, &first);
                        answer(&b, &second, cases[i].class, 0);
                }
                assert_int_equal(b.l.pace.rate > rate, cases[i].grows);
        }
}

static void a_late_timer_is_made_up_for(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_policy policy = defaults;
        unsigned sent = 0;
        policy.ceiling = 100;
        begin(&b, &policy);
        one(&b, ANSWER_SUCCESS, 0);
        b.l.pace.rate = 2000; /* every 500 us */
        go(&b);
        assert_false(may(&b)); /* the next one waits for its place, */
        b.now += 2 * MS + 500; /* and until now five fell due */
        for (; may(&b); sent++)
                go(&b);
        assert_int_equal(sent, 5);
        b.now += S; /* but no more than 4 ms */
        for (sent = 0; may(&b); sent++)
                go(&b);
        assert_int_equal(sent, 9);
        b.l.why = LIMITER_NOTHING; /* and idling is not, when nobody waited */
        b.now += S;
        for (sent = 0; may(&b); sent++)
                go(&b);
        assert_int_equal(sent, 1);
}

static void grows_no_further_than_the_ceiling_carries(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        for (unsigned i = 0; i < 500; i++)
                one(&b, ANSWER_SUCCESS, 0);
        assert_in_range(look(&b).rate, 2 * 320, 2 * 320 + 10); /* twice 32 in 100 ms */
}

static void small_changes_are_no_events(void **state)
{
        (void)state;
        struct bench b;
        begin(&b, &defaults);
        one(&b, ANSWER_SUCCESS, 0);
        one(&b, ANSWER_THROTTLED, 0);
        double told = look(&b).rate;
        unsigned grew = 0, unchanged = 0;
        for (unsigned i = 0; i < 400; i++) {
                enum limiter_event event = one(&b, ANSWER_SUCCESS, 0);
                if (event == LIMITER_GREW) {
                        grew++;
                        assert_true(look(&b).rate >= 1.02 * told);
                        told = look(&b).rate;
                } else {
                        unchanged++;
                        assert_int_equal(event, LIMITER_UNCHANGED);
                        assert_true(look(&b).rate < 1.02 * told);
                }
        }
        assert_true(grew > 5 && unchanged > 5);
}

static void min_delay_is_jittered(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_policy policy = defaults;
        policy.min_delay = 100 * MS;
        usec_t shortest = USEC_MAX, longest = 0;
        begin(&b, &policy);
        usec_t last = go(&b).sent;
        for (unsigned i = 0; i < 500; i++) {
                struct limiter_pass pass = go(&b);
                assert_int_equal(pass.why, LIMITER_BOUND);
                shortest = usec_min(shortest, pass.sent - last);
                longest = usec_max(longest, pass.sent - last);
                last = pass.sent;
                limiter_finish(&b.l, &pass);
        }
        assert_in_range(shortest, 100 * MS, 105 * MS);
        assert_in_range(longest, 195 * MS, 200 * MS);
}

static void a_probe_minds_the_bounds(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_policy policy = defaults;
        struct limiter_pass hanging, refused;
        policy.ceiling = 2;
        policy.min_delay = S;
        begin(&b, &policy);
        hanging = go(&b);
        refused = go(&b);
        answer(&b, &refused, ANSWER_THROTTLED, 0);
        b.now += 250 * MS;
        usec_t wake = 0;
        assert_false(limiter_may_go(&b.l, b.now, &wake)); /* half-open, but too soon */
        assert_true(wake > b.now && wake <= b.now + 2 * S);
        b.now = wake;
        policy.ceiling = 1;
        limiter_configure(&b.l, &policy);
        assert_false(limiter_may_go(&b.l, b.now, &wake));
        assert_true(wake == USEC_MAX);
        limiter_finish(&b.l, &hanging);
        assert_true(may(&b));
}

static void aimd(void **state)
{
        (void)state;
        static const struct {
                enum aimd_per per;
                unsigned start, floor, ceiling;
                const char *answers; /* s(uccess) r(efused) b(locked) f(ailed) */
                double concurrency;
        } cases[] = {
            {AIMD_PER_SUCCESS, 4, 1, 32, "", 4},       {AIMD_PER_SUCCESS, 1, 1, 32, "ss", 3},
            {AIMD_PER_SUCCESS, 1, 1, 32, "ssss", 3}, /* one in flight uses less than half of it */
            {AIMD_PER_SUCCESS, 8, 1, 32, "r", 4},      {AIMD_PER_SUCCESS, 8, 1, 32, "rr", 2},
            {AIMD_PER_SUCCESS, 8, 3, 32, "rr", 3},     {AIMD_PER_SUCCESS, 9, 1, 5, "", 5},
            {AIMD_PER_SUCCESS, 2, 1, 2, "sss", 2},     {AIMD_PER_SUCCESS, 1, 1, 32, "bf", 1},
            {AIMD_PER_ROUND_TRIP, 1, 1, 32, "s", 2},   {AIMD_PER_ROUND_TRIP, 2, 1, 32, "s", 2},
            {AIMD_PER_ROUND_TRIP, 2, 1, 32, "sss", 3},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct bench b;
                struct limiter_policy policy = defaults;
                policy.algorithm = LIMITER_AIMD;
                policy.aimd.per = cases[i].per;
                policy.start = cases[i].start;
                policy.floor = cases[i].floor;
                policy.ceiling = cases[i].ceiling;
                begin(&b, &policy);
                for (const char *c = cases[i].answers; *c; c++)
                        one(&b,
                            *c == 's'   ? ANSWER_SUCCESS
                            : *c == 'r' ? ANSWER_THROTTLED
                            : *c == 'b' ? ANSWER_BLOCKED
                                        : ANSWER_FAILED,
                            0);
                assert_float_equal(look(&b).concurrency, cases[i].concurrency, .001);
                assert_float_equal(look(&b).rate, 0, .001);
        }
}

static void fixed(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_policy policy = defaults;
        struct limiter_pass passes[3];
        policy.algorithm = LIMITER_FIXED;
        policy.start = 3;
        policy.max_rate = 10;
        begin(&b, &policy);
        usec_t began = b.now;
        for (unsigned i = 0; i < 3; i++)
                passes[i] = go(&b);
        assert_in_range(b.now - began, 200 * MS, 201 * MS);
        assert_false(may(&b));
        assert_int_equal(answer(&b, &passes[0], ANSWER_THROTTLED, 5 * S), LIMITER_CLOSED);
        assert_float_equal(look(&b).concurrency, 3, .001);
        assert_float_equal(look(&b).rate, 10, .001);
        usec_t until = b.now + 5 * S;
        wait_to_go(&b);
        assert_true(b.now >= until); /* Retry-After pauses it all the same */
}

static void takes_over_new_bounds(void **state)
{
        (void)state;
        struct bench b;
        struct limiter_policy policy = defaults;
        begin(&b, &policy);
        one(&b, ANSWER_SUCCESS, 0);
        assert_float_equal(look(&b).concurrency, 32, .001);
        double rate = look(&b).rate;
        policy.ceiling = 5;
        limiter_configure(&b.l, &policy);
        assert_float_equal(look(&b).concurrency, 5, .001);
        assert_float_equal(look(&b).rate, rate, .001);
        policy.max_rate = 7;
        limiter_configure(&b.l, &policy);
        assert_float_equal(look(&b).rate, 7, .001);
        struct limiter_pass out = go(&b);
        answer(&b, &out, ANSWER_THROTTLED, 100 * S);
        out = (struct limiter_pass){0};
        usec_t until = look(&b).closed_until;
        policy.algorithm = LIMITER_AIMD;
        limiter_configure(&b.l, &policy);
        assert_float_equal(look(&b).concurrency, 4, .001);
        assert_int_equal(look(&b).closed_until, until); /* the host's word stands */
}

static void events_have_names(void **state)
{
        (void)state;
        static const char *names[] = {"unchanged", "grew",         "cut",
                                      "closed",    "circuit_open", "reopened"};
        for (unsigned i = 0; i <= LIMITER_REOPENED; i++)
                assert_string_equal(limiter_event_name((enum limiter_event)i), names[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(first_answers),
            cmocka_unit_test(starts_with_a_few),
            cmocka_unit_test(probe_decides),
            cmocka_unit_test(one_cut_for_each_epoch),
            cmocka_unit_test(a_first_burst_tells_no_rate),
            cmocka_unit_test(two_refusals_in_flight_are_not_for_the_rate),
            cmocka_unit_test(old_news_lengthens_the_hold),
            cmocka_unit_test(a_short_hold_reopens_by_itself),
            cmocka_unit_test(six_refusals_open_the_circuit),
            cmocka_unit_test(overload_calms_it_down),
            cmocka_unit_test(isolated_refusals_are_forgiven),
            cmocka_unit_test(grows_only_from_what_it_held_back),
            cmocka_unit_test(a_late_timer_is_made_up_for),
            cmocka_unit_test(grows_no_further_than_the_ceiling_carries),
            cmocka_unit_test(small_changes_are_no_events),
            cmocka_unit_test(min_delay_is_jittered),
            cmocka_unit_test(a_probe_minds_the_bounds),
            cmocka_unit_test(aimd),
            cmocka_unit_test(fixed),
            cmocka_unit_test(takes_over_new_bounds),
            cmocka_unit_test(events_have_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
