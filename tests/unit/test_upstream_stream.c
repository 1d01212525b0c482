/* Connections that are wanted for themselves: dialled ones, and those after a 101. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/upstream_client.h"

#define SWITCH "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
#define REFUSE "HTTP/1.1 429 No\r\nContent-Length: 4\r\n\r\nwait"
#define MIB ((size_t)1024 * 1024)
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

/* --- dialling --- */

static struct upstream_request dial(void)
{
        struct upstream_request r = {.dial = true,
                                     .host = span_of("127.0.0.1"),
                                     .port = origin.port,
                                     .deny = &deny,
                                     .allow = &allow,
                                     .timeouts = {.connect = 5 * USEC_PER_SEC}};
        return r;
}

/* libevent closes a descriptor only in the loop's next round. */
static void let_go(struct bufferevent *bev)
{
        bufferevent_free(bev);
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static size_t arrived(struct bufferevent *bev)
{
        return evbuffer_get_length(bufferevent_get_input(bev));
}

/* Again and again, with requests between: the handles are the same, what they are told differs. */
static void test_dial(void **state)
{
        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ_HEAD}, {.what = RAW_SEND, .text = "hello"},
               {.what = RAW_AWAIT_CLOSE}, {.what = RAW_ACCEPT}, {.what = RAW_READ},
               {.what = RAW_SEND, .text = OK_EMPTY}, {.what = RAW_ACCEPT}, {.what = RAW_READ_HEAD},
               {.what = RAW_SEND, .text = "hello"}, {.what = RAW_AWAIT_CLOSE});
        for (int i = 0; i < 2; i++) {
                struct seen s = {0};
                struct upstream_request r = dial();
                run(&s, &r);
                assert_int_equal(s.end.error, UPSTREAM_OK);
                assert_int_equal(s.heads, 0);
                assert_non_null(s.end.dialled);
                assert_false(s.end.reused);
                assert_true(s.end.connect > 0);
                struct bufferevent *bev = s.end.dialled;
                bufferevent_enable(bev, EV_READ | EV_WRITE);
                bufferevent_write(bev, "any\r\n\r\n", 7);
                TURN_WHILE(arrived(bev) < 5);
                let_go(bev);
                if (i == 0) {
                        struct seen t = {0};
                        struct upstream_request get = request("GET", "/", "Host: h");
                        run(&t, &get);
                        assert_int_equal(t.status, 200);
                        assert_null(t.end.dialled);
                }
        }
        assert_string_equal(raw_origin_stop(&origin),
                            "any\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\nany\r\n\r\n");
}

/* An open connection that waits for a request is no new one. */
static void test_dial_takes_none_from_the_pool(void **state)
{
        (void)state;
        struct seen s = {0}, t = {0};
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = OK_EMPTY},
               {.what = RAW_ACCEPT}, {.what = RAW_AWAIT_CLOSE});
        struct upstream_request get = request("GET", "/", "Host: h"), r = dial();
        run(&s, &get);
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_OK);
        let_go(t.end.dialled);
        raw_origin_stop(&origin);
        assert_int_equal(origin.connections, 2);
}

static void test_dial_fails(void **state)
{
        (void)state;
        struct seen s = {0}, t = {0}, u = {0}, v = {0};
        ORIGIN({.what = RAW_HOLD});
        raw_origin_release(&origin);
        raw_origin_stop(&origin); /* the port is closed now */
        struct upstream_request r = dial();
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_CONNECTION_REFUSED);
        assert_null(s.end.dialled);

        assert_int_equal(cidr_set_add_named(&deny, span_of("loopback")), 0);
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_DESTINATION_IP_PROHIBITED);
        assert_null(t.end.dialled);

        r.host = span_of("none.test");
        run(&u, &r);
        assert_int_equal(u.end.error, UPSTREAM_DNS_ERROR);

        r.port = 0;
        run(&v, &r);
        assert_int_equal(v.end.error, UPSTREAM_HTTP_REQUEST_ERROR);
}

