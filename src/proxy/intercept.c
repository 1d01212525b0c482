#include "proxy/intercept.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/xalloc.h"
#include "proxy/client.h"
#include "proxy/exchange_state.h"
#include "proxy/intercept_state.h"
#include "proxy/intercept_tls.h"
#include "proxy/message.h"
#include "proxy/reply.h"
#include "proxy/tunnel.h"
#include "proxy/worker.h"
#include "runtime/clock.h"
#include "runtime/log.h"

/* Of one host's clients that do not trust us the log tells once in a while. */
#define TELL_EVERY (60 * USEC_PER_SEC)

#define TLS_HANDSHAKE_RECORD 0x16 /* RFC 8446, 5.1: the first byte of TLS */

/* ---- the connection's events ---- */

static void on_io(evutil_socket_t fd, short what, void *arg);

void intercept_want(struct intercept *i, short what)
{
        if (what == i->wanted)
                return;
        if (i->wanted)
                event_del(&i->io);
        i->wanted = what;
        if (!what)
                return;
        event_assign(&i->io, i->client->worker->base, i->fd, (short)(what | EV_PERSIST), on_io, i);
        event_add(&i->io, NULL);
}

void intercept_later(struct intercept *i, short what)
{
        event_active(&i->turn, what, 0);
}

/* ---- the end of the CONNECT ---- */

static void fail(struct intercept *i, enum outcome outcome)
{
        exchange_cut(i->client->exchange, outcome);
}

/*
 * evhttp ends the request and waits for the next one, although what it says to this one has been
 * said already: its answer is thrown away. The exchange ends with it. False: the worker is about to
 * end, and the connection gone.
 */
static bool end_connect(struct intercept *i)
{
        struct bufferevent *bev = i->client->bev;
        struct exchange *ex = i->client->exchange;
        event_del(&i->timer);
        if (ex->worker->draining) {
                fail(i, OUTCOME_CLOSING);
                return false;
        }
        ex->outcome = OUTCOME_OPENED;
        exchange_move(ex, EXCHANGE_REPLYING);
        reply_connected(ex->req);
        struct evbuffer *output = bufferevent_get_output(bev);
        evbuffer_drain(output, evbuffer_get_length(output));
        bufferevent_trigger(bev, EV_WRITE, 0);
        return true;
}

static void tell_of_distrust(struct intercept *i, const char *how)
{
        usec_t now = clock_now();
        struct intercept_leaf *leaf =
            intercept_leaf_get(i->shake.leaves, i->inside.host, clock_real());
        if (!leaf || (leaf->told && now - leaf->told < TELL_EVERY))
                return;
        leaf->told = now;
        log_warn("client %s does not trust the certificate that it is shown for %s (%s): let it "
                 "trust the CA in %s, or set `https: tunnel` for that host",
                 i->client->address, i->inside.host, how, intercept_tls_ca(i->shake.tls)->path);
}

bool intercept_may_go_on(struct intercept *i, int result, short *ret_wants)
{
        switch (SSL_get_error(i->ssl, result)) {
        case SSL_ERROR_WANT_READ:
                *ret_wants = EV_READ;
                return true;
        case SSL_ERROR_WANT_WRITE:
                *ret_wants = EV_READ | EV_WRITE;
                return true;
        case SSL_ERROR_ZERO_RETURN: /* its end, in order */
                return false;
        default:
                if (intercept_tls_distrust())
                        tell_of_distrust(i, intercept_tls_distrust());
                i->broken = true;
                return false;
        }
}

static void begin_open(struct intercept *i)
{
        if (!end_connect(i))
                return;
        intercept_begin_text(i);
}

static void shake_hands(struct intercept *i)
{
        short wants;
        ERR_clear_error();
        int r = SSL_do_handshake(i->ssl);
        if (r == 1) {
                begin_open(i);
        } else if (intercept_may_go_on(i, r, &wants)) {
                intercept_want(i, wants);
        } else if (intercept_tls_distrust()) {
                fail(i, OUTCOME_UNTRUSTED);
        } else {
                const char *reason = ERR_reason_error_string(ERR_peek_error());
                log_debug("TLS with client %s for %s failed: %s", i->client->address,
                          i->inside.host, reason ? reason : "it left");
                fail(i, OUTCOME_CLIENT_GONE);
        }
}

static void begin_tls(struct intercept *i)
{
        i->ssl = intercept_tls_accept(&i->shake, i->fd);
        if (!i->ssl) {
                fail(i, OUTCOME_REFUSED);
                return;
        }
        i->phase = INTERCEPT_SHAKING;
        shake_hands(i);
}

/* Gives the connection back to the bufferevent, with what was read of it. */
static void give_back(struct intercept *i)
{
        struct bufferevent *bev = i->client->bev;
        intercept_want(i, 0);
        i->phase = INTERCEPT_PLAIN;
        bufferevent_setfd(bev, i->fd);
        client_watch_again(i->client);
}

static void begin_plain(struct intercept *i)
{
        struct bufferevent *bev = i->client->bev;
        i->inside.tls = false;
        if (!end_connect(i))
                return;
        give_back(i);
        bufferevent_enable(bev, EV_READ);
        evbuffer_add(bufferevent_get_input(bev), i->sniffed, i->sniffed_len);
}

