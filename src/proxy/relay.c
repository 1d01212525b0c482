#include "proxy/relay.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/xalloc.h"
#include "runtime/clock.h"

/* What may wait for a side before the other one is no longer read; it is read again at half. */
#define OUTPUT_MARK ((size_t)256 * 1024)

/* For each call of read and write. */
#define PIECE ((size_t)64 * 1024)

/* libevent 2.1 reads no more than this at a time, whatever it is told (EVBUFFER_MAX_READ). */
#define LIBEVENT_PIECE 4096

struct side {
        struct relay *relay;
        struct bufferevent *bev;
        void (*finish)(struct bufferevent *bev);
        int fd; /* to be read from here too; -1: not a plain socket */
        struct evbuffer_cb_entry *counter;
        uint64_t written;
        size_t not_ours; /* of those: what was in its output before */
        bool paused;     /* not read, since too much waits for the other side */
        bool ended;      /* no more bytes will come from here */
        bool finished;   /* it knows that no more will come from the other side, or need not */
        bool broken;     /* by an error */
        bool closed;     /* nothing more can be written to it, by an error or not */
};

struct relay {
        struct side front, back;
        struct event *timer;
        usec_t idle;
        usec_t progress; /* when a byte was last delivered */
        bool over;
        void (*on_end)(void *arg, enum relay_end end);
        void *arg;
};

static struct side *other(struct side *s)
{
        return s == &s->relay->front ? &s->relay->back : &s->relay->front;
}

static size_t waiting(const struct side *s)
{
        return evbuffer_get_length(bufferevent_get_output(s->bev));
}

/* ---- the end ---- */

static void end(struct relay *r, enum relay_end how)
{
        if (r->over)
                return;
        r->over = true;
        event_del(r->timer);
        bufferevent_disable(r->front.bev, EV_READ | EV_WRITE);
        bufferevent_disable(r->back.bev, EV_READ | EV_WRITE);
        r->on_end(r->arg, how);
}

static void finish_by_kind(struct bufferevent *bev)
{
        evutil_socket_t fd = bufferevent_getfd(bev);
        if (fd >= 0)
                shutdown(fd, SHUT_WR);
        else
                bufferevent_flush(bev, EV_WRITE, BEV_FINISHED);
}

/* Tells `to` that no more will come, once it has all that did. Ends the relay where nothing is left
 * to be done. */
static void pass_end_on(struct side *to)
{
        struct relay *r = to->relay;
        struct side *from = other(to);
        if (from->ended && !to->finished && waiting(to) == 0) {
                to->finished = true;
                to->finish(to->bev);
        }
        if (!to->finished || !from->finished)
                return;
        struct side *broken = from->broken ? from : to->broken ? to : NULL;
        if (!broken)
                end(r, RELAY_ENDED);
        else
                end(r, broken == &r->front ? RELAY_FRONT_BROKE : RELAY_BACK_BROKE);
}

/* ---- bytes ---- */

static void pause_when_full(struct side *from)
{
        if (from->paused || waiting(other(from)) < OUTPUT_MARK)
                return;
        from->paused = true;
        bufferevent_disable(from->bev, EV_READ);
}

/* Moves what has come from a side on. No byte is copied: the buffers change hands. */
static void move(struct side *from)
{
        struct side *to = other(from);
        struct evbuffer *input = bufferevent_get_input(from->bev);
        if (to->closed) {
                evbuffer_drain(input, evbuffer_get_length(input));
                return;
        }
        if (evbuffer_get_length(input) > 0)
                bufferevent_write_buffer(to->bev, input);
        pause_when_full(from);
}

static void on_event(struct bufferevent *bev, short what, void *arg);

/*
 * libevent has read all that it reads at a time, which is little: there is more, most likely. A
 * large transfer costs a fifth so. The end of file is left to libevent, which comes across it
 * again; an error would not be told twice.
 */
static void read_more(struct side *from)
{
        struct side *to = other(from);
        struct evbuffer *output = bufferevent_get_output(to->bev);
        struct iovec space;
        if (to->closed || from->paused || evbuffer_reserve_space(output, PIECE, &space, 1) < 1)
                return;
        ssize_t n = recv(from->fd, space.iov_base, space.iov_len, 0);
        int error = errno;
        space.iov_len = n > 0 ? (size_t)n : 0;
        evbuffer_commit_space(output, &space, 1);
        pause_when_full(from);
        if (n < 0 && error != EAGAIN && error != EINTR)
                on_event(from->bev, BEV_EVENT_ERROR | BEV_EVENT_READING, from);
}

