#include "egress/attempt.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "egress/guard.h"
#include "runtime/clock.h"

/* What is read to its end after a discard, so that the connection can be used again. */
#define DRAIN_BYTES ((size_t)64 * 1024)
#define DRAIN_TIME (2 * USEC_PER_SEC)

/* --- time --- */

static usec_t deadline(const struct attempt *a)
{
        if (a->state == ATTEMPT_DRAINING)
                return a->drain_until;
        if (a->state != ATTEMPT_RUNNING || a->paused || a->stream)
                return USEC_MAX;
        if (a->phase == ATTEMPT_CONNECTING)
                return a->head_until;
        usec_t at = usec_add(a->progress, a->phase == ATTEMPT_WAITING ? a->first_byte : a->read);
        return a->head.done ? at : usec_min(at, a->head_until);
}

/* Sees to it that the clock runs out no later than the deadline. It may run out earlier, even when
 * the handle serves another request by then: it is set anew then, which is rare and costs less
 * than to move it with each request. */
static void wind(struct attempt *a)
{
        usec_t at = deadline(a);

        if (at >= a->clock_at)
                return;
        struct timeval tv = usec_timeval(usec_sub(at, clock_now()));
        a->clock_at = at;
        event_add(a->clock, &tv);
}

static void progress(struct attempt *a, enum attempt_phase phase)
{
        a->progress = clock_now();
        if (phase == a->phase)
                return;
        a->phase = phase;
        wind(a);
}

/* --- the end --- */

static usec_t time_of(const struct attempt *a, CURLINFO what)
{
        curl_off_t t = 0;

        curl_easy_getinfo(a->easy, what, &t);
        return t > 0 ? (usec_t)t : 0;
}

static void describe_peer(struct attempt *a, struct upstream_end *end)
{
        struct attempt_peer *p = &a->peer;
        char *ip = NULL, *local = NULL;
        bool proxy = attempt_egress_is_proxy(a);
        long port = 0;

        curl_easy_getinfo(a->easy, CURLINFO_PRIMARY_IP, &ip);
        curl_easy_getinfo(a->easy, CURLINFO_PRIMARY_PORT, &port);
        size_t len = ip ? strlen(ip) : 0;
        if (len == 0 || len >= sizeof p->ip || port <= 0)
                return;
        if (port != p->port || strcmp(ip, p->ip) != 0) {
                memcpy(p->ip, ip, len + 1);
                p->port = port;
                snprintf(p->text, sizeof p->text, strchr(ip, ':') ? "[%s]:%ld" : "%s:%ld", ip,
                         port);
        }
        if (!proxy)
                memcpy(end->address, p->text, sizeof end->address);
        curl_easy_getinfo(a->easy, CURLINFO_LOCAL_IP, &local);
        if (proxy)
                strcpy(end->exit, a->exit);
        else if (local && strlen(local) < sizeof end->exit)
                strcpy(end->exit, local);
}

static void describe(struct attempt *a, struct upstream_end *end)
{
        long connects = 0;

        curl_easy_getinfo(a->easy, CURLINFO_NUM_CONNECTS, &connects);
        end->reused = a->sends > 0 && connects == 0;
        if (!end->reused) {
                end->name_lookup = time_of(a, CURLINFO_NAMELOOKUP_TIME_T);
                end->connect = time_of(a, CURLINFO_CONNECT_TIME_T);
                end->tls = time_of(a, CURLINFO_APPCONNECT_TIME_T);
        }
        if (a->head.seen)
                end->first_byte = time_of(a, CURLINFO_STARTTRANSFER_TIME_T);
        /* libcurl's own stands still when it is we who end it. */
        end->total = usec_sub(clock_now(), a->started);
        describe_peer(a, end);
}

/* The handle of an attempt that failed is not used again: libcurl does not forget its last error
 * number, for one. */
static void put_aside(struct attempt *a, bool reusable)
{
        bridge_free(a->bridge);
        a->bridge = NULL;
        upstream_remove(a);
        upstream_stall(a, false);
        reusable = reusable && !a->stream;
        attempt_stream_free(a);
        a->state = ATTEMPT_IDLE;
        a->handlers = NULL;
        a->arg = NULL;
        a->body = NULL;
        a->deny = a->allow = NULL;
        a->exit_header = "";
        if (reusable) {
                answer_head_reset(&a->head);
                answer_head_reset(&a->tunnel);
                request_lines_trim(&a->lines);
        }
        upstream_put(a, reusable);
}

static void on_bridge_end(void *arg)
{
        put_aside(arg, false);
}

