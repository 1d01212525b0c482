#include "tests/unit/unit.h"

#include "base/fields.h"
#include "core/classify.h"

static const struct {
        int status;
        const char *name, *value; /* a header; NULL: none */
        bool wait_named;
        enum answer_class class;
} cases[] = {
    {429, NULL, NULL, false, ANSWER_THROTTLED},
    {429, NULL, NULL, true, ANSWER_THROTTLED},
    {430, NULL, NULL, false, ANSWER_THROTTLED},
    {420, NULL, NULL, false, ANSWER_THROTTLED},
    {509, NULL, NULL, false, ANSWER_THROTTLED},
    {529, NULL, NULL, false, ANSWER_THROTTLED},
    {999, NULL, NULL, false, ANSWER_THROTTLED},
    {503, NULL, NULL, false, ANSWER_OVERLOADED},
    {503, NULL, NULL, true, ANSWER_OVERLOADED},
    {403, NULL, NULL, true, ANSWER_THROTTLED},
    {403, NULL, NULL, false, ANSWER_BLOCKED},
    {401, NULL, NULL, false, ANSWER_BLOCKED},
    {401, NULL, NULL, true, ANSWER_BLOCKED},
    {407, NULL, NULL, false, ANSWER_BLOCKED},
    /* challenges, whatever the status */
    {403, "cf-mitigated", "challenge", false, ANSWER_BLOCKED},
    {403, "cf-mitigated", "challenge", true, ANSWER_BLOCKED},
    {503, "CF-Mitigated", "Challenge", true, ANSWER_BLOCKED},
    {429, "cf-mitigated", "challenge", true, ANSWER_BLOCKED},
    {429, "x-vercel-mitigated", "challenge", false, ANSWER_BLOCKED},
    {202, "x-amzn-waf-action", "challenge", false, ANSWER_BLOCKED},
    {405, "x-amzn-waf-action", " captcha ", false, ANSWER_BLOCKED},
    {403, "x-datadome", "1", false, ANSWER_BLOCKED},
    {403, "x-datadome", "1", true, ANSWER_BLOCKED},
    {403, "x-datadome", "protected", true, ANSWER_THROTTLED},
    {429, "x-datadome", "1", false, ANSWER_THROTTLED},
    {200, "x-datadome", "1", false, ANSWER_SUCCESS},
    {200, "cf-mitigated", "", false, ANSWER_SUCCESS},
    {200, "x-amzn-waf-action", "allow", false, ANSWER_SUCCESS},
    {200, "x-cf-mitigated", "challenge", false, ANSWER_SUCCESS},
    /* failures */
    {500, NULL, NULL, false, ANSWER_FAILED},
    {501, NULL, NULL, false, ANSWER_FAILED},
    {502, NULL, NULL, false, ANSWER_FAILED},
    {504, NULL, NULL, true, ANSWER_FAILED},
    {520, NULL, NULL, false, ANSWER_FAILED},
    {524, NULL, NULL, false, ANSWER_FAILED},
    {599, NULL, NULL, false, ANSWER_FAILED},
    {408, NULL, NULL, false, ANSWER_FAILED},
    {425, NULL, NULL, false, ANSWER_FAILED},
    {0, NULL, NULL, false, ANSWER_FAILED},
    /* the rest */
    {200, NULL, NULL, false, ANSWER_SUCCESS},
    {200, NULL, NULL, true, ANSWER_SUCCESS},
    {202, NULL, NULL, false, ANSWER_SUCCESS},
    {204, NULL, NULL, false, ANSWER_SUCCESS},
    {301, NULL, NULL, true, ANSWER_SUCCESS},
    {304, NULL, NULL, false, ANSWER_SUCCESS},
    {400, NULL, NULL, false, ANSWER_SUCCESS},
    {404, NULL, NULL, false, ANSWER_SUCCESS},
    {405, NULL, NULL, false, ANSWER_SUCCESS},
    {413, NULL, NULL, true, ANSWER_SUCCESS},
    {451, NULL, NULL, false, ANSWER_SUCCESS},
    {600, NULL, NULL, false, ANSWER_SUCCESS},
};

static void knows_each_answer(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct fields f = {0};
                fields_add(&f, span_of("Content-Type"), span_of("text/html"));
                if (cases[i].name)
                        fields_add(&f, span_of(cases[i].name), span_of(cases[i].value));
                enum answer_class class = classify_answer(&(struct classify_case){
                    .status = cases[i].status, .fields = &f, .wait_named = cases[i].wait_named});
                fields_done(&f);
                if (class != cases[i].class)
                        fail_msg("row %zu, status %d: %d", i, cases[i].status, (int)class);
        }
}

static void needs_no_fields(void **state)
{
        (void)state;
        struct classify_case c = {.status = 429};
        assert_int_equal(classify_answer(&c), ANSWER_THROTTLED);
}

static void looks_at_each_of_several(void **state)
{
        (void)state;
        struct fields f = {0};
        fields_add(&f, span_of("x-amzn-waf-action"), span_of("count"));
        fields_add(&f, span_of("x-amzn-waf-action"), span_of("captcha"));
        struct classify_case c = {.status = 405, .fields = &f};
        assert_int_equal(classify_answer(&c), ANSWER_BLOCKED);
        fields_done(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(knows_each_answer),
            cmocka_unit_test(needs_no_fields),
            cmocka_unit_test(looks_at_each_of_several),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
