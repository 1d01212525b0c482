#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "core/scope_key.h"

static const struct {
        const char *parts[4];
        const char *host;
        unsigned port;
        const char *rule, *client;
        const char *key;
} cases[] = {
    {{"host"}, "example.com", 80, "default", "192.0.2.1", "example.com:80"},
    {{"host"}, "example.com", 8443, "default", "192.0.2.1", "example.com:8443"},
    {{"host"}, "192.0.2.7", 80, "default", "192.0.2.1", "192.0.2.7:80"},
    {{"host"}, "2001:db8::1", 80, "default", "192.0.2.1", "[2001:db8::1]:80"},
    {{"rule"}, "example.com", 80, "api", "192.0.2.1", "rule=api"},
    {{"client"}, "example.com", 80, "api", "192.0.2.1", "client=192.0.2.1"},
    {{"client"}, "example.com", 80, "api", "2001:db8::2", "client=2001:db8::2"},
    {{"port"}, "example.com", 80, "api", "192.0.2.1", "port=80"},
    {{"rule", "client"}, "a.example", 80, "api", "192.0.2.1", "rule=api client=192.0.2.1"},
    {{"client", "rule"}, "a.example", 80, "api", "192.0.2.1", "client=192.0.2.1 rule=api"},
    {{"host", "client"}, "a.example", 80, "api", "ann", "a.example:80 client=ann"},
    {{"rule", "port"}, "a.example", 65535, "api", "ann", "rule=api port=65535"},
    {{"host", "port", "rule", "client"}, "h", 1, "r", "c", "h:1 port=1 rule=r client=c"},
    {{NULL}, "a.example", 80, "api", "ann", "*"},
    /* one name cannot pass for two parts, nor hide control characters in a log */
    {{"client"}, "h", 1, "r", "a rule=b", "client=a%20rule%3Db"},
    {{"client"}, "h", 1, "r", "a%20b", "client=a%2520b"},
    {{"client"}, "h", 1, "r", "a\n\x7f\xc3\xa9", "client=a%0A%7F%C3%A9"},
    {{"rule", "client"}, "h", 1, "", "", "rule= client="},
    {{"host"}, "rule=api", 1, "r", "c", "rule%3Dapi:1"},
};

static void composes_keys(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct scope_part parts[4];
                size_t count = 0;
                for (; count < 4 && cases[i].parts[count]; count++)
                        assert_int_equal(
                            scope_part_parse(span_of(cases[i].parts[count]), &parts[count]), 0);
                struct scope_subject subject = {
                    .host = span_of(cases[i].host),
                    .port = cases[i].port,
                    .rule = span_of(cases[i].rule),
                    .client = span_of(cases[i].client),
                };
                char *key = scope_key_new(parts, count, &subject);
                assert_string_equal(key, cases[i].key);
                free(key);
        }
}

/* Every byte three times as long, in every part: what the room is measured for. */
static void has_room_for_the_longest(void **state)
{
        (void)state;
        char spaces[300];
        memset(spaces, ' ', sizeof spaces);
        struct span s = {spaces, sizeof spaces};
        struct scope_subject subject = {.host = s, .port = 4294967295u, .rule = s, .client = s};
        struct scope_part parts[] = {{SCOPE_HOST}, {SCOPE_PORT}, {SCOPE_RULE}, {SCOPE_CLIENT}};
        char *key = scope_key_new(parts, 4, &subject);
        assert_int_equal(strlen(key),
                         3 * 900 + strlen(":4294967295 port=4294967295 rule= client="));
        free(key);
}

static void refuses_unknown_parts(void **state)
{
        (void)state;
        static const char *const bad[] = {"",      "hosts",    "hos",     "Host",
                                          "host ", "header:x", "endpoint"};
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
                struct scope_part part = {SCOPE_CLIENT};
                assert_int_equal(scope_part_parse(span_of(bad[i]), &part), -EINVAL);
                assert_int_equal(part.kind, SCOPE_CLIENT);
        }
        struct scope_part part;
        assert_int_equal(scope_part_parse((struct span){NULL, 0}, &part), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(composes_keys),
            cmocka_unit_test(has_room_for_the_longest),
            cmocka_unit_test(refuses_unknown_parts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