/* libcurl closes its descriptor when the handle is removed; the connection lives on in the copy.
 * But where it is within TLS with the proxy, libcurl has to stay between. */
static struct bufferevent *take_dialled(struct attempt *a)
{
        curl_socket_t fd = CURL_SOCKET_BAD;
        struct bufferevent *other = NULL;

        if (a->set.egress == EGRESS_HTTPS) {
                a->bridge =
                    bridge_new(upstream_base(a->upstream), a->easy, &other, on_bridge_end, a);
                return other;
        }
        curl_easy_getinfo(a->easy, CURLINFO_ACTIVESOCKET, &fd);
        if (fd != CURL_SOCKET_BAD)
                fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
                return NULL;
        return bufferevent_socket_new(upstream_base(a->upstream), fd, BEV_OPT_CLOSE_ON_FREE);
}

static void end(struct attempt *a, enum upstream_error error)
{
        struct upstream_end e = {.error = error};

        if (a->set.dial && error == UPSTREAM_OK) {
                e.dialled = take_dialled(a);
                if (!e.dialled)
                        e.error = UPSTREAM_PROXY_INTERNAL_ERROR;
        }
        e.detail = attempt_error_detail(a, e.error);
        if (a->added)
                describe(a, &e);
        if (!a->bridge)
                upstream_remove(a);
        attempt_stream_end(a, e.error);
        a->state = ATTEMPT_ENDING;
        a->handlers->on_end(a->arg, &e);
        if (a->bridge) {
                a->state = ATTEMPT_BRIDGED;
                return;
        }
        /* With a copy or without: libcurl sees no fault. */
        put_aside(a, error == UPSTREAM_OK);
}

/* The host's address is found, or is not: in the first case it is all begun anew. */
static void go_on(struct attempt *a, CURLcode code)
{
        upstream_remove(a);
        a->error = attempt_lookup_end(a, code);
        upstream_defer(a);
}

void attempt_done(struct attempt *a, CURLcode code)
{
        if (a->state == ATTEMPT_RUNNING && a->lookup.on && !a->error)
                go_on(a, code);
        else if (a->state == ATTEMPT_RUNNING)
                end(a, attempt_error_from(a, code));
        else
                put_aside(a, a->state == ATTEMPT_DRAINING && code == CURLE_OK);
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
        struct attempt *a = arg;

        (void)fd;
        (void)what;
        a->clock_at = USEC_MAX;
        if (deadline(a) > clock_now())
                wind(a);
        else if (a->state == ATTEMPT_DRAINING)
                put_aside(a, false);
        else if (a->phase == ATTEMPT_WAITING)
                end(a, UPSTREAM_HTTP_RESPONSE_TIMEOUT);
        else
                end(a, attempt_error_from(a, CURLE_OPERATION_TIMEDOUT));
}

