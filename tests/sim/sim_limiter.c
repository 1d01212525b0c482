/* The limiter against modelled hosts in virtual time. Bounds are a little wider than what it does.
 */
#include "tests/unit/unit.h"

#include "tests/sim/simulator.h"

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

/* 30 requests in each second, 350 ms, 40 workers. */
static struct sim_scenario demo(usec_t duration)
{
        return (struct sim_scenario){
            .origin = {.kind = ORIGIN_FIXED_WINDOW, .rate = 30, .period = S, .from_first = true},
            .latency = 350 * MS,
            .network_share = .01,
            .spread = SIM_LATENCY_LOGNORMAL,
            .retry_after = SIM_WAIT_EXACT,
            .workers = 40,
            .attempts = 4,
            .duration = duration,
            .policy = defaults,
        };
}

struct figures {
        double goodput, refused, settled_goodput, settled_refused; /* means over the seeds */
        double gave_up;
        struct sim_tally whole;
};

static struct figures run_seeds(struct sim_scenario sc, unsigned seeds)
{
        struct figures f = {0};
        for (unsigned i = 0; i < seeds; i++) {
                struct sim_result r;
                sc.seed = 1 + i;
                sim_run(&sc, &r);
                assert_false(r.parked);
                f.goodput += sim_goodput(&r.whole) / seeds;
                f.refused += sim_refused_share(&r.whole) / seeds;
                f.settled_goodput += sim_goodput(&r.settled) / seeds;
                f.settled_refused += sim_refused_share(&r.settled) / seeds;
                f.gave_up += (double)r.gave_up / seeds;
                sim_result_done(&r);
        }
        return f;
}

static void check(const char *what, bool good, const struct figures *f)
{
        if (good)
                return;
        print_error("%s: goodput %.3f, refused %.2f %%; settled: %.3f, %.2f %%; gave up %.1f\n",
                    what, f->goodput, 100 * f->refused, f->settled_goodput,
                    100 * f->settled_refused, f->gave_up);
        fail();
}

/* ---- the demonstration ---- */

static void demo_serves_most(void **state)
{
        (void)state;
        struct figures brief = run_seeds(demo(25 * S), 20);
        check("25 s", brief.goodput >= .75 && brief.refused < .015, &brief);
        struct figures longer = run_seeds(demo(240 * S), 20);
        check("240 s", longer.goodput >= .92 && longer.refused < .005, &longer);
}

static void an_hour_is_steady(void **state)
{
        (void)state;
        struct figures f = run_seeds(demo(3600 * S), 1);
        check("an hour", f.settled_goodput >= .965 && f.settled_refused < .001, &f);
}

static void keeps_to_the_rate_once_found(void **state)
{
        (void)state;
        static const usec_t late[] = {0, 1 * MS, 4 * MS};
        for (size_t i = 0; i < COUNT_OF(late); i++) {
                struct sim_scenario sc = demo(600 * S);
                struct sim_result r;
                sc.late_max = late[i];
                sc.seed = 5;
                sim_run(&sc, &r);
                assert_in_range(sim_most_within(&r, 10 * S, 120 * S, 600 * S), 270, 30 * 10 + 1);
                assert_in_range(sim_most_within(&r, S, 120 * S, 600 * S), 28, 30 + 2);
                sim_result_done(&r);
        }
}

static unsigned long served(const struct sim_result *r, unsigned from, unsigned until)
{
        unsigned long sum = 0;
        for (unsigned i = from; i < until; i++)
                sum += r->served_in[i];
        return sum;
}

static void follows_steps(void **state)
{
        (void)state;
        static const struct {
                enum sim_retry_after retry_after;
                unsigned halved, doubled; /* seconds until the new limit is in use */
        } cases[] = {{SIM_WAIT_NONE, 20, 60}, {SIM_WAIT_EXACT, 30, 120}};
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct sim_scenario sc = demo(600 * S);
                struct sim_result r;
                unsigned halved = 200 + cases[i].halved, doubled = 400 + cases[i].doubled;
                sc.retry_after = cases[i].retry_after;
                sc.steps[0] = (struct sim_step){200 * S, .5};
                sc.steps[1] = (struct sim_step){400 * S, 1};
                sc.seed = 3;
                sim_run(&sc, &r);
                assert_true(served(&r, 100, 200) >= 90 * 30);
                assert_true(served(&r, halved, halved + 50) >= 43 * 15);
                assert_true(served(&r, doubled, doubled + 50) >= 43 * 30);
                assert_true(r.whole.refused < 100);
                sim_result_done(&r);
        }
}

/* ---- the ways in which a host names a wait, or does not ---- */

