#include "proxy/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/xalloc.h"
#include "proxy/access_log.h"
#include "proxy/exchange_state.h"
#include "proxy/exchange.h"
#include "proxy/intercept.h"
#include "proxy/reply.h"
#include "runtime/clock.h"
#include "runtime/log.h"

static const struct message_fault shutting_down = {503, "destination_unavailable",
                                                   "The proxy is shutting down.", true};

static struct timeval timeval_of(usec_t t)
{
        return (struct timeval){(time_t)(t / USEC_PER_SEC), (suseconds_t)(t % USEC_PER_SEC)};
}

static void set_idle_timeout(struct client *c, bool reading)
{
        struct timeval tv = timeval_of(c->worker->config->clients.idle_timeout);
        bufferevent_set_timeouts(c->bev, reading ? &tv : NULL, &tv);
}

/* Then its bufferevent has no descriptor, and intercept.c watches for its end. */
static bool speaks_tls(const struct client *c)
{
        return c->intercept && intercept_is_tls(c->intercept);
}

static void client_free(struct client *c)
{
        struct worker *w = c->worker;
        if (c->evcon) {
                HASH_DEL(w->client_by_connection, c);
                event_del(&c->watch);
                event_del(&c->timer);
                intercept_free(c->intercept);
        }
        list_remove(&c->link);
        intake_reset(&c->intake);
        free(c->user);
        metrics_add(w->metrics, METRIC_CONNECTIONS, 0, (uint64_t)-1);
        free(c);
        worker_check_drained(w);
}

/* evhttp is about to free the connection, for whichever reason. */
static void on_connection_closed(struct evhttp_connection *evcon, void *arg)
{
        (void)evcon;
        struct client *c = arg;
        struct exchange *ex = c->exchange;
        c->exchange = NULL;
        if (ex)
                exchange_client_gone(ex);
        client_free(c);
}

static void on_peer(evutil_socket_t fd, short what, void *arg);

static void watch_peer(struct client *c, short what)
{
        event_assign(&c->watch, c->worker->base, bufferevent_getfd(c->bev),
                     (short)(what | EV_PERSIST), on_peer, c);
        event_add(&c->watch, NULL);
}

/*
 * While an exchange waits evhttp does not read, and so would not notice that the peer has left. A
 * peer that closes its side shows as EV_CLOSED; one that breaks off shows as readable alone, as do
 * further requests, which must not be read yet. One event for the connection's whole life costs no
 * system call for a request, and spares evhttp's own the trip to epoll.
 */
static void on_peer(evutil_socket_t fd, short what, void *arg)
{
        struct client *c = arg;
        if (!c->exchange) {
                if (!(what & EV_CLOSED))
                        return;
                if (c->refused) {
                        client_drop(c);
                        return;
                }
                c->ended = true; /* evhttp reads that itself, but a request may stand before it */
                event_del(&c->watch);
                return;
        }
        if (c->just_read && !(what & EV_CLOSED)) {
                c->just_read = false; /* most likely what evhttp read; all else comes again */
                return;
        }
        char byte;
        ssize_t n = what & EV_CLOSED ? 0 : recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
                client_drop(c);
        } else if (n > 0) {
                c->pipelined = true;
                event_del(&c->watch);
                watch_peer(c, EV_CLOSED);
        }
}

static void report_refusal(struct client *c, const struct message_fault *f)
{
        enum outcome outcome = f->status == 403 ? OUTCOME_DENIED : OUTCOME_REFUSED;
        struct metrics_writer *w = c->worker->metrics;
        metrics_add(w, METRIC_REQUESTS, metrics_ending_unsent(outcome), 1);
        metrics_add(w, METRIC_RESPONSES, metrics_status(f->status), 1);
        struct access_entry e = {.real = clock_real(),
                                 .client = c->address,
                                 .url = "",
                                 .status = f->status,
                                 .upstream.address = "",
                                 .outcome = outcome};
        access_log_write(c->worker->shared->access, &e);
        log_debug("refused %s: %d, %s", c->address, f->status, f->text);
}

static void say_last(struct client *c, struct span text)
{
        evutil_socket_t fd = bufferevent_getfd(c->bev);
        if (speaks_tls(c)) {
                intercept_say_last(c->intercept, text);
                return;
        }
        ssize_t ignored = send(fd, text.ptr, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)ignored;
        shutdown(fd, SHUT_WR);
}

/*
 * Refuses past evhttp, which would answer with a page of its own, or not at all before it has a
 * whole request. What the peer still sends is dropped, for a while, so that it gets to read the
 * answer.
 */
