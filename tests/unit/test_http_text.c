#include "tests/unit/unit.h"

#include "base/http_text.h"

static void knows_tokens(void **state)
{
        (void)state;
        static const char others[] = "\"(),/:;<=>?@[\\]{} \t\r\n\x7f\x80\xff";
        for (int i = 0; i < 256; i++) {
                char c = (char)i;
                bool other = i < ' ' || i > '~' || memchr(others, c, sizeof others);
                if (http_text_is_token((struct span){&c, 1}) == other)
                        fail_msg("0x%02x", (unsigned)i);
        }
        assert_true(http_text_is_token(span_of("X-Field_1")));
        assert_false(http_text_is_token(span_of("X Field")));
        assert_false(http_text_is_token(span_of("X:")));
        assert_false(http_text_is_token(span_of("")));
        assert_false(http_text_is_token((struct span){NULL, 0}));
}

static void takes_lines_off(void **state)
{
        (void)state;
        static const char *const lines[] = {"one", "", "two\rtwo", "\r", "three"};
        struct span rest = span_of("one\r\n\ntwo\rtwo\n\r\r\nthree");
        for (size_t i = 0; i < COUNT_OF(lines); i++) {
                assert_true(rest.len > 0);
                assert_true(span_equal(http_text_line(&rest), span_of(lines[i])));
        }
        assert_int_equal(rest.len, 0);
        rest = span_of("last\r\n");
        assert_true(span_equal(http_text_line(&rest), span_of("last")));
        assert_int_equal(rest.len, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(knows_tokens),
            cmocka_unit_test(takes_lines_off),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
