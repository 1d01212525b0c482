/* What is sent and what comes back, byte for byte. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/upstream_client.h"

/* --- what is sent --- */

static void test_request_bytes(void **state)
{
        static const struct {
                const char *method, *target, *lines, *body, *sent;
        } cases[] = {
            {"GET", "/a%2Fb/../c?q={x}|\"#é", "hOST: h.test\nX-A: 1\nx-a: 2\nX-Empty:\nX-A: 1",
             NULL,
             "GET /a%2Fb/../c?q={x}|\"#é HTTP/1.1\r\nhOST: h.test\r\nX-A: 1\r\nx-a: 2\r\nX-Empty:"
             "\r\nX-A: 1\r\n\r\n"},
            {"GET", "/", "A: 1\nHost: last.test", NULL,
             "GET / HTTP/1.1\r\nA: 1\r\nHost: last.test\r\n\r\n"},
            {"GET", "/", "", NULL, "GET / HTTP/1.1\r\n\r\n"},
            {"GET", "/", "Accept: x\nUser-Agent: y;z\nAccept-Encoding: gzip", NULL,
             "GET / HTTP/1.1\r\nAccept: x\r\nUser-Agent: y;z\r\nAccept-Encoding: gzip\r\n\r\n"},
            {"GET", "/", "Accept:\nUser-Agent:\nCookie: a=b\nAuthorization: Basic eDp5", NULL,
             "GET / HTTP/1.1\r\nAccept:\r\nUser-Agent:\r\nCookie: a=b\r\nAuthorization: Basic "
             "eDp5\r\n\r\n"},
            {"HEAD", "/", "Host: h", NULL, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"},
            {"OPTIONS", "*", "Host: h", NULL, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"},
            {"TRACE", "/t", "Host: h", NULL, "TRACE /t HTTP/1.1\r\nHost: h\r\n\r\n"},
            {"DELETE", "/t", "Host: h", NULL, "DELETE /t HTTP/1.1\r\nHost: h\r\n\r\n"},
            {"POST", "/p", "Host: h\nContent-Length: 0", NULL,
             "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
            {"POST", "/p", "Host: h", NULL, "POST /p HTTP/1.1\r\nHost: h\r\n\r\n"},
            {"POST", "/p", "Host: h", "",
             "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
            {"POST", "/p", "Host: h\ncontent-length: 15\nContent-Type: t", "fifteen bytes, ",
             "POST /p HTTP/1.1\r\nHost: h\r\ncontent-length: 15\r\nContent-Type: t\r\n\r\nfifteen "
             "bytes, "},
            {"PATCH", "/p", "Host: h", "body",
             "PATCH /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody"},
            {"PUT", "/p", "Host: h\nExpect:", "body",
             "PUT /p HTTP/1.1\r\nHost: h\r\nExpect:\r\nContent-Length: 4\r\n\r\nbody"},
            {"GET", "/p", "Host: h", "a GET with a body",
             "GET /p HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\na GET with a body"},
        };
        struct raw_step steps[2 * COUNT_OF(cases) * 2 + 1] = {{.what = RAW_ACCEPT}};
        struct evbuffer *expected = evbuffer_new();
        size_t n = 1;

        (void)state;
        /* Twice, the second time backwards: one handle and one connection serve all of them, and
         * nothing of a request may show in another. */
        for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
                steps[n++] = (struct raw_step){.what = RAW_READ};
                steps[n++] = (struct raw_step){.what = RAW_SEND, .text = OK_EMPTY};
        }
        raw_origin_start(&origin, steps, n);
        for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
                size_t c = i < COUNT_OF(cases) ? i : 2 * COUNT_OF(cases) - 1 - i;
                struct seen s = {0};
                struct upstream_request r =
                    request(cases[c].method, cases[c].target, cases[c].lines);
                r.body = cases[c].body ? body_of(cases[c].body) : NULL;
                run(&s, &r);
                assert_int_equal(s.end.error, UPSTREAM_OK);
                assert_int_equal(s.status, 200);
                assert_int_equal(s.end.reused, i > 0);
                evbuffer_add(expected, cases[c].sent, strlen(cases[c].sent));
                if (r.body) {
                        assert_int_equal(evbuffer_get_length(r.body), strlen(cases[c].body));
                        evbuffer_free(r.body);
                }
        }
        evbuffer_add(expected, "", 1);
        assert_string_equal(raw_origin_stop(&origin), (char *)evbuffer_pullup(expected, -1));
        assert_int_equal(origin.connections, 1);
        evbuffer_free(expected);
}

/* Nobody sends it, but nothing forbids it; the connection is closed behind it. */
static void test_head_with_body(void **state)
{
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ},
               {.what = RAW_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"},
               {.what = RAW_AWAIT_CLOSE}, {.what = RAW_ACCEPT}, {.what = RAW_READ},
               {.what = RAW_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"});
        struct upstream_request r = request("HEAD", "/p", "Host: h");
        r.body = body_of("and a body");
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_OK);
        assert_string_equal(s.head, "OK\nContent-Length: 99\n");
        evbuffer_free(r.body);
        r.body = NULL;
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_OK);
        assert_string_equal(raw_origin_stop(&origin),
                            "HEAD /p HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nand a body"
                            "HEAD /p HTTP/1.1\r\nHost: h\r\n\r\n");
}

static void test_large_bodies(void **state)
{
        enum { LEN = 200000 };
        struct raw_step steps[] = {{.what = RAW_ACCEPT},
                                   {.what = RAW_READ},
                                   {.what = RAW_SEND, .text = OK_EMPTY},
                                   {.what = RAW_READ_HEAD},
                                   {.what = RAW_SEND,
                                    .text = "HTTP/1.1 413 Too Large\r\nConnection: close\r\n"
                                            "Content-Length: 2\r\n\r\nno"},
                                   {.what = RAW_CLOSE}};
        char *text = malloc(LEN + 1);
        struct seen s = {0}, t = {0};

        (void)state;
        for (int i = 0; i < LEN; i++)
                text[i] = (char)('a' + i * 31 % 26 - (i % 7 == 0 ? 32 : 0));
        text[LEN] = '\0';
        raw_origin_start(&origin, steps, COUNT_OF(steps));
        struct upstream_request r = request("PUT", "/", "Host: h");
        r.body = body_of(text);
        run(&s, &r);
        assert_int_equal(s.status, 200);
        assert_int_equal(origin.reads, 1);

        /* The answer comes before the body has been read. */
        run(&t, &r);
        assert_int_equal(t.status, 413);
        assert_int_equal(t.end.error, UPSTREAM_OK);
        assert_string_equal(t.body, "no");
        assert_memory_equal(strstr(raw_origin_stop(&origin), "\r\n\r\n") + 4, text, LEN);
        evbuffer_free(r.body);
        free(text);
}

static void test_refused_requests(void **state)
{
        static const struct {
                const char *host, *method, *target, *lines, *body;
        } cases[] = {
            {"127.0.0.1", "GET", "/", "A: 1\nB: x\ry", NULL},
            {"127.0.0.1", "GET", "/", "A B: 1", NULL},
            {"127.0.0.1", "GET", "/", ": 1", NULL},
            {"127.0.0.1", "GET", "/", "A;b: 1", NULL},
            {"127.0.0.1", "GET", "/ HTTP/1.1", "A: 1", NULL},
            {"127.0.0.1", "GET", "/\r\nX: y", "A: 1", NULL},
            {"127.0.0.1", "G T", "/", "A: 1", NULL},
            {"127.0.0.1", "", "/", "A: 1", NULL},
            {"127.0.0.1", "GET", "", "A: 1", NULL},
            {"127.0.0.1", "POST", "/", "Content-Length: 3", "four"},
            {"127.0.0.1", "POST", "/", "Content-Length: 4\nContent-Length: 4", "four"},
            {"127.0.0.1", "POST", "/", "Content-Length: 18446744073709551620", "four"},
            {"127.0.0.1", "POST", "/", "Transfer-Encoding: chunked", "four"},
            {"127.0.0.1/x", "GET", "/", "A: 1", NULL},
            {"u@127.0.0.1", "GET", "/", "A: 1", NULL},
            {"127.0.0%2e1", "GET", "/", "A: 1", NULL},
            {"127.0.0.1:80", "GET", "/", "A: 1", NULL},
            {"", "GET", "/", "A: 1", NULL},
        };

        (void)state;
        ORIGIN({.what = RAW_HOLD});
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct seen s = {0};
                struct upstream_request r =
                    request(cases[i].method, cases[i].target, cases[i].lines);
                r.host = span_of(cases[i].host);
                r.body = cases[i].body ? body_of(cases[i].body) : NULL;
                run(&s, &r);
                assert_int_equal(s.end.error, UPSTREAM_HTTP_REQUEST_ERROR);
                assert_string_not_equal(s.detail, "");
                if (r.body)
                        evbuffer_free(r.body);
        }
        raw_origin_release(&origin);
        raw_origin_stop(&origin);
        assert_int_equal(origin.pending, 0);
}

