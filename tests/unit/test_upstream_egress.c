/* Ways out: upstream proxies and local addresses, with the scripted origin in the proxy's place. */
#include "tests/unit/unit.h"

#include <event2/bufferevent.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/upstream_client.h"

#define REQUEST                  \
        {                        \
                .what = RAW_READ \
        }
#define ACCEPT                     \
        {                          \
                .what = RAW_ACCEPT \
        }
#define ANSWER(t)                             \
        {                                     \
                .what = RAW_SEND, .text = (t) \
        }
#define BYTES(t)                                                  \
        {                                                         \
                .what = RAW_SEND, .text = (t), .n = sizeof(t) - 1 \
        }
#define TAKE(bytes)                            \
        {                                      \
                .what = RAW_TAKE, .n = (bytes) \
        }

static struct egress_endpoint proxy(enum egress_kind kind)
{
        return (struct egress_endpoint){
            .name = "p", .kind = kind, .host = "127.0.0.1", .port = origin.port};
}

/* For "far.test", which only the proxy can know. */
static struct upstream_request request_by(const struct egress_endpoint *e, const char *target)
{
        struct upstream_request r = request("GET", target, "Host: far.test\nA: b");
        r.host = span_of("far.test");
        r.port = 80;
        r.egress = e;
        return r;
}

static void sends_the_whole_url(void **state)
{
        static const struct {
                const char *host, *target;
                unsigned port;
                const char *line;
        } cases[] = {
            {"far.test", "/a//b/../c%2f?x=|y", 80, "GET http://far.test/a//b/../c%2f?x=|y "},
            {"far.test", "/", 8080, "GET http://far.test:8080/ "},
            {"2001:db8::1", "/", 80, "GET http://[2001:db8::1]/ "},
            {"far.test", "*", 80, "GET http://far.test "},
        };
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char expected[256];
                struct seen s = {0};
                ORIGIN(ACCEPT, REQUEST, ANSWER(OK_EMPTY));
                struct egress_endpoint e = proxy(EGRESS_HTTP);
                struct upstream_request r = request_by(&e, cases[i].target);
                r.host = span_of(cases[i].host);
                r.port = cases[i].port;
                run(&s, &r);
                assert_int_equal(s.end.error, UPSTREAM_OK);
                assert_string_equal(s.end.address, "");
                assert_string_equal(s.end.exit, "");
                snprintf(expected, sizeof expected, "%sHTTP/1.1\r\nHost: far.test\r\nA: b\r\n\r\n",
                         cases[i].line);
                assert_string_equal(raw_origin_stop(&origin), expected);
        }
}

