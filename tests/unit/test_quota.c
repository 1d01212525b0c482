#include "tests/unit/unit.h"

#include <stdlib.h>

#include "base/fields.h"
#include "core/quota.h"

#define NOW (1792567650 * USEC_PER_SEC) /* Wed, 21 Oct 2026 07:27:30 GMT */
#define SECONDS(n) ((usec_t)(n)*USEC_PER_SEC)
#define UNTOLD USEC_MAX

struct answer {
        const char *headers[16]; /* name, value, … */
};

static void read_answer(const struct answer *a, struct quota *ret)
{
        struct fields f = {0};
        for (size_t i = 0; i < COUNT_OF(a->headers) && a->headers[i]; i += 2)
                fields_add(&f, span_of(a->headers[i]), span_of(a->headers[i + 1]));
        memset(ret, 0xa5, sizeof *ret); /* what was there before must not matter */
        quota_read(&f, NOW, ret);
        fields_done(&f);
}

static const struct {
        struct answer answer;
        struct quota_window windows[4]; /* limit, remaining, reset, length */
        size_t count;
        unsigned unreadable;
        bool shared;
} rows[] = {
    /* each family */
    {{{"Content-Type", "text/html"}}, {{0}}, 0, 0, false},
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "50", "X-RateLimit-Reset", "30"}},
     {{60, 50, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"x-ratelimit-limit", "60", "x-ratelimit-remaining", "50", "x-ratelimit-reset", "30"}},
     {{60, 50, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset", "1792567651.25",
       "X-RateLimit-Reset-After", "1.2"}},
     {{5, 4, 1200000, 0}},
     1,
     0,
     false},
    {{{"X-Rate-Limit-Limit", "60", "X-Rate-Limit-Remaining", "50", "X-Rate-Limit-Reset",
       "1792567680"}},
     {{60, 50, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"X-Rate-Limit-Limit", "60", "X-Rate-Limit-Remaining", "50", "X-Rate-Limit-Reset-After",
       "7"}},
     {{60, 50, SECONDS(7), 0}},
     1,
     0,
     false},
    {{{"RateLimit-Limit", "100", "RateLimit-Remaining", "50", "RateLimit-Reset", "30"}},
     {{100, 50, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"RateLimit-Limit", "100, 100;w=60", "RateLimit-Remaining", "50", "RateLimit-Reset", "30"}},
     {{100, 50, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"RateLimit", "limit=100, remaining=50, reset=30"}},
     {{100, 50, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"RateLimit", "limit=100;remaining=50;reset=30"}}, {{100, 50, SECONDS(30), 0}}, 1, 0, false},
    {{{"RateLimit", "limit=100, remaining=50, reset=30", "RateLimit-Policy", "10;w=1, 100;w=60"}},
     {{100, 50, SECONDS(30), SECONDS(60)}},
     1,
     0,
     false},
    {{{"RateLimit", "limit=100, remaining=50, reset=30", "RateLimit-Policy", "1000;w=3600"}},
     {{100, 50, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"RateLimit", "\"default\";r=50;t=30", "RateLimit-Policy",
       "\"burst\";q=100;w=60,\"daily\";q=1000;w=86400"}},
     {{0, 50, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"RateLimit", "\"burst\";r=50;t=30, \"daily\"; r=999; t=80000", "RateLimit-Policy",
       "\"burst\";q=100;w=60,\"daily\";q=1000;w=86400"}},
     {{100, 50, SECONDS(30), SECONDS(60)}, {1000, 999, SECONDS(80000), SECONDS(86400)}},
     2,
     0,
     false},
    {{{"RateLimit", "\"burst\";r=50;t=30", "RateLimit", "\"daily\";r=999", "RateLimit-Policy",
       "\"daily\";q=1000;w=86400", "RateLimit-Policy", "\"burst\";q=100;w=60;qu=\"requests\""}},
     {{100, 50, SECONDS(30), SECONDS(60)}, {1000, 999, UNTOLD, SECONDS(86400)}},
     2,
     0,
     false},
    {{{"RateLimit", "\"a,b;c\\\"d\";r=5;t=3", "RateLimit-Policy",
       "\"x\";q=7;w=9, \"a,b;c\\\"d\";q=6;w=4"}},
     {{6, 5, SECONDS(3), SECONDS(4)}},
     1,
     0,
     false},
    {{{"RateLimit", "\"default\";r=50;t=30", "RateLimit-Policy", "\"other\";q=100;w=60"}},
     {{100, 50, SECONDS(30), SECONDS(60)}},
     1,
     0,
     false},
    {{{"RateLimit-Policy", "\"burst\";q=100;w=60"}}, {{0}}, 0, 0, false},
    {{{"X-App-Rate-Limit", "20:1,100:120", "X-App-Rate-Limit-Count", "3:1,7:120"}},
     {{20, 17, UNTOLD, SECONDS(1)}, {100, 93, UNTOLD, SECONDS(120)}},
     2,
     0,
     false},
    {{{"X-App-Rate-Limit", "20:1,100:120", "X-App-Rate-Limit-Count", "101:120, 20:1"}},
     {{20, 0, UNTOLD, SECONDS(1)}, {100, 0, UNTOLD, SECONDS(120)}},
     2,
     0,
     false},
    {{{"X-App-Rate-Limit", "20:1,100:120", "X-App-Rate-Limit-Count", "3:1"}},
     {{20, 17, UNTOLD, SECONDS(1)}},
     1,
     1,
     false},
    {{{"X-App-Rate-Limit", "20,100:120:3", "X-App-Rate-Limit-Count", "3:1"}}, {{0}}, 0, 2, false},
    {{{"X-App-Rate-Limit", "20:1"}}, {{0}}, 0, 0, false},
    {{{"X-Shopify-Shop-Api-Call-Limit", "32/40"}}, {{40, 8, UNTOLD, 0}}, 1, 0, false},
    {{{"X-Shopify-Shop-Api-Call-Limit", "41/40"}}, {{40, 0, UNTOLD, 0}}, 1, 0, false},
    {{{"X-Shopify-Shop-Api-Call-Limit", "32"}}, {{0}}, 0, 1, false},
    {{{"X-Shopify-Shop-Api-Call-Limit", "32/40/2"}}, {{0}}, 0, 1, false},
    {{{"anthropic-ratelimit-requests-limit", "1000", "anthropic-ratelimit-requests-remaining",
       "999", "anthropic-ratelimit-requests-reset", "2026-10-21T07:28:00Z"}},
     {{1000, 999, SECONDS(30), 0}},
     1,
     0,
     false},
    {{{"x-ratelimit-limit-requests", "60", "x-ratelimit-remaining-requests", "59",
       "x-ratelimit-reset-requests", "6m0s"}},
     {{60, 59, SECONDS(360), 0}},
     1,
     0,
     false},
    {{{"X-RateLimit-Remaining", "50"}}, {{0, 50, UNTOLD, 0}}, 1, 0, false},
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Reset", "30"}}, {{0}}, 0, 0, false},
    {{{"X-RateLimit-Remaining", "5", "RateLimit-Remaining", "6"}},
     {{0, 5, UNTOLD, 0}, {0, 6, UNTOLD, 0}},
     2,
     0,
     false},
    /* merged and odd counts */
    {{{"X-RateLimit-Remaining", "991, 98"}}, {{0, 98, UNTOLD, 0}}, 1, 0, false},
    {{{"X-RateLimit-Remaining", "991", "X-RateLimit-Remaining", "98", "X-RateLimit-Limit",
       "1000, 100", "X-RateLimit-Reset", "10, 60"}},
     {{100, 98, SECONDS(60), 0}},
     1,
     0,
     false},
    {{{"X-RateLimit-Remaining", "12.0"}}, {{0, 12, UNTOLD, 0}}, 1, 0, false},
    {{{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0"}}, {{0, 0, 0, 0}}, 1, 0, false},
    {{{"X-RateLimit-Limit", "1/40", "X-RateLimit-Remaining", "39", "X-RateLimit-Reset", "30"}},
     {{0}},
     0,
     0,
     false},
    /* whose fault */
    {{{"X-RateLimit-Scope", "shared"}}, {{0}}, 0, 0, true},
    {{{"X-RateLimit-Scope", "Shared ", "X-RateLimit-Remaining", "0"}},
     {{0, 0, UNTOLD, 0}},
     1,
     0,
     true},
    {{{"X-Rate-Limit-Type", "service"}}, {{0}}, 0, 0, true},
    {{{"X-RateLimit-Scope", "user", "X-Rate-Limit-Type", "method"}}, {{0}}, 0, 0, false},
    /* not to be believed */
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "61", "X-RateLimit-Reset", "30"}},
     {{0}},
     0,
     1,
     false},
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "60", "X-RateLimit-Reset", "86400"}},
     {{60, 60, SECONDS(86400), 0}},
     1,
     0,
     false},
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "60", "X-RateLimit-Reset", "86401"}},
     {{0}},
     0,
     1,
     false},
    {{{"X-RateLimit-Limit", "many", "X-RateLimit-Remaining", "60"}}, {{0}}, 0, 1, false},
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "some"}}, {{0}}, 0, 1, false},
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "-1"}}, {{0}}, 0, 1, false},
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", ""}}, {{0}}, 0, 1, false},
    {{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "6", "X-RateLimit-Reset", "soon"}},
     {{0}},
     0,
     1,
     false},
    {{{"RateLimit", "limit=100, remaining=x, reset=30"}}, {{0}}, 0, 1, false},
    {{{"RateLimit", "limit=100, reset=30"}}, {{0}}, 0, 1, false},
    {{{"RateLimit", "\"default\";r=;t=30"}}, {{0}}, 0, 1, false},
    {{{"RateLimit", "\"a\";r=1;t=-3, \"b\";r=2;t=4"}}, {{0, 2, SECONDS(4), 0}}, 1, 1, false},
    {{{"RateLimit", "\"unclosed;r=1;t=3"}}, {{0}}, 0, 1, false},
    {{{"RateLimit", ""}}, {{0}}, 0, 1, false},
    {{{"RateLimit", "\"burst\";r=101;t=30", "RateLimit-Policy", "\"burst\";q=100;w=60"}},
     {{0}},
     0,
     1,
     false},
    /* a bad family does not spoil a good one */
    {{{"X-RateLimit-Remaining", "soon", "RateLimit-Remaining", "6"}},
     {{0, 6, UNTOLD, 0}},
     1,
     1,
     false},
};

