/* What goes wrong on the way: no connection, timeouts, resets, denied addresses. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/upstream_client.h"

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static const usec_t soon = 100 * USEC_PER_MSEC;

static void test_connect_failures(void **state)
{
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN({.what = RAW_HOLD});
        struct upstream_request r = request("GET", "/", "Host: h");
        raw_origin_release(&origin);
        raw_origin_stop(&origin); /* its port is closed now */
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_CONNECTION_REFUSED);
        assert_int_equal(upstream_error_status(s.end.error), 502);
        assert_int_equal(upstream_error_failure(s.end.error), RETRY_FAILURE_CONNECT);
        assert_string_not_equal(s.detail, "");
        r.host = span_of("none.test");
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_DNS_ERROR);
        assert_string_equal(upstream_error_type(t.end.error), "dns_error");
}

static void test_reset(void **state)
{
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_RESET}, {.what = RAW_ACCEPT},
               {.what = RAW_READ}, {.what = RAW_SEND, .text = CHUNKED "5\r\nhel"},
               {.what = RAW_HOLD}, {.what = RAW_RESET});
        struct upstream_request r = request("GET", "/", "Host: h");
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_CONNECTION_TERMINATED);
        assert_int_equal(s.heads, 0);
        start(&t, &r);
        TURN_WHILE(t.body_len < 3);
        raw_origin_release(&origin);
        TURN_WHILE(t.ends == 0);
        assert_int_equal(t.end.error, UPSTREAM_HTTP_RESPONSE_INCOMPLETE);
        assert_int_equal(upstream_error_failure(t.end.error), RETRY_FAILURE_RESET);
        assert_int_equal(t.heads, 1);
        raw_origin_stop(&origin);
}

static void test_answer_timeouts(void **state)
{
        static const struct {
                const char *answer;
                enum upstream_error error;
        } cases[] = {
            {"", UPSTREAM_HTTP_RESPONSE_TIMEOUT},
            {"HTTP/1.1 200 OK\r\nA", UPSTREAM_CONNECTION_READ_TIMEOUT},
            {CHUNKED "5\r\nhello\r\n", UPSTREAM_CONNECTION_READ_TIMEOUT},
        };

        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct raw_step steps[] = {{.what = RAW_ACCEPT},
                                           {.what = RAW_READ},
                                           {.what = RAW_SEND, .text = cases[i].answer},
                                           {.what = RAW_AWAIT_CLOSE}};
                struct seen s = {0};
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct upstream_request r = request("GET", "/", "Host: h");
                *(i == 0 ? &r.timeouts.first_byte : &r.timeouts.read) = soon;
                run(&s, &r);
                assert_int_equal(s.end.error, cases[i].error);
                assert_int_equal(upstream_error_failure(s.end.error), RETRY_FAILURE_TIMEOUT);
                assert_int_equal(upstream_error_status(s.end.error), 504);
                assert_in_range(s.end.total, soon, 20 * soon);
                raw_origin_stop(&origin);
                assert_true(origin.closed_by_peer);
        }
}

static void on_release(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        raw_origin_release(arg);
}

/* Whatever the other timeouts allow, and however far the head has come; but not for its body. */
static void test_head_timeout(void **state)
{
        static const struct {
                const char *answer;
                enum upstream_error error;
        } cases[] = {
            {"", UPSTREAM_HTTP_RESPONSE_TIMEOUT},
            {"HTTP/1.1 103 Early Hints\r\n\r\n", UPSTREAM_CONNECTION_READ_TIMEOUT},
            {"HTTP/1.1 200 OK\r\nA: b\r\n", UPSTREAM_CONNECTION_READ_TIMEOUT},
        };

        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct raw_step steps[] = {{.what = RAW_ACCEPT},
                                           {.what = RAW_READ},
                                           {.what = RAW_SEND, .text = cases[i].answer},
                                           {.what = RAW_AWAIT_CLOSE}};
                struct seen s = {0};
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct upstream_request r = request("GET", "/", "Host: h");
                r.timeouts.head = soon;
                run(&s, &r);
                assert_int_equal(s.end.error, cases[i].error);
                assert_int_equal(upstream_error_status(s.end.error), 504);
                assert_in_range(s.end.total, soon, 20 * soon);
                raw_origin_stop(&origin);
        }
        struct timeval later = {0, 200000};
        struct seen s = {0};
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = CHUNKED},
               {.what = RAW_HOLD}, {.what = RAW_SEND, .text = "5\r\nhello\r\n0\r\n\r\n"});
        struct upstream_request r = request("GET", "/", "Host: h");
        r.timeouts.head = soon;
        event_base_once(base, -1, EV_TIMEOUT, on_release, &origin, &later);
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_OK);
        assert_in_range(s.end.total, soon + 1, 50 * soon);
        raw_origin_stop(&origin);
}

