#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/endpoint_url.h"

static const struct {
        const char *text;
        enum egress_kind kind;
        const char *host;
        unsigned port;
        const char *user, *password, *name;
} good[] = {
    {"http://proxy:8000", EGRESS_HTTP, "proxy", 8000, NULL, NULL, "proxy:8000"},
    {"HTTPS://Proxy.Example:1/", EGRESS_HTTPS, "proxy.example", 1, NULL, NULL, "proxy.example:1"},
    {"socks5://192.0.2.1:65535", EGRESS_SOCKS5, "192.0.2.1", 65535, NULL, NULL, "192.0.2.1:65535"},
    {"socks5h://[2001:DB8::1]:80", EGRESS_SOCKS5H, "2001:db8::1", 80, NULL, NULL,
     "[2001:db8::1]:80"},
    {"http://u:p@h:1", EGRESS_HTTP, "h", 1, "u", "p", "h:1"},
    {"http://u@h:1", EGRESS_HTTP, "h", 1, "u", "", "h:1"},
    {"http://u:@h:1", EGRESS_HTTP, "h", 1, "u", "", "h:1"},
    {"http://:p@h:1", EGRESS_HTTP, "h", 1, "", "p", "h:1"},
    {"socks5://u%3av:p%40q%2Fr@h:1", EGRESS_SOCKS5, "h", 1, "u:v", "p@q/r", "h:1"},
    {"http://u:p@ss/w?rd#@h:1", EGRESS_HTTP, "h", 1, "u", "p@ss/w?rd#", "h:1"},
    {"http://u:a:b%zz%4@h:1", EGRESS_HTTP, "h", 1, "u", "a:b%zz%4", "h:1"},
    {"http://u:${T_SECRET}@h:1", EGRESS_HTTP, "h", 1, "u", "p@:/%41#", "h:1"},
    {"http://${T_USER}-s%31:x${T_SECRET}y@h:1", EGRESS_HTTP, "h", 1, "name-s1", "xp@:/%41#y",
     "h:1"},
    {"http://${T_USER}:${T_EMPTY}@h:1", EGRESS_HTTP, "h", 1, "name", "", "h:1"},
    {"http://u:$T_SECRET$%24{A@h:1", EGRESS_HTTP, "h", 1, "u", "$T_SECRET$${A", "h:1"},
    {"http://${T_HOST}:80", EGRESS_HTTP, "inside.example", 80, NULL, NULL, NULL},
    {"http://x.${T_HOST}:${T_PORT}", EGRESS_HTTP, "x.inside.example", 81, NULL, NULL, NULL},
    {"http://u:p@${T_PLACE}", EGRESS_HTTP, "both.example", 82, "u", "p", NULL},
    {"http://${T_PLACE6}", EGRESS_HTTP, "::1", 83, NULL, NULL, NULL},
    {"${T_URL}", EGRESS_SOCKS5H, "whole.example", 84, "u", "A@", NULL},
    {"${T_SCHEME}://u:p@h:1", EGRESS_HTTPS, "h", 1, "u", "p", NULL},
};

static void set_environment(void)
{
        setenv("T_SECRET", "p@:/%41#", 1);
        setenv("T_USER", "name", 1);
        setenv("T_EMPTY", "", 1);
        setenv("T_HOST", "Inside.example", 1);
        setenv("T_PORT", "81", 1);
        setenv("T_PLACE", "both.example:82", 1);
        setenv("T_PLACE6", "[::1]:83", 1);
        setenv("T_URL", "socks5h://u:%41%40@whole.example:84", 1);
        setenv("T_SCHEME", "https", 1);
        setenv("T_BAD", "nothing like a SECRET url", 1);
        setenv("T_NESTED", "http://u:${T_SECRET}@h:1", 1);
        setenv("T_LINES", "a\r\nb", 1);
        unsetenv("T_NONE");
}

static void assert_text(const char *a, const char *b)
{
        if (a && b)
                assert_string_equal(a, b);
        else
                assert_ptr_equal(a, b);
}

static void reads_urls(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(good); i++) {
                struct endpoint_url u;
                print_message("%s\n", good[i].text);
                char *fault = endpoint_url_read(span_of(good[i].text), &u);
                assert_text(fault, NULL);
                assert_int_equal(u.kind, good[i].kind);
                assert_int_equal(u.port, good[i].port);
                assert_text(u.host, good[i].host);
                assert_text(u.user, good[i].user);
                assert_text(u.password, good[i].password);
                assert_text(u.name, good[i].name);
                endpoint_url_done(&u);
        }
}

#define SUCH "\"http://proxy.example:8000\""
#define NO_URL "expected the URL of a proxy, such as " SUCH ", or {source: ADDRESS}, or direct"
#define NO_VARIABLE "a variable is written ${NAME}; ${ that begins none is written %24{"
#define NO_SCHEME "expected http, https, socks5 or socks5h before the ://"
#define NO_HOST "the host is missing, as in " SUCH
#define BAD_HOST "the host is no name and no address"
#define NO_PORT "the port is missing, as in " SUCH
#define BAD_PORT "expected a port from 1 to 65535 behind the host"
#define MORE "a proxy's URL ends with its port"
#define UNSENDABLE "user name or password cannot be sent"