/* --- libcurl's callbacks: they may not end the attempt, only mark it --- */

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
        progress(a, ATTEMPT_WAITING);
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
        progress(a, ATTEMPT_READING);
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
        return a->drained > DRAIN_BYTES ? 0 : len;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
        struct attempt *a = arg;
        size_t len = size * n;

        if (len == 0)
                return 0;
        if (a->state == ATTEMPT_RUNNING) {
                progress(a, ATTEMPT_READING);
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

/* --- handles --- */

struct attempt *attempt_new(struct upstream *u)
{
        struct attempt *a = xcalloc(1, sizeof *a);

        a->upstream = u;
        list_init(&a->link);
        list_init(&a->todo);
        a->clock_at = USEC_MAX;
        a->clock = evtimer_new(upstream_base(u), on_clock, a);
        a->easy = curl_easy_init();
        if (!a->clock || !a->easy)
                abort(); /* out of memory */
        attempt_setup_handle(a);
        curl_easy_setopt(a->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
        curl_easy_setopt(a->easy, CURLOPT_OPENSOCKETDATA, a);
        curl_easy_setopt(a->easy, CURLOPT_CLOSESOCKETFUNCTION, upstream_close_socket);
        curl_easy_setopt(a->easy, CURLOPT_CLOSESOCKETDATA, u);
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
        return a;
}

void attempt_free(struct attempt *a)
{
        bridge_free(a->bridge);
        curl_easy_cleanup(a->easy);
        event_free(a->clock);
        request_lines_done(&a->lines);
        answer_head_done(&a->head);
        answer_head_done(&a->tunnel);
        attempt_egress_done(&a->set);
        free(a->set.host);
        free(a->set.ca_file);
        free(a->set.method);
        free(a->set.target);
        free(a);
}

/* --- the public side --- */

static usec_t or_never(usec_t t)
{
        return t ? t : USEC_MAX;
}

struct attempt *upstream_start(struct upstream *u, const struct upstream_request *request,
                               const struct upstream_handlers *handlers, void *arg)
{
        struct attempt *a = upstream_take(upstream_for(u, request->egress));

        u = a->upstream;
        a->state = ATTEMPT_RUNNING;
        a->phase = ATTEMPT_CONNECTING;
        a->started = clock_now();
        a->handlers = handlers;
        a->arg = arg;
        a->body = request->body;
        a->body_sent = 0;
        a->replayable = request->replayable;
        a->deny = request->deny;
        a->allow = request->allow;
        a->first_byte = or_never(request->timeouts.first_byte);
        a->read = or_never(request->timeouts.read);
        a->head_until = usec_add(a->started, or_never(request->timeouts.head));
        a->sends = 0;
        a->denied = a->dialled = a->reached = a->paused = a->resume = false;
        a->may_switch = a->head.may_switch = request->may_switch;
        a->over = a->told = false;
        a->socket = CURL_SOCKET_BAD;
        a->drained = 0;
        a->error_text[0] = '\0';
        if (a->body)
                evbuffer_ptr_set(a->body, &a->body_at, 0, EVBUFFER_PTR_SET);
        a->error = attempt_setup_request(a, request);
        wind(a);
        if (a->error || upstream_inside(u))
                upstream_defer(a);
        else
                attempt_do_deferred(a);
        return a;
}

static void resume(struct attempt *a)
{
        struct upstream *u = a->upstream;

        a->resume = false;
        a->progress = clock_now();
        wind(a);
        upstream_enter(u);
        CURLcode code = curl_easy_pause(a->easy, a->paused ? CURLPAUSE_RECV : CURLPAUSE_CONT);
        upstream_leave(u);
        if (!code || a->state == ATTEMPT_CANCELLED)
                return;
        if (a->state == ATTEMPT_RUNNING && !a->error)
                a->error = attempt_error_from(a, code);
        if (a->state == ATTEMPT_DRAINING)
                a->state = ATTEMPT_CANCELLED;
        upstream_defer(a);
}

void attempt_go_on(struct attempt *a)
{
        upstream_stall(a, false);
        if (upstream_inside(a->upstream)) {
                a->resume = true;
                upstream_defer(a);
        } else {
                resume(a);
        }
}

/* Never called while libcurl is on the stack. */
void attempt_do_deferred(struct attempt *a)
{
        if (a->state == ATTEMPT_CANCELLED) {
                put_aside(a, false);
        } else if (a->error) {
                end(a, a->error);
        } else if (a->over) {
                end(a, UPSTREAM_OK);
        } else if (!a->added) {
                if (upstream_add(a) == 0)
                        return;
                a->error = UPSTREAM_PROXY_INTERNAL_ERROR;
                upstream_defer(a);
        } else if (a->resume) {
                resume(a);
        }
}

void attempt_resume(struct attempt *a)
{
        if (a->state != ATTEMPT_RUNNING || !a->paused)
                return;
        a->paused = false;
        attempt_go_on(a);
}

void attempt_cancel(struct attempt *a)
{
        if (a->state != ATTEMPT_RUNNING)
                return;
        a->state = ATTEMPT_CANCELLED;
        a->body = NULL;
        a->deny = a->allow = NULL;
        if (upstream_inside(a->upstream))
                upstream_defer(a);
        else
                put_aside(a, false);
}

/* Is what is left of the body known to be too much? */
static bool too_much_left(const struct attempt *a)
{
        curl_off_t length = -1, got = 0;

        if (a->set.no_body || a->head.status == 204 || a->head.status == 304)
                return false; /* the length is that of a body which is not sent */
        curl_easy_getinfo(a->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        curl_easy_getinfo(a->easy, CURLINFO_SIZE_DOWNLOAD_T, &got);
        return length > 0 && length - got > (curl_off_t)DRAIN_BYTES;
}

void attempt_discard(struct attempt *a)
{
        if (a->state != ATTEMPT_RUNNING)
                return;
        if (a->error || !a->added || !a->head.done || a->body_sent < a->body_len ||
            too_much_left(a)) {
                attempt_cancel(a);
                return;
        }
        a->state = ATTEMPT_DRAINING;
        a->body = NULL;
        a->deny = a->allow = NULL;
        a->exit_header = "";
        a->drain_until = usec_add(clock_now(), DRAIN_TIME);
        wind(a);
        if (!a->paused)
                return;
        a->paused = false;
        attempt_go_on(a);
}
