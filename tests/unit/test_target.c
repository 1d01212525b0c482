#include "tests/unit/unit.h"

#include <string.h>

#include "proxy/target.h"

static const struct {
        const char *url, *scheme, *authority, *host;
        unsigned port;
        const char *path;
} good[] = {
    {"http://example.com/a?b", "http", "example.com", "example.com", 0, "/a?b"},
    {"HTTP://EXAMPLE.com:8080", "HTTP", "EXAMPLE.com:8080", "example.com", 8080, "/"},
    {"https://a.example:/", "https", "a.example:", "a.example", 0, "/"},
    {"http://h?x=/y", "http", "h", "h", 0, "/?x=/y"},
    {"http://h/a#b?c", "http", "h", "h", 0, "/a"},
    {"http://h#b", "http", "h", "h", 0, "/"},
    {"http://[2001:DB8::1]:81//x", "http", "[2001:DB8::1]:81", "2001:db8::1", 81, "//x"},
    {"http://[::1]", "http", "[::1]", "::1", 0, "/"},
    {"http://h:65535/", "http", "h:65535", "h", 65535, "/"},
    {"http://h:00080/", "http", "h:00080", "h", 80, "/"},
    {"http://Example.com.:81/", "http", "Example.com.:81", "example.com", 81, "/"},
    {"http://127.0.0.1./", "http", "127.0.0.1.", "127.0.0.1", 0, "/"},
    {"ftp://h/", "ftp", "h", "h", 0, "/"},
};

static void takes_urls_apart(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(good); i++) {
                struct target t;
                assert_null(target_read(&t, good[i].url));
                assert_true(span_equal(t.scheme, span_of(good[i].scheme)));
                assert_true(span_equal(t.authority, span_of(good[i].authority)));
                assert_string_equal(t.host, good[i].host);
                assert_int_equal(t.port, good[i].port);
                assert_string_equal(t.path, good[i].path);
                target_done(&t);
        }
}

static const struct {
        const char *url, *fault;
} bad[] = {
    {"", "The target is not a URL."},
    {"example.com/", "The target is not a URL."},
    {"http:/h/", "The target is not a URL."},
    {"http://", "The target names no host."},
    {"http:///x", "The target names no host."},
    {"http://./", "The target names no host."},
    {"http://:80/", "The target names no host."},
    {"http://[]/", "The target names no host."},
    {"http://a@h/", "A user name in the target is not allowed."},
    {"http://a:b@h/", "A user name in the target is not allowed."},
    {"http://h h/", "The host in the target is malformed."},
    {"http://h\\x/", "The host in the target is malformed."},
    {"http://\xc3\xa9/", "The host in the target is malformed."},
    {"http://[::1/", "The host in the target is malformed."},
    {"http://[::g]/", "The host in the target is malformed."},
    {"http://[::1]80/", "The host in the target is malformed."},
    {"http://::1/", "The target names no host."},
    {"http://h:0/", "The port in the target is not one from 1 to 65535."},
    {"http://h:65536/", "The port in the target is not one from 1 to 65535."},
    {"http://h:8a/", "The port in the target is not one from 1 to 65535."},
    {"http://h:000080/", "The port in the target is not one from 1 to 65535."},
};

static void says_what_is_wrong(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
                struct target t;
                const char *fault = target_read(&t, bad[i].url);
                if (!fault || strcmp(fault, bad[i].fault) != 0)
                        fail_msg("%s: %s", bad[i].url, fault ? fault : "no fault");
                target_done(&t);
        }
}

static void bounds_the_host(void **state)
{
        (void)state;
        char host[256];
        memset(host, 'x', sizeof host);
        struct target t = {0};
        assert_null(target_read_authority(&t, (struct span){host, 255}));
        target_done(&t);
        assert_non_null(target_read_authority(&t, (struct span){host, 256}));
        target_done(&t);
        assert_non_null(target_read_authority(&t, (struct span){NULL, 0}));
        target_done(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(takes_urls_apart),
            cmocka_unit_test(says_what_is_wrong),
            cmocka_unit_test(bounds_the_host),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