static void proves_who_it_is(void **state)
{
        struct seen s = {0}, t = {0}, u = {0};

        (void)state;
        ORIGIN(ACCEPT, REQUEST,
               ANSWER("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
               {.what = RAW_CLOSE}, ACCEPT, REQUEST, ANSWER(OK_EMPTY), ACCEPT, REQUEST,
               ANSWER(OK_EMPTY));
        struct egress_endpoint e = proxy(EGRESS_HTTP);
        struct upstream_request r = request_by(&e, "/");
        e.user = "u%41";
        e.password = "p:%@ \xc3\xa9";
        run(&s, &r);
        run(&t, &r); /* by the same handle, on a new connection */
        e.user = "other";
        e.password = "";
        run(&u, &r); /* not on the open connection of the former */
        assert_int_equal(u.end.error, UPSTREAM_OK);
        const char *log = raw_origin_stop(&origin);
        const char *mine = strstr(log, "Proxy-Authorization: Basic dSU0MTpwOiVAIMOp\r\n");
        assert_non_null(mine);
        assert_non_null(strstr(mine + 1, "Proxy-Authorization: Basic dSU0MTpwOiVAIMOp\r\n"));
        assert_non_null(strstr(log, "Proxy-Authorization: Basic b3RoZXI6\r\n"));
        assert_null(strcasestr(log, "Proxy-Connection"));
        assert_int_equal(origin.connections, 3);
}

/* The proxy may be about to close an open connection without having said so. */
static void does_not_risk_what_must_not_go_twice(void **state)
{
        struct seen s = {0}, t = {0}, u = {0};

        (void)state;
        ORIGIN(ACCEPT, REQUEST, ANSWER(OK_EMPTY), REQUEST, ANSWER(OK_EMPTY), ACCEPT, REQUEST,
               ANSWER(OK_EMPTY));
        struct egress_endpoint e = proxy(EGRESS_HTTP);
        struct upstream_request r = request_by(&e, "/");
        run(&s, &r);
        run(&t, &r);
        assert_true(t.end.reused);
        r.method = span_of("POST");
        r.replayable = false;
        run(&u, &r);
        assert_int_equal(u.end.error, UPSTREAM_OK);
        assert_false(u.end.reused);
        raw_origin_stop(&origin);
        assert_int_equal(origin.connections, 2);
}

/* What a handle was told for one request is not left over for the next. */
static void forgets_the_former_way(void **state)
{
        struct seen s = {0}, t = {0}, u = {0};

        (void)state;
        ORIGIN(ACCEPT, REQUEST, ANSWER(OK_EMPTY), ACCEPT, REQUEST, ANSWER(OK_EMPTY), ACCEPT,
               REQUEST, ANSWER(OK_EMPTY));
        struct egress_endpoint e = proxy(EGRESS_HTTP);
        struct egress_endpoint local = {.name = "l", .kind = EGRESS_SOURCE, .source = "127.0.0.9"};
        e.user = "u";
        struct upstream_request r = request_by(&e, "/");
        run(&s, &r);
        r = request("GET", "/direct", "Host: h");
        r.egress = &local;
        run(&t, &r);
        r.egress = NULL;
        run(&u, &r);
        assert_string_equal(t.end.exit, "127.0.0.9");
        assert_string_equal(u.end.exit, "127.0.0.1");
        assert_string_equal(raw_origin_stop(&origin),
                            "GET http://far.test/ HTTP/1.1\r\nProxy-Authorization: Basic dTo=\r\n"
                            "Host: far.test\r\nA: b\r\n\r\n"
                            "GET /direct HTTP/1.1\r\nHost: h\r\n\r\n"
                            "GET /direct HTTP/1.1\r\nHost: h\r\n\r\n");
}

/* Each local address has connections of its own, and uses them again. */
static void keeps_addresses_apart(void **state)
{
        static const struct egress_endpoint two = {.kind = EGRESS_SOURCE, .source = "127.0.0.2"},
                                            three = {.kind = EGRESS_SOURCE, .source = "127.0.0.3"},
                                            direct = {.kind = EGRESS_DIRECT};
        static const struct {
                const struct egress_endpoint *egress;
                bool reused;
                const char *exit;
        } cases[] = {
            {&two, false, "127.0.0.2"},
            {&direct, false, "127.0.0.1"},
            {&three, false, "127.0.0.3"},
            {NULL, true, "127.0.0.1"},
        };
        (void)state;
        ORIGIN(ACCEPT, REQUEST, ANSWER(OK_EMPTY), ACCEPT, REQUEST, ANSWER(OK_EMPTY), REQUEST,
               ANSWER(OK_EMPTY), ACCEPT, REQUEST, ANSWER(OK_EMPTY), REQUEST, ANSWER(OK_EMPTY));
        static const size_t order[] = {0, 1, 3, 2};
        for (size_t i = 0; i < COUNT_OF(order); i++) {
                struct seen s = {0};
                struct upstream_request r = request("GET", "/", "Host: h");
                r.egress = cases[order[i]].egress;
                run(&s, &r);
                assert_int_equal(s.end.error, UPSTREAM_OK);
                assert_int_equal(s.end.reused, cases[order[i]].reused);
                assert_string_equal(s.end.exit, cases[order[i]].exit);
        }
        struct seen s = {0};
        struct upstream_request r = request("GET", "/", "Host: h");
        r.egress = &three;
        run(&s, &r);
        assert_true(s.end.reused);
        assert_string_equal(s.end.exit, "127.0.0.3");
        raw_origin_stop(&origin);
        assert_int_equal(origin.connections, 3);
}

static void needs_an_address_of_its_own(void **state)
{
        static const struct egress_endpoint foreign = {.kind = EGRESS_SOURCE,
                                                       .source = "192.0.2.1"};
        struct seen s = {0};

        (void)state;
        ORIGIN({.what = RAW_HOLD});
        struct upstream_request r = request("GET", "/", "Host: h");
        r.egress = &foreign;
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_EGRESS_ADDRESS);
        assert_true(upstream_error_is_endpoints(s.end.error));
        assert_false(upstream_error_is_hosts(s.end.error));
        assert_int_equal(upstream_error_failure(s.end.error), RETRY_FAILURE_CONNECT);
        raw_origin_release(&origin);
        raw_origin_stop(&origin);
}

