/* What libcurl calls in the course of an attempt. It is on the stack then: nothing here may end the
 * attempt, only mark it. */
#include "egress/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "egress/guard.h"
#include "runtime/clock.h"

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
        struct attempt *a = arg;

        (void)purpose;
        if (a->state != ATTEMPT_RUNNING)
                return CURL_SOCKET_BAD;
        if (a->lookup.on) {
                attempt_lookup_see(a, &address->addr);
                return CURL_SOCKET_BAD;
        }
        /* whom the configuration names as a proxy may be anywhere */
        if (!attempt_egress_is_proxy(a) && !guard_allows(a->deny, a->allow, &address->addr)) {
                a->denied = true;
                return CURL_SOCKET_BAD;
        }
        a->dialled = true;
        curl_socket_t fd = upstream_open_socket(a->upstream, address);
        /* Where the system has nothing left for us, that is what went wrong, whatever other
         * addresses say. libcurl would not tell. */
        if (fd == CURL_SOCKET_BAD &&
            (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
                a->error = UPSTREAM_PROXY_INTERNAL_ERROR;
        return fd;
}

/* What the proxy told when it opened the tunnel holds for all that goes by it. */
static void recall_exit(struct attempt *a, const char *local, int local_port, const char *peer,
                        int peer_port)
{
        struct exit_memory *m = upstream_exits(a->upstream);
        long connects = 0;

        curl_easy_getinfo(a->easy, CURLINFO_NUM_CONNECTS, &connects);
        if (connects > 0)
                exit_memory_set(m, local, local_port, peer, peer_port, a->exit);
        else if (*a->exit_header)
                strcpy(a->exit, exit_memory_get(m, local, local_port, peer, peer_port));
}

/*
 * Called right before the request is sent; again when the connection that was used turned out to be
 * dead and libcurl is about to send the request once more. Where that could do something twice, it
 * is kept from it, unless not a byte was sent. The address is looked at here too, since an open
 * connection may be older than the sets.
 */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static int on_send(void *arg, char *peer, char *local, int peer_port, int local_port)
{
        struct attempt *a = arg;
        long sent = 0;

        if (a->state != ATTEMPT_RUNNING)
                return CURL_PREREQFUNC_ABORT;
        if (attempt_egress_is_proxy(a)) {
                recall_exit(a, local, local_port, peer, peer_port);
        } else if (!guard_allows_text(a->deny, a->allow, peer)) {
                a->error = UPSTREAM_DESTINATION_IP_PROHIBITED;
                return CURL_PREREQFUNC_ABORT;
        }
        curl_easy_getinfo(a->easy, CURLINFO_REQUEST_SIZE, &sent);
        if (a->sends++ && sent > 0 && !a->replayable) {
                a->error = UPSTREAM_CONNECTION_TERMINATED;
                return CURL_PREREQFUNC_ABORT;
        }
        a->error = UPSTREAM_OK; /* of an address that failed before this one */
        attempt_progress(a, ATTEMPT_WAITING);
        return CURL_PREREQFUNC_OK;
}

static size_t on_read(char *to, size_t size, size_t n, void *arg)
{
        struct attempt *a = arg;
        size_t want = size * n, left = a->body_len - a->body_sent;

        if (a->may_switch) {
                a->progress = clock_now();
                return attempt_stream_give(a, to, want);
        }
        if (!a->body)
                return CURL_READFUNC_ABORT;
        if (want > left)
                want = left;
        if (want == 0)
                return 0;
        ev_ssize_t got = evbuffer_copyout_from(a->body, &a->body_at, to, want);
        if (got <= 0 || (size_t)got != want)
                return CURL_READFUNC_ABORT;
        a->body_sent += want;
        if (evbuffer_ptr_set(a->body, &a->body_at, want, EVBUFFER_PTR_ADD) < 0 &&
            a->body_sent < a->body_len)
                return CURL_READFUNC_ABORT;
        a->progress = clock_now();
        return want;
}

static int on_seek(void *arg, curl_off_t offset, int origin)
{
        struct attempt *a = arg;

        if (!a->body || origin != SEEK_SET || offset < 0 || (size_t)offset > a->body_len)
                return CURL_SEEKFUNC_FAIL;
        a->body_sent = (size_t)offset;
        return evbuffer_ptr_set(a->body, &a->body_at, a->body_sent, EVBUFFER_PTR_SET) == 0
                   ? CURL_SEEKFUNC_OK
                   : CURL_SEEKFUNC_FAIL;
}

/* All lines come here: those of what a proxy says of a tunnel, of interim answers, of the final
 * head, and trailers after the body. */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
        struct attempt *a = arg;
        size_t len = size * n;

        if (a->state == ATTEMPT_DRAINING)
                return len;
        if (a->state != ATTEMPT_RUNNING)
                return 0;
        if (a->phase == ATTEMPT_CONNECTING)
                return attempt_egress_tunnel_line(a, line, len);
        attempt_progress(a, ATTEMPT_READING);
        if (a->head.done)
                return len;
        a->error = answer_head_line(&a->head, line, len);
        if (a->error)
                return 0;
        if (!a->head.done)
                return len;
        a->error = attempt_egress_head(a);
        if (a->error)
                return 0;
        struct upstream_answer answer = {
            .status = a->head.status,
            .reason = a->head.reason,
            .fields = &a->head.fields,
        };
        a->handlers->on_head(a->arg, &answer);
        if (a->may_switch && a->head.status != 101)
                attempt_go_on(a); /* to see that nothing will be uploaded */
        return a->state == ATTEMPT_CANCELLED || a->head_only ? 0 : len;
}

