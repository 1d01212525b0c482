#include "tests/unit/unit.h"

#include <string.h>

#include "proxy/head.h"

#define MAX_BODY 1000

struct head_case {
        const char *head;
        int status; /* 0: nothing is wrong with it */
};

static const struct head_case cases[] = {
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 0},
    {"GET http://a/ HTTP/1.1\nHost: a\n\n", 0},
    {"GET http://a/ HTTP/1.0\r\n\r\n", 0},
    {"GET http://a/ HTTP/1.7\r\nHost: a\r\n\r\n", 0},
    {"GET http://a/\xc3\xa9|{}\"<>^`\\ HTTP/1.1\r\nHost: a\r\n\r\n", 0},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", 0},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\ncontent-length:\t007 \r\n\r\n", 0},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n", 0},
    {"HEAD http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 0},
    {"DELETE http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 0},
    {"GET http://a/ HTTP/1.1\r\nHost:\r\nX: a\tb \xe9\r\n\r\n", 0},
    {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 0},
    {"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: a\r\n\r\n", 0},
    {"CONNECT a_b.-c~:65535 HTTP/1.0\r\n\r\n", 0},
    /* the request line */
    {"\r\n", 400},
    {"GET\r\n\r\n", 400},
    {"GET http://a/\r\n\r\n", 400},
    {"GET  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET  http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
    {" GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/b c HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/b\tc HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/b\rc HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/\x7f HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"G(T http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/ HTTP/11\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/ http/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.x\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.10\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/ HTTP/0.9\r\nHost: a\r\n\r\n", 505},
    {"PRI * HTTP/2.0\r\n\r\n", 505},
    {"BREW http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"get http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT :443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a:0 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a:65536 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a:443x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a:4:43 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a:+443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT u@a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a/:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a:443/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT http://a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a%2eb:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT [::1:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT [::1]443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT [g]:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT ::1:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    /* the fields */
    {"GET http://a/ HTTP/1.1\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\nX/Y: y\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\n Host: a\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n", 400},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 400},
    /* the framing */
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n", 413},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999x\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: "
     "chunked\r\n\r\n",
     400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\r\n", 400},
    {"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
     "chunked\r\n\r\n",
     400},
    {"POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"HEAD http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 400},
    {"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 400},
    {"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"TRACE http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
};

static void checks_what_evhttp_lets_through(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct message_fault fault = {0};
                struct head_facts facts;
                bool good = head_check(span_of(cases[i].head), MAX_BODY, &facts, &fault);
                if (good != (cases[i].status == 0) || fault.status != cases[i].status)
                        fail_msg("%s: %d", cases[i].head, fault.status);
                if (!good) {
                        assert_true(fault.close);
                        assert_true(strlen(fault.text) > 0);
                }
        }
}

static void a_nul_is_refused(void **state)
{
        (void)state;
        static const char in_target[] = "GET http://a/\0b HTTP/1.1\r\nHost: a\r\n\r\n";
        static const char in_name[] = "GET http://a/ HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n";
        static const char in_value[] = "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: \0b\r\n\r\n";
        struct message_fault fault;
        struct head_facts facts;
        assert_false(head_check((struct span){in_target, sizeof in_target - 1}, 0, &facts, &fault));
        assert_false(head_check((struct span){in_name, sizeof in_name - 1}, 0, &facts, &fault));
        assert_false(head_check((struct span){in_value, sizeof in_value - 1}, 0, &facts, &fault));
}

/* However it is cut into pieces, the head ends in the same place and what follows is not taken. */
static void finds_the_end_in_any_pieces(void **state)
{
        (void)state;
        static const char *const heads[] = {"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                            "GET /\nHost: a\n\r\n", "GET /\r\nX:\r\r\n\n", "\n\n"};
        for (size_t i = 0; i < COUNT_OF(heads); i++) {
                size_t n = strlen(heads[i]);
                char text[64];
                strcpy(text, heads[i]);
                strcat(text, "body\r\n\r\n");
                for (size_t cut = 0; cut <= n; cut++) {
                        struct head h = {0};
                        size_t used, more = 0;
                        bool ended = head_feed(&h, text, cut, &used);
                        assert_int_equal(used, cut);
                        assert_int_equal(ended, cut == n);
                        if (!ended)
                                assert_true(head_feed(&h, text + cut, strlen(text) - cut, &more));
                        assert_int_equal(used + more, n);
                        assert_int_equal(h.len, n);
                        assert_memory_equal(h.text, heads[i], n);
                        head_clear(&h);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(checks_what_evhttp_lets_through),
            cmocka_unit_test(a_nul_is_refused),
            cmocka_unit_test(finds_the_end_in_any_pieces),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