/* A port at which nobody is let in: as many wait there as may. */
static unsigned full_port(int fds[static 5])
{
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof sa;
        fds[0] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(fds[0], (struct sockaddr *)&sa, sizeof sa), 0);
        assert_int_equal(listen(fds[0], 0), 0);
        getsockname(fds[0], (struct sockaddr *)&sa, &len);
        for (size_t i = 1; i < 5; i++) {
                fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
                int rc = connect(fds[i], (struct sockaddr *)&sa, sizeof sa);
                assert_true(rc == 0 || errno == EINPROGRESS);
        }
        return ntohs(sa.sin_port);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        ++*(unsigned *)arg;
}

/*
 * libcurl closes a socket on which no connection came about without a word, and gives its number to
 * the resolver next. What the loop knows of either must not be taken for the socket that has the
 * number then.
 */
static void test_numbers_are_used_again(void **state)
{
        (void)state;
        struct seen s = {0}, t = {0};
        int full[5];
        struct upstream_request r = dial();
        r.port = full_port(full);
        r.timeouts.connect = 50 * USEC_PER_MSEC;
        run(&s, &r);
        assert_int_equal(s.end.error, UPSTREAM_CONNECTION_TIMEOUT);
        r.host = span_of("none.test");
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_DNS_ERROR);

        int fds[8][2];
        unsigned seen = 0;
        struct event *events[8];
        for (size_t i = 0; i < COUNT_OF(fds); i++) {
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
                events[i] = event_new(base, fds[i][i % 2], EV_READ, on_readable, &seen);
                event_add(events[i], NULL);
                assert_int_equal(write(fds[i][1 - i % 2], "x", 1), 1);
        }
        TURN_WHILE(seen < COUNT_OF(fds));
        for (size_t i = 0; i < COUNT_OF(full); i++)
                close(full[i]);
        for (size_t i = 0; i < COUNT_OF(fds); i++) {
                event_free(events[i]);
                close(fds[i][0]);
                close(fds[i][1]);
        }
}

/* tear_down counts the descriptors. */
static void test_dial_cancelled(void **state)
{
        (void)state;
        ORIGIN({.what = RAW_HOLD});
        struct upstream_request r = dial();
        for (int turns = 0; turns < 4; turns++) {
                struct seen s = {0};
                start(&s, &r);
                for (int i = 0; i < turns && !s.ends; i++)
                        event_base_loop(base, EVLOOP_NONBLOCK);
                if (s.ends)
                        bufferevent_free(s.end.dialled);
                else
                        attempt_cancel(s.attempt);
                s.finished = true;
        }
        raw_origin_release(&origin);
        raw_origin_stop(&origin);
}

/* --- after a 101 --- */

struct flow {
        struct attempt *attempt;
        struct bufferevent *stream;
        int status;
        unsigned ends, bodies;
        enum upstream_error error;
        short told; /* the events of the stream */
};

static void on_event(struct bufferevent *bev, short what, void *arg)
{
        (void)bev;
        struct flow *f = arg;
        f->told |= what;
}

static void on_head(void *arg, const struct upstream_answer *answer)
{
        struct flow *f = arg;
        f->status = answer->status;
        if (f->status != 101)
                return;
        f->stream = attempt_stream(f->attempt);
        bufferevent_setcb(f->stream, NULL, NULL, on_event, f);
        bufferevent_enable(f->stream, EV_WRITE);
}

static enum upstream_flow on_body(void *arg, const void *data, size_t len)
{
        (void)data, (void)len;
        struct flow *f = arg;
        f->bodies++;
        return UPSTREAM_MORE;
}

static void on_end(void *arg, const struct upstream_end *end)
{
        struct flow *f = arg;
        f->ends++;
        f->error = end->error;
}

static void begin(struct flow *f)
{
        static const struct upstream_handlers handlers = {on_head, on_body, on_end};
        *f = (struct flow){0};
        struct upstream_request r =
            request("GET", "/chat", "Host: h\nConnection: Upgrade\nUpgrade: echo");
        r.may_switch = true;
        f->attempt = upstream_start(upstream, &r, &handlers, f);
}

