/* Cancelling, discarding, pausing, and the use of connections. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/upstream_client.h"

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define MIB ((size_t)1024 * 1024)

static const usec_t soon = 100 * USEC_PER_MSEC;

/* --- cancel and discard --- */

static void test_cancel_in_handlers(void **state)
{
        (void)state;
        for (int where = 0; where < 3; where++) {
                struct seen s = {0};
                ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ},
                       {.what = RAW_SEND, .text = CHUNKED "5\r\nhello\r\n"},
                       {.what = RAW_AWAIT_CLOSE});
                s.on_head = where == 0 ? CANCEL : GO_ON;
                s.on_body = where == 1 ? CANCEL : where == 2 ? PAUSE : GO_ON;
                struct upstream_request r = request("GET", "/", "Host: h");
                start(&s, &r);
                TURN_WHILE(!s.finished);
                if (where == 2)
                        attempt_cancel(s.attempt); /* while paused */
                TURN_WHILE(!origin.closed_by_peer);
                raw_origin_stop(&origin);
                assert_int_equal(s.ends, 0);
        }
}

static void test_cancel_before_anything(void **state)
{
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN({.what = RAW_HOLD});
        struct upstream_request r = request("GET", "/", "Host: h");
        start(&s, &r);
        attempt_cancel(s.attempt);
        s.finished = true;
        r.target = span_of("not sendable");
        start(&t, &r);
        attempt_discard(t.attempt);
        t.finished = true;
        raw_origin_release(&origin);
        event_base_loop(base, EVLOOP_NONBLOCK);
        raw_origin_stop(&origin);
        assert_int_equal(origin.pending, 0);
}

static void cancel_it(struct seen *s)
{
        attempt_cancel(s->attempt);
        attempt_discard(s->attempt);
        attempt_resume(s->attempt);
}

static void test_cancel_in_end_is_harmless(void **state)
{
        struct seen s = {.after_end = cancel_it};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = HELLO});
        struct upstream_request r = request("GET", "/", "Host: h");
        run(&s, &r);
        assert_string_equal(s.body, "hello");
        raw_origin_stop(&origin);
}

static void test_discard_keeps_connection(void **state)
{
        (void)state;
        for (int where = 0; where < 3; where++) {
                struct seen s = {0}, t = {0};
                ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ},
                       {.what = RAW_SEND, .text = CHUNKED "5\r\nhello\r\n"}, {.what = RAW_HOLD},
                       {.what = RAW_SEND, .text = "3\r\nend\r\n0\r\n\r\n"}, {.what = RAW_READ},
                       {.what = RAW_SEND, .text = HELLO});
                s.on_head = where == 0 ? DISCARD : GO_ON;
                s.on_body = where == 1 ? DISCARD : where == 2 ? PAUSE : GO_ON;
                struct upstream_request r = request("GET", "/", "Host: h");
                start(&s, &r);
                TURN_WHILE(!s.finished);
                if (where == 2)
                        attempt_discard(s.attempt); /* while paused */
                raw_origin_release(&origin);
                TURN_WHILE(upstream_active(upstream) > 0);
                run(&t, &r);
                assert_true(t.end.reused);
                raw_origin_stop(&origin);
                assert_int_equal(s.ends, 0);
        }
}