static void refuse(struct client *c, const struct message_fault *f)
{
        static const struct timeval linger = {1, 0};
        struct evbuffer *input = bufferevent_get_input(c->bev);
        char *reply = reply_text(f);
        say_last(c, span_of(reply));
        free(reply);
        report_refusal(c, f);
        c->refused = true;
        intake_reset(&c->intake);
        evbuffer_drain(input, evbuffer_get_length(input));
        event_add(&c->timer, &linger);
}

/* evhttp's timeouts are idle timeouts: a head that drips in byte by byte would keep its connection
 * for ever. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        struct client *c = arg;
        if (c->refused)
                client_drop(c);
        else if (c->intake.phase == INTAKE_HEAD)
                refuse(c, &(struct message_fault){408, "http_request_error",
                                                  "The request head took too long.", true});
}

/* RFC 9112, 2.2: empty lines before a request are passed over. */
static size_t skip_empty_lines(struct evbuffer *input)
{
        char c[2] = {0};
        while (evbuffer_copyout(input, c, 2) > 0 &&
               (c[0] == '\n' || (c[0] == '\r' && c[1] == '\n')))
                evbuffer_drain(input, c[0] == '\n' ? 1 : 2);
        return evbuffer_get_length(input);
}

/* Shows the newest n bytes of the input to the intake; false with *ret_fault where it finds one. */
static bool feed_intake(struct client *c, struct evbuffer *input, size_t n,
                        struct message_fault *ret_fault)
{
        const struct config *config = c->worker->config;
        struct evbuffer_ptr at;
        struct evbuffer_iovec part;
        if (evbuffer_ptr_set(input, &at, evbuffer_get_length(input) - n, EVBUFFER_PTR_SET) < 0)
                return true;
        while (n > 0 && evbuffer_peek(input, -1, &at, &part, 1) > 0) {
                size_t len = part.iov_len < n ? part.iov_len : n;
                if (!intake_feed(&c->intake, part.iov_base, len, config->clients.max_header,
                                 config->clients.max_body, ret_fault))
                        return false;
                n -= len;
                if (n > 0 && evbuffer_ptr_set(input, &at, len, EVBUFFER_PTR_ADD) < 0)
                        break;
        }
        return true;
}

/* The first bytes of a request, or more of it; evhttp parses them after this. */
static void take_in(struct client *c, struct evbuffer *input, size_t n)
{
        struct message_fault fault;
        bool began = c->intake.phase == INTAKE_IDLE;
        if (began)
                n = skip_empty_lines(input);
        if (n == 0)
                return;
        if (!feed_intake(c, input, n, &fault)) {
                refuse(c, &fault);
        } else if (c->intake.phase == INTAKE_BODY) {
                event_del(&c->timer);
        } else if (began) {
                struct timeval tv = timeval_of(c->worker->config->clients.header_timeout);
                event_add(&c->timer, &tv);
        }
}

static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
        struct client *c = arg;
        if (info->n_added == 0)
                return;
        if (c->refused)
                evbuffer_drain(input, evbuffer_get_length(input));
        else if (!c->exchange)
                take_in(c, input, info->n_added);
}

static void describe_peer(struct client *c)
{
        socklen_t size = sizeof c->peer;
        const struct sockaddr *sa = (struct sockaddr *)&c->peer;
        if (getpeername(bufferevent_getfd(c->bev), (struct sockaddr *)&c->peer, &size) < 0)
                c->peer.ss_family = AF_UNSPEC; /* it has gone already */
        if (sa->sa_family == AF_INET)
                inet_ntop(AF_INET, &((struct sockaddr_in *)&c->peer)->sin_addr, c->address,
                          sizeof c->address);
        else if (sa->sa_family == AF_INET6)
                inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&c->peer)->sin6_addr, c->address,
                          sizeof c->address);
        else
                strcpy(c->address, sa->sa_family == AF_UNIX ? "unix" : "?");
}

bool client_is_allowed(const struct client *c, const struct config *config)
{
        const struct sockaddr *peer = (const struct sockaddr *)&c->peer;
        return peer->sa_family == AF_UNIX || cidr_set_contains_peer(&config->clients.allow, peer);
}

/* What of the configuration evhttp holds for each connection. While a reply is written evhttp reads
 * on and hands nothing out: what may pile up is bounded here. One whole request must fit, since
 * evhttp waits for all of a body before it takes it. */
static void apply_limits(struct client *c)
{
        const struct config *config = c->worker->config;
        evhttp_connection_set_max_body_size(c->evcon, (ev_ssize_t)config->clients.max_body);
        bufferevent_setwatermark(c->bev, EV_READ, 0,
                                 config->clients.max_body + 2 * config->clients.max_header);
        set_idle_timeout(c, true);
}

