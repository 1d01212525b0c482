#include "tests/unit/unit.h"

#include "base/span.h"

static void assert_span(struct span s, const char *text)
{
        if (!span_equal(s, span_of(text)))
                fail_msg("\"%.*s\", not \"%s\"", (int)s.len, s.ptr, text);
}

static void compares(void **state)
{
        (void)state;
        static const struct {
                const char *a, *b;
                bool equal, equal_nocase;
        } rows[] = {
            {"", "", true, true},
            {"a", "a", true, true},
            {"a", "A", false, true},
            {"Retry-After", "retry-AFTER", false, true},
            {"a", "b", false, false},
            {"a", "", false, false},
            {"ab", "a", false, false},
            {"[", "{", false, false}, /* 0x20 apart, no letters */
            {"\xc3\xa9", "\xc3\x89", false, false},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct span a = span_of(rows[i].a), b = span_of(rows[i].b);
                assert_int_equal(span_equal(a, b), rows[i].equal);
                assert_int_equal(span_equal(b, a), rows[i].equal);
                assert_int_equal(span_equal_nocase(a, b), rows[i].equal_nocase);
                assert_int_equal(span_equal_nocase(b, a), rows[i].equal_nocase);
        }
        struct span none = span_of(NULL);
        assert_int_equal(none.len, 0);
        assert_true(span_equal(none, span_of("")));
        assert_true(span_equal_nocase(none, span_of("")));
        assert_true(span_equal((struct span){"a\0b", 3}, (struct span){"a\0b", 3}));
        assert_false(span_equal((struct span){"a\0b", 3}, (struct span){"a\0c", 3}));
}

static void trims(void **state)
{
        (void)state;
        static const struct {
                const char *text, *trimmed;
        } rows[] = {
            {"", ""},       {" ", ""},          {" \t \t", ""},       {"a", "a"},
            {" a", "a"},    {"a ", "a"},        {"\t a b \t", "a b"}, {"\r\na", "\r\na"},
            {"\va", "\va"}, {"a\xa0", "a\xa0"},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++)
                assert_span(span_trim(span_of(rows[i].text)), rows[i].trimmed);
        assert_int_equal(span_trim((struct span){NULL, 0}).len, 0);
}

static void takes_lists_apart(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                const char *items[5];
        } rows[] = {
            {"", {""}},
            {" ", {""}},
            {"a", {"a"}},
            {"a,b", {"a", "b"}},
            {" a , b ", {"a", "b"}},
            {",", {"", ""}},
            {"a,", {"a", ""}},
            {",a", {"", "a"}},
            {"a,,b", {"a", "", "b"}},
            {"a b,c;d", {"a b", "c;d"}},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct span rest = span_of(rows[i].text), item;
                size_t n = 0;
                for (; span_next(&rest, ',', &item); n++) {
                        assert_true(n < COUNT_OF(rows[i].items) && rows[i].items[n]);
                        assert_span(item, rows[i].items[n]);
                }
                assert_null(rows[i].items[n]);
                assert_false(span_next(&rest, ',', &item));
        }
        struct span none = {NULL, 0}, item;
        assert_false(span_next(&none, ',', &item));
}

static void contains(void **state)
{
        (void)state;
        static const struct {
                const char *text, *part;
                bool yes;
        } rows[] = {
            {"slow down", "slow down", true},
            {"Slow Down, please", "sLOW dOWN", true},
            {"please slow down", "down", true},
            {"slo", "slow", false},
            {"slowslo", "slow down", false},
            {"sloslow", "slow", true},
            {"slow", "", true},
            {"", "", true},
            {"", "s", false},
            {"1015", "1015", true},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++)
                if (span_contains_nocase(span_of(rows[i].text), span_of(rows[i].part)) !=
                    rows[i].yes)
                        fail_msg("%s in %s", rows[i].part, rows[i].text);
        assert_false(span_contains_nocase((struct span){"slow down", 8}, span_of("down")));
        assert_true(span_contains_nocase((struct span){"a\0down", 6}, span_of("down")));
        assert_false(span_contains_nocase((struct span){NULL, 0}, span_of("down")));
        assert_true(span_contains_nocase((struct span){NULL, 0}, (struct span){NULL, 0}));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(compares),
            cmocka_unit_test(trims),
            cmocka_unit_test(takes_lists_apart),
            cmocka_unit_test(contains),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
