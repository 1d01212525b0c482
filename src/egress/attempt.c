#include "egress/attempt.h"

#include <event2/bufferevent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "runtime/clock.h"

/* How long the rest of an answer is read after a discard. */
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

void attempt_progress(struct attempt *a, enum attempt_phase phase)
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
        attempt_callbacks_set(a);
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
        return length > 0 && length - got > (curl_off_t)ATTEMPT_DRAIN_BYTES;
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