/* The clock of a handle is not moved for each request: it must not cut short the next one. */
static void test_clock_of_former_request(void **state)
{
        struct timeval later = {0, 200000};
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = OK_EMPTY},
               {.what = RAW_READ}, {.what = RAW_HOLD}, {.what = RAW_SEND, .text = HELLO});
        struct upstream_request r = request("GET", "/", "Host: h");
        r.timeouts.first_byte = soon;
        run(&s, &r);
        r.timeouts.first_byte = 5 * USEC_PER_SEC;
        event_base_once(base, -1, EV_TIMEOUT, on_release, &origin, &later);
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_OK);
        assert_in_range(t.end.total, soon, 50 * soon);
        raw_origin_stop(&origin);
}

/* A listener whose queue is full does not answer. */
static void test_connect_timeout(void **state)
{
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof sa;
        int listener = socket(AF_INET, SOCK_STREAM, 0), fillers[4];
        struct seen s = {0}, t = {0};

        (void)state;
        assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof sa), 0);
        assert_int_equal(listen(listener, 0), 0);
        getsockname(listener, (struct sockaddr *)&sa, &len);
        for (size_t i = 0; i < COUNT_OF(fillers); i++) {
                fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
                int rc = connect(fillers[i], (struct sockaddr *)&sa, sizeof sa);
                assert_true(rc == 0 || errno == EINPROGRESS);
        }
        struct upstream_request r = request("GET", "/", "Host: h");
        r.port = ntohs(sa.sin_port);
        r.timeouts.connect = soon;
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_CONNECTION_TIMEOUT);
        assert_int_equal(upstream_error_failure(s.end.error), RETRY_FAILURE_CONNECT);
        r.timeouts.connect = 0;
        r.timeouts.head = soon;
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_CONNECTION_TIMEOUT);
        assert_in_range(t.end.total, soon, 20 * soon);
        for (size_t i = 0; i < COUNT_OF(fillers); i++)
                close(fillers[i]);
        close(listener);
}

/* Giving up on a name, or cancelling, must not wait for the resolver. */
static void test_slow_name(void **state)
{
        struct seen s = {0}, t = {0};
        unsigned files = open_files();

        (void)state;
        pthread_mutex_lock(&slow_lock);
        struct upstream_request r = request("GET", "/", "Host: h");
        r.host = span_of("slow.test");
        r.port = 80;
        r.timeouts.connect = soon;
        start(&t, &r);
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_DNS_TIMEOUT);
        TURN_WHILE(t.ends == 0);
        struct seen u = {0};
        r.timeouts.connect = 0;
        start(&u, &r);
        event_base_loop(base, EVLOOP_NONBLOCK);
        attempt_cancel(u.attempt);
        pthread_mutex_unlock(&slow_lock);
        TURN_WHILE(open_files() > files); /* the threads have gone */
}

static void test_tls_failures(void **state)
{
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_SEND, .text = "HTTP/1.1 400 Bad Request\r\n\r\n"},
               {.what = RAW_AWAIT_CLOSE}, {.what = RAW_ACCEPT}, {.what = RAW_CLOSE},
               {.what = RAW_AWAIT_CLOSE});
        struct upstream_request r = request("GET", "/", "Host: h");
        r.tls = true;
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_TLS_PROTOCOL_ERROR);
        assert_int_equal(upstream_error_failure(s.end.error), RETRY_FAILURE_FINAL);
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_CONNECTION_TERMINATED);
        assert_int_equal(upstream_error_failure(t.end.error), RETRY_FAILURE_RESET);
        raw_origin_stop(&origin);
}

/* --- the address guard --- */

static void deny_network(const char *text)
{
        struct cidr c;

        assert_int_equal(cidr_parse(span_of(text), &c), 0);
        cidr_set_add(&deny, &c);
}

