#include "tests/unit/unit.h"

#include "base/fields.h"
#include "core/answer.h"
#include "core/classify.h"

#define NOW (1792567650 * USEC_PER_SEC) /* Wed, 21 Oct 2026 07:27:30 GMT */
#define UNNAMED USEC_MAX
#define SECONDS(n) ((usec_t)(n)*USEC_PER_SEC)

static const struct {
        const char *what;
        const char *headers[12]; /* name, value, … */
        const char *body;        /* NULL: it is not looked at */
        usec_t wait;             /* or UNNAMED */
        int status;
        enum answer_class class;
        unsigned unreadable;
        bool wants; /* the body */
} rows[] = {
    {"no word of a wait",
     {"Content-Type", "text/html"},
     NULL,
     UNNAMED,
     200,
     ANSWER_SUCCESS,
     0,
     false},
    {"Retry-After", {"Retry-After", "30"}, NULL, SECONDS(30), 429, ANSWER_THROTTLED, 0, false},
    {"Retry-After: 0", {"Retry-After", "0"}, NULL, 0, 503, ANSWER_OVERLOADED, 0, false},
    {"unreadable", {"Retry-After", "soon"}, NULL, UNNAMED, 429, ANSWER_THROTTLED, 1, false},
    {"unreadable, twice",
     {"Retry-After", "soon", "X-RateLimit-Remaining", "few"},
     NULL,
     UNNAMED,
     429,
     ANSWER_THROTTLED,
     2,
     false},
    /* a quota that is used up names a wait */
    {"until it is whole",
     {"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30"},
     NULL,
     SECONDS(30),
     429,
     ANSWER_THROTTLED,
     0,
     false},
    {"403 with none left",
     {"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1792567680"},
     NULL,
     SECONDS(30),
     403,
     ANSWER_THROTTLED,
     0,
     false},
    {"403 with some left",
     {"X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "1792567680"},
     NULL,
     UNNAMED,
     403,
     ANSWER_BLOCKED,
     0,
     false},
    {"none left, reset now",
     {"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0"},
     NULL,
     QUOTA_HOLD_MIN,
     429,
     ANSWER_THROTTLED,
     0,
     false},
    {"Retry-After is for the request",
     {"Retry-After", "5", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30"},
     NULL,
     SECONDS(5),
     429,
     ANSWER_THROTTLED,
     0,
     false},
    {"another limit than this one",
     {"X-RateLimit-Limit", "1/40", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30"},
     NULL,
     UNNAMED,
     429,
     ANSWER_THROTTLED,
     0,
     false},
    /* in the body */
    {"JSON",
     {"Content-Type", "application/json"},
     "{\"retry_after\": 1.5}",
     1500000,
     429,
     ANSWER_THROTTLED,
     0,
     true},
    {"JSON, in milliseconds",
     {"Content-Type", "application/json"},
     "{\"retry_after\": 1500}",
     1500000,
     429,
     ANSWER_THROTTLED,
     0,
     true},
    {"JSON without it",
     {"Content-Type", "application/json"},
     "{}",
     UNNAMED,
     429,
     ANSWER_THROTTLED,
     0,
     true},
    {"JSON, but the header wins",
     {"Content-Type", "application/json", "Retry-After", "3"},
     "{\"retry_after\": 1.5}",
     SECONDS(3),
     429,
     ANSWER_THROTTLED,
     0,
     false},
    {"not JSON",
     {"Content-Type", "text/plain"},
     "{\"retry_after\": 1.5}",
     UNNAMED,
     429,
     ANSWER_THROTTLED,
     0,
     false},
    {"not 429",
     {"Content-Type", "application/json"},
     "{\"retry_after\": 1.5}",
     UNNAMED,
     503,
     ANSWER_OVERLOADED,
     0,
     false},
    {"403, which the body explains",
     {"Content-Type", "application/json"},
     "{\"message\": \"secondary rate limit\"}",
     UNNAMED,
     403,
     ANSWER_THROTTLED,
     0,
     true},
    {"a challenge asks for no look",
     {"Content-Type", "application/json", "cf-mitigated", "challenge"},
     NULL,
     UNNAMED,
     429,
     ANSWER_BLOCKED,
     0,
     false},
};

static void judges(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct fields f = {0};
                struct answer a;
                for (size_t k = 0; k < COUNT_OF(rows[i].headers) && rows[i].headers[k]; k += 2)
                        fields_add(&f, span_of(rows[i].headers[k]),
                                   span_of(rows[i].headers[k + 1]));
                memset(&a, 0xa5, sizeof a); /* what was there before must not matter */
                unsigned unreadable = answer_read(&f, NOW, &a);
                struct classify_case c = {
                    .status = rows[i].status, .fields = &f, .wait_named = a.wait_named};
                bool wants = answer_wants_body(&c);
                c.has_body = true;
                c.body = span_of(rows[i].body);
                assert_false(answer_wants_body(&c));
                answer_judge(&a, &c);
                fields_done(&f);
                if (a.class != rows[i].class || (a.wait_named ? a.wait : UNNAMED) != rows[i].wait ||
                    unreadable != rows[i].unreadable || wants != rows[i].wants || a.by_address)
                        fail_msg("%s: %s, wait %llu, unreadable %u, wants %d", rows[i].what,
                                 answer_class_name(a.class), (unsigned long long)a.wait, unreadable,
                                 wants);
        }
}

static void a_rule_decides_whether_a_wait_matters(void **state)
{
        (void)state;
        static const int status[] = {429};
        struct classify_rule rule = {.status = status, .status_count = 1, .as = ANSWER_BLOCKED};
        struct fields f = {0};
        fields_add(&f, span_of("Content-Type"), span_of("application/json"));
        struct classify_case c = {.rules = &rule, .rule_count = 1, .status = 429, .fields = &f};
        assert_false(answer_wants_body(&c));
        rule.as = ANSWER_THROTTLED;
        assert_true(answer_wants_body(&c));
        fields_done(&f);
}

static void tells_the_address_apart(void **state)
{
        (void)state;
        struct fields f = {0};
        struct answer a;
        fields_add(&f, span_of("Server"), span_of("cloudflare"));
        answer_read(&f, NOW, &a);
        struct classify_case c = {.status = 429, .fields = &f};
        assert_true(answer_wants_body(&c));
        c.has_body = true;
        c.body = span_of("error code: 1015");
        answer_judge(&a, &c);
        assert_true(a.by_address);
        fields_done(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(judges),
            cmocka_unit_test(a_rule_decides_whether_a_wait_matters),
            cmocka_unit_test(tells_the_address_apart),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