/* --- what comes back --- */

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of reading */
static const struct answer_case {
        const char *method, *answer;
        int status;
        const char *head, *body;
        enum upstream_error error;
} answer_cases[] = {
    {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX:  a  b \r\nx: c\r\nE:\r\n\r\nhello", 200,
     "OK\nContent-Length: 5\nX: a  b\nx: c\nE: \n", "hello", UPSTREAM_OK},
    {"GET", "HTTP/1.1 299\r\nContent-Length: 0\r\n\r\n", 299, "\nContent-Length: 0\n", "",
     UPSTREAM_OK},
    {"GET", "HTTP/1.1 404 Not  Found, sorry\r\nContent-Length: 0\r\n\r\n", 404,
     "Not  Found, sorry\nContent-Length: 0\n", "", UPSTREAM_OK},
    {"GET",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
     "HTTP/1.1 100 Continue\r\nX: 1\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n"
     "\r\nhi",
     200, "OK\nA: b\nContent-Length: 2\n", "hi", UPSTREAM_OK},
    {"GET",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n"
     "Trailer: t\r\nSet-Cookie: no\r\n\r\n",
     200, "OK\nTransfer-Encoding: chunked\n", "abcd", UPSTREAM_OK},
    {"GET",
     "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n"
     "1\r\nx\r\n0\r\n\r\n",
     200, "OK\nTransfer-Encoding: chunked\nA: b\n", "x", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 0, "",
     "", UPSTREAM_HTTP_RESPONSE_TRANSFER_CODING},
    {"GET",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
     "1\r\nx\r\n0\r\n\r\n",
     0, "", "", UPSTREAM_HTTP_RESPONSE_TRANSFER_CODING},
    {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi", 200,
     "OK\nContent-Length: 2\n", "hi", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", 200,
     "OK\nContent-Length: 2\n", "hi", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", 0, "", "",
     UPSTREAM_HTTP_PROTOCOL_ERROR},
    {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nhi", 200, "OK\nContent-Length: 2\n",
     "hi", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\nhi", 0, "", "",
     UPSTREAM_HTTP_PROTOCOL_ERROR},
    {"GET", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end", 200,
     "OK\nConnection: close\n", "until the end", UPSTREAM_OK},
    {"GET", "HTTP/1.0 200 OK\r\n\r\nold", 200, "OK\n", "old", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\nA: b\nContent-Length: 2\n\nhi", 200, "OK\nA: b\nContent-Length: 2\n",
     "hi", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\r\nA: b\r\n  c\r\n\td\r\nContent-Length: 0\r\n\r\n", 200,
     "OK\nA: b  c\td\nContent-Length: 0\n", "", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\r\nA : b\r\n(x): y\r\nContent-Length: 0\r\n\r\n", 200,
     "OK\nA: b\nContent-Length: 0\n", "", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\r\nno field\r\nContent-Length: 0\r\n\r\n", 0, "", "",
     UPSTREAM_HTTP_PROTOCOL_ERROR},
    {"GET", "HTTP/1.1 200 OK\r\nA: b\rc\r\nContent-Length: 0\r\n\r\n", 0, "", "",
     UPSTREAM_HTTP_PROTOCOL_ERROR},
    {"GET", "HTTP/1.1 200 Set-Cookie:\rA: b\tc\x01\x7f!\r\nContent-Length: 0\r\n\r\n", 200,
     "Set-Cookie: A: b\tc  !\nContent-Length: 0\n", "", UPSTREAM_OK},
    {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 200, "OK\nContent-Length: 500\n", "",
     UPSTREAM_OK},
    {"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200,
     "OK\nTransfer-Encoding: chunked\n", "", UPSTREAM_OK},
    {"GET", "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n", 204, "No Content\nA: b\n", "", UPSTREAM_OK},
    {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n", 304,
     "Not Modified\nContent-Length: 500\n", "", UPSTREAM_OK},
    {"GET", "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 301,
     "Moved\nLocation: http://127.0.0.1:1/\nContent-Length: 0\n", "", UPSTREAM_OK},
    {"GET", "HTTP/1.1 302 F\r\nLocation: ht!tp://[::/\r\nContent-Length: 0\r\n\r\n", 302,
     "F\nLocation: ht!tp://[::/\nContent-Length: 0\n", "", UPSTREAM_OK},
    {"GET", "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", 401,
     "No\nWWW-Authenticate: Basic realm=x\nContent-Length: 0\n", "", UPSTREAM_OK},
    {"GET", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope", 200,
     "OK\nContent-Encoding: gzip\nContent-Length: 4\n", "nope", UPSTREAM_OK},
    {"GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 0, "", "",
     UPSTREAM_HTTP_PROTOCOL_ERROR},
    {"GET", "not HTTP at all\r\n\r\n", 0, "", "", UPSTREAM_HTTP_PROTOCOL_ERROR},
    {"GET", "", 0, "", "", UPSTREAM_CONNECTION_TERMINATED},
    {"GET", "HTTP/1.1 200 OK\r\nA: b\r\n", 0, "", "", UPSTREAM_CONNECTION_TERMINATED},
    {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", 200, "OK\nContent-Length: 9\n",
     "short", UPSTREAM_HTTP_RESPONSE_INCOMPLETE},
    {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 200,
     "OK\nTransfer-Encoding: chunked\n", "abc", UPSTREAM_HTTP_RESPONSE_INCOMPLETE},
    {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 200,
     "OK\nTransfer-Encoding: chunked\n", "", UPSTREAM_HTTP_RESPONSE_INCOMPLETE},
};