static void test_discard_closes_when_too_much(void **state)
{
        static const struct raw_step known[] = {
            {.what = RAW_ACCEPT},
            {.what = RAW_READ},
            {.what = RAW_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nx"},
            {.what = RAW_AWAIT_CLOSE}};
        static const struct raw_step unknown[] = {
            {.what = RAW_ACCEPT},
            {.what = RAW_READ},
            {.what = RAW_SEND, .text = "HTTP/1.1 200 OK\r\n\r\nx"},
            {.what = RAW_FLOOD, .n = 100000},
            {.what = RAW_AWAIT_CLOSE}};
        static const struct raw_step stuck[] = {
            {.what = RAW_ACCEPT},
            {.what = RAW_READ},
            {.what = RAW_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx"},
            {.what = RAW_AWAIT_CLOSE}};
        const struct {
                const struct raw_step *steps;
                size_t count;
        } cases[] = {{known, COUNT_OF(known)},
                     {unknown, COUNT_OF(unknown)},
                     {stuck, COUNT_OF(stuck)}}; /* this one takes the 2 s */

        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct seen s = {.on_body = DISCARD};
                raw_origin_start(&origin, cases[i].steps, cases[i].count);
                struct upstream_request r = request("GET", "/", "Host: h");
                start(&s, &r);
                TURN_WHILE(!origin.closed_by_peer);
                raw_origin_stop(&origin);
                assert_int_equal(upstream_active(upstream), 0);
                assert_int_equal(s.ends, 0);
        }
}

/* HEAD and 304 name a length that will not come: no reason to close. */
static void test_discard_without_body(void **state)
{
        static const char *const answers[] = {
            "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 100000\r\n\r\n"};

        (void)state;
        for (size_t i = 0; i < COUNT_OF(answers); i++) {
                struct raw_step steps[] = {{.what = RAW_ACCEPT},
                                           {.what = RAW_READ},
                                           {.what = RAW_SEND, .text = answers[i]},
                                           {.what = RAW_READ},
                                           {.what = RAW_SEND, .text = OK_EMPTY}};
                struct seen s = {.on_head = DISCARD}, t = {0};
                raw_origin_start(&origin, steps, COUNT_OF(steps));
                struct upstream_request r = request(i == 0 ? "HEAD" : "GET", "/", "Host: h");
                start(&s, &r);
                TURN_WHILE(upstream_active(upstream) > 0);
                run(&t, &r);
                assert_true(t.end.reused);
                raw_origin_stop(&origin);
        }
}

static void test_free_while_draining(void **state)
{
        struct seen s = {.on_head = DISCARD};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = CHUNKED},
               {.what = RAW_AWAIT_CLOSE});
        struct upstream_request r = request("GET", "/", "Host: h");
        start(&s, &r);
        TURN_WHILE(!s.finished);
        assert_int_equal(upstream_active(upstream), 1);
        upstream_free(upstream);
        upstream = NULL;
        raw_origin_stop(&origin);
        assert_true(origin.closed_by_peer);
}

/* --- back-pressure --- */

static void test_pause_holds_the_host(void **state)
{
        struct seen s = {.on_body = PAUSE};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ},
               {.what = RAW_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n"},
               {.what = RAW_FLOOD, .n = 64 * 1024 * 1024});
        struct upstream_request r = request("GET", "/", "Host: h");
        r.timeouts.read = soon; /* must not run out while we are the ones who wait */
        start(&s, &r);
        TURN_WHILE(!origin.stalled);
        assert_int_equal(s.body_len, 0);
        /* What is on its way is in the kernel's buffers. */
        assert_in_range(origin.flooded, 1, 32 * MIB);
        TURN_WHILE(s.ends > 0);
        s.finished = false;
        attempt_resume(s.attempt);
        TURN_WHILE(s.ends == 0);
        assert_int_equal(s.end.error, UPSTREAM_OK);
        assert_int_equal(s.body_len, 64 * MIB);
        raw_origin_stop(&origin);
}

/* Pauses at each piece, and resumes from another attempt's handler or from the loop. */
static struct seen *paused;

static void resume_other(struct seen *s)
{
        (void)s;
        paused->finished = false;
        attempt_resume(paused->attempt);
}

static void test_resume_from_other_handlers(void **state)
{
        struct seen s = {.on_body = PAUSE}, t = {.after_end = resume_other};

        (void)state;
        paused = &s;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = HELLO},
               {.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = HELLO});
        struct upstream_request r = request("GET", "/", "Host: h");
        start(&s, &r);
        TURN_WHILE(!s.finished);
        run(&t, &r);
        TURN_WHILE(s.ends == 0);
        assert_string_equal(s.body, "hello");
        raw_origin_stop(&origin);
}

static void test_cancel_while_resuming(void **state)
{
        struct seen s = {.on_body = PAUSE};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ},
               {.what = RAW_SEND, .text = CHUNKED "5\r\nhello\r\n"}, {.what = RAW_AWAIT_CLOSE});
        struct upstream_request r = request("GET", "/", "Host: h");
        start(&s, &r);
        TURN_WHILE(!s.finished);
        s.finished = false;
        s.on_body = CANCEL;
        attempt_resume(s.attempt);
        assert_true(s.finished);
        TURN_WHILE(!origin.closed_by_peer);
        raw_origin_stop(&origin);
        assert_int_equal(s.ends, 0);
}

/* --- connections --- */

static struct upstream_request again;
static struct seen *follower;

static void start_follower(struct seen *s)
{
        (void)s;
        start(follower, &again);
}

static void test_start_in_end(void **state)
{
        struct seen a = {.after_end = start_follower}, b = {0};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = HELLO},
               {.what = RAW_READ}, {.what = RAW_SEND, .text = HELLO});
        again = request("GET", "/", "Host: h");
        follower = &b;
        start(&a, &again);
        TURN_WHILE(b.ends == 0);
        assert_true(b.end.reused);
        raw_origin_stop(&origin);
}

