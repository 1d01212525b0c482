#include "tests/unit/unit.h"

#include "base/fields.h"
#include "core/classify.h"

/* What is known of one answer; the body is there, even where it is empty, unless it is NULL. */
struct known {
        int status;
        const char *headers[8]; /* name, value, … */
        bool wait_named;
        const char *body;
};

static void begin(const struct known *k, struct fields *f, struct classify_case *c)
{
        *f = (struct fields){0};
        for (size_t i = 0; i < COUNT_OF(k->headers) && k->headers[i]; i += 2)
                fields_add(f, span_of(k->headers[i]), span_of(k->headers[i + 1]));
        *c = (struct classify_case){
            .status = k->status,
            .fields = f,
            .wait_named = k->wait_named,
            .has_body = k->body != NULL,
            .body = span_of(k->body),
        };
}

static const struct {
        struct known known;
        enum answer_class class;
} cases[] = {
    {{.status = 429}, ANSWER_THROTTLED},
    {{.status = 429, .wait_named = true}, ANSWER_THROTTLED},
    {{.status = 430}, ANSWER_THROTTLED},
    {{.status = 420}, ANSWER_THROTTLED},
    {{.status = 509}, ANSWER_THROTTLED},
    {{.status = 529}, ANSWER_THROTTLED},
    {{.status = 999}, ANSWER_THROTTLED},
    {{.status = 503}, ANSWER_OVERLOADED},
    {{.status = 503, .wait_named = true}, ANSWER_OVERLOADED},
    {{.status = 401}, ANSWER_BLOCKED},
    {{.status = 401, .wait_named = true}, ANSWER_BLOCKED},
    {{.status = 407}, ANSWER_BLOCKED},
    /* 403 is what its body says, where it names no wait */
    {{.status = 403}, ANSWER_BLOCKED},
    {{.status = 403, .wait_named = true}, ANSWER_THROTTLED},
    {{.status = 403,
      .headers = {"Content-Type", "application/json"},
      .body = "{\"message\": \"API rate limit exceeded\"}"},
     ANSWER_THROTTLED},
    {{.status = 403,
      .headers = {"Content-Type", "application/json; charset=utf-8"},
      .body = "You have exceeded a "
              "secondary rate limit"},
     ANSWER_THROTTLED},
    {{.status = 403, .headers = {"Content-Type", "application/problem+json"}, .body = "RATE LIMIT"},
     ANSWER_THROTTLED},
    {{.status = 403, .headers = {"Content-Type", "text/plain"}, .body = "Rate Limit reached"},
     ANSWER_THROTTLED},
    {{.status = 403, .headers = {"Content-Type", "TEXT/HTML"}, .body = "<h1>rate limited</h1>"},
     ANSWER_THROTTLED},
    {{.status = 403, .headers = {"Content-Type", "text/plain"}, .body = "forbidden"},
     ANSWER_BLOCKED},
    {{.status = 403, .headers = {"Content-Type", "text/plain"}, .body = ""}, ANSWER_BLOCKED},
    {{.status = 403, .headers = {"Content-Type", "application/octet-stream"}, .body = "rate limit"},
     ANSWER_BLOCKED},
    {{.status = 403, .body = "rate limit"}, ANSWER_BLOCKED},
    {{.status = 401, .headers = {"Content-Type", "text/plain"}, .body = "rate limit"},
     ANSWER_BLOCKED},
    {{.status = 200, .headers = {"Content-Type", "text/plain"}, .body = "rate limit"},
     ANSWER_SUCCESS},
    /* challenges, whatever the status */
    {{.status = 403, .headers = {"cf-mitigated", "challenge"}}, ANSWER_BLOCKED},
    {{.status = 403, .headers = {"cf-mitigated", "challenge"}, .wait_named = true}, ANSWER_BLOCKED},
    {{.status = 403,
      .headers = {"cf-mitigated", "challenge", "Content-Type", "text/html"},
      .body = "rate limit"},
     ANSWER_BLOCKED},
    {{.status = 503, .headers = {"CF-Mitigated", "Challenge"}, .wait_named = true}, ANSWER_BLOCKED},
    {{.status = 429, .headers = {"cf-mitigated", "challenge"}, .wait_named = true}, ANSWER_BLOCKED},
    {{.status = 429, .headers = {"x-vercel-mitigated", "challenge"}}, ANSWER_BLOCKED},
    {{.status = 202, .headers = {"x-amzn-waf-action", "challenge"}}, ANSWER_BLOCKED},
    {{.status = 405, .headers = {"x-amzn-waf-action", " captcha "}}, ANSWER_BLOCKED},
    {{.status = 405, .headers = {"x-amzn-waf-action", "count", "x-amzn-waf-action", "captcha"}},
     ANSWER_BLOCKED},
    {{.status = 403, .headers = {"x-datadome", "1"}}, ANSWER_BLOCKED},
    {{.status = 403, .headers = {"x-datadome", "1"}, .wait_named = true}, ANSWER_BLOCKED},
    {{.status = 403, .headers = {"x-datadome", "protected"}, .wait_named = true}, ANSWER_THROTTLED},
    {{.status = 403, .headers = {"x-datadome", "protected"}}, ANSWER_BLOCKED},
    {{.status = 429, .headers = {"x-datadome", "1"}}, ANSWER_THROTTLED},
    {{.status = 200, .headers = {"x-datadome", "1"}}, ANSWER_SUCCESS},
    {{.status = 200, .headers = {"cf-mitigated", ""}}, ANSWER_SUCCESS},
    {{.status = 200, .headers = {"x-amzn-waf-action", "allow"}}, ANSWER_SUCCESS},
    {{.status = 200, .headers = {"x-cf-mitigated", "challenge"}}, ANSWER_SUCCESS},
    /* failures */
    {{.status = 500}, ANSWER_FAILED},
    {{.status = 501}, ANSWER_FAILED},
    {{.status = 502}, ANSWER_FAILED},
    {{.status = 504, .wait_named = true}, ANSWER_FAILED},
    {{.status = 520}, ANSWER_FAILED},
    {{.status = 521}, ANSWER_FAILED},
    {{.status = 522}, ANSWER_FAILED},
    {{.status = 523}, ANSWER_FAILED},
    {{.status = 524}, ANSWER_FAILED},
    {{.status = 599}, ANSWER_FAILED},
    {{.status = 408}, ANSWER_FAILED},
    {{.status = 425}, ANSWER_FAILED},
    /* the rest */
    {{.status = 200}, ANSWER_SUCCESS},
    {{.status = 200, .wait_named = true}, ANSWER_SUCCESS},
    {{.status = 202}, ANSWER_SUCCESS},
    {{.status = 204}, ANSWER_SUCCESS},
    {{.status = 301, .wait_named = true}, ANSWER_SUCCESS},
    {{.status = 304}, ANSWER_SUCCESS},
    {{.status = 400}, ANSWER_SUCCESS},
    {{.status = 404}, ANSWER_SUCCESS},
    {{.status = 405}, ANSWER_SUCCESS},
    {{.status = 413, .wait_named = true}, ANSWER_SUCCESS},
    {{.status = 451}, ANSWER_SUCCESS},
    {{.status = 600}, ANSWER_SUCCESS},
};