static void test_answers(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(answer_cases); i++) {
                const struct answer_case *c = &answer_cases[i];
                struct raw_step steps[] = {{.what = RAW_ACCEPT},
                                           {.what = RAW_READ},
                                           {.what = RAW_SEND, .text = c->answer},
                                           {.what = RAW_CLOSE},
                                           {.what = RAW_AWAIT_CLOSE}};
                struct seen s = {0};
                print_message("answer %zu\n", i);
                raw_origin_start(&origin, steps, COUNT_OF(steps) - (c->error == 0));
                struct upstream_request r = request(c->method, "/", "Host: h");
                run(&s, &r);
                assert_int_equal(s.end.error, c->error);
                assert_string_equal(s.head, c->head);
                assert_string_equal(s.body, c->body);
                assert_int_equal(s.status, c->status);
                assert_false(s.body_first);
                assert_int_equal(s.detail[0] == '\0', c->error == UPSTREAM_OK);
                raw_origin_stop(&origin);
                /* HTTP/1.1, although the handle may have seen an older host before. */
                assert_non_null(strstr(origin.log, " / HTTP/1.1\r\n"));
        }
}

static void test_head_too_large(void **state)
{
        char *line = malloc(60 * 1024);
        struct raw_step steps[10] = {{.what = RAW_ACCEPT}, {.what = RAW_READ}};
        size_t n = 2;
        struct seen s = {0};

        (void)state;
        snprintf(line, 60 * 1024, "A: %*s\r\n", 60 * 1024 - 8, "x");
        steps[n++] = (struct raw_step){.what = RAW_SEND, .text = "HTTP/1.1 200 OK\r\n"};
        for (int i = 0; i < 5; i++)
                steps[n++] = (struct raw_step){.what = RAW_SEND, .text = line};
        steps[n++] = (struct raw_step){.what = RAW_AWAIT_CLOSE};
        raw_origin_start(&origin, steps, n);
        struct upstream_request r = request("GET", "/", "Host: h");
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_HTTP_RESPONSE_HEADER_SECTION_SIZE);
        assert_int_equal(s.heads, 0);
        raw_origin_stop(&origin);
        assert_true(origin.closed_by_peer);
        free(line);
}

static void test_end_tells(void **state)
{
        struct seen a = {0}, b = {0};
        char address_text[64];

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = OK_EMPTY},
               {.what = RAW_READ}, {.what = RAW_SEND, .text = OK_EMPTY});
        struct upstream_request r = request("GET", "/", "Host: h");
        run(&a, &r);
        run(&b, &r);
        snprintf(address_text, sizeof address_text, "127.0.0.1:%u", origin.port);
        assert_string_equal(a.end.address, address_text);
        assert_string_equal(b.end.address, address_text);
        assert_false(a.end.reused);
        assert_true(b.end.reused);
        assert_true(a.end.connect > 0 && a.end.connect <= a.end.first_byte);
        assert_true(a.end.first_byte <= a.end.total);
        assert_int_equal(b.end.connect, 0);
        assert_int_equal(a.end.tls, 0);
        assert_true(b.end.first_byte > 0 && b.end.first_byte <= b.end.total);
        raw_origin_stop(&origin);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
            CASE(request_bytes), CASE(head_with_body), CASE(large_bodies), CASE(refused_requests),
            CASE(answers),       CASE(head_too_large), CASE(end_tells),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