/* The host closes when it has read the second request, without an answer. */
static void test_dead_reused_connection(void **state)
{
        static const struct {
                const char *method, *lines, *body;
                bool again;
        } cases[] = {
            {"GET", "Host: h", NULL, true},
            {"PUT", "Host: h", "a body", true},
            {"POST", "Host: h\nContent-Length: 0", NULL, false},
            {"POST", "Host: h", "a body", false},
        };

        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct raw_step steps[] = {{.what = RAW_ACCEPT},
                                           {.what = RAW_READ},
                                           {.what = RAW_SEND, .text = OK_EMPTY},
                                           {.what = RAW_READ},
                                           {.what = RAW_CLOSE},
                                           {.what = RAW_ACCEPT},
                                           {.what = RAW_READ},
                                           {.what = RAW_SEND, .text = HELLO}};
                struct seen s = {0}, t = {0};
                raw_origin_start(&origin, steps, cases[i].again ? 8 : 5);
                struct upstream_request r = request("GET", "/first", "Host: h");
                run(&s, &r);
                r = request(cases[i].method, "/", cases[i].lines);
                r.body = cases[i].body ? body_of(cases[i].body) : NULL;
                run(&t, &r);
                raw_origin_stop(&origin);
                assert_int_equal(origin.reads, cases[i].again ? 3 : 2);
                assert_int_equal(origin.pending_bytes, 0);
                assert_int_equal(t.end.error,
                                 cases[i].again ? UPSTREAM_OK : UPSTREAM_CONNECTION_TERMINATED);
                if (cases[i].again) {
                        const char *second = strstr(origin.log, " / HTTP");
                        assert_non_null(second);
                        assert_non_null(strstr(second + 1, " / HTTP"));
                }
                if (r.body) {
                        if (cases[i].again)
                                assert_string_equal(origin.log + origin.log_len - 6, "a body");
                        evbuffer_free(r.body);
                }
        }
}

/* Closed while nobody used it: noticed before anything is sent, so that even POST goes through. */
static void test_connection_closed_when_idle(void **state)
{
        struct seen s = {0}, t = {0};

        (void)state;
        ORIGIN({.what = RAW_ACCEPT}, {.what = RAW_READ}, {.what = RAW_SEND, .text = OK_EMPTY},
               {.what = RAW_HOLD}, {.what = RAW_RESET}, {.what = RAW_ACCEPT}, {.what = RAW_READ},
               {.what = RAW_SEND, .text = HELLO});
        struct upstream_request r = request("GET", "/", "Host: h");
        run(&s, &r);
        raw_origin_release(&origin);
        TURN_WHILE(origin.step < 5);
        r = request("POST", "/", "Host: h\nContent-Length: 0");
        run(&t, &r);
        assert_int_equal(t.end.error, UPSTREAM_OK);
        assert_false(t.end.reused);
        raw_origin_stop(&origin);
}

static void test_many_at_once(void **state)
{
        enum { MANY = 12, ROUNDS = 5 };
        struct raw_step steps[ROUNDS * MANY * 3];
        struct seen *s = calloc(MANY, sizeof *s);
        size_t n = 0;

        (void)state;
        /* Each connection is closed after its answer, or the script would have to know which one
         * carries what. */
        for (int i = 0; i < MANY; i++) {
                steps[n++] = (struct raw_step){.what = RAW_ACCEPT};
                steps[n++] = (struct raw_step){.what = RAW_READ};
                steps[n++] = (struct raw_step){
                    .what = RAW_SEND,
                    .text = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"};
        }
        for (int round = 0; round < ROUNDS; round++) {
                raw_origin_start(&origin, steps, n);
                struct upstream_request r = request("GET", "/", "Host: h");
                memset(s, 0, MANY * sizeof *s);
                for (int i = 0; i < MANY; i++)
                        start(&s[i], &r);
                TURN_WHILE(upstream_active(upstream) > 0);
                for (int i = 0; i < MANY; i++) {
                        assert_int_equal(s[i].end.error, UPSTREAM_OK);
                        assert_string_equal(s[i].body, "x");
                }
                raw_origin_stop(&origin);
        }
        free(s);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
            CASE(cancel_in_handlers),
            CASE(cancel_before_anything),
            CASE(cancel_in_end_is_harmless),
            CASE(discard_keeps_connection),
            CASE(discard_closes_when_too_much),
            CASE(discard_without_body),
            CASE(free_while_draining),
            CASE(pause_holds_the_host),
            CASE(resume_from_other_handlers),
            CASE(cancel_while_resuming),
            CASE(start_in_end),
            CASE(dead_reused_connection),
            CASE(connection_closed_when_idle),
            CASE(many_at_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
