#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "proxy/request_scope.h"
#include "runtime/digest.h"

/* Of FIPS 180-2, by their beginnings. */
static void digests(void **state)
{
        (void)state;
        char text[DIGEST_TEXT_SIZE];
        digest_text(span_of("abc"), text);
        assert_string_equal(text, "ba7816bf8f01cfea");
        digest_text((struct span){NULL, 0}, text);
        assert_string_equal(text, "e3b0c44298fc1c14");
}

static const struct {
        const char *parts[4];
        const char *fields[3][2];
        const char *key;
} cases[] = {
    {{"host"}, {{0}}, "www.example.co.uk:8080"},
    {{"domain"}, {{0}}, "domain=example.co.uk"},
    {{"rule", "client", "session"}, {{0}}, "rule=api client=192.0.2.1 session=s1"},
    {{"path:1"}, {{0}}, "path=/v1"},
    {{"header:authorization"}, {{0}}, "header:authorization="},
    {{"header:authorization"}, {{"Authorization", "abc"}}, "header:authorization=ba7816bf8f01cfea"},
    {{"header:authorization"},
     {{"X", "abc"}, {"AUTHORIZATION", "abc"}},
     "header:authorization=ba7816bf8f01cfea"},
    {{"header:a"}, {{"A", ""}}, "header:a=e3b0c44298fc1c14"}, /* empty is not the same as none */
    {{"header:b", "header:a"},
     {{"A", "abc"}, {"B", ""}},
     "header:b=e3b0c44298fc1c14 header:a=ba7816bf8f01cfea"},
    {{"header:b", "domain", "header:a"},
     {{"A", "abc"}},
     "header:b= domain=example.co.uk header:a=ba7816bf8f01cfea"},
};

static char *key_of(const char *const *parts, const struct fields *fields)
{
        struct scope_part list[SCOPE_MAX_PARTS];
        struct policy policy = {.name = "api", .scope = list};
        for (; policy.scope_count < 4 && parts[policy.scope_count]; policy.scope_count++)
                assert_int_equal(
                    scope_part_parse(span_of(parts[policy.scope_count]), &list[policy.scope_count]),
                    0);
        return request_scope_key(&(struct request_scope){.policy = &policy,
                                                         .host = "www.example.co.uk",
                                                         .port = 8080,
                                                         .target = span_of("/v1/x?y"),
                                                         .fields = fields,
                                                         .client = span_of("192.0.2.1"),
                                                         .session = span_of("s1")});
}

static void composes_keys(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct fields fields = {0};
                for (size_t k = 0; k < 3 && cases[i].fields[k][0]; k++)
                        fields_add(&fields, span_of(cases[i].fields[k][0]),
                                   span_of(cases[i].fields[k][1]));
                char *key = key_of(cases[i].parts, &fields);
                assert_string_equal(key, cases[i].key);
                free(key);
                fields_done(&fields);
        }
}

/* Several fields of one name are one field whose values stand in a list. */
static void joins_values(void **state)
{
        (void)state;
        struct fields apart = {0}, together = {0}, other = {0};
        fields_add(&apart, span_of("K"), span_of("abc"));
        fields_add(&apart, span_of("k"), span_of(""));
        fields_add(&apart, span_of("K"), span_of("def"));
        fields_add(&together, span_of("K"), span_of("abc, , def"));
        fields_add(&other, span_of("K"), span_of("abcdef"));
        const char *const parts[4] = {"header:k"};
        char *a = key_of(parts, &apart), *b = key_of(parts, &together), *c = key_of(parts, &other);
        assert_string_equal(a, b);
        assert_string_not_equal(a, c);
        free(a);
        free(b);
        free(c);
        fields_done(&apart);
        fields_done(&together);
        fields_done(&other);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(digests),
            cmocka_unit_test(composes_keys),
            cmocka_unit_test(joins_values),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
