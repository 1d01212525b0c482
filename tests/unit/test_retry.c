#include "tests/unit/unit.h"

#include "core/retry.h"

#define SECONDS(n) ((usec_t)(n)*USEC_PER_SEC)
#define UNTOUCHED ((usec_t)0xdead)

/* The defaults of the configuration. */
static struct retry_policy default_policy(void)
{
        return (struct retry_policy){
            .attempts = 4,
            .on = {.status = {429, 500, 502, 503, 504},
                   .status_count = 5,
                   .connect = true,
                   .timeout = true,
                   .reset = true},
            .methods = RETRY_SAFE_METHODS,
            .base = 500 * USEC_PER_MSEC,
            .max = SECONDS(30),
            .max_wait = SECONDS(120),
            .budget = 0.2,
        };
}

/* How a row's policy differs from the defaults. */
enum change {
        AS_DEFAULT,
        ALL_METHODS,
        ON_NOTHING,
        ON_420_ONLY,
        ON_404_AND_403,
        NO_BUDGET,
        ONE_ATTEMPT,
};

static struct retry_policy changed_policy(enum change change)
{
        struct retry_policy p = default_policy();
        switch (change) {
        case AS_DEFAULT:
                break;
        case ALL_METHODS:
                p.methods = RETRY_ALL_METHODS;
                break;
        case ON_NOTHING:
                p.on.status_count = 0;
                p.on.connect = p.on.timeout = p.on.reset = false;
                break;
        case ON_420_ONLY:
                p.on.status[0] = 420;
                p.on.status_count = 1;
                break;
        case ON_404_AND_403:
                p.on.status[0] = 404;
                p.on.status[1] = 403;
                p.on.status_count = 2;
                break;
        case NO_BUDGET:
                p.budget = 0;
                break;
        case ONE_ATTEMPT:
                p.attempts = 1;
                break;
        }
        return p;
}

#define NO RETRY_NO
#define AGAIN RETRY_AGAIN
#define BUDGET RETRY_WITH_BUDGET

