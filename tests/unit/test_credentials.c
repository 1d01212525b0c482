#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "proxy/credentials.h"
#include "runtime/base64.h"
#include "runtime/digest.h"

static void good_ones(void **state)
{
        (void)state;
        static const struct {
                const char *field, *name, *password, *session;
        } cases[] = {
            {"Basic YWxpY2U6b3BlbiBzZXNhbWU=", "alice", "open sesame", NULL},
            {"basic   YWxpY2U6b3BlbiBzZXNhbWU= ", "alice", "open sesame", NULL},
            {"Basic Og==", "", "", NULL},
            {"Basic YTo=", "a", "", NULL},
            {"Basic YTpiOmM6", "a", "b:c:", NULL},
            {"Basic w6k6w7w=", "\xc3\xa9", "\xc3\xbc", NULL},
            {"Basic YS1zZXNzaW9uLXg6eQ==", "a", "y", "x"},
            {"Basic YS1zZXNzaW9uLTp5", "a", "y", ""},
            {"Basic YS1zZXNzaW9uLXgtc2Vzc2lvbi15Ong=", "a", "x", "x-session-y"},
            {"Basic YTp4LXNlc3Npb24teQ==", "a", "x-session-y",
             NULL}, /* in the password it is none */
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct credentials c = {.name = NULL};
                print_message("%s\n", cases[i].field);
                assert_true(credentials_read(cases[i].field, &c));
                assert_string_equal(c.name, cases[i].name);
                assert_string_equal(c.password, cases[i].password);
                if (cases[i].session)
                        assert_string_equal(c.session, cases[i].session);
                else
                        assert_null(c.session);
                credentials_done(&c);
                assert_null(c.name);
                credentials_done(&c);
        }
}

static void bad_ones(void **state)
{
        (void)state;
        static const char *const cases[] = {
            "",
            "Basic",
            "Basic ",
            "BasicYTpi",
            "Bearer YTpi",
            "Digest username=\"a\"",
            "Basic YWxpY2U=", /* no colon */
            "Basic YTp",      /* not whole */
            "Basic YTpi=",    /* too much of it */
            "Basic YT*i",     /* no letter of base64 */
            "Basic YQA6Yg==", /* a NUL in the name */
            "Basic YTpiCmM=", /* a line feed in the password */
            "Basic YTpifw==", /* DEL */
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct credentials c = {.session = "untouched"};
                print_message("%s\n", cases[i]);
                assert_false(credentials_read(cases[i], &c));
                assert_string_equal(c.session, "untouched");
        }
}

static void base64(void **state)
{
        (void)state;
        static const struct {
                const char *text, *bytes;
        } cases[] = {{"", ""},        {"Zg==", "f"},        {"Zm8=", "fo"},
                     {"Zm9v", "foo"}, {"Zm9vYg==", "foob"}, {"Zm9vYmFy", "foobar"}};
        struct span out = {NULL, 7};
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                assert_true(base64_decode(span_of(cases[i].text), &out));
                assert_string_equal(out.ptr, cases[i].bytes);
                assert_int_equal(out.len, strlen(cases[i].bytes));
                free((char *)out.ptr);
        }
        out = (struct span){NULL, 7};
        assert_false(base64_decode(span_of("Zg="), &out));
        assert_false(base64_decode(span_of("Z"), &out));
        assert_false(base64_decode(span_of("Zm9-"), &out));
        assert_true(out.ptr == NULL && out.len == 7);
}

/* Where one text ends and the next begins makes a difference. */
static void digests(void **state)
{
        (void)state;
        const struct span ab_c[] = {span_of("ab"), span_of("c")},
                          a_bc[] = {span_of("a"), span_of("bc")};
        uint8_t one[DIGEST_SIZE], other[DIGEST_SIZE], again[DIGEST_SIZE];
        digest_bytes(ab_c, 2, one);
        digest_bytes(a_bc, 2, other);
        digest_bytes(ab_c, 2, again);
        assert_memory_not_equal(one, other, DIGEST_SIZE);
        assert_memory_equal(one, again, DIGEST_SIZE);
        digest_bytes(ab_c, 1, other);
        assert_memory_not_equal(one, other, DIGEST_SIZE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(good_ones),
            cmocka_unit_test(bad_ones),
            cmocka_unit_test(base64),
            cmocka_unit_test(digests),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
