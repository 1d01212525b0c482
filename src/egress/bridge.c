#include "egress/bridge.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/xalloc.h"

/* For each call; a record of TLS is no longer. */
#define PIECE ((size_t)16 * 1024)

/* What may wait on the one side before the other is no longer read. */
#define MARK ((size_t)256 * 1024)

struct bridge {
        CURL *easy;
        struct bufferevent *near;          /* our end of the pair */
        struct event *readable, *writable; /* of libcurl's socket */
        bool far_ended;                    /* nothing more will come from the proxy */
        bool near_ended;                   /* nor from the other end of the pair */
        bool over;
        void (*on_end)(void *arg);
        void *arg;
};

static struct evbuffer *to_near(const struct bridge *b)
{
        return bufferevent_get_output(b->near);
}

static void check_end(struct bridge *b)
{
        bool all_here = evbuffer_get_length(to_near(b)) == 0;
        bool all_there = evbuffer_get_length(bufferevent_get_input(b->near)) == 0;
        if (b->over || !((b->far_ended && all_here) || (b->near_ended && all_there)))
                return;
        b->over = true;
        b->on_end(b->arg);
}

/* From the proxy, until there is no more for now, or too much waits. TLS may hold more than the
 * socket shows, so nothing but "again" means that there is nothing. */
static void pull(struct bridge *b)
{
        char piece[PIECE];
        while (!b->far_ended && evbuffer_get_length(to_near(b)) < MARK) {
                size_t n = 0;
                CURLcode code = curl_easy_recv(b->easy, piece, sizeof piece, &n);
                if (code == CURLE_AGAIN) {
                        event_add(b->readable, NULL);
                        return;
                }
                b->far_ended = code != CURLE_OK || n == 0;
                bufferevent_write(b->near, piece, n);
        }
}

static void push(struct bridge *b)
{
        struct evbuffer *from = bufferevent_get_input(b->near);
        size_t waiting;
        while (!b->far_ended && (waiting = evbuffer_get_length(from)) > 0) {
                size_t most = waiting < PIECE ? waiting : PIECE, n = 0;
                CURLcode code =
                    curl_easy_send(b->easy, evbuffer_pullup(from, (ev_ssize_t)most), most, &n);
                if (code == CURLE_AGAIN) {
                        event_add(b->writable, NULL);
                        return;
                }
                if (code != CURLE_OK)
                        b->far_ended = true;
                evbuffer_drain(from, n);
        }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        pull(arg);
        check_end(arg);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        push(arg);
        check_end(arg);
}

static void on_near_read(struct bufferevent *bev, void *arg)
{
        (void)bev;
        push(arg);
        check_end(arg);
}

static void on_near_written(struct bufferevent *bev, void *arg)
{
        (void)bev;
        pull(arg);
        check_end(arg);
}

static void on_near_event(struct bufferevent *bev, short what, void *arg)
{
        struct bridge *b = arg;
        (void)bev;
        b->near_ended = true;
        if (what & BEV_EVENT_ERROR) /* nobody is left to read, or to send on behalf of */
                b->far_ended = true;
        if (what & BEV_EVENT_ERROR)
                evbuffer_drain(to_near(b), evbuffer_get_length(to_near(b)));
        push(b);
        check_end(b);
}

struct bridge *bridge_new(struct event_base *base, CURL *easy, struct bufferevent **ret_other,
                          void (*on_end)(void *arg), void *arg)
{
        curl_socket_t fd = CURL_SOCKET_BAD;
        int pair[2];

        curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd);
        if (fd == CURL_SOCKET_BAD ||
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return NULL;
        struct bridge *b = xcalloc(1, sizeof *b);
        b->easy = easy;
        b->on_end = on_end;
        b->arg = arg;
        b->near = bufferevent_socket_new(base, pair[0], BEV_OPT_CLOSE_ON_FREE);
        b->readable = event_new(base, fd, EV_READ, on_readable, b);
        b->writable = event_new(base, fd, EV_WRITE, on_writable, b);
        struct bufferevent *other = bufferevent_socket_new(base, pair[1], BEV_OPT_CLOSE_ON_FREE);
        if (!b->near || !b->readable || !b->writable || !other)
                abort(); /* out of memory */
        bufferevent_setwatermark(b->near, EV_READ, 0, MARK);
        bufferevent_setwatermark(b->near, EV_WRITE, MARK / 2, 0);
        bufferevent_setcb(b->near, on_near_read, on_near_written, on_near_event, b);
        bufferevent_enable(b->near, EV_READ | EV_WRITE);
        event_active(b->readable, EV_READ, 0); /* TLS may have read ahead */
        *ret_other = other;
        return b;
}

void bridge_free(struct bridge *b)
{
        if (!b)
                return;
        bufferevent_free(b->near);
        event_free(b->readable);
        event_free(b->writable);
        free(b);
}