/* The proxy may be anywhere; what it is to connect to may not be, where that can be seen. */
static void guards_what_can_be_seen(void **state)
{
        static const struct {
                const char *host;
                bool denied;
        } cases[] = {
            {"127.0.0.1", true},  {"127.1", true},       {"0x7f.0.0.1", true},
            {"2130706433", true}, {"127.0.0.1.", true},  {"localhost", true},
            {"LOCALHOST.", true}, {"a.localhost", true}, {"::1", true},
            {"10.0.0.1", true},   {"10.0.0.2", false},   {"::ffff:10.0.0.1", true},
            {"far.test", false},  {"192.0.2.1", false},  {"notlocalhost", false},
        };
        struct cidr network;
        (void)state;
        cidr_set_add_named(&deny, span_of("loopback"));
        cidr_set_add_named(&deny, span_of("private"));
        cidr_parse(span_of("10.0.0.2"), &network);
        cidr_set_add(&allow, &network);
        for (enum egress_kind kind = EGRESS_HTTP; kind <= EGRESS_HTTP; kind++)
                for (size_t i = 0; i < COUNT_OF(cases); i++) {
                        struct raw_step steps[] = {ACCEPT, REQUEST, ANSWER(OK_EMPTY)};
                        struct seen s = {0};
                        print_message("%s\n", cases[i].host);
                        raw_origin_start(&origin, steps, cases[i].denied ? 0 : COUNT_OF(steps));
                        struct egress_endpoint e = proxy(kind);
                        struct upstream_request r = request_by(&e, "/");
                        r.host = span_of(cases[i].host);
                        run(&s, &r);
                        assert_int_equal(s.end.error, cases[i].denied
                                                          ? UPSTREAM_DESTINATION_IP_PROHIBITED
                                                          : UPSTREAM_OK);
                        raw_origin_stop(&origin);
                        assert_int_equal(origin.pending, 0);
                }
}

#define ERROR_HEAD(status, fields) \
        "HTTP/1.1 " status " X\r\n" fields "Content-Length: 4\r\n\r\nbody"

static const struct {
        const char *answer;
        enum upstream_error error;
} answers[] = {
    {ERROR_HEAD("407", ""), UPSTREAM_EGRESS_LOGIN},
    {ERROR_HEAD("503", ""), UPSTREAM_OK}, /* the host's, as far as one can see */
    {ERROR_HEAD("503", "Via: 1.1 p (squid)\r\nX-Squid-Error: ERR_CONNECT_FAIL 111\r\n"),
     UPSTREAM_CONNECTION_REFUSED},
    {ERROR_HEAD("503", "X-Squid-Error: ERR_DNS_FAIL 0\r\n"), UPSTREAM_DNS_ERROR},
    {ERROR_HEAD("504", "X-Squid-Error: ERR_READ_TIMEOUT\r\n"), UPSTREAM_HTTP_RESPONSE_TIMEOUT},
    {ERROR_HEAD("502", "X-Squid-Error: ERR_ZERO_SIZE_OBJECT 0\r\n"),
     UPSTREAM_CONNECTION_TERMINATED},
    {ERROR_HEAD("403", "X-Squid-Error: ERR_ACCESS_DENIED 0\r\n"), UPSTREAM_EGRESS_DENIED},
    {ERROR_HEAD("500", "X-Squid-Error: ERR_CANNOT_FORWARD 0\r\n"),
     UPSTREAM_DESTINATION_UNAVAILABLE},
    {ERROR_HEAD("500", "X-Squid-Error: ERR_SOCKET_FAILURE 24\r\n"), UPSTREAM_EGRESS_FAILED},
    {ERROR_HEAD("400", "X-Squid-Error: ERR_INVALID_URL 0\r\n"), UPSTREAM_OK},
    {ERROR_HEAD("403", "X-Squid-Error: ERR_OWN 0\r\n"), UPSTREAM_EGRESS_DENIED},
    {ERROR_HEAD("500", "X-Squid-Error: \r\n"), UPSTREAM_EGRESS_FAILED},
    {ERROR_HEAD("502", "Proxy-Status: weir; error=connection_refused; details=\"x\"\r\n"),
     UPSTREAM_CONNECTION_REFUSED},
    {ERROR_HEAD("502", "Proxy-Status: a; error=dns_error, b;error=connection_timeout\r\n"),
     UPSTREAM_CONNECTION_TIMEOUT},
    {ERROR_HEAD("502", "Proxy-Status: a; error=dns_error, b; next-hop=x\r\n"), UPSTREAM_OK},
    {ERROR_HEAD("503", "Proxy-Status: weir; error=destination_unavailable\r\n"),
     UPSTREAM_EGRESS_FAILED},
    {ERROR_HEAD("500", "Proxy-Status: weir; error=proxy_internal_error\r\n"),
     UPSTREAM_EGRESS_FAILED},
    {ERROR_HEAD("502", "Via: 1.1 x\r\nProxy-Status: cdn; error=connection_refused\r\n"),
     UPSTREAM_OK},
    {ERROR_HEAD("500", "Server: tinyproxy/1.11.1\r\n"), UPSTREAM_EGRESS_FAILED},
    {ERROR_HEAD("400", "Server: tinyproxy/1.11.1\r\n"), UPSTREAM_OK},
    {ERROR_HEAD("401", "Server: tinyproxy/1.11.1\r\n"), UPSTREAM_EGRESS_LOGIN},
    {ERROR_HEAD("403", "Server: tinyproxy/1.11.1\r\n"), UPSTREAM_EGRESS_DENIED},
    {ERROR_HEAD("403", "Proxy-Status: weir; error=destination_ip_prohibited\r\n"),
     UPSTREAM_EGRESS_DENIED},
    {ERROR_HEAD("401", "Server: nginx\r\n"), UPSTREAM_OK},
    {"HTTP/1.0 500 Unable to connect\r\nServer: tinyproxy/1.11.1\r\n\r\nbody",
     UPSTREAM_DESTINATION_UNAVAILABLE},
    {ERROR_HEAD("500", "Server: nginx\r\n"), UPSTREAM_OK},
    {ERROR_HEAD("200", "X-Squid-Error: ERR_DNS_FAIL 0\r\n"), UPSTREAM_OK},
};