/* Those that cannot be served are told at once, before anything is read. */
static void admit(struct client *c)
{
        struct worker *w = c->worker;
        if (!client_is_allowed(c, w->config))
                refuse(c, &(struct message_fault){
                              403, "http_request_denied",
                              "Your address may not use this proxy (clients.allow).", true});
        else if (w->draining)
                refuse(c, &shutting_down);
        else if (metrics_get(w->shared->metrics, METRIC_CONNECTIONS, 0) >
                 w->config->clients.max_connections)
                refuse(c, &(struct message_fault){
                              503, "connection_limit_reached",
                              "There are as many connections as clients.max_connections allows.",
                              true});
}

/*
 * evhttp makes its connection object only after client_accept has returned, and offers no way to it
 * before a whole request was read; but the object is the argument of the bufferevent's callbacks.
 * This runs in the same turn of the loop, before anything can have happened to the connection.
 */
static void adopt(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        struct client *c = arg;
        struct worker *w = c->worker;
        void *evcon = NULL;
        bufferevent_getcb(c->bev, NULL, NULL, NULL, &evcon);
        evutil_socket_t socket = bufferevent_getfd(c->bev);
        bool alive = bufferevent_decref(c->bev) == 0 && evcon && socket >= 0;
        if (!alive) {
                client_free(c);
                return;
        }
        c->evcon = evcon;
        describe_peer(c);
        HASH_ADD_PTR(w->client_by_connection, evcon, c);
        evhttp_connection_set_closecb(c->evcon, on_connection_closed, c);
        evbuffer_add_cb(bufferevent_get_input(c->bev), on_input, c);
        event_assign(&c->timer, w->base, -1, 0, on_timer, c);
        watch_peer(c, EV_READ | EV_CLOSED);
        apply_limits(c);
        admit(c);
}

struct bufferevent *client_accept(struct event_base *base, void *worker)
{
        struct worker *w = worker;
        struct client *c = xcalloc(1, sizeof *c);
        c->worker = w;
        c->bev = bufferevent_socket_new(base, -1, 0);
        if (!c->bev)
                abort();
        bufferevent_incref(c->bev);
        list_append(&w->clients, &c->link);
        metrics_add(w->metrics, METRIC_CONNECTIONS, 0, 1);
        if (event_base_once(base, -1, EV_TIMEOUT, adopt, c, NULL) < 0)
                abort();
        return c->bev;
}

struct client *client_find(const struct worker *w, const struct evhttp_connection *evcon)
{
        struct client *c;
        HASH_FIND_PTR(w->client_by_connection, &evcon, c);
        return c;
}

void client_begin(struct client *c, struct exchange *ex)
{
        c->exchange = ex;
        c->just_read = true;
        if (c->ended)
                event_add(&c->watch, NULL); /* it tells so once more */
        c->ended = false;
        set_idle_timeout(c, false);
}

void client_end(struct client *c)
{
        struct evbuffer *input = bufferevent_get_input(c->bev);
        c->exchange = NULL;
        intake_reset(&c->intake);
        apply_limits(c);
        if (c->pipelined) {
                c->pipelined = false;
                event_del(&c->watch);
                watch_peer(c, EV_READ | EV_CLOSED);
        }
        take_in(c, input, evbuffer_get_length(input));
        if (speaks_tls(c))
                intercept_resume(c->intercept);
}

void client_watch_again(struct client *c)
{
        c->pipelined = c->just_read = c->ended = false;
        watch_peer(c, EV_READ | EV_CLOSED);
}

bool client_has_sent_more(const struct client *c)
{
        char byte;
        return c->pipelined || evbuffer_get_length(bufferevent_get_input(c->bev)) > 0 ||
               recv(bufferevent_getfd(c->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

struct bufferevent *client_take_over(struct client *c, void (**ret_finish)(struct bufferevent *bev))
{
        event_del(&c->watch);
        evbuffer_remove_cb(bufferevent_get_input(c->bev), on_input, c);
        if (speaks_tls(c)) {
                *ret_finish = intercept_finish;
                return intercept_take_over(c->intercept);
        }
        *ret_finish = NULL;
        bufferevent_incref(c->bev);
        return c->bev;
}

void client_drain(struct client *c)
{
        char byte;
        if (c->intercept && intercept_is_opening(c->intercept)) {
                exchange_cut(c->exchange, OUTCOME_CLOSING);
                return;
        }
        if (!c->evcon || c->exchange || c->refused)
                return; /* not yet looked at, or told to close already */
        bool asks = c->intake.phase != INTAKE_IDLE ||
                    recv(bufferevent_getfd(c->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
        if (asks)
                refuse(c, &shutting_down);
        else
                client_drop(c);
}

void client_abandon(struct client *c)
{
        bufferevent_decref(c->bev);
        client_free(c);
}

void client_drop(struct client *c)
{
        evhttp_connection_free(c->evcon); /* calls on_connection_closed */
}
