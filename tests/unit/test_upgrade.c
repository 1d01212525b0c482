#include "tests/unit/unit.h"

#include <stdlib.h>

#include "proxy/upgrade.h"

static void ports(void **state)
{
        (void)state;
        assert_int_equal(upgrade_port(80), 443);
        assert_int_equal(upgrade_port(443), 443);
        assert_int_equal(upgrade_port(8080), 8080);
}

static void locations(void **state)
{
        (void)state;
        static const struct {
                const char *host, *value, *seen; /* NULL: it stays as it is */
        } cases[] = {
            {"example.com", "https://example.com/a?b#c", "http://example.com/a?b#c"},
            {"example.com", "https://EXAMPLE.com:443/", "http://EXAMPLE.com/"},
            {"example.com", "https://example.com.:8443/", "http://example.com.:8443/"},
            {"example.com", "https://example.com:", "http://example.com:"},
            {"example.com", "https://example.com:80/", NULL},
            {"example.com", "https://www.example.com/", NULL},
            {"example.com", "https://example.com.evil/", NULL},
            {"example.com", "https://user@example.com/", NULL},
            {"example.com", "http://example.com/", NULL},
            {"example.com", "/a", NULL},
            {"example.com", "", NULL},
            {"::1", "https://[::1]:443/x", "http://[::1]/x"},
            {"::1", "https://[::1]:444/x", "http://[::1]:444/x"},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                print_message("%s\n", cases[i].value);
                char *seen = upgrade_location(span_of(cases[i].value), cases[i].host);
                if (cases[i].seen)
                        assert_string_equal(seen, cases[i].seen);
                else
                        assert_null(seen);
                free(seen);
        }
}

static void cookies(void **state)
{
        (void)state;
        static const struct {
                const char *value, *seen; /* NULL: it stays as it is */
        } cases[] = {
            {"a=b; Secure", "a=b"},
            {"a=b;secure; Path=/", "a=b; Path=/"},
            {"a=b; Path=/ ; SECURE ;HttpOnly", "a=b; Path=/ ;HttpOnly"},
            {"a=b; Secure=1; x", "a=b; x"},
            {"a=b; Secure; Secure", "a=b"},
            {"Secure; Secure", "Secure"},
            {"Secure", NULL},
            {"secure=1; Path=/", NULL},
            {"a=Secure; Path=/secure", NULL},
            {"a=b; Secured", NULL},
            {"a=b;;", NULL},
            {"a=b;; Secure;", "a=b;;"},
            {"", NULL},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                print_message("%s\n", cases[i].value);
                char *seen = upgrade_cookie(span_of(cases[i].value));
                if (cases[i].seen)
                        assert_string_equal(seen, cases[i].seen);
                else
                        assert_null(seen);
                free(seen);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(ports),
            cmocka_unit_test(locations),
            cmocka_unit_test(cookies),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