static void begin_blind(struct intercept *i)
{
        struct exchange *ex = i->client->exchange;
        event_del(&i->timer);
        give_back(i);
        evbuffer_add(bufferevent_get_input(i->client->bev), i->sniffed, i->sniffed_len);
        exchange_ask(ex);
}

/* ---- what does it speak? ---- */

enum guess { UNSURE, IS_HTTP, IS_OTHER };

static enum guess guess(const char *text, size_t len)
{
        static const char *const methods[] = {"GET ",   "HEAD ",    "POST ",  "PUT ",    "DELETE ",
                                              "PATCH ", "OPTIONS ", "TRACE ", "CONNECT "};
        for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
                size_t whole = strlen(methods[m]), n = len < whole ? len : whole;
                if (memcmp(text, methods[m], n) == 0)
                        return n == whole ? IS_HTTP : UNSURE;
        }
        return IS_OTHER;
}

static void sniff(struct intercept *i)
{
        char first;
        ssize_t n = recv(i->fd, &first, 1, MSG_PEEK);
        if (n == 1 && i->sniffed_len == 0 && first == TLS_HANDSHAKE_RECORD) {
                begin_tls(i);
                return;
        }
        if (n == 1) /* else these would be told of again and again */
                n = recv(i->fd, i->sniffed + i->sniffed_len, INTERCEPT_SNIFF_BYTES - i->sniffed_len,
                         0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                fail(i, OUTCOME_CLIENT_GONE);
                return;
        }
        i->sniffed_len += (size_t)n;
        enum guess it = guess(i->sniffed, i->sniffed_len);
        if (it == IS_HTTP)
                begin_plain(i);
        else if (it == IS_OTHER)
                begin_blind(i);
}

static void on_io(evutil_socket_t fd, short what, void *arg)
{
        struct intercept *i = arg;
        (void)fd;
        switch (i->phase) {
        case INTERCEPT_SNIFFING:
                sniff(i);
                break;
        case INTERCEPT_SHAKING:
                shake_hands(i);
                break;
        case INTERCEPT_OPEN:
                if (what & EV_WRITE)
                        intercept_later(i, EV_READ); /* reading may have waited for it too */
                intercept_move_text(i, what);
                break;
        case INTERCEPT_PLAIN:
        case INTERCEPT_TAKEN:
        default:
                break;
        }
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        intercept_move_text(arg, what);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct intercept *i = arg;
        (void)fd, (void)what;
        log_debug("client %s has begun no TLS for %s within clients.header_timeout",
                  i->client->address, i->inside.host);
        fail(i, OUTCOME_IDLE);
}

/* ---- its life ---- */

static struct intercept *intercept_new(struct client *c, const struct message *m)
{
        struct worker *w = c->worker;
        struct intercept *i = xcalloc(1, sizeof *i);
        i->client = c;
        i->fd = bufferevent_getfd(c->bev);
        i->inside = (struct message_inside){
            .tls = true, .host = xstrdup(m->host), .port = m->port, .steering = m->steering};
        struct span *session = &i->inside.steering.session;
        session->ptr = xspandup(*session); /* an empty one too */
        i->inside.steering.seen = 0;
        if (!w->leaves)
                w->leaves = intercept_tls_leaves(w->shared->tls);
        i->shake = (struct intercept_shake){w->shared->tls, w->leaves, i->inside.host};
        event_assign(&i->turn, w->base, -1, 0, on_turn, i);
        event_assign(&i->timer, w->base, -1, 0, on_timer, i);
        return i;
}

void intercept_free(struct intercept *i)
{
        if (!i)
                return;
        intercept_want(i, 0);
        event_del(&i->turn);
        event_del(&i->timer);
        if (i->phase == INTERCEPT_OPEN)
                intercept_end_text(i);
        SSL_free(i->ssl);
        ERR_clear_error();
        free((char *)i->inside.host);
        free((char *)i->inside.steering.session.ptr);
        free(i);
}

const struct message_inside *intercept_inside(const struct intercept *i)
{
        return &i->inside;
}

bool intercept_is_tls(const struct intercept *i)
{
        return i->phase != INTERCEPT_PLAIN;
}

bool intercept_is_opening(const struct intercept *i)
{
        return i->phase == INTERCEPT_SNIFFING || i->phase == INTERCEPT_SHAKING;
}

/* evhttp's bufferevent lets go of the connection, which stays open. */
static void take_connection(struct client *c)
{
        bufferevent_disable(c->bev, EV_READ | EV_WRITE);
        bufferevent_setfd(c->bev, -1);
        event_del(&c->watch);
        c->ended = false; /* is read here from now on */
}

void intercept_open(struct exchange *ex)
{
        struct client *c = ex->client;
        struct timeval tv = usec_timeval(ex->config->clients.header_timeout);
        if (client_has_sent_more(c)) {
                tunnel_refuse_early_bytes(ex);
                return;
        }
        struct intercept *i = intercept_new(c, &ex->message);
        c->intercept = i;
        take_connection(c);
        ex->connected = true;
        ex->status = 200;
        static const char text[] = "HTTP/1.1 200 Connection established\r\n\r\n";
        /* All that was said before it has been written: there is room. That the client has gone
         * shows when it is read from. */
        ssize_t ignored = send(i->fd, text, strlen(text), MSG_NOSIGNAL);
        (void)ignored;
        event_add(&i->timer, &tv);
        intercept_want(i, EV_READ);
}
