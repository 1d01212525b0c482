#include "tests/unit/unit.h"

#include "admin/door.h"
#include "base/secret.h"

static void hosts(void **state)
{
        (void)state;
        static const struct {
                const char *host;
                bool safe;
        } cases[] = {
            {NULL, true},
            {"127.0.0.1", true},
            {"127.0.0.1:8081", true},
            {"192.0.2.7:80", true},
            {"localhost", true},
            {"LocalHost:8081", true},
            {"[::1]:8081", true},
            {"[::1]", true},
            {"[2001:db8::7]:1", true},
            {"", false},
            {":8081", false},
            {"evil.example", false},
            {"evil.example:8081", false},
            {"127.0.0.1.evil.example", false},
            {"localhost.evil.example:8081", false},
            {"localhostt", false},
            {"127.0.0.1:evil", false},
            {"127.0.0.1:808100", false},
            {"127.0.0.1 ", false},
            {"127.1", false}, /* not as addresses are written */
            {"2130706433", false},
            {"::1", false},
            {"[::1", false},
            {"[::1]x", false},
            {"[localhost]", false},
            {"[]", false},
            {"[::1]evil.example:1", false},
            {"user@127.0.0.1", false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                print_message("%s\n", cases[i].host ? cases[i].host : "none");
                assert_int_equal(door_host_is_safe(cases[i].host), cases[i].safe);
        }
}

static void tokens(void **state)
{
        (void)state;
        static const struct {
                const char *authorization;
                bool fits;
        } cases[] = {
            {"Bearer secret", true},
            {"bearer secret", true}, /* schemes know no case (RFC 9110, 11.1) */
            {"Bearer   secret ", true},
            {NULL, false},
            {"", false},
            {"Bearer", false},
            {"Bearer ", false},
            {"Bearersecret", false},
            {"Basic secret", false},
            {"secret", false},
            {"Bearer secre", false},
            {"Bearer secrett", false},
            {"Bearer secretsecret", false}, /* the token twice */
            {"Bearer Secret", false},
            {"Bearer xecret", false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                print_message("%s\n", cases[i].authorization ? cases[i].authorization : "none");
                assert_int_equal(door_token_fits(cases[i].authorization, "secret"), cases[i].fits);
        }
}

static void origins(void **state)
{
        (void)state;
        static const struct {
                const char *origin, *site;
                bool ours;
        } cases[] = {
            {NULL, NULL, true}, /* no browser */
            {NULL, "none", true},
            {NULL, "same-origin", true},
            {"http://127.0.0.1:8081", NULL, true},
            {"http://127.0.0.1:8081", "same-origin", true},
            {"http://127.0.0.1:8082", NULL, false},
            {"http://127.0.0.1", NULL, false},
            {"https://127.0.0.1:8081", NULL, false},
            {"http://evil.example", NULL, false},
            {"null", NULL, false},
            {"", NULL, false},
            {NULL, "cross-site", false},
            {NULL, "same-site", false},
            {NULL, "", false},
            {"http://127.0.0.1:8081", "cross-site", false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++)
                assert_int_equal(
                    door_origin_is_ours(cases[i].origin, cases[i].site, "127.0.0.1:8081"),
                    cases[i].ours);
        assert_false(door_origin_is_ours("http://127.0.0.1:8081", NULL, NULL));
        assert_true(door_origin_is_ours(NULL, NULL, NULL));
}

static void secrets(void **state)
{
        (void)state;
        assert_true(secret_equal(span_of("abc"), span_of("abc")));
        assert_false(secret_equal(span_of("abc"), span_of("abd")));
        assert_false(secret_equal(span_of("abc"), span_of("ab")));
        assert_false(secret_equal(span_of("abc"), span_of("abcabc")));
        assert_false(secret_equal(span_of("abc"), span_of("")));
        assert_false(secret_equal(span_of(""), span_of("a")));
        assert_false(secret_equal(span_of(""), (struct span){"\0", 1}));
        assert_true(secret_equal(span_of(""), span_of("")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(hosts),
            cmocka_unit_test(tokens),
            cmocka_unit_test(origins),
            cmocka_unit_test(secrets),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