static void reads_each_family(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct quota q;
                read_answer(&rows[i].answer, &q);
                bool good = q.count == rows[i].count && q.unreadable == rows[i].unreadable &&
                            q.shared == rows[i].shared;
                for (size_t w = 0; good && w < q.count; w++)
                        good = memcmp(&q.windows[w], &rows[i].windows[w], sizeof q.windows[w]) == 0;
                if (!good)
                        fail_msg("row %zu (%s: %s): %zu windows, %u unreadable, the first %llu, "
                                 "%llu, %llu, %llu",
                                 i, rows[i].answer.headers[0], rows[i].answer.headers[1], q.count,
                                 q.unreadable, (unsigned long long)q.windows[0].limit,
                                 (unsigned long long)q.windows[0].remaining,
                                 (unsigned long long)q.windows[0].reset,
                                 (unsigned long long)q.windows[0].length);
        }
}

#define UNREADABLE ((usec_t)0xbad)

static const struct {
        const char *text, *date; /* date: of the answer, NULL: none */
        usec_t reset;
} resets[] = {
    /* seconds from now */
    {"0", NULL, 0},
    {"30", NULL, SECONDS(30)},
    {"0.503", NULL, 503000},
    {"86400", NULL, SECONDS(86400)},
    {"999999999", NULL, UNREADABLE}, /* seconds, and too many */
    /* epoch seconds */
    {"1000000000", NULL, 0},
    {"1792567680", NULL, SECONDS(30)},
    {"1792567680.5", NULL, 30500000},
    {"1792567650", NULL, 0},
    {"1792567649", NULL, 0},
    {"1792654050", NULL, SECONDS(86400)},
    {"1792654051", NULL, UNREADABLE},
    {"99999999999", NULL, UNREADABLE},
    /* epoch milliseconds */
    {"100000000000", NULL, 0},
    {"1792567680000", NULL, SECONDS(30)},
    {"1792567680250.5", NULL, 30250500},
    {"99999999999999", NULL, UNREADABLE},
    /* epoch microseconds */
    {"100000000000000", NULL, 0},
    {"1792567680000000", NULL, SECONDS(30)},
    {"99999999999999999", NULL, UNREADABLE},
    /* epoch nanoseconds */
    {"100000000000000000", NULL, 0},
    {"1792567680000000000", NULL, SECONDS(30)},
    {"99999999999999999999999", NULL, UNREADABLE},
    /* the rest */
    {"Wed, 21 Oct 2026 07:28:00 GMT", NULL, SECONDS(30)},
    {"Wed, 21 Oct 2026 07:28:00 GMT, 10", NULL, SECONDS(30)},
    {"2026-10-21T07:28:00Z", NULL, SECONDS(30)},
    {"2026-10-21T09:28:00.5+02:00", NULL, 30500000},
    {"2026-10-20T07:28:00Z", NULL, 0},
    {"6m0s", NULL, SECONDS(360)},
    {"1ms", NULL, 1000},
    {"24h0m1s", NULL, UNREADABLE},
    {"", NULL, UNREADABLE},
    {"-1", NULL, UNREADABLE},
    {"1e3", NULL, UNREADABLE},
    {"tomorrow", NULL, UNREADABLE},
    /* by the clock of the host */
    {"1792567680", "Wed, 21 Oct 2026 07:27:40 GMT", SECONDS(20)},
    {"2026-10-21T07:28:00Z", "Wed, 21 Oct 2026 07:27:40 GMT", SECONDS(20)},
    {"30", "Wed, 21 Oct 2026 07:27:40 GMT", SECONDS(30)},
};