static void knows_each_answer(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct fields f;
                struct classify_case c;
                begin(&cases[i].known, &f, &c);
                enum answer_class class = classify_answer(&c);
                fields_done(&f);
                if (class != cases[i].class)
                        fail_msg("row %zu, status %d: %d", i, c.status, (int)class);
        }
}

static void goes_by_address(void **state)
{
        (void)state;
        static const struct {
                struct known known;
                bool yes;
        } rows[] = {
            {{.status = 429, .headers = {"Server", "cloudflare"}, .body = "error code: 1015"},
             true},
            {{.status = 429,
              .headers = {"server", "Cloudflare", "Content-Type", "text/html"},
              .body = "<title>Access denied | Error 1015</title>"},
             true},
            {{.status = 429, .headers = {"Server", "cloudflare"}, .body = "error code: 1020"},
             false},
            {{.status = 429, .headers = {"Server", "cloudflare"}, .body = ""}, false},
            {{.status = 429, .headers = {"Server", "nginx"}, .body = "error code: 1015"}, false},
            {{.status = 429, .body = "error code: 1015"}, false},
            {{.status = 403, .headers = {"Server", "cloudflare"}, .body = "error code: 1015"},
             false},
            {{.status = 429,
              .headers = {"Server", "cloudflare", "cf-mitigated", "challenge"},
              .body = "1015"},
             false},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct fields f;
                struct classify_case c;
                begin(&rows[i].known, &f, &c);
                if (classify_is_by_address(&c) != rows[i].yes)
                        fail_msg("row %zu", i);
                if (rows[i].yes)
                        assert_int_equal(classify_answer(&c), ANSWER_THROTTLED);
                fields_done(&f);
        }
}

/* --- rules --- */

static const int forbidden[] = {403, 429};
static const int fine[] = {200};

static const struct classify_rule rules[] = {
    {.status = forbidden,
     .status_count = 2,
     .name = {"server", 6},
     .value = {"cloudflare", 10},
     .body = {"slow down", 9},
     .as = ANSWER_THROTTLED},
    {.status = fine, .status_count = 1, .body = {"captcha", 7}, .as = ANSWER_BLOCKED},
    {.name = {"x-busy", 6}, .as = ANSWER_OVERLOADED},
    {.name = {"x-served-by", 11}, .value = {"cache-", 6}, .as = ANSWER_SUCCESS},
    {.body = {"try later", 9}, .as = ANSWER_FAILED},
};