static void tells_its_answers_from_the_hosts(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(answers); i++) {
                struct raw_step steps[] = {
                    ACCEPT, REQUEST, ANSWER(answers[i].answer), {.what = RAW_CLOSE}};
                struct seen s = {0};
                print_message("%s\n", answers[i].answer);
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct egress_endpoint e = proxy(EGRESS_HTTP);
                struct upstream_request r = request_by(&e, "/");
                run(&s, &r);
                assert_int_equal(s.end.error, answers[i].error);
                assert_int_equal(s.heads, answers[i].error == UPSTREAM_OK);
                assert_int_equal(s.body_len, answers[i].error == UPSTREAM_OK ? 4 : 0);
                if (answers[i].error)
                        assert_string_not_equal(s.detail, "");
                raw_origin_stop(&origin);
        }
}

/* The same fields from a host mean nothing. */
static void leaves_hosts_their_answers(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(answers); i++) {
                struct raw_step steps[] = {
                    ACCEPT, REQUEST, ANSWER(answers[i].answer), {.what = RAW_CLOSE}};
                struct seen s = {0};
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct upstream_request r = request("GET", "/", "Host: h");
                run(&s, &r);
                assert_int_equal(s.end.error, UPSTREAM_OK);
                assert_int_equal(s.heads, 1);
                raw_origin_stop(&origin);
        }
}

static struct upstream_request dial_by(const struct egress_endpoint *e)
{
        struct upstream_request r = {.dial = true,
                                     .host = span_of("far.test"),
                                     .port = 443,
                                     .egress = e,
                                     .exit_header = "X-Exit",
                                     .deny = &deny,
                                     .allow = &allow,
                                     .timeouts = {.connect = 5 * USEC_PER_SEC}};
        return r;
}