static void say(struct flow *f, const char *text)
{
        bufferevent_write(f->stream, text, strlen(text));
}

static void expect(struct flow *f, const char *text)
{
        char got[64] = "";
        bufferevent_enable(f->stream, EV_READ);
        TURN_WHILE(arrived(f->stream) < strlen(text));
        assert_in_range(evbuffer_remove(bufferevent_get_input(f->stream), got, sizeof got - 1), 0,
                        sizeof got - 1);
        assert_string_equal(got, text);
}

static void done(struct flow *f, unsigned ends)
{
        assert_int_equal(f->ends, ends);
        assert_int_equal(f->bodies, 0);
        bufferevent_free(f->stream);
}

static void test_switch(void **state)
{
        (void)state;
        struct flow f;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = SWITCH "early"},
               {.what = RAW_READ_HEAD}, {.what = RAW_SEND, .text = "one"}, {.what = RAW_READ_HEAD},
               {.what = RAW_SEND, .text = "two"}, {.what = RAW_CLOSE});
        begin(&f);
        TURN_WHILE(!f.status);
        assert_int_equal(f.status, 101);
        expect(&f, "early");
        say(&f, "1\r\n\r\n");
        expect(&f, "one");
        say(&f, "2\r\n\r\n");
        expect(&f, "two");
        TURN_WHILE(!f.ends || !f.told);
        assert_int_equal(f.error, UPSTREAM_OK);
        assert_int_equal(f.told, BEV_EVENT_EOF | BEV_EVENT_READING | BEV_EVENT_WRITING);
        done(&f, 1);
        assert_string_equal(raw_origin_stop(&origin),
                            "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"
                            "Upgrade: echo\r\n\r\n1\r\n\r\n2\r\n\r\n");
}

/* The host hears that no more will come, and still says something. */
static void test_switch_ended_by_us(void **state)
{
        (void)state;
        struct flow f;
        unsigned files = open_files();
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = SWITCH},
               {.what = RAW_READ_HEAD}, {.what = RAW_AWAIT_CLOSE},
               {.what = RAW_SEND, .text = "last"}, {.what = RAW_CLOSE});
        begin(&f);
        TURN_WHILE(!f.status);
        say(&f, "bye\r\n\r\n");
        bufferevent_flush(f.stream, EV_WRITE, BEV_FINISHED);
        expect(&f, "last");
        TURN_WHILE(!f.ends || !f.told);
        assert_int_equal(f.error, UPSTREAM_OK);
        raw_origin_stop(&origin);
        assert_true(origin.closed_by_peer);
        done(&f, 1);
        event_base_loop(base, EVLOOP_NONBLOCK);
        assert_int_equal(open_files(), files); /* no connection is kept for others */
}

static void test_switch_broken(void **state)
{
        (void)state;
        struct flow f;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = SWITCH "x"},
               {.what = RAW_HOLD}, {.what = RAW_RESET});
        begin(&f);
        TURN_WHILE(!f.status);
        expect(&f, "x");
        raw_origin_release(&origin);
        TURN_WHILE(!f.ends || !f.told);
        assert_int_not_equal(f.error, UPSTREAM_OK);
        assert_true(f.told & BEV_EVENT_ERROR);
        raw_origin_stop(&origin);
        done(&f, 1);
}

/* What comes is bounded while we do not take it, and so is what we send. */
static void test_switch_back_pressure(void **state)
{
        (void)state;
        struct flow f;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = SWITCH},
               {.what = RAW_FLOOD, .n = 64 * MIB}, {.what = RAW_HOLD}, {.what = RAW_READ_HEAD},
               {.what = RAW_CLOSE});
        begin(&f);
        TURN_WHILE(!f.status);
        TURN_WHILE(!origin.stalled);
        assert_in_range(origin.flooded, 1, 63 * MIB);
        assert_int_equal(arrived(f.stream), 0);
        bufferevent_enable(f.stream, EV_READ);
        size_t got = 0;
        TURN_WHILE((got += arrived(f.stream),
                    evbuffer_drain(bufferevent_get_input(f.stream), arrived(f.stream)),
                    got < 64 * MIB));

        /* The host does not read: a time comes when nothing more is taken. */
        static char block[64 * 1024];
        struct evbuffer *output = bufferevent_get_output(f.stream);
        size_t put = 0;
        for (int full = 0; full < 50; event_base_loop(base, EVLOOP_NONBLOCK)) {
                full = evbuffer_get_length(output) >= sizeof block ? full + 1 : 0;
                if (full)
                        continue;
                bufferevent_write(f.stream, block, sizeof block);
                put += sizeof block;
        }
        assert_in_range(put, MIB, 63 * MIB);
        attempt_cancel(f.attempt);
        raw_origin_release(&origin);
        raw_origin_stop(&origin);
        done(&f, 0);
}

