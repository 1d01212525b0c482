#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/public_suffix.h"

static const struct {
        const char *host, *domain;
} cases[] = {
    {"example.com", "example.com"},
    {"www.example.com", "example.com"},
    {"a.b.c.example.com", "example.com"},
    {"www.example.co.uk", "example.co.uk"},
    {"example.co.uk", "example.co.uk"},
    {"www.example.com.", "example.com"},
    {"ann.github.io", "ann.github.io"}, /* a private suffix: each name below it is its own */
    {"x.ann.github.io", "ann.github.io"},
    {"www.city.kawasaki.jp", "city.kawasaki.jp"}, /* an exception from *.kawasaki.jp */
    {"a.b.c.kawasaki.jp", "b.c.kawasaki.jp"},
    {"www.xn--55qx5d.cn", "www.xn--55qx5d.cn"},
    {"a.b.xn--55qx5d.cn", "b.xn--55qx5d.cn"},
    {"www.printer.local", "printer.local"}, /* in no list: the last label is the suffix */
    /* no domain: the host itself */
    {"com", "com"},
    {"co.uk", "co.uk"},
    {"github.io", "github.io"},
    {"localhost", "localhost"},
    {"localhost.", "localhost"},
    {"192.0.2.1", "192.0.2.1"},
    {"192.0.2.1.", "192.0.2.1"},
    {"127.1", "127.1"},
    {"1.0x7f", "1.0x7f"},
    {"a.0x", "a.0x"},
    {"2001:db8::1", "2001:db8::1"},
    {"", ""},
    {".", "."},
    {"..", "."},
};

static void finds_what_is_registered(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char *domain = public_suffix_domain(cases[i].host);
                if (strcmp(domain, cases[i].domain) != 0)
                        fail_msg("%s: %s", cases[i].host, domain);
                free(domain);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_is_registered)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