static void tells_why_there_is_no_tunnel(void **state)
{
        static const struct {
                const char *answer;
                enum upstream_error error;
        } cases[] = {
            {ERROR_HEAD("407", "Proxy-Authenticate: Basic realm=x\r\n"), UPSTREAM_EGRESS_LOGIN},
            {ERROR_HEAD("403", ""), UPSTREAM_EGRESS_DENIED},
            {ERROR_HEAD("400", "X-Squid-Error: ERR_INVALID_URL 0\r\n"), UPSTREAM_EGRESS_DENIED},
            {ERROR_HEAD("402", ""), UPSTREAM_EGRESS_FAILED},
            {ERROR_HEAD("429", ""), UPSTREAM_EGRESS_FAILED},
            {ERROR_HEAD("500", ""), UPSTREAM_EGRESS_FAILED},
            {ERROR_HEAD("502", ""), UPSTREAM_DESTINATION_UNAVAILABLE},
            {ERROR_HEAD("503", ""), UPSTREAM_EGRESS_FAILED},
            {ERROR_HEAD("504", ""), UPSTREAM_CONNECTION_TIMEOUT},
            {ERROR_HEAD("503", "X-Squid-Error: ERR_CONNECT_FAIL 111\r\n"),
             UPSTREAM_CONNECTION_REFUSED},
            {ERROR_HEAD("502", "Proxy-Status: p; error=dns_error\r\n"), UPSTREAM_DNS_ERROR},
            {"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
             UPSTREAM_EGRESS_FAILED},
            {"SSH-2.0-x\r\n", UPSTREAM_EGRESS_TERMINATED},
            {"", UPSTREAM_EGRESS_TERMINATED},
            {"HTTP/1.1 200 O", UPSTREAM_EGRESS_TERMINATED},
        };
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct raw_step steps[] = {
                    ACCEPT, REQUEST, ANSWER(cases[i].answer), {.what = RAW_CLOSE}};
                struct seen s = {0};
                print_message("%s\n", cases[i].answer);
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct egress_endpoint e = proxy(EGRESS_HTTP);
                struct upstream_request r = dial_by(&e);
                run(&s, &r);
                assert_int_equal(s.end.error, cases[i].error);
                assert_null(s.end.dialled);
                assert_null(strstr(s.detail, "127.0.0.1"));
                raw_origin_stop(&origin);
        }
}

/* Waits for bytes from what was dialled. */
static void expect_bytes(struct bufferevent *bev, const char *text)
{
        bufferevent_enable(bev, EV_READ | EV_WRITE);
        TURN_WHILE(evbuffer_get_length(bufferevent_get_input(bev)) < strlen(text));
        assert_int_equal(evbuffer_get_length(bufferevent_get_input(bev)), strlen(text));
        assert_memory_equal(evbuffer_pullup(bufferevent_get_input(bev), -1), text, strlen(text));
}

static void opens_tunnels(void **state)
{
        struct seen s = {0};

        (void)state;
        /* what the host says at once must not be lost behind the proxy's words */
        ORIGIN(ACCEPT, REQUEST, ANSWER("HTTP/1.0 200 Yes\r\nX-Exit: 192.0.2.77\r\n\r\n220 hello"),
               TAKE(4), ANSWER("bye"));
        struct egress_endpoint e = proxy(EGRESS_HTTP);
        e.user = "me";
        e.password = "secret";
        struct upstream_request r = dial_by(&e);
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_OK);
        assert_non_null(s.end.dialled);
        assert_string_equal(s.end.exit, "192.0.2.77");
        assert_string_equal(s.end.address, "");
        expect_bytes(s.end.dialled, "220 hello");
        bufferevent_write(s.end.dialled, "QUIT", 4);
        expect_bytes(s.end.dialled, "220 hellobye");
        bufferevent_free(s.end.dialled);
        assert_string_equal(raw_origin_stop(&origin),
                            "CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\n"
                            "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"
                            "Proxy-Connection: Keep-Alive\r\n\r\nQUIT");
}

static void reads_the_exit_of_each_answer(void **state)
{
        static const struct {
                const char *field, *exit;
        } cases[] = {
            {"X-Exit: 192.0.2.1\r\n", "192.0.2.1"},
            {"x-exit:  2001:db8::1 \r\n", "2001:db8::1"},
            {"X-Exit: gw_7-a.b\r\n", "gw_7-a.b"},
            {"X-Exit: \r\n", ""},
            {"X-Exit: a b\r\n", ""},
            {"X-Exit: <script>\r\n", ""},
            {"X-Exit: 0123456789012345678901234567890123456789012345678901234567890123\r\n", ""},
            {"", ""},
        };
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char answer[256];
                struct raw_step steps[] = {ACCEPT, REQUEST, ANSWER(answer)};
                struct seen s = {0};
                snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\n%sContent-Length: 0\r\n\r\n",
                         cases[i].field);
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct egress_endpoint e = proxy(EGRESS_HTTP);
                struct upstream_request r = request_by(&e, "/");
                r.exit_header = "X-Exit";
                run(&s, &r);
                assert_string_equal(s.end.exit, cases[i].exit);
                raw_origin_stop(&origin);
        }
}