static void test_switch_cancelled(void **state)
{
        (void)state;
        for (int when = 0; when < 3; when++) {
                struct flow f;
                ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = SWITCH},
                       {.what = RAW_AWAIT_CLOSE});
                begin(&f);
                TURN_WHILE(!f.status);
                say(&f, "something");
                if (when == 1)
                        bufferevent_flush(f.stream, EV_WRITE, BEV_FINISHED);
                if (when == 2)
                        TURN_WHILE(evbuffer_get_length(bufferevent_get_output(f.stream)));
                attempt_cancel(f.attempt);
                raw_origin_stop(&origin);
                assert_true(origin.closed_by_peer);
                done(&f, 0);
        }
}

/* Any other answer is one like others. After a refusal libcurl closes the connection, since it has
 * not sent all of what it takes for an upload. */
static void test_switch_refused(void **state)
{
        (void)state;
        struct seen s = {0};
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = OK_EMPTY},
               {.what = RAW_READ}, {.what = RAW_SEND, .text = REFUSE}, {.what = RAW_AWAIT_CLOSE},
               {.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = REFUSE},
               {.what = RAW_AWAIT_CLOSE});
        struct flow f;
        begin(&f);
        TURN_WHILE(!f.ends);
        assert_int_equal(f.status, 200);
        assert_int_equal(f.error, UPSTREAM_OK);
        begin(&f);
        TURN_WHILE(!f.ends);
        assert_int_equal(f.status, 429);
        assert_int_equal(f.error, UPSTREAM_OK);
        assert_int_equal(f.bodies, 1);
        struct upstream_request r = request("GET", "/", "Host: h");
        r.may_switch = true;
        s.on_head = DISCARD;
        start(&s, &r);
        TURN_WHILE(!s.finished || upstream_active(upstream) > 0);
        assert_int_equal(s.status, 429);
        raw_origin_stop(&origin);
        assert_int_equal(origin.connections, 2);
}

/* A 101 has no body (RFC 9112, 6.3): it would be unclear where the other protocol begins. */
static void test_switch_with_a_body(void **state)
{
        (void)state;
        static const char *const fields[] = {"Content-Length: 5", "Transfer-Encoding: chunked"};
        for (size_t i = 0; i < COUNT_OF(fields); i++) {
                char head[256];
                snprintf(head, sizeof head, "HTTP/1.1 101 S\r\nUpgrade: x\r\n%s\r\n\r\n",
                         fields[i]);
                struct raw_step steps[] = {{.what = RAW_ACCEPT},
                                           {.what = RAW_READ},
                                           {.what = RAW_SEND, .text = head},
                                           {.what = RAW_AWAIT_CLOSE}};
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct flow f;
                begin(&f);
                TURN_WHILE(!f.ends);
                assert_int_equal(f.status, 0);
                assert_int_equal(f.error, UPSTREAM_HTTP_PROTOCOL_ERROR);
                raw_origin_stop(&origin);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                CASE(dial),
                CASE(dial_takes_none_from_the_pool),
                CASE(dial_fails),
                CASE(numbers_are_used_again),
                CASE(dial_cancelled),
                CASE(switch),
                CASE(switch_ended_by_us),
                CASE(switch_broken),
                CASE(switch_back_pressure),
                CASE(switch_cancelled),
                CASE(switch_refused),
                CASE(switch_with_a_body),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