static const struct {
        enum answer_class class;
        int status;
        enum retry_failure failure;
        const char *method;
        unsigned attempts;
        int wait; /* seconds; -1: none named */
        enum change change;
        enum retry_verdict verdict;
} verdicts[] = {
    /* throttled: refused before it was processed, so any method and no budget */
    {ANSWER_THROTTLED, 429, 0, "GET", 1, 1, 0, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "GET", 1, -1, 0, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "GET", 1, 0, 0, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "POST", 1, 1, 0, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "POST", 1, -1, 0, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "PROPFIND", 1, 1, 0, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "GET", 3, 1, 0, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "GET", 4, 1, 0, NO},
    {ANSWER_THROTTLED, 429, 0, "GET", 5, 1, 0, NO},
    {ANSWER_THROTTLED, 429, 0, "GET", 1, 1, NO_BUDGET, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "GET", 1, 1, ONE_ATTEMPT, NO},
    {ANSWER_THROTTLED, 429, 0, "GET", 1, 1, ON_NOTHING, NO},
    {ANSWER_THROTTLED, 420, 0, "GET", 1, -1, 0, AGAIN},
    {ANSWER_THROTTLED, 999, 0, "GET", 1, -1, 0, AGAIN},
    {ANSWER_THROTTLED, 403, 0, "POST", 1, 1, 0, AGAIN},
    {ANSWER_THROTTLED, 420, 0, "GET", 1, -1, ON_420_ONLY, AGAIN},
    {ANSWER_THROTTLED, 429, 0, "GET", 1, -1, ON_420_ONLY, NO},
    /* overloaded: a refusal if it names a wait, else as good as a failure */
    {ANSWER_OVERLOADED, 503, 0, "GET", 1, 1, 0, AGAIN},
    {ANSWER_OVERLOADED, 503, 0, "POST", 1, 1, 0, AGAIN},
    {ANSWER_OVERLOADED, 503, 0, "POST", 1, 0, 0, AGAIN},
    {ANSWER_OVERLOADED, 503, 0, "GET", 1, 1, NO_BUDGET, AGAIN},
    {ANSWER_OVERLOADED, 503, 0, "GET", 1, 1, ON_NOTHING, NO},
    {ANSWER_OVERLOADED, 503, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_OVERLOADED, 503, 0, "POST", 1, -1, 0, NO},
    {ANSWER_OVERLOADED, 503, 0, "POST", 1, -1, ALL_METHODS, BUDGET},
    {ANSWER_OVERLOADED, 503, 0, "GET", 1, -1, NO_BUDGET, NO},
    {ANSWER_OVERLOADED, 503, 0, "GET", 1, -1, ON_NOTHING, NO},
    {ANSWER_OVERLOADED, 503, 0, "GET", 4, -1, 0, NO},
    {ANSWER_OVERLOADED, 200, 0, "GET", 1, -1, 0, BUDGET}, /* by a rule of classify */
    /* failed, with an answer */
    {ANSWER_FAILED, 500, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 502, 0, "HEAD", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 504, 0, "OPTIONS", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 500, 0, "TRACE", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 500, 0, "PUT", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 500, 0, "DELETE", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 500, 0, "POST", 1, -1, 0, NO},
    {ANSWER_FAILED, 500, 0, "PATCH", 1, -1, 0, NO},
    {ANSWER_FAILED, 500, 0, "POST", 1, 1, 0, NO}, /* a named wait makes no refusal of a 500 */
    {ANSWER_FAILED, 500, 0, "POST", 1, -1, ALL_METHODS, BUDGET},
    {ANSWER_FAILED, 500, 0, "PATCH", 1, -1, ALL_METHODS, BUDGET},
    {ANSWER_FAILED, 500, 0, "PROPFIND", 1, -1, ALL_METHODS, NO},
    {ANSWER_FAILED, 500, 0, "get", 1, -1, ALL_METHODS, NO},
    {ANSWER_FAILED, 500, 0, "", 1, -1, ALL_METHODS, NO},
    {ANSWER_FAILED, 500, 0, "GET", 3, -1, 0, BUDGET},
    {ANSWER_FAILED, 500, 0, "GET", 4, -1, 0, NO},
    {ANSWER_FAILED, 500, 0, "GET", 1, -1, NO_BUDGET, NO},
    {ANSWER_FAILED, 500, 0, "GET", 1, -1, ON_NOTHING, NO},
    {ANSWER_FAILED, 500, 0, "GET", 1, -1, ON_420_ONLY, NO},
    {ANSWER_FAILED, 501, 0, "GET", 1, -1, 0, NO},
    {ANSWER_FAILED, 200, 0, "GET", 1, -1, 0, BUDGET}, /* by a rule of classify */
    {ANSWER_FAILED, 200, 0, "POST", 1, -1, 0, NO},
    {ANSWER_FAILED, 200, 0, "GET", 1, -1, ON_420_ONLY, NO},
    {ANSWER_FAILED, 520, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 521, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 522, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 523, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 524, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 524, 0, "POST", 1, -1, 0, NO},
    {ANSWER_FAILED, 525, 0, "GET", 1, -1, 0, NO},
    {ANSWER_FAILED, 520, 0, "GET", 1, -1, ON_NOTHING, NO},
    /* once */
    {ANSWER_FAILED, 408, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 408, 0, "GET", 2, -1, 0, NO},
    {ANSWER_FAILED, 408, 0, "POST", 1, -1, 0, NO},
    {ANSWER_FAILED, 425, 0, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 425, 0, "POST", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 425, 0, "GET", 2, -1, 0, NO},
    {ANSWER_FAILED, 425, 0, "GET", 1, -1, ONE_ATTEMPT, NO},
    {ANSWER_FAILED, 425, 0, "GET", 1, -1, NO_BUDGET, NO},
    /* failed, without an answer */
    {ANSWER_FAILED, 0, RETRY_FAILURE_CONNECT, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 0, RETRY_FAILURE_CONNECT, "POST", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 0, RETRY_FAILURE_CONNECT, "PROPFIND", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 0, RETRY_FAILURE_CONNECT, "GET", 4, -1, 0, NO},
    {ANSWER_FAILED, 0, RETRY_FAILURE_CONNECT, "GET", 1, -1, ON_NOTHING, NO},
    {ANSWER_FAILED, 0, RETRY_FAILURE_CONNECT, "GET", 1, -1, NO_BUDGET, NO},
    {ANSWER_FAILED, 0, RETRY_FAILURE_TIMEOUT, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 0, RETRY_FAILURE_TIMEOUT, "POST", 1, -1, 0, NO},
    {ANSWER_FAILED, 0, RETRY_FAILURE_TIMEOUT, "POST", 1, -1, ALL_METHODS, BUDGET},
    {ANSWER_FAILED, 0, RETRY_FAILURE_TIMEOUT, "GET", 1, -1, ON_NOTHING, NO},
    {ANSWER_FAILED, 0, RETRY_FAILURE_RESET, "GET", 1, -1, 0, BUDGET},
    {ANSWER_FAILED, 0, RETRY_FAILURE_RESET, "POST", 1, -1, 0, NO},
    {ANSWER_FAILED, 0, RETRY_FAILURE_RESET, "GET", 1, -1, ON_NOTHING, NO},
    {ANSWER_FAILED, 0, RETRY_FAILURE_FINAL, "GET", 1, -1, ALL_METHODS, NO},
    /* blocked */
    {ANSWER_BLOCKED, 403, 0, "GET", 1, -1, 0, NO},
    {ANSWER_BLOCKED, 403, 0, "GET", 1, 1, 0, NO},
    {ANSWER_BLOCKED, 429, 0, "GET", 1, 1, 0, NO},
    {ANSWER_BLOCKED, 403, 0, "GET", 1, -1, ON_404_AND_403, NO},
    /* success */
    {ANSWER_SUCCESS, 200, 0, "GET", 1, -1, 0, NO},
    {ANSWER_SUCCESS, 404, 0, "GET", 1, -1, 0, NO},
    {ANSWER_SUCCESS, 404, 0, "GET", 1, -1, ON_404_AND_403, BUDGET},
    {ANSWER_SUCCESS, 404, 0, "POST", 1, -1, ON_404_AND_403, NO},
    {ANSWER_SUCCESS, 404, 0, "GET", 1, -1, NO_BUDGET, NO},
    {ANSWER_SUCCESS, 503, 0, "GET", 1, -1, 0, NO}, /* by a rule of classify */
    {ANSWER_SUCCESS, 429, 0, "GET", 1, 1, 0, NO},
};