static void understands_every_wait(void **state)
{
        (void)state;
        static const struct {
                const char *name;
                enum sim_retry_after kind;
                usec_t wait;
                double goodput, refused; /* of the last half of 600 s */
        } cases[] = {
            {"none", SIM_WAIT_NONE, 0, .97, .008},      {"zero", SIM_WAIT_ZERO, 0, .97, .008},
            {"date", SIM_WAIT_DATE, 0, .96, .002},      {"exact", SIM_WAIT_EXACT, 0, .96, .002},
            {"long", SIM_WAIT_LONG, 10 * S, .93, .001},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct sim_scenario sc = demo(600 * S);
                sc.retry_after = cases[i].kind;
                sc.long_wait = cases[i].wait;
                struct figures f = run_seeds(sc, 5);
                check(cases[i].name,
                      f.settled_goodput >= cases[i].goodput && f.settled_refused < cases[i].refused,
                      &f);
        }
}

static void a_wait_named_is_kept(void **state)
{
        (void)state;
        static const enum limiter_algorithm algorithms[] = {LIMITER_ADAPTIVE, LIMITER_AIMD,
                                                            LIMITER_FIXED};
        for (size_t i = 0; i < COUNT_OF(algorithms); i++) {
                struct sim_scenario sc = demo(3600 * S);
                struct sim_result r;
                sc.policy.algorithm = algorithms[i];
                sc.origin.rate = 0; /* refuses always, and names 500 s, then max_hold */
                sc.retry_after = SIM_WAIT_LONG;
                sc.long_wait = 500 * S;
                sc.seed = 9;
                sim_run(&sc, &r);
                assert_true(r.longest_silence >= 500 * S && r.longest_silence < 551 * S);
                for (size_t k = 1; k < r.send_count; k++) /* all first ones went together */
                        assert_true(r.sends[k].at < 400 * MS ||
                                    r.sends[k].at - r.sends[k - 1].at >= 500 * S);
                sim_result_done(&r);
        }
}

/* ---- other hosts ---- */

static void other_hosts(void **state)
{
        (void)state;
        static const struct {
                const char *name;
                struct origin_config origin;
                enum sim_retry_after retry_after;
                bool overloaded;
                double goodput, refused;
        } cases[] = {
            {"sliding",
             {.kind = ORIGIN_SLIDING, .rate = 30, .period = S},
             SIM_WAIT_EXACT,
             false,
             .96,
             .002},
            {"token bucket",
             {.kind = ORIGIN_TOKEN_BUCKET, .rate = 20, .burst = 5},
             SIM_WAIT_EXACT,
             false,
             .96,
             .003},
            {"gcra",
             {.kind = ORIGIN_GCRA, .rate = 20, .burst = 3},
             SIM_WAIT_NONE,
             false,
             .95,
             .009},
            {"concurrency",
             {.kind = ORIGIN_CONCURRENCY, .rate = 28.5, .servers = 10},
             SIM_WAIT_NONE,
             false,
             .97,
             .006},
            {"overloaded",
             {.kind = ORIGIN_OVERLOADED, .rate = 28.5, .servers = 10, .burst = 5, .thrash = .1},
             SIM_WAIT_NONE,
             true,
             .87,
             .002},
            {"window and concurrency",
             {.kind = ORIGIN_WINDOW_AND_CONCURRENCY, .rate = 10, .period = 60 * S, .servers = 8},
             SIM_WAIT_EXACT,
             false,
             .93,
             .005},
            {"penalty box",
             {.kind = ORIGIN_PENALTY_BOX, .rate = 30, .period = S, .violations = 10},
             SIM_WAIT_EXACT,
             false,
             .95,
             .002},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct sim_scenario sc = demo(900 * S);
                sc.origin = cases[i].origin;
                sc.retry_after = cases[i].retry_after;
                sc.overloaded = cases[i].overloaded;
                struct figures f = run_seeds(sc, 5);
                check(cases[i].name,
                      f.settled_goodput >= cases[i].goodput && f.settled_refused < cases[i].refused,
                      &f);
        }
}

static void a_host_without_limit_is_not_held_back(void **state)
{
        (void)state;
        struct sim_scenario sc = demo(60 * S);
        struct sim_result r;
        sc.origin.kind = ORIGIN_UNLIMITED;
        sc.spread = SIM_LATENCY_EVEN;
        sc.workers = 32;
        sc.seed = 1;
        sim_run(&sc, &r);
        assert_true(sim_goodput(&r.settled) >= .97);
        assert_true(sim_goodput(&r.start) >= .9);
        sim_result_done(&r);
}

/* ---- the other algorithms ---- */