static void reads_each_reset(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(resets); i++) {
                struct answer a = {{"X-RateLimit-Remaining", "1", "X-RateLimit-Reset",
                                    resets[i].text, resets[i].date ? "Date" : NULL,
                                    resets[i].date}};
                struct quota q;
                read_answer(&a, &q);
                usec_t reset = q.count == 1 && q.unreadable == 0   ? q.windows[0].reset
                               : q.count == 0 && q.unreadable == 1 ? UNREADABLE
                                                                   : UNTOLD;
                if (reset != resets[i].reset)
                        fail_msg("\"%s\": %llu µs", resets[i].text, (unsigned long long)reset);
        }
}

static void keeps_no_more_windows_than_fit(void **state)
{
        (void)state;
        struct fields f = {0};
        struct quota q;
        for (unsigned i = 0; i < 3 * QUOTA_MAX_WINDOWS; i++)
                fields_add(&f, span_of("RateLimit"), span_of("\"a\";r=1;t=1"));
        quota_read(&f, NOW, &q);
        assert_int_equal(q.count, QUOTA_MAX_WINDOWS);
        assert_int_equal(q.unreadable, 0);
        fields_done(&f);
}

static const struct {
        struct answer answer;
        usec_t hold;
} holds[] = {
    {{{NULL}}, 0},
    {{{"X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "30"}}, 0},
    {{{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30"}}, SECONDS(30)},
    {{{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0"}}, QUOTA_HOLD_MIN},
    {{{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1792567649"}}, QUOTA_HOLD_MIN},
    {{{"X-RateLimit-Remaining", "0"}}, QUOTA_HOLD_MIN},
    {{{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30", "RateLimit-Remaining", "0",
       "RateLimit-Reset", "20"}},
     SECONDS(30)},
    {{{"X-App-Rate-Limit", "20:1,100:120", "X-App-Rate-Limit-Count", "3:1,100:120"}}, SECONDS(120)},
};

static void names_the_hold(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(holds); i++) {
                struct quota q;
                read_answer(&holds[i].answer, &q);
                assert_int_equal(quota_hold(&q), holds[i].hold);
        }
}

/* Lists are compared each with each: no host may keep us busy with long ones. */
static void looks_at_so_many_members(void **state)
{
        (void)state;
        static const struct {
                const char *name, *member, *other_name, *other;
        } cases[] = {
            {"RateLimit", "\"a\";t=1,", "RateLimit-Policy", "\"b\";q=1;w=1,"},
            {"RateLimit", "\"a\";r=1;t=1,", "RateLimit-Policy", "\"b\";q=1;w=1,"},
            {"X-App-Rate-Limit", "20:1,", "X-App-Rate-Limit-Count", "3:2,"},
        };
        const size_t count = 20000;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct fields f = {0};
                struct quota q;
                const char *texts[] = {cases[i].member, cases[i].other};
                const char *names[] = {cases[i].name, cases[i].other_name};
                for (size_t k = 0; k < 2; k++) {
                        size_t len = strlen(texts[k]);
                        char *all = malloc(count * len);
                        assert_non_null(all);
                        for (size_t n = 0; n < count; n++)
                                memcpy(all + n * len, texts[k], len);
                        fields_add(&f, span_of(names[k]), (struct span){all, count * len});
                        free(all);
                }
                quota_read(&f, NOW, &q);
                fields_done(&f);
                assert_true(q.count <= QUOTA_MAX_WINDOWS);
                assert_true(q.unreadable <= 32);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_each_family),
            cmocka_unit_test(reads_each_reset),
            cmocka_unit_test(keeps_no_more_windows_than_fit),
            cmocka_unit_test(names_the_hold),
            cmocka_unit_test(looks_at_so_many_members),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
