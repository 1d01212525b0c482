#include "proxy/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/xalloc.h"
#include "proxy/exchange.h"
#include "proxy/reply.h"
#include "runtime/clock.h"
#include "runtime/log.h"

static struct timeval timeval_of(usec_t t)
{
        return (struct timeval){(time_t)(t / USEC_PER_SEC), (suseconds_t)(t % USEC_PER_SEC)};
}

static void set_idle_timeout(struct client *c, bool reading)
{
        struct timeval tv = timeval_of(c->worker->config->clients.idle_timeout);
        bufferevent_set_timeouts(c->bev, reading ? &tv : NULL, &tv);
}

static void client_free(struct client *c)
{
        struct worker *w = c->worker;
        if (c->evcon) {
                HASH_DEL(w->client_by_connection, c);
                event_del(&c->watch);
                event_del(&c->head_timer);
        }
        list_remove(&c->link);
        head_clear(&c->head);
        atomic_fetch_sub(&w->shared->clients, 1);
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
                if (what & EV_CLOSED)
                        event_del(&c->watch); /* evhttp reads the end of file itself */
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

/*
 * Refuses past evhttp, which would answer with a page of its own, or not at all before it has a
 * whole request. What the peer still sends is dropped, for a while, so that it gets to read the
 * answer.
 */
static void refuse(struct client *c, const struct message_fault *f)
{
        static const struct timeval linger = {1, 0};
        struct evbuffer *input = bufferevent_get_input(c->bev);
        evutil_socket_t fd = bufferevent_getfd(c->bev);
        char *reply = reply_text(f);
        ssize_t ignored = send(fd, reply, strlen(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)ignored;
        free(reply);
        shutdown(fd, SHUT_WR);
        log_debug("refused %s: %d, %s", c->address, f->status, f->text);
        c->phase = CLIENT_REFUSED;
        head_clear(&c->head);
        evbuffer_drain(input, evbuffer_get_length(input));
        event_add(&c->head_timer, &linger);
}

/* evhttp's timeouts are idle timeouts: a head that drips in byte by byte would keep its connection
 * for ever. */
static void on_head_timeout(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        struct client *c = arg;
        if (c->phase == CLIENT_HEAD)
                refuse(c, &(struct message_fault){408, "http_request_error",
                                                  "The request head took too long.", true});
        else if (c->phase == CLIENT_REFUSED)
                client_drop(c);
}

/* Feeds the newest n bytes to the head; true when it is complete. */
static bool feed_head(struct client *c, struct evbuffer *input, size_t n)
{
        struct evbuffer_ptr at;
        struct evbuffer_iovec parts[16];
        bool ended = false;
        if (evbuffer_ptr_set(input, &at, evbuffer_get_length(input) - n, EVBUFFER_PTR_SET) < 0)
                return false;
        int count = evbuffer_peek(input, (ev_ssize_t)n, &at, parts, 16);
        for (int i = 0; i < count && i < 16 && !ended; i++)
                ended = head_feed(&c->head, parts[i].iov_base, parts[i].iov_len);
        return ended;
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

/* The first bytes of a request, or more of it. The head is checked here, before evhttp parses it.
 */
static void watch_head(struct client *c, struct evbuffer *input, size_t n)
{
        const struct config *config = c->worker->config;
        struct message_fault fault;
        bool began = c->phase == CLIENT_IDLE;
        if (began) {
                n = skip_empty_lines(input);
                if (n == 0)
                        return;
                c->phase = CLIENT_HEAD;
        }
        bool ended = feed_head(c, input, n);
        struct span text = {c->head.text, c->head.len};
        if (text.len > config->clients.max_header) {
                refuse(c, &(struct message_fault){
                              431, "http_request_error",
                              "The head is larger than clients.max_header allows.", true});
        } else if (ended && !head_check(text, config->clients.max_body, &fault)) {
                refuse(c, &fault);
        } else if (ended) {
                c->phase = CLIENT_BODY;
                head_clear(&c->head);
                event_del(&c->head_timer);
        } else if (began) {
                struct timeval tv = timeval_of(config->clients.header_timeout);
                event_add(&c->head_timer, &tv);
        }
}

static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
        struct client *c = arg;
        if (info->n_added == 0)
                return;
        if (c->phase == CLIENT_IDLE || c->phase == CLIENT_HEAD)
                watch_head(c, input, info->n_added);
        else if (c->phase == CLIENT_REFUSED)
                evbuffer_drain(input, evbuffer_get_length(input));
}

static void describe_peer(struct client *c)
{
        socklen_t size = sizeof c->peer;
        const struct sockaddr *sa = (struct sockaddr *)&c->peer;
        if (getpeername(bufferevent_getfd(c->bev), (struct sockaddr *)&c->peer, &size) < 0)
                c->peer.ss_family = AF_UNSPEC;
        if (sa->sa_family == AF_INET)
                inet_ntop(AF_INET, &((struct sockaddr_in *)&c->peer)->sin_addr, c->address,
                          sizeof c->address);
        else if (sa->sa_family == AF_INET6)
                inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&c->peer)->sin6_addr, c->address,
                          sizeof c->address);
        else
                strcpy(c->address, "unix");
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
        event_assign(&c->head_timer, w->base, -1, 0, on_head_timeout, c);
        watch_peer(c, EV_READ | EV_CLOSED);
        set_idle_timeout(c, true);
        /* While a reply is written evhttp reads on and hands nothing out: bound what may pile up.
         * One whole request must fit, since evhttp waits for all of a body before it takes it. */
        bufferevent_setwatermark(c->bev, EV_READ, 0,
                                 w->config->clients.max_body + 2 * w->config->clients.max_header);
        if (atomic_load(&w->shared->clients) > w->config->clients.max_connections)
                refuse(c, &(struct message_fault){
                              503, "connection_limit_reached",
                              "There are as many connections as clients.max_connections allows.",
                              true});
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
        atomic_fetch_add(&w->shared->clients, 1);
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
        c->phase = CLIENT_BUSY;
        set_idle_timeout(c, false);
}

void client_end(struct client *c)
{
        struct evbuffer *input = bufferevent_get_input(c->bev);
        size_t pipelined = evbuffer_get_length(input);
        c->exchange = NULL;
        c->phase = CLIENT_IDLE;
        set_idle_timeout(c, true);
        if (c->pipelined) {
                c->pipelined = false;
                event_del(&c->watch);
                watch_peer(c, EV_READ | EV_CLOSED);
        }
        if (pipelined)
                watch_head(c, input, pipelined);
}

void client_drop(struct client *c)
{
        evhttp_connection_free(c->evcon); /* calls on_connection_closed */
}