static void judges_each_case(void **state)
{
        (void)state;
        struct prng prng;
        prng_init(&prng, 1);
        for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
                struct retry_policy policy = changed_policy(verdicts[i].change);
                int wait = verdicts[i].wait;
                struct retry_case c = {
                    .policy = &policy,
                    .class = verdicts[i].class,
                    .status = verdicts[i].status,
                    .failure = verdicts[i].failure,
                    .method = span_of(verdicts[i].method),
                    .attempts = verdicts[i].attempts,
                    .wait_named = wait >= 0,
                    .wait = wait > 0 ? SECONDS(wait) : 0,
                    .time_left = SECONDS(300),
                };
                usec_t ret = UNTOUCHED;
                enum retry_verdict verdict = retry_decide(&c, &prng, &ret);
                if (verdict != verdicts[i].verdict || (verdict == RETRY_NO) != (ret == UNTOUCHED))
                        fail_msg("row %zu, status %d: %d, wait %llu", i, c.status, (int)verdict,
                                 (unsigned long long)ret);
        }
}

/* With a pool. */
static void leaves_where_it_is_blocked(void **state)
{
        static const struct {
                const char *method;
                enum retry_failure failure; /* CONNECT: it was not the host that answered */
                unsigned attempts;
                enum retry_verdict verdict;
        } cases[] = {
            {"GET", RETRY_FAILURE_NONE, 1, AGAIN},     {"GET", RETRY_FAILURE_NONE, 4, NO},
            {"POST", RETRY_FAILURE_NONE, 1, NO},       {"GET", RETRY_FAILURE_CONNECT, 1, AGAIN},
            {"POST", RETRY_FAILURE_CONNECT, 3, AGAIN}, {"CONNECT", RETRY_FAILURE_CONNECT, 1, AGAIN},
            {"CONNECT", RETRY_FAILURE_CONNECT, 4, NO},
        };
        (void)state;
        struct prng prng;
        prng_init(&prng, 1);
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct retry_policy policy = default_policy();
                struct retry_case c = {
                    .policy = &policy,
                    .class = ANSWER_BLOCKED,
                    .failure = cases[i].failure,
                    .method = span_of(cases[i].method),
                    .attempts = cases[i].attempts,
                    .time_left = SECONDS(300),
                    .elsewhere = true,
                };
                usec_t wait = UNTOUCHED;
                assert_int_equal(retry_decide(&c, &prng, &wait), cases[i].verdict);
                assert_int_equal(wait, cases[i].verdict == NO ? UNTOUCHED : 0);
        }
}