static void test_guard(void **state)
{
        static const struct {
                const char *host, *deny, *allow;
                bool goes;
        } cases[] = {
            {"127.0.0.1", "127.0.0.0/8", NULL, false},
            {"127.0.0.1", "127.0.0.0/8", "127.0.0.1", true},
            {"one.test", "127.0.0.1", NULL, false},
            {"two.test", "127.0.0.0/8", NULL, false},
            {"two.test", "127.0.0.2", NULL, true}, /* by its other address */
            {"2130706433", "127.0.0.1", NULL, false},
            {"0x7f.1", "127.0.0.1", NULL, false},
            {"::ffff:127.0.0.1", "127.0.0.1", NULL, false},
        };

        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct raw_step steps[] = {
                    {.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = OK_EMPTY}};
                struct seen s = {0};
                raw_origin_start(&origin, steps, cases[i].goes ? COUNT_OF(steps) : 0);
                deny_network(cases[i].deny);
                if (cases[i].allow) {
                        struct cidr c;
                        assert_int_equal(cidr_parse(span_of(cases[i].allow), &c), 0);
                        cidr_set_add(&allow, &c);
                }
                struct upstream_request r = request("GET", "/", "Host: h");
                r.host = span_of(cases[i].host);
                run(&s, &r);
                raw_origin_stop(&origin);
                assert_int_equal(origin.pending, 0);
                assert_int_equal(s.end.error,
                                 cases[i].goes ? UPSTREAM_OK : UPSTREAM_DESTINATION_IP_PROHIBITED);
                cidr_set_done(&deny);
                cidr_set_done(&allow);
        }
        assert_int_equal(upstream_error_status(UPSTREAM_DESTINATION_IP_PROHIBITED), 403);
}

/* A name with a denied address and one that refuses, in either order: what is told is the latter.
 */
static void test_guard_masks_no_failure(void **state)
{
        static const char *const denied[] = {"127.0.0.1", "127.0.0.2"};

        (void)state;
        ORIGIN({.what = RAW_CLOSE});
        unsigned port = origin.port;
        raw_origin_stop(&origin); /* nobody listens there now */
        for (size_t i = 0; i < COUNT_OF(denied); i++) {
                struct seen s = {0};
                deny_network(denied[i]);
                struct upstream_request r = request("GET", "/", "Host: h");
                r.host = span_of("two.test");
                r.port = port;
                run(&s, &r);
                assert_int_equal(s.end.error, UPSTREAM_CONNECTION_REFUSED);
                cidr_set_done(&deny);
        }
}

/* No descriptor is left: our own fault, which no other attempt would change. */
static void test_no_descriptor(void **state)
{
        struct rlimit was, none;
        struct seen s = {0};

        (void)state;
        ORIGIN({.what = RAW_HOLD});
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
        int next = dup(0);
        close(next);
        none = was;
        none.rlim_cur = (rlim_t)next;
        struct upstream_request r = request("GET", "/", "Host: h");
        setrlimit(RLIMIT_NOFILE, &none);
        run(&s, &r);
        setrlimit(RLIMIT_NOFILE, &was);
        raw_origin_release(&origin);
        raw_origin_stop(&origin);
        assert_int_equal(s.end.error, UPSTREAM_PROXY_INTERNAL_ERROR);
        assert_int_equal(upstream_error_failure(s.end.error), RETRY_FAILURE_FINAL);
        assert_false(upstream_error_is_hosts(s.end.error));
}

static void test_whose_doing(void **state)
{
        (void)state;
        assert_true(upstream_error_is_hosts(UPSTREAM_CONNECTION_REFUSED));
        assert_true(upstream_error_is_hosts(UPSTREAM_HTTP_PROTOCOL_ERROR));
        assert_false(upstream_error_is_hosts(UPSTREAM_HTTP_REQUEST_ERROR));
        assert_false(upstream_error_is_hosts(UPSTREAM_DESTINATION_IP_PROHIBITED));
        assert_true(upstream_error_is_endpoints(UPSTREAM_EGRESS_LOGIN));
        assert_false(upstream_error_is_refusal(UPSTREAM_EGRESS_LOGIN));
        assert_true(upstream_error_is_refusal(UPSTREAM_EGRESS_DENIED));
        assert_false(upstream_error_is_endpoints(UPSTREAM_EGRESS_DENIED));
        assert_false(upstream_error_is_hosts(UPSTREAM_EGRESS_DENIED));
}

/* An open connection to an address that has been denied since is not used. */
static void test_guard_reused(void **state)
{
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = OK_EMPTY});
        struct upstream_request r = request("GET", "/", "Host: h");
        run(&s, &r);
        deny_network("127.0.0.1");
        run(&t, &r);
        raw_origin_stop(&origin);
        assert_int_equal(s.end.error, UPSTREAM_OK);
        assert_int_equal(t.end.error, UPSTREAM_DESTINATION_IP_PROHIBITED);
        assert_int_equal(origin.reads, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
            CASE(connect_failures),
            CASE(reset),
            CASE(answer_timeouts),
            CASE(head_timeout),
            CASE(clock_of_former_request),
            CASE(connect_timeout),
            CASE(slow_name),
            CASE(tls_failures),
            CASE(guard),
            CASE(guard_reused),
            CASE(guard_masks_no_failure),
            CASE(no_descriptor),
            CASE(whose_doing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