static const struct {
        const char *text, *fault;
} bad[] = {
    {"", NO_URL},
    {"proxy:8000", NO_URL},
    {"u:p@proxy:8000", NO_URL},
    {"http:/proxy:8000", NO_URL},
    {"://h:1", NO_SCHEME},
    {"socks4://h:1", NO_SCHEME},
    {"ftp://h:1", NO_SCHEME},
    {"http ://h:1", NO_SCHEME},
    {"http://", NO_HOST},
    {"http://:80", NO_HOST},
    {"http://u:p@", NO_HOST},
    {"http://@h:1", "there is nothing before the @"},
    {"http://h", NO_PORT},
    {"http://h/", NO_PORT},
    {"http://[::1]", NO_PORT},
    {"http://h:", BAD_PORT},
    {"http://h:0", BAD_PORT},
    {"http://h:65536", BAD_PORT},
    {"http://h:80a", BAD_PORT},
    {"http://h:1:2", BAD_PORT},
    {"http://::1:80", NO_HOST},
    {"http://[::1]80", "expected a port behind the host, as in " SUCH},
    {"http://[::1:80", BAD_HOST},
    {"http://[h]:80", BAD_HOST},
    {"http://a b:1", BAD_HOST},
    {"http://.a:1", BAD_HOST},
    {"http://a..b:1", BAD_HOST},
    {"http://h\xc3\xa9:1", BAD_HOST},
    {"http://h%41:1", BAD_HOST},
    {"http://h:1/x", MORE},
    {"http://h:1?x", MORE},
    {"http://h:1#", MORE},
    {"http://u%3av:p@h:1", "a user name may not hold a colon"},
    {"http://u:a%00b@h:1", UNSENDABLE},
    {"http://u%0d%0a:p@h:1", UNSENDABLE},
    {"http://u:${T_LINES}@h:1", UNSENDABLE},
    {"http://u:${T_NONE}@h:1", "the environment has no variable T_NONE"},
    {"http://${T_NONE}@h:1", "the environment has no variable T_NONE"},
    {"http://${T_NONE}", "the environment has no variable T_NONE"},
    {"${T_NONE}", "the environment has no variable T_NONE"},
    {"http://${T_HOST}", BAD_PORT},
    {"http://u:p@${T_SECRET}:1", BAD_HOST},
    {"${T_BAD}", NO_URL},
    {"${T_EMPTY}", NO_URL},
    {"${T_NESTED}", "there is a variable within a variable"},
    {"${T_EMPTY", NO_URL},
    {"http://u:${T_SECRET@h:1", NO_VARIABLE},
    {"http://u:${}@h:1", NO_VARIABLE},
    {"http://${1A}:p@h:1", NO_VARIABLE},
    {"http://${T-HOST}:1", NO_VARIABLE},
    {"http://h:${", NO_VARIABLE},
};

static void says_what_is_wrong(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
                struct endpoint_url u = {0};
                print_message("%s\n", bad[i].text);
                char *fault = endpoint_url_read(span_of(bad[i].text), &u);
                assert_text(fault, bad[i].fault);
                assert_null(u.host);
                free(fault);
        }
}

static void bounds_lengths(void **state)
{
        (void)state;
        char text[400];
        struct endpoint_url u;
        for (int len = 252; len < 258; len++) {
                snprintf(text, sizeof text, "http://%0*d:1", len, 0);
                char *fault = endpoint_url_read(span_of(text), &u);
                assert_text(fault, len > 253 ? BAD_HOST : NULL);
                free(fault);
                if (len <= 253)
                        endpoint_url_done(&u);
                snprintf(text, sizeof text, "socks5://u:%0*d@h:1", len, 0);
                fault = endpoint_url_read(span_of(text), &u);
                assert_text(fault, len > 255 ? UNSENDABLE : NULL);
                free(fault);
                if (len <= 255)
                        endpoint_url_done(&u);
        }
}

static void hides_secrets(void **state)
{
        (void)state;
        static const struct {
                const char *text, *shown;
        } cases[] = {
            {"http://h:1", "http://h:1"},
            {"http://u:p@h:1/", "http://u:***@h:1/"},
            {"http://u:p@q/r@h:1", "http://u:***@h:1"},
            {"http://u:${T_SECRET}@h:1", "http://u:${T_SECRET}@h:1"},
            {"http://u:${A}${B}@h:1", "http://u:${A}${B}@h:1"},
            {"http://u:x${T_SECRET}@h:1", "http://u:***@h:1"},
            {"http://u-${SESSION}:p@h:1", "http://u-${SESSION}:***@h:1"},
            {"http://key@h:1", "http://***@h:1"},
            {"http://key:@h:1", "http://***:@h:1"},
            {"http://${KEY}@h:1", "http://${KEY}@h:1"},
            {"http://${KEY}:@h:1", "http://${KEY}:@h:1"},
            {"http://:p@h:1", "http://:***@h:1"},
            {"u:p@h:1", "u:***@h:1"},
            {"${URL}", "${URL}"},
            {"", ""},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char *shown = endpoint_url_shown(span_of(cases[i].text));
                assert_string_equal(shown, cases[i].shown);
                free(shown);
        }
}

static void knows_probes(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                bool is;
        } cases[] = {
            {"http://h", true},         {"https://h/", true},    {"HTTP://h:80/a?b@c", true},
            {"https://[::1]:1/", true}, {"http://", false},      {"http:///x", false},
            {"http://:80/", false},     {"http://u@h/", false},  {"http://u:p@h/", false},
            {"ftp://h/", false},        {"http://h/a b", false}, {"h", false},
            {"http://h/\r\nx", false},  {"httpx://h", false},    {"http://?x", false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                print_message("%s\n", cases[i].text);
                assert_int_equal(endpoint_url_is_probe(span_of(cases[i].text)), cases[i].is);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_urls),     cmocka_unit_test(says_what_is_wrong),
            cmocka_unit_test(bounds_lengths), cmocka_unit_test(hides_secrets),
            cmocka_unit_test(knows_probes),
        };
        set_environment();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