static void tells_whose_fault_a_lost_proxy_is(void **state)
{
        struct seen s = {0}, t = {0}, u = {0};

        (void)state;
        ORIGIN(ACCEPT, REQUEST, {.what = RAW_RESET});
        struct egress_endpoint e = proxy(EGRESS_HTTP);
        struct upstream_request r = request_by(&e, "/");
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_CONNECTION_TERMINATED); /* as likely the host's */
        raw_origin_stop(&origin);                                      /* its port is closed now */
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_EGRESS_REFUSED);
        assert_string_equal(upstream_error_type(t.end.error), "connection_refused");
        assert_null(strstr(t.detail, "127.0.0.1"));
        e.host = "none.test";
        run(&u, &r);
        assert_int_equal(u.end.error, UPSTREAM_EGRESS_DNS_ERROR);
        assert_null(strstr(u.detail, "none"));
}

#define GREETED TAKE(3), BYTES("\5\0")
#define DOMAIN_REQUEST TAKE(4 + 1 + 8 + 2)

static void speaks_socks(void **state)
{
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN(ACCEPT, TAKE(4), BYTES("\5\2"), TAKE(3 + 4 + 6), BYTES("\1\0"), DOMAIN_REQUEST,
               BYTES("\5\0\0\1\0\0\0\0\0\0"), REQUEST, ANSWER(OK_EMPTY), ACCEPT, GREETED, TAKE(10),
               BYTES("\5\0\0\1\0\0\0\0\0\0"), REQUEST, ANSWER(OK_EMPTY));
        struct egress_endpoint e = proxy(EGRESS_SOCKS5H);
        e.user = "me%4";
        e.password = "secret";
        struct upstream_request r = request_by(&e, "/x");
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_OK);
        assert_string_equal(s.end.address, "");
        struct egress_endpoint local = proxy(EGRESS_SOCKS5);
        r.egress = &local;
        r.host = span_of("one.test");
        r.port = 80;
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_OK);
        raw_origin_stop(&origin);
        static const char log[] = "\5\2\0\2"
                                  "\1\4me%4\6secret"
                                  "\5\1\0\3\10far.test\0\120"
                                  "GET /x HTTP/1.1\r\nHost: far.test\r\nA: b\r\n\r\n"
                                  "\5\1\0"
                                  "\5\1\0\1\177\0\0\1\0\120"
                                  "GET /x HTTP/1.1\r\nHost: far.test\r\nA: b\r\n\r\n";
        assert_int_equal(origin.log_len, sizeof log - 1);
        assert_memory_equal(origin.log, log, sizeof log - 1);
}

static void reads_the_faults_of_socks(void **state)
{
        static const struct {
                char code;
                enum upstream_error error;
        } cases[] = {
            {1, UPSTREAM_DESTINATION_UNAVAILABLE},
            {2, UPSTREAM_EGRESS_DENIED},
            {3, UPSTREAM_DESTINATION_IP_UNROUTABLE},
            {4, UPSTREAM_DESTINATION_IP_UNROUTABLE},
            {5, UPSTREAM_CONNECTION_REFUSED},
            {6, UPSTREAM_CONNECTION_TIMEOUT},
            {7, UPSTREAM_EGRESS_FAILED},
            {8, UPSTREAM_EGRESS_DENIED},
        };
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char reply[10] = {5, cases[i].code, 0, 1};
                struct raw_step steps[] = {ACCEPT,
                                           GREETED,
                                           DOMAIN_REQUEST,
                                           {.what = RAW_SEND, .text = reply, .n = sizeof reply}};
                struct seen s = {0};
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct egress_endpoint e = proxy(EGRESS_SOCKS5H);
                struct upstream_request r = request_by(&e, "/");
                run(&s, &r);
                assert_int_equal(s.end.error, cases[i].error);
                raw_origin_stop(&origin);
        }
        static const struct {
                const char *reply;
                enum upstream_error error;
        } greetings[] = {
            {"\5\377", UPSTREAM_EGRESS_LOGIN},
            {"\4\1", UPSTREAM_EGRESS_FAILED},
            {"", UPSTREAM_EGRESS_FAILED},
        };
        for (size_t i = 0; i < COUNT_OF(greetings); i++) {
                struct raw_step steps[] = {
                    ACCEPT, TAKE(3), ANSWER(greetings[i].reply), {.what = RAW_CLOSE}};
                struct seen s = {0};
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct egress_endpoint e = proxy(EGRESS_SOCKS5H);
                struct upstream_request r = request_by(&e, "/");
                run(&s, &r);
                assert_int_equal(s.end.error, greetings[i].error);
                raw_origin_stop(&origin);
        }
        struct seen s = {0};
        ORIGIN(ACCEPT, GREETED);
        struct egress_endpoint e = proxy(EGRESS_SOCKS5);
        struct upstream_request r = request_by(&e, "/");
        r.host = span_of("none.test");
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_DNS_ERROR);
        raw_origin_stop(&origin);
}