static void on_read(struct bufferevent *bev, void *arg)
{
        struct side *from = arg;
        if (from->relay->over)
                return;
        bool full = evbuffer_get_length(bufferevent_get_input(bev)) >= LIBEVENT_PIECE;
        move(from);
        if (full && from->fd >= 0)
                read_more(from);
}

/* Half or more of what waited for the side has been written. */
static void on_written(struct bufferevent *bev, void *arg)
{
        (void)bev;
        struct side *to = arg, *from = other(to);
        if (to->relay->over)
                return;
        if (from->paused && waiting(to) < OUTPUT_MARK) {
                from->paused = false;
                bufferevent_enable(from->bev, EV_READ);
        }
        if (from->ended)
                pass_end_on(to);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
        struct side *s = arg;
        if (s->relay->over || !(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
                return;
        move(s);
        s->ended = true;
        bufferevent_disable(bev, EV_READ);
        if (what & BEV_EVENT_ERROR)
                s->broken = true;
        if (what & (BEV_EVENT_ERROR | BEV_EVENT_WRITING)) {
                s->closed = s->finished = true;
                bufferevent_disable(bev, EV_WRITE);
                bufferevent_disable(other(s)->bev, EV_READ); /* for whom should it be read? */
        } else {
                /* TLS stops writing too; what is on its way there must arrive all the same. */
                bufferevent_enable(bev, EV_WRITE);
        }
        pass_end_on(other(s));
}

/* Something has left for the side, or was put there for it. */
static void on_output(struct evbuffer *output, const struct evbuffer_cb_info *info, void *arg)
{
        (void)output;
        struct side *to = arg;
        to->written += info->n_deleted;
        if (info->n_deleted)
                to->relay->progress = clock_now();
}

/* ---- idle ---- */

static void wind(struct relay *r, usec_t wait)
{
        struct timeval tv = usec_timeval(wait);
        event_add(r->timer, &tv);
}

/* Moved only when it has run out: bytes come far more often. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        struct relay *r = arg;
        usec_t left = usec_sub(usec_add(r->progress, r->idle), clock_now());
        if (left > 0)
                wind(r, left);
        else
                end(r, RELAY_IDLE);
}

/* ---- the beginning ---- */

static void side_init(struct relay *r, struct side *s, const struct relay_side *given)
{
        evutil_socket_t fd = bufferevent_getfd(given->bev);
        int on = 1;
        s->relay = r;
        s->fd = given->finish ? -1 : fd;
        s->bev = given->bev;
        s->finish = given->finish ? given->finish : finish_by_kind;
        s->not_ours = waiting(s);
        s->counter = evbuffer_add_cb(bufferevent_get_output(s->bev), on_output, s);
        if (fd >= 0) /* fails for a local socket, which has no need of it */
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        bufferevent_set_timeouts(s->bev, NULL, NULL);
        bufferevent_set_max_single_read(s->bev, PIECE); /* for TLS */
        bufferevent_set_max_single_write(s->bev, PIECE);
        bufferevent_setwatermark(s->bev, EV_READ, 0, 0);
        bufferevent_setwatermark(s->bev, EV_WRITE, OUTPUT_MARK / 2, 0);
        bufferevent_setcb(s->bev, on_read, on_written, on_event, s);
}

static void side_start(struct side *s)
{
        move(s);
        bufferevent_enable(s->bev, (short)(EV_WRITE | (s->paused ? 0 : EV_READ)));
}

struct relay *relay_new(const struct relay_side *front, const struct relay_side *back, usec_t idle,
                        void (*on_end)(void *arg, enum relay_end end), void *arg)
{
        struct relay *r = xcalloc(1, sizeof *r);
        r->timer = evtimer_new(bufferevent_get_base(front->bev), on_timer, r);
        if (!r->timer)
                abort();
        r->idle = idle;
        r->progress = clock_now();
        r->on_end = on_end;
        r->arg = arg;
        side_init(r, &r->front, front);
        side_init(r, &r->back, back);
        side_start(&r->front);
        side_start(&r->back);
        wind(r, idle);
        return r;
}

static void side_done(struct side *s)
{
        evbuffer_remove_cb_entry(bufferevent_get_output(s->bev), s->counter);
        bufferevent_setcb(s->bev, NULL, NULL, NULL, NULL);
        bufferevent_disable(s->bev, EV_READ | EV_WRITE);
        bufferevent_free(s->bev);
}

void relay_free(struct relay *r)
{
        if (!r)
                return;
        event_free(r->timer);
        side_done(&r->front);
        side_done(&r->back);
        free(r);
}

static uint64_t delivered(const struct side *s)
{
        return s->written > s->not_ours ? s->written - s->not_ours : 0;
}

struct relay_counts relay_count(const struct relay *r)
{
        return (struct relay_counts){delivered(&r->back), delivered(&r->front)};
}