static const struct {
        struct known known;
        enum answer_class class;
        bool wants; /* without the body */
} ruled[] = {
    {{.status = 403, .headers = {"Server", "cloudflare"}, .body = "please Slow Down"},
     ANSWER_THROTTLED,
     true},
    {{.status = 429, .headers = {"Server", "my-CloudFlare/1"}, .body = "slow down"},
     ANSWER_THROTTLED,
     true},
    {{.status = 403, .headers = {"Server", "cloudflare"}, .body = "no"}, ANSWER_BLOCKED, true},
    {{.status = 403, .headers = {"Server", "nginx"}, .body = "slow down"},
     ANSWER_BLOCKED,
     true}, /* the last rule */
    {{.status = 404, .headers = {"Server", "cloudflare"}, .body = "slow down"},
     ANSWER_SUCCESS,
     true},
    {{.status = 200, .body = "<h1>Captcha</h1>"}, ANSWER_BLOCKED, true},
    {{.status = 201, .body = "<h1>Captcha</h1>"}, ANSWER_SUCCESS, true},
    {{.status = 200, .headers = {"X-Busy", ""}, .body = ""},
     ANSWER_OVERLOADED,
     true}, /* the captcha comes first */
    {{.status = 200, .headers = {"X-Busy", ""}, .body = "captcha"}, ANSWER_BLOCKED, true},
    {{.status = 500, .headers = {"X-Busy", "yes"}, .body = ""}, ANSWER_OVERLOADED, false},
    {{.status = 503, .headers = {"X-Served-By", "a, cache-7"}, .body = ""}, ANSWER_SUCCESS, false},
    {{.status = 503, .headers = {"X-Served-By", "a", "X-Served-By", "Cache-7"}, .body = ""},
     ANSWER_SUCCESS,
     false},
    {{.status = 503, .headers = {"X-Served-By", "a"}, .body = ""}, ANSWER_OVERLOADED, true},
    {{.status = 503, .headers = {"X-Served-By", "a"}, .body = "Try later."}, ANSWER_FAILED, true},
    /* before the challenges and all else that is built in */
    {{.status = 403, .headers = {"cf-mitigated", "challenge", "X-Busy", "1"}, .body = ""},
     ANSWER_OVERLOADED,
     false},
    {{.status = 403, .headers = {"X-Served-By", "cache-"}, .wait_named = true, .body = ""},
     ANSWER_SUCCESS,
     false},
};

static void rules_come_first(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(ruled); i++) {
                struct fields f;
                struct classify_case c;
                begin(&ruled[i].known, &f, &c);
                c.rules = rules;
                c.rule_count = COUNT_OF(rules);
                enum answer_class class = classify_answer(&c);
                assert_false(classify_wants_body(&c));
                c.has_body = false;
                c.body = (struct span){NULL, 0};
                bool wants = classify_wants_body(&c);
                fields_done(&f);
                if (class != ruled[i].class || wants != ruled[i].wants)
                        fail_msg("row %zu: %d, wants %d", i, (int)class, wants);
        }
}

/* --- the body --- */

static const struct {
        struct known known;
        bool wants;
} unread[] = {
    {{.status = 403, .headers = {"Content-Type", "text/html"}}, true},
    {{.status = 403, .headers = {"Content-Type", "application/json"}}, true},
    {{.status = 403, .headers = {"Content-Type", "application/vnd.api+json;v=1"}}, true},
    {{.status = 403, .headers = {"Content-Type", "text/html"}, .wait_named = true}, false},
    {{.status = 403, .headers = {"Content-Type", "text/html", "cf-mitigated", "challenge"}}, false},
    {{.status = 403, .headers = {"Content-Type", "image/png"}}, false},
    {{.status = 403}, false},
    {{.status = 401, .headers = {"Content-Type", "text/html"}}, false},
    {{.status = 200, .headers = {"Content-Type", "text/html"}}, false},
    {{.status = 429, .headers = {"Content-Type", "text/html"}}, false},
    {{.status = 429, .headers = {"Server", "cloudflare"}}, true},
    {{.status = 429, .headers = {"Server", "cloudflare", "cf-mitigated", "challenge"}}, false},
    {{.status = 503, .headers = {"Server", "cloudflare", "Content-Type", "text/html"}}, false},
};

static void wants_the_body_where_it_matters(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(unread); i++) {
                struct fields f;
                struct classify_case c;
                begin(&unread[i].known, &f, &c);
                bool wants = classify_wants_body(&c);
                c.has_body = true;
                assert_false(classify_wants_body(&c));
                fields_done(&f);
                if (wants != unread[i].wants)
                        fail_msg("row %zu", i);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(knows_each_answer),
            cmocka_unit_test(goes_by_address),
            cmocka_unit_test(rules_come_first),
            cmocka_unit_test(wants_the_body_where_it_matters),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