/* Bounds within which the waits of 2,000 draws lie, and that they come near to; 0, 0: RETRY_NO. */
static const struct {
        const char *what;
        int64_t named; /* µs; -1: none */
        unsigned attempts;
        usec_t time_left;
        usec_t base, max; /* 0: the default */
        usec_t least, most;
} waits[] = {
    {"own, first", -1, 1, SECONDS(300), 0, 0, 50000, 500000},
    {"own, second", -1, 2, SECONDS(300), 0, 0, 50000, 1000000},
    {"own, third", -1, 3, SECONDS(300), 0, 0, 50000, 2000000},
    {"own, twentieth: at the limit", -1, 20, SECONDS(300), 0, 0, 50000, SECONDS(30)},
    {"own, ever so many attempts", -1, 99999, SECONDS(300), 0, 0, 50000, SECONDS(30)},
    {"own, base above max", -1, 1, SECONDS(300), SECONDS(60), 0, 50000, SECONDS(30)},
    {"own, short base", -1, 1, SECONDS(300), 10000, 0, 50000, 50000},
    {"own, no end", -1, 99, USEC_MAX, SECONDS(1), USEC_MAX / 4, 50000, USEC_MAX / 4},
    {"own, no time left", -1, 1, 50000, 0, 0, 0, 0},
    {"a wait of zero is none", 0, 1, SECONDS(300), 0, 0, 50000, 500000},
    {"named", SECONDS(10), 1, SECONDS(300), 0, 0, SECONDS(10), SECONDS(11)},
    {"named, at a later attempt", SECONDS(10), 3, SECONDS(300), 0, 0, SECONDS(10), SECONDS(11)},
    {"named, jitter bounded", SECONDS(100), 1, SECONDS(300), 0, 0, SECONDS(100), SECONDS(105)},
    {"named, as long as allowed", SECONDS(120), 1, SECONDS(300), 0, 0, SECONDS(120), SECONDS(125)},
    {"named, longer", SECONDS(120) + 1, 1, SECONDS(300), 0, 0, 0, 0},
    {"named, without end", INT64_MAX, 1, USEC_MAX, 0, 0, 0, 0},
    {"named, jitter must not miss the deadline", SECONDS(10), 1, SECONDS(10) + 100000, 0, 0,
     SECONDS(10), SECONDS(10) + 99999},
    {"named, just in time", SECONDS(10), 1, SECONDS(10) + 1, 0, 0, SECONDS(10), SECONDS(10)},
    {"named, just too late", SECONDS(10), 1, SECONDS(10), 0, 0, 0, 0},
    {"named, deadline passed", SECONDS(10), 1, 0, 0, 0, 0, 0},
    {"named, very short", 3, 1, SECONDS(300), 0, 0, 3, 3},
};

