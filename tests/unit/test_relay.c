/* The relay between sockets whose other ends the test holds. */
#include "tests/unit/unit.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/relay.h"
#include "runtime/clock.h"

#define PATIENCE (10 * USEC_PER_SEC)
#define LONG (60 * USEC_PER_SEC)

struct stage {
        struct event_base *base;
        struct relay *relay;
        int front, back; /* the peers of the two sides */
        unsigned ends;
        enum relay_end end;
};

static void on_end(void *arg, enum relay_end end)
{
        struct stage *s = arg;
        s->ends++;
        s->end = end;
}

/* A nonblocking socket for the relay; its peer goes to *ret_peer. */
static struct bufferevent *socket_side(struct stage *s, int *ret_peer)
{
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
                         0);
        *ret_peer = fds[1];
        return bufferevent_socket_new(s->base, fds[0], BEV_OPT_CLOSE_ON_FREE);
}

static void set_up(struct stage *s, usec_t idle)
{
        *s = (struct stage){.base = event_base_new()};
        struct relay_side front = {socket_side(s, &s->front), NULL};
        struct relay_side back = {socket_side(s, &s->back), NULL};
        s->relay = relay_new(&front, &back, idle, on_end, s);
}

static void tear_down(struct stage *s)
{
        relay_free(s->relay);
        close(s->front);
        close(s->back);
        event_base_free(s->base);
}

static void turn(struct stage *s)
{
        event_base_loop(s->base, EVLOOP_NONBLOCK);
}

/* Reads n bytes, or to the end of file where n is 0; returns how many there were. */
static size_t receive(struct stage *s, int fd, char *to, size_t n)
{
        size_t got = 0;
        usec_t until = clock_now() + PATIENCE;
        while (clock_now() < until && (n == 0 || got < n)) {
                turn(s);
                char ignored[4096];
                ssize_t r = read(fd, to ? to + got : ignored, to ? n - got : sizeof ignored);
                if (r == 0)
                        return got;
                if (r > 0)
                        got += (size_t)r;
        }
        assert_true(n > 0 && got == n);
        return got;
}

static void expect(struct stage *s, int fd, const char *text)
{
        char got[64] = "";
        receive(s, fd, got, strlen(text));
        assert_string_equal(got, text);
}

static void expect_eof(struct stage *s, int fd)
{
        assert_int_equal(receive(s, fd, NULL, 0), 0);
}

static void expect_end(struct stage *s, enum relay_end end)
{
        usec_t until = clock_now() + PATIENCE;
        while (!s->ends && clock_now() < until)
                turn(s);
        for (int i = 0; i < 5; i++)
                turn(s);
        assert_int_equal(s->ends, 1);
        assert_int_equal(s->end, end);
}