static void aimd_and_fixed_do_their_work(void **state)
{
        (void)state;
        struct sim_scenario sc = demo(600 * S);
        sc.origin = (struct origin_config){.kind = ORIGIN_CONCURRENCY, .rate = 28.5, .servers = 10};
        sc.retry_after = SIM_WAIT_NONE;
        sc.policy.algorithm = LIMITER_AIMD;
        sc.policy.aimd.per = AIMD_PER_ROUND_TRIP;
        struct figures f = run_seeds(sc, 5);
        check("aimd", f.settled_goodput >= .7 && f.settled_refused < .03, &f);

        sc.policy.algorithm = LIMITER_FIXED;
        sc.policy.start = 10;
        sc.spread = SIM_LATENCY_EVEN;
        f = run_seeds(sc, 1);
        check("fixed", f.settled_goodput >= .97 && f.settled_refused == 0, &f);
}

/* ---- what holds always ---- */

static void check_bounds(const struct sim_scenario *sc, const struct sim_result *r)
{
        const struct limiter_policy *p = &sc->policy;
        usec_t apart = p->min_delay;
        if (p->max_rate > 0)
                apart = usec_max(apart, usec_from_seconds(1 / p->max_rate));
        for (size_t i = 0; i < r->send_count; i++) {
                assert_in_range(r->sends[i].in_flight, 1, p->ceiling);
                if (i > 0)
                        assert_true(r->sends[i].at - r->sends[i - 1].at >= apart);
        }
        assert_in_range(r->last.concurrency, p->floor, p->ceiling);
        assert_true(r->last.in_flight <= p->ceiling);
}

static void the_operators_bounds_hold(void **state)
{
        (void)state;
        static const struct {
                double max_rate;
                usec_t min_delay;
                unsigned floor, ceiling, servers;
        } cases[] = {
            {10, 0, 1, 32, 100}, {0, 200 * MS, 1, 32, 100}, {12, 50 * MS, 1, 2, 100},
            {0, 0, 1, 3, 100},   {0, 0, 8, 16, 3},          {25, 0, 8, 8, 3},
            {100, 0, 1, 32, 10},
        };
        for (size_t i = 0; i < 3 * COUNT_OF(cases); i++) {
                struct sim_scenario sc = demo(300 * S);
                struct sim_result r;
                size_t k = i / 3;
                sc.policy.algorithm = (enum limiter_algorithm)(i % 3);
                sc.policy.start = 16;
                sc.policy.max_rate = cases[k].max_rate;
                sc.policy.min_delay = cases[k].min_delay;
                sc.policy.floor = cases[k].floor;
                sc.policy.ceiling = cases[k].ceiling;
                sc.origin = (struct origin_config){
                    .kind = ORIGIN_CONCURRENCY, .rate = 100, .servers = cases[k].servers};
                sc.retry_after = SIM_WAIT_NONE;
                sc.late_max = 2 * MS;
                sc.seed = i;
                sim_run(&sc, &r);
                assert_false(r.parked);
                check_bounds(&sc, &r);
                if (cases[k].max_rate == 10) /* and is used in full, but for the late timers */
                        assert_true(r.whole.sent >= 2910); /* of 3000 */
                if (cases[k].min_delay == 200 * MS)        /* 300 ms on average */
                        assert_in_range(r.whole.sent, 300 / .32, 300 / .28);
                sim_result_done(&r);
        }
}

static double between(struct prng *prng, double low, double high)
{
        return low + (high - low) * prng_unit(prng);
}

static unsigned one_of(struct prng *prng, unsigned n)
{
        return (unsigned)prng_usec(prng, n - 1);
}

static struct sim_scenario anything(uint64_t seed)
{
        struct prng prng;
        prng_init(&prng, seed);
        struct sim_scenario sc = demo(120 * S);
        sc.seed = seed;
        sc.origin = (struct origin_config){
            .kind = (enum origin_kind)one_of(&prng, ORIGIN_UNLIMITED + 1),
            .rate = between(&prng, .2, 60),
            .period = (1 + one_of(&prng, 20)) * S,
            .burst = 1 + one_of(&prng, 20),
            .servers = 1 + one_of(&prng, 20),
            .thrash = between(&prng, 0, .3),
            .violations = 1 + one_of(&prng, 5),
        };
        sc.latency = usec_from_seconds(between(&prng, .01, 2));
        sc.network_share = between(&prng, 0, 1);
        sc.spread = (enum sim_latency)one_of(&prng, 3);
        sc.slow_refusals = one_of(&prng, 2);
        sc.overloaded = one_of(&prng, 3) == 0;
        sc.retry_after = (enum sim_retry_after)one_of(&prng, SIM_WAIT_ONE + 1);
        sc.long_wait = (1 + one_of(&prng, 30)) * S;
        sc.workers = 1 + one_of(&prng, 40);
        sc.attempts = 1 + one_of(&prng, 4);
        sc.late_max = one_of(&prng, 3) * 2 * MS;
        sc.on_off = one_of(&prng, 4) == 0 ? (1 + one_of(&prng, 10)) * S : 0;
        if (one_of(&prng, 3) == 0)
                sc.steps[0] = (struct sim_step){40 * S, between(&prng, .3, 3)};
        double *shares[] = {&sc.fail_share, &sc.cancel_share, &sc.block_share};
        for (size_t i = 0; i < COUNT_OF(shares); i++)
                *shares[i] = one_of(&prng, 2) ? between(&prng, 0, .9) : 0;
        sc.policy.algorithm = (enum limiter_algorithm)one_of(&prng, 3);
        sc.policy.aimd.per = (enum aimd_per)one_of(&prng, 2);
        sc.policy.start = 1 + one_of(&prng, 50);
        sc.policy.ceiling = 1 + one_of(&prng, 40);
        sc.policy.floor = 1 + one_of(&prng, sc.policy.ceiling);
        sc.policy.max_rate = one_of(&prng, 3) == 0 ? between(&prng, .5, 50) : 0;
        sc.policy.min_delay = one_of(&prng, 4) == 0 ? prng_usec(&prng, S) : 0;
        sc.policy.breaker.trip = one_of(&prng, 8);
        return sc;
}

