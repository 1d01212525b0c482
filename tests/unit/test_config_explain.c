#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/config_text.h"

/* The lines of this file are counted below. */
static const char file[] = "defaults:\n"
                           "  limit:\n"
                           "    ceiling: 20\n"
                           "  retry: {attempts: 2, on: [503]}\n"
                           "rules:\n"
                           "  - name: api\n"
                           "    hosts: [a.example, b.example]\n"
                           "    limit: {ceiling: 3}\n"
                           "    retry:\n"
                           "      \"on\":\n"
                           "        - 429\n"
                           "  - hosts: \"*\"\n"
                           "    limit: {floor: 9}\n"
                           "    scope: [domain, \"path:1\"]\n"
                           "    egress: p\n"
                           "pools:\n"
                           "  p:\n"
                           "    endpoints: [direct, \"http://u:p@h:1\"]\n"
                           "    quarantine: {after: 3}\n";

static const struct {
        const char *host, *key, *value;
        struct policy_place place;
} cases[] = {
    {"a.example", "name", "api", {6, 11}},
    {"a.example", "hosts", "[\"a.example\", \"b.example\"]", {7, 12}},
    {"a.example", "scope", "[host]", {0, 0}},
    {"a.example", "limit.ceiling", "3", {8, 22}},
    {"a.example", "limit.start", "3", {8, 22}}, /* cut to the ceiling, and so from there */
    {"a.example", "limit.floor", "1", {0, 0}},
    {"a.example", "retry.attempts", "2", {4, 21}},
    {"a.example", "retry.on", "[429]", {11, 9}},
    {"a.example", "https", "tunnel", {0, 0}},
    {"c.example", "name", "\"*\"", {12, 12}}, /* by its first host */
    {"c.example", "hosts", "[\"*\"]", {12, 12}},
    {"c.example", "scope", "[domain, \"path:1\"]", {14, 12}},
    {"c.example", "limit.ceiling", "20", {3, 14}},
    {"c.example", "limit.floor", "9", {13, 20}},
    {"c.example", "limit.start", "9", {13, 20}}, /* raised to the floor */
    {"c.example", "retry.on", "[503]", {4, 28}},
    {"c.example", "egress", "p", {15, 13}},
    {"c.example", "pool.endpoints", "[\"direct\", \"http://u:***@h:1\"]", {18, 16}},
    {"c.example", "pool.quarantine.after", "3", {19, 25}},
    {"c.example", "pool.choose", "least_used", {0, 0}},
};

struct wanted {
        size_t i;
        unsigned found;
};

static void compare(void *arg, const char *key, const char *value, struct policy_place place)
{
        struct wanted *w = arg;
        if (strcmp(key, cases[w->i].key) != 0)
                return;
        w->found++;
        assert_string_equal(value, cases[w->i].value);
        if (place.line != cases[w->i].place.line || place.column != cases[w->i].place.column)
                fail_msg("%s of %s: %u:%u", key, cases[w->i].host, place.line, place.column);
}

static void says_where_each_value_is_from(void **state)
{
        (void)state;
        struct config *c = load_good(file);
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct wanted w = {i, 0};
                config_explain(c, config_policy(c, span_of(cases[i].host)), compare, &w);
                assert_int_equal(w.found, 1);
        }
        config_unref(c);
}

static void count_named(void *arg, const char *key, const char *value, struct policy_place place)
{
        (void)value;
        assert_int_equal(place.line, 0);
        assert_string_not_equal(key, "name");
        assert_string_not_equal(key, "hosts");
        assert_null(strstr(key, "defaults."));
        ++*(unsigned *)arg;
}

static void defaults_are_built_in(void **state)
{
        (void)state;
        struct config *c = load_good("workers: 2\n");
        unsigned count = 0;
        config_explain(c, &c->defaults, count_named, &count);
        assert_in_range(count, 20, 200);
        config_unref(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(says_where_each_value_is_from),
            cmocka_unit_test(defaults_are_built_in),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