static void say(int fd, const char *text)
{
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void test_both_ways(void **state)
{
        (void)state;
        struct stage s;
        set_up(&s, LONG);
        for (int i = 0; i < 3; i++) {
                say(s.front, "there");
                expect(&s, s.back, "there");
                say(s.back, "back");
                expect(&s, s.front, "back");
        }
        turn(&s);
        assert_int_equal(relay_count(s.relay).forth, 15);
        assert_int_equal(relay_count(s.relay).back, 12);
        assert_int_equal(s.ends, 0);
        tear_down(&s);
}

static void test_half_close(void **state)
{
        (void)state;
        for (int turned = 0; turned < 2; turned++) {
                struct stage s;
                set_up(&s, LONG);
                int first = turned ? s.back : s.front, second = turned ? s.front : s.back;
                say(first, "last words");
                shutdown(first, SHUT_WR);
                expect(&s, second, "last words");
                expect_eof(&s, second);
                assert_int_equal(s.ends, 0);
                say(second, "answer");
                expect(&s, first, "answer");
                say(second, "more");
                shutdown(second, SHUT_WR);
                expect(&s, first, "more");
                expect_eof(&s, first);
                expect_end(&s, RELAY_ENDED);
                tear_down(&s);
        }
}

/* Sends until nothing more is taken; returns how much was. */
static size_t flood(struct stage *s, int fd)
{
        static char piece[32 * 1024];
        size_t sent = 0;
        for (int idle = 0; idle < 20;) {
                ssize_t n = write(fd, piece, sizeof piece);
                idle = n > 0 ? 0 : idle + 1;
                sent += n > 0 ? (size_t)n : 0;
                turn(s);
                assert_true(sent < 64 * 1024 * 1024);
        }
        return sent;
}

static void test_back_pressure(void **state)
{
        (void)state;
        struct stage s;
        set_up(&s, LONG);
        size_t sent = flood(&s, s.front);
        /* the mark, one piece over it, and two sockets' buffers */
        assert_in_range(sent, 256 * 1024, 1536 * 1024);
        say(s.back, "the other way is free");
        expect(&s, s.front, "the other way is free");
        shutdown(s.front, SHUT_WR);
        assert_int_equal(receive(&s, s.back, NULL, 0), sent);
        assert_int_equal(relay_count(s.relay).forth, sent);
        tear_down(&s);
}

/* What was sent before a side broke arrives still. A local socket that is closed with bytes unread
 * resets its peer. */
static void test_broken(void **state)
{
        (void)state;
        for (int turned = 0; turned < 2; turned++) {
                struct stage s;
                set_up(&s, LONG);
                int *first = turned ? &s.back : &s.front, second = turned ? s.front : s.back;
                say(second, "unread");
                turn(&s);
                turn(&s);
                say(*first, "before");
                close(*first);
                *first = -1;
                expect(&s, second, "before");
                expect_eof(&s, second);
                expect_end(&s, turned ? RELAY_BACK_BROKE : RELAY_FRONT_BROKE);
                tear_down(&s);
        }
}

/* The slow side never reads, and leaves: it must not be waited for. */
static void test_broken_while_paused(void **state)
{
        (void)state;
        struct stage s;
        set_up(&s, LONG);
        flood(&s, s.front);
        close(s.back);
        s.back = -1;
        expect_end(&s, RELAY_BACK_BROKE);
        tear_down(&s);
}

/* Where the machine itself sleeps for too long the relay ends early, and rightly so. */
static void test_idle(void **state)
{
        (void)state;
        struct stage s;
        usec_t idle = 100 * USEC_PER_MSEC, last = clock_now(), until = last + 3 * idle;
        set_up(&s, idle);
        while (!s.ends && clock_now() < until) {
                char byte;
                usec_t before = clock_now();
                say(s.front, "x");
                while (!s.ends && read(s.back, &byte, 1) != 1)
                        turn(&s);
                if (!s.ends)
                        last = before;
        }
        expect_end(&s, RELAY_IDLE);
        assert_true(clock_now() - last >= idle);
        tear_down(&s);
}

/* Half-close and the end of file need no socket: a pair has them too. And what a side had read
 * before the relay began is not lost. */
static void test_pair(void **state)
{
        (void)state;
        struct stage s = {.base = event_base_new(), .back = -1};
        struct bufferevent *pair[2];
        assert_int_equal(bufferevent_pair_new(s.base, BEV_OPT_DEFER_CALLBACKS, pair), 0);
        bufferevent_enable(pair[1], EV_READ | EV_WRITE);
        struct relay_side front = {socket_side(&s, &s.front), NULL}, back = {pair[0], NULL};
        bufferevent_enable(front.bev, EV_READ);
        say(s.front, "early");
        turn(&s);
        assert_int_equal(evbuffer_get_length(bufferevent_get_input(front.bev)), 5);

        s.relay = relay_new(&front, &back, LONG, on_end, &s);
        struct evbuffer *arrived = bufferevent_get_input(pair[1]);
        for (int i = 0; i < 10 && evbuffer_get_length(arrived) < 5; i++)
                turn(&s);
        assert_int_equal(evbuffer_get_length(arrived), 5);

        bufferevent_write(pair[1], "bye", 3);
        bufferevent_flush(pair[1], EV_WRITE, BEV_FINISHED);
        expect(&s, s.front, "bye");
        expect_eof(&s, s.front);
        shutdown(s.front, SHUT_WR);
        expect_end(&s, RELAY_ENDED);
        relay_free(s.relay);
        bufferevent_free(pair[1]);
        close(s.front);
        event_base_free(s.base);
}

static void on_end_free(void *arg, enum relay_end end)
{
        struct stage *s = arg;
        on_end(arg, end);
        relay_free(s->relay);
        s->relay = NULL;
}

static void test_freed_by_its_end(void **state)
{
        (void)state;
        struct stage s = {.base = event_base_new()};
        struct relay_side front = {socket_side(&s, &s.front), NULL};
        struct relay_side back = {socket_side(&s, &s.back), NULL};
        s.relay = relay_new(&front, &back, LONG, on_end_free, &s);
        shutdown(s.front, SHUT_WR);
        shutdown(s.back, SHUT_WR);
        expect_end(&s, RELAY_ENDED);
        assert_null(s.relay);
        tear_down(&s);
}

static void test_freed_in_the_midst(void **state)
{
        (void)state;
        struct stage s;
        set_up(&s, LONG);
        flood(&s, s.front);
        relay_free(s.relay);
        s.relay = NULL;
        expect_eof(&s, s.front); /* its socket is closed */
        assert_int_equal(s.ends, 0);
        tear_down(&s);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_both_ways),
            cmocka_unit_test(test_half_close),
            cmocka_unit_test(test_back_pressure),
            cmocka_unit_test(test_broken),
            cmocka_unit_test(test_broken_while_paused),
            cmocka_unit_test(test_idle),
            cmocka_unit_test(test_pair),
            cmocka_unit_test(test_freed_by_its_end),
            cmocka_unit_test(test_freed_in_the_midst),
        };
        signal(SIGPIPE, SIG_IGN); /* as the daemon does */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