static void never_parks(void **state)
{
        (void)state;
        for (uint64_t seed = 0; seed < 1000; seed++) {
                struct sim_scenario sc = anything(seed);
                struct sim_result r;
                sim_run(&sc, &r);
                usec_t named = usec_max(sc.long_wait, 30 * S); /* 30 s: the penalty box */
                usec_t longest = 66 * S + (named + named / 10) + sc.origin.period + 20 * sc.latency;
                if (r.parked || r.longest_silence > longest || r.send_count == 0)
                        print_error("seed %u: parked %d, silent for %.1f s\n", (unsigned)seed,
                                    r.parked, usec_seconds(r.longest_silence));
                assert_false(r.parked);
                assert_true(r.longest_silence <= longest);
                assert_true(r.send_count > 0);
                check_bounds(&sc, &r);
                sim_result_done(&r);
        }
}

/* ---- quotas told with every answer ---- */

static void minds_quotas_before_any_refusal(void **state)
{
        (void)state;
        static const struct {
                usec_t period, latency, duration;
                double rate;
                enum sim_quota quota;
                enum sim_retry_after retry_after;
                unsigned long refused; /* in a run, at most */
                double goodput;        /* on average, at least */
        } cases[] = {
            {10 * S, 350 * MS, 40 * S, 3, SIM_QUOTA_EXACT, SIM_WAIT_EXACT, 1, .95},
            {10 * S, 20 * MS, 40 * S, 3, SIM_QUOTA_EXACT, SIM_WAIT_NONE, 1, .95},
            {10 * S, 350 * MS, 40 * S, 3, SIM_QUOTA_UP, SIM_WAIT_EXACT, 0, .9},
            {10 * S, 350 * MS, 40 * S, 3, SIM_QUOTA_DOWN, SIM_WAIT_NONE, 4, .95},
            {5 * S, 350 * MS, 60 * S, 10, SIM_QUOTA_EXACT, SIM_WAIT_NONE, 1, .95},
            {60 * S, 20 * MS, 300 * S, 10, SIM_QUOTA_UP, SIM_WAIT_NONE, 0, .95},
            {3600 * S, 350 * MS, 7200 * S, 1, SIM_QUOTA_UP, SIM_WAIT_NONE, 0, .98},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct sim_scenario sc = demo(cases[i].duration);
                unsigned long most = 0;
                double goodput = 0;
                sc.latency = cases[i].latency;
                sc.origin.period = cases[i].period;
                sc.origin.rate = cases[i].rate;
                sc.quota = cases[i].quota;
                sc.retry_after = cases[i].retry_after;
                for (sc.seed = 1; sc.seed <= 10; sc.seed++) {
                        struct sim_result r;
                        sim_run(&sc, &r);
                        assert_false(r.parked);
                        most = r.whole.refused > most ? r.whole.refused : most;
                        goodput += sim_goodput(&r.whole) / 10;
                        sim_result_done(&r);
                }
                if (most > cases[i].refused || goodput < cases[i].goodput)
                        fail_msg("row %zu: %lu refused, goodput %.3f", i, most, goodput);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(demo_serves_most),
            cmocka_unit_test(an_hour_is_steady),
            cmocka_unit_test(keeps_to_the_rate_once_found),
            cmocka_unit_test(follows_steps),
            cmocka_unit_test(understands_every_wait),
            cmocka_unit_test(a_wait_named_is_kept),
            cmocka_unit_test(other_hosts),
            cmocka_unit_test(a_host_without_limit_is_not_held_back),
            cmocka_unit_test(aimd_and_fixed_do_their_work),
            cmocka_unit_test(the_operators_bounds_hold),
            cmocka_unit_test(minds_quotas_before_any_refusal),
            cmocka_unit_test(never_parks),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