static void names_the_wait(void **state)
{
        (void)state;
        struct prng prng;
        prng_init(&prng, 2);
        for (size_t i = 0; i < COUNT_OF(waits); i++) {
                struct retry_policy policy = default_policy();
                policy.attempts = 100000;
                policy.base = waits[i].base ? waits[i].base : policy.base;
                policy.max = waits[i].max ? waits[i].max : policy.max;
                struct retry_case c = {
                    .policy = &policy,
                    .class = ANSWER_THROTTLED,
                    .status = 429,
                    .method = span_of("GET"),
                    .attempts = waits[i].attempts,
                    .wait_named = waits[i].named >= 0,
                    .wait = waits[i].named >= 0 ? (usec_t)waits[i].named : 0,
                    .time_left = waits[i].time_left,
                };
                usec_t shortest = USEC_MAX, longest = 0, wait = UNTOUCHED;
                if (waits[i].most == 0) {
                        assert_int_equal(retry_decide(&c, &prng, &wait), RETRY_NO);
                        assert_int_equal(wait, UNTOUCHED);
                        continue;
                }
                for (unsigned n = 0; n < 2000; n++) {
                        assert_int_equal(retry_decide(&c, &prng, &wait), RETRY_AGAIN);
                        shortest = usec_min(shortest, wait);
                        longest = usec_max(longest, wait);
                }
                usec_t slack = (waits[i].most - waits[i].least) / 50;
                if (shortest < waits[i].least || longest > waits[i].most ||
                    shortest > waits[i].least + slack || longest < waits[i].most - slack)
                        fail_msg("%s: %llu to %llu", waits[i].what, (unsigned long long)shortest,
                                 (unsigned long long)longest);
        }
}

static unsigned withdraw_all(struct retry_budget *b)
{
        unsigned n = 0;
        while (retry_budget_withdraw(b))
                n++;
        return n;
}

static void budget_starts_with_three(void **state)
{
        (void)state;
        struct retry_budget b;
        retry_budget_init(&b);
        assert_int_equal(withdraw_all(&b), 3);
        assert_false(retry_budget_withdraw(&b));
}

static void budget_is_a_share_of_requests(void **state)
{
        (void)state;
        static const struct {
                double share;
                unsigned requests, retries;
        } rows[] = {
            {0.2, 4, 0},
            {0.2, 5, 1},
            {0.2, 100, 20},
            {0.1, 9, 0},
            {0.1, 10, 1},
            {1, 7, 7},
            {0.05, 100, 5},
            {0, 1000, 0},
            {0.3, 10, 3},
            /* no more than the cap is kept */
            {0.2, 100000, 40},
            {0.01, 100000, 10},
            {1, 100000, 200},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct retry_budget b;
                retry_budget_init(&b);
                withdraw_all(&b);
                for (unsigned n = 0; n < rows[i].requests; n++)
                        retry_budget_deposit(&b, rows[i].share);
                assert_int_equal(withdraw_all(&b), rows[i].retries);
        }
}

/* A host that fails everything gets no more than the share on top, after the first three. */
static void budget_holds_in_an_outage(void **state)
{
        (void)state;
        struct retry_budget b;
        unsigned retries = 0;
        retry_budget_init(&b);
        for (unsigned n = 0; n < 10000; n++) {
                retry_budget_deposit(&b, 0.2);
                retries += withdraw_all(&b);
        }
        assert_in_range(retries, 2002, 2003);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(judges_each_case),
            cmocka_unit_test(leaves_where_it_is_blocked),
            cmocka_unit_test(names_the_wait),
            cmocka_unit_test(budget_starts_with_three),
            cmocka_unit_test(budget_is_a_share_of_requests),
            cmocka_unit_test(budget_holds_in_an_outage),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