static bool shares_connection(const struct attempt *a)
{
        long version = 0;

        curl_easy_getinfo(a->easy, CURLINFO_HTTP_VERSION, &version);
        return version == CURL_HTTP_VERSION_2_0;
}

static size_t drop(struct attempt *a, size_t len)
{
        a->drained += len;
        return a->drained > ATTEMPT_DRAIN_BYTES ? 0 : len;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
        struct attempt *a = arg;
        size_t len = size * n;

        if (len == 0)
                return 0;
        if (a->state == ATTEMPT_RUNNING) {
                attempt_progress(a, ATTEMPT_READING);
                enum upstream_flow flow = a->stream ? attempt_stream_take(a, data, len)
                                                    : a->handlers->on_body(a->arg, data, len);
                if (flow == UPSTREAM_PAUSE && a->state == ATTEMPT_RUNNING) {
                        a->paused = true;
                        upstream_stall(a, shares_connection(a));
                        return CURL_WRITEFUNC_PAUSE;
                }
        }
        if (a->state == ATTEMPT_DRAINING)
                return drop(a, len);
        return a->state == ATTEMPT_RUNNING ? len : 0;
}

void attempt_callbacks_set(struct attempt *a)
{
        curl_easy_setopt(a->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
        curl_easy_setopt(a->easy, CURLOPT_OPENSOCKETDATA, a);
        curl_easy_setopt(a->easy, CURLOPT_CLOSESOCKETFUNCTION, upstream_close_socket);
        curl_easy_setopt(a->easy, CURLOPT_CLOSESOCKETDATA, a->upstream);
        curl_easy_setopt(a->easy, CURLOPT_PREREQFUNCTION, on_send);
        curl_easy_setopt(a->easy, CURLOPT_PREREQDATA, a);
        curl_easy_setopt(a->easy, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(a->easy, CURLOPT_READDATA, a);
        curl_easy_setopt(a->easy, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(a->easy, CURLOPT_SEEKDATA, a);
        curl_easy_setopt(a->easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(a->easy, CURLOPT_HEADERDATA, a);
        curl_easy_setopt(a->easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(a->easy, CURLOPT_WRITEDATA, a);
}
