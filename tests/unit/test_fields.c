#include "tests/unit/unit.h"

#include <stdio.h>

#include "base/fields.h"

static void assert_span(struct span s, const char *text)
{
        if (!span_equal(s, span_of(text)))
                fail_msg("\"%.*s\", not \"%s\"", (int)s.len, s.ptr, text);
}

static void keeps_order_spelling_and_duplicates(void **state)
{
        (void)state;
        static const struct {
                const char *name, *value;
        } rows[] = {
            {"Host", "example.com"},
            {"X-a", "1"},
            {"x-A", "2"},
            {"ACCEPT", "*/*"},
            {"X-a", "1"},
            {"Empty", ""},
            {"", "no name"},
            {"Padded", " as it is "},
        };
        struct fields f;
        fields_init(&f);
        for (size_t i = 0; i < COUNT_OF(rows); i++)
                fields_add(&f, span_of(rows[i].name), span_of(rows[i].value));
        assert_int_equal(f.count, COUNT_OF(rows));
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                assert_span(fields_at(&f, i).name, rows[i].name);
                assert_span(fields_at(&f, i).value, rows[i].value);
        }
        fields_done(&f);
        assert_int_equal(f.count, 0);
}

static void nothing_at_all(void **state)
{
        (void)state;
        struct fields f = {0};
        fields_add(&f, (struct span){NULL, 0}, (struct span){NULL, 0});
        assert_non_null(fields_at(&f, 0).name.ptr); /* no arithmetic with NULL */
        assert_span(fields_at(&f, 0).value, "");
        fields_done(&f);
}

static void finds_in_any_case_from_an_index_on(void **state)
{
        (void)state;
        struct fields f = {0};
        struct span value = span_of("untouched");
        size_t at = 99;
        assert_false(fields_find(&f, 0, span_of("via"), &value, &at));
        fields_add(&f, span_of("Via"), span_of("a"));
        fields_add(&f, span_of("Viaduct"), span_of("b"));
        fields_add(&f, span_of("VIA"), span_of("c"));
        fields_add(&f, span_of("Vi"), span_of("d"));

        assert_false(fields_find(&f, 0, span_of("host"), &value, &at));
        assert_span(value, "untouched");
        assert_int_equal(at, 99);
        assert_true(fields_find(&f, 0, span_of("via"), &value, &at));
        assert_span(value, "a");
        assert_int_equal(at, 0);
        assert_true(fields_find(&f, at + 1, span_of("via"), &value, &at));
        assert_span(value, "c");
        assert_int_equal(at, 2);
        assert_false(fields_find(&f, at + 1, span_of("via"), &value, &at));
        assert_false(fields_find(&f, 1000, span_of("via"), &value, NULL));
        assert_true(fields_find(&f, 1, span_of("viaduct"), &value, NULL));
        assert_span(value, "b");
        fields_done(&f);
}

/* Copies: what they were made from may change. */
static void copies_what_it_is_given(void **state)
{
        (void)state;
        struct fields f = {0};
        char name[] = "Name", value[] = "value";
        fields_add(&f, span_of(name), span_of(value));
        memset(name, 'x', 4);
        memset(value, 'x', 5);
        assert_span(fields_at(&f, 0).name, "Name");
        assert_span(fields_at(&f, 0).value, "value");
        fields_done(&f);
}

static void grows_and_is_used_again(void **state)
{
        (void)state;
        struct fields f = {0};
        char name[32], value[3000];
        memset(value, 'v', sizeof value);
        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < 300; i++) {
                        snprintf(name, sizeof name, "name-%u", i);
                        fields_add(&f, span_of(name), (struct span){value, i * 10});
                }
                assert_int_equal(f.count, 300);
                for (unsigned i = 0; i < 300; i++) {
                        snprintf(name, sizeof name, "name-%u", i);
                        assert_span(fields_at(&f, i).name, name);
                        assert_int_equal(fields_at(&f, i).value.len, i * 10);
                        assert_memory_equal(fields_at(&f, i).value.ptr, value, i * 10);
                }
                fields_clear(&f);
                assert_int_equal(f.count, 0);
                assert_false(fields_find(&f, 0, span_of("name-1"), &(struct span){0}, NULL));
        }
        fields_done(&f);
        fields_done(&f); /* again: harmless */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(keeps_order_spelling_and_duplicates),
            cmocka_unit_test(nothing_at_all),
            cmocka_unit_test(finds_in_any_case_from_an_index_on),
            cmocka_unit_test(copies_what_it_is_given),
            cmocka_unit_test(grows_and_is_used_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
