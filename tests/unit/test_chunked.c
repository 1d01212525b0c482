#include "tests/unit/unit.h"

#include <string.h>

#include "proxy/intake.h"

#define MAX_BODY 64
#define MAX_HEADER 200
#define HEAD "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

static const struct {
        const char *body;
        int status; /* 0: good so far */
        bool ends;
} cases[] = {
    {"0\r\n\r\n", 0, true},
    {"5\r\nhello\r\n0\r\n\r\n", 0, true},
    {"5\r\nhello\r\n00A\r\n0123456789\r\n000\r\n\r\n", 0, true},
    {"5\r\nhello\r\n0\r\nX: y\r\nZ: \r\n\r\n", 0, true},
    {"5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n", 0, true},
    {"40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n0\r\n\r\n", 0,
     true},
    {"", 0, false},
    {"5\r\nhel", 0, false},
    {"5\r\nhello\r\n", 0, false},
    {"0\r\nX: y\r\n", 0, false},
    {"41\r\n", 413, false},
    {"40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n1\r\n", 413, false},
    {"ffffffffffffffff\r\n", 413, false},
    {"00000000000000001\r\n", 400, false},
    {"\r\n", 400, false},
    {"xyz\r\n", 400, false},
    {"-5\r\nhello\r\n", 400, false},
    {"+5\r\nhello\r\n", 400, false},
    {"0x5\r\nhello\r\n", 400, false},
    {" 5\r\nhello\r\n", 400, false},
    {"5 \r\nhello\r\n", 400, false},
    {"5;a=b\r\nhello\r\n", 400, false},
    {"5\nhello\r\n0\r\n\r\n", 400, false},
    {"5\r\nhelloo\r\n0\r\n\r\n", 400, false},
    {"5\r\nhello\n0\r\n\r\n", 400, false},
    {"5\r\nhello\r0\r\n\r\n", 400, false},
};

/* However the bytes are cut into pieces. */
static void bodies_end_where_their_chunks_say(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char text[512];
                strcpy(text, HEAD);
                strcat(text, cases[i].body);
                for (size_t piece = 1; piece <= strlen(text); piece++) {
                        struct intake in = {0};
                        struct message_fault fault = {0};
                        bool good = true;
                        for (size_t at = 0; good && at < strlen(text); at += piece) {
                                size_t n = strlen(text) - at < piece ? strlen(text) - at : piece;
                                good = intake_feed(&in, text + at, n, MAX_HEADER, MAX_BODY, &fault);
                        }
                        if (fault.status != cases[i].status)
                                fail_msg("%s in pieces of %zu: %d", cases[i].body, piece,
                                         fault.status);
                        if (good) {
                                assert_int_equal(in.phase, INTAKE_BODY);
                                assert_int_equal(in.chunked.state == CHUNKED_END, cases[i].ends);
                        }
                        intake_reset(&in);
                }
        }
}

static void what_never_ends_is_bounded(void **state)
{
        (void)state;
        static const struct {
                const char *start, *more;
                int status;
        } endless[] = {
            {"", "GET", 431},
            {HEAD, "0", 400},
            {HEAD "0\r\n", "X: y\r\n", 431},
        };
        for (size_t i = 0; i < COUNT_OF(endless); i++) {
                struct intake in = {0};
                struct message_fault fault = {0};
                bool good = intake_feed(&in, endless[i].start, strlen(endless[i].start), MAX_HEADER,
                                        MAX_BODY, &fault);
                unsigned n = 0;
                for (; good && n < 1000; n++)
                        good = intake_feed(&in, endless[i].more, strlen(endless[i].more),
                                           MAX_HEADER, MAX_BODY, &fault);
                assert_true(n < 300);
                assert_int_equal(fault.status, endless[i].status);
                assert_true(in.head.room <= 4 * MAX_HEADER);
                intake_reset(&in);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(bodies_end_where_their_chunks_say),
            cmocka_unit_test(what_never_ends_is_bounded),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