/* Time that passes before the proxy has taken the connection, and after. */
static void waits_so_long(void **state)
{
        struct seen s = {0};

        (void)state;
        ORIGIN(ACCEPT, REQUEST, {.what = RAW_AWAIT_CLOSE});
        struct egress_endpoint e = proxy(EGRESS_HTTP);
        struct upstream_request r = dial_by(&e);
        r.timeouts.connect = 100 * USEC_PER_MSEC;
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_CONNECTION_TIMEOUT);
        assert_null(strstr(s.detail, "127.0.0.1"));
        raw_origin_stop(&origin);
}

/* A proxy that wants addresses gets the first one that is allowed. */
static void guards_addresses_looked_up(void **state)
{
        static const struct {
                const char *deny, *address; /* NULL: none is left */
        } cases[] = {
            {"192.0.2.0/24", "\177\0\0\2"},
            {"127.0.0.2", "\177\0\0\1"},
            {"127.0.0.0/8", NULL},
        };
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct raw_step steps[] = {
                    ACCEPT,  GREETED,          TAKE(10), BYTES("\5\0\0\1\0\0\0\0\0\0"),
                    REQUEST, ANSWER(OK_EMPTY), REQUEST,  ANSWER(OK_EMPTY)};
                struct cidr network;
                struct seen s = {0}, t = {0};
                print_message("%s\n", cases[i].deny);
                raw_origin_start(&origin, steps, cases[i].address ? COUNT_OF(steps) : 0);
                cidr_set_done(&deny);
                cidr_parse(span_of(cases[i].deny), &network);
                cidr_set_add(&deny, &network);
                struct egress_endpoint e = proxy(EGRESS_SOCKS5);
                struct upstream_request r = request_by(&e, "/");
                r.host = span_of("two.test");
                run(&s, &r);
                if (cases[i].address)
                        run(&t, &r);
                assert_int_equal(s.end.error, cases[i].address
                                                  ? UPSTREAM_OK
                                                  : UPSTREAM_DESTINATION_IP_PROHIBITED);
                assert_int_equal(t.end.reused, cases[i].address != NULL);
                raw_origin_stop(&origin);
                if (cases[i].address)
                        assert_memory_equal(origin.log + 3 + 4, cases[i].address, 4);
                assert_int_equal(origin.pending, 0);
        }
        /* the same handle serves others as ever */
        struct seen s = {0}, t = {0};
        ORIGIN(ACCEPT, REQUEST, ANSWER(OK_EMPTY));
        cidr_set_done(&deny);
        struct upstream_request r = request("GET", "/direct", "Host: h");
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_OK);
        raw_origin_stop(&origin);
        struct cidr network;
        cidr_parse(span_of("192.0.2.0/24"), &network);
        cidr_set_add(&deny, &network);
        struct egress_endpoint e = proxy(EGRESS_SOCKS5);
        r = request_by(&e, "/");
        r.host = span_of("none.test");
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_DNS_ERROR);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        const struct CMUnitTest tests[] = {
            TEST(sends_the_whole_url),
            TEST(proves_who_it_is),
            TEST(does_not_risk_what_must_not_go_twice),
            TEST(forgets_the_former_way),
            TEST(keeps_addresses_apart),
            TEST(needs_an_address_of_its_own),
            TEST(guards_what_can_be_seen),
            TEST(tells_its_answers_from_the_hosts),
            TEST(leaves_hosts_their_answers),
            TEST(tells_why_there_is_no_tunnel),
            TEST(opens_tunnels),
            TEST(reads_the_exit_of_each_answer),
            TEST(tells_whose_fault_a_lost_proxy_is),
            TEST(speaks_socks),
            TEST(reads_the_faults_of_socks),
            TEST(waits_so_long),
            TEST(guards_addresses_looked_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
