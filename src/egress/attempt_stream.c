/* A connection after a 101. To libcurl it is a transfer like others, whose answer and upload happen
 * not to end: what comes is the body of the 101, what goes is the rest of an upload that was paused
 * until then. */
#include "egress/attempt.h"

#include <event2/bufferevent.h>
#include <stdlib.h>
#include <sys/socket.h>

/* What may wait in our half: for the other half to read, and for the host. */
#define DOWN_MARK ((size_t)128 * 1024)
#define UP_MARK ((size_t)64 * 1024)

/* ---- libcurl's side ---- */

enum upstream_flow attempt_stream_take(struct attempt *a, const void *data, size_t len)
{
        if (evbuffer_get_length(bufferevent_get_output(a->stream)) >= DOWN_MARK)
                return UPSTREAM_PAUSE;
        bufferevent_write(a->stream, data, len);
        return UPSTREAM_MORE;
}

size_t attempt_stream_give(struct attempt *a, char *to, size_t room)
{
        if (!a->stream)
                return a->head.done ? 0 : CURL_READFUNC_PAUSE;
        struct evbuffer *input = bufferevent_get_input(a->stream);
        int n = evbuffer_remove(input, to, room);
        if (evbuffer_get_length(input) < UP_MARK)
                bufferevent_enable(a->stream, EV_READ);
        if (n > 0)
                return (size_t)n;
        if (!a->told)
                return CURL_READFUNC_PAUSE;
        /* All has been sent. libcurl has no way to say so over TLS. */
        if (!a->set.tls && a->set.egress != EGRESS_HTTPS && a->socket != CURL_SOCKET_BAD) {
                shutdown(a->socket, SHUT_WR);
                return 0;
        }
        a->over = true;
        upstream_defer(a);
        return CURL_READFUNC_PAUSE;
}

void attempt_stream_watch(struct attempt *a, curl_socket_t fd, int what)
{
        if (!a || !a->may_switch || a->state != ATTEMPT_RUNNING)
                return;
        if (what != CURL_POLL_REMOVE)
                a->socket = fd;
        if (!a->stream || a->paused || what == CURL_POLL_IN || what == CURL_POLL_INOUT)
                return;
        a->over = true;
        upstream_defer(a);
}

/* ---- the other half's side ---- */

/* A high watermark would not do: libevent calls this again and again as long as the input is as
 * full as that. */
static void on_more(struct bufferevent *bev, void *arg)
{
        struct attempt *a = arg;
        if (evbuffer_get_length(bufferevent_get_input(bev)) >= UP_MARK)
                bufferevent_disable(bev, EV_READ);
        if (a->state == ATTEMPT_RUNNING)
                attempt_go_on(a);
}

static void on_taken(struct bufferevent *bev, void *arg)
{
        (void)bev;
        attempt_resume(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
        (void)bev;
        struct attempt *a = arg;
        if (!(what & BEV_EVENT_EOF) || a->told || a->state != ATTEMPT_RUNNING)
                return;
        a->told = true;
        attempt_go_on(a);
}

struct bufferevent *attempt_stream(struct attempt *a)
{
        struct bufferevent *pair[2];
        if (bufferevent_pair_new(upstream_base(a->upstream), BEV_OPT_DEFER_CALLBACKS, pair) < 0)
                abort(); /* out of memory */
        /* Else libcurl would keep the connection for other requests once the host has ended it. */
        curl_easy_setopt(a->easy, CURLOPT_FORBID_REUSE, 1L);
        a->stream = pair[0];
        bufferevent_setcb(a->stream, on_more, on_taken, on_event, a);
        bufferevent_setwatermark(a->stream, EV_WRITE, DOWN_MARK / 2, 0);
        bufferevent_enable(a->stream, EV_READ | EV_WRITE);
        return pair[1];
}

void attempt_stream_end(struct attempt *a, enum upstream_error error)
{
        struct bufferevent *other = a->stream ? bufferevent_pair_get_partner(a->stream) : NULL;
        short end = error == UPSTREAM_OK ? BEV_EVENT_EOF | BEV_EVENT_WRITING : BEV_EVENT_ERROR;
        if (!other)
                return;
        bufferevent_flush(a->stream, EV_WRITE, BEV_FLUSH); /* what has come comes first */
        bufferevent_trigger_event(other, (short)(end | BEV_EVENT_READING), 0);
}

void attempt_stream_free(struct attempt *a)
{
        if (a->stream)
                bufferevent_free(a->stream);
        a->stream = NULL;
}
