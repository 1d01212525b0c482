#include "proxy/intercept.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
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
#include "proxy/intercept_tls.h"
#include "proxy/message.h"
#include "proxy/reply.h"
#include "proxy/tunnel.h"
#include "proxy/worker.h"
#include "runtime/clock.h"
#include "runtime/log.h"

/* A record of TLS holds no more. */
#define RECORD_BYTES 16384

/* What a client may send ahead while it waits for an answer. */
#define AHEAD_BYTES ((size_t)RECORD_BYTES)

/* Of one host's clients that do not trust us the log tells once in a while. */
#define TELL_EVERY (60 * USEC_PER_SEC)

/* As many bytes tell HTTP from anything else: its longest method is OPTIONS. */
#define SNIFF_BYTES 8

#define TLS_HANDSHAKE_RECORD 0x16 /* RFC 8446, 5.1: the first byte of TLS */

enum phase {
        SNIFFING, /* what does it speak? */
        SHAKING,  /* TLS is being agreed on */
        OPEN,     /* TLS carries requests */
        PLAIN,    /* evhttp has the connection as it is */
        TAKEN,    /* it is HTTP no longer, and none of our business */
};

struct intercept {
        struct client *client;
        enum phase phase;
        struct message_inside inside; /* its texts are owned */
        int fd;
        struct event io;    /* on the connection: `wanted` */
        struct event turn;  /* the rest of this turn of the loop: what there is to be moved */
        struct event timer; /* until it is known what is spoken */
        short wanted;
        bool broken; /* nothing more may be sent by TLS */
        char sniffed[SNIFF_BYTES];
        size_t sniffed_len;
        SSL *ssl;
        struct intercept_shake shake;
};

static struct worker *worker_of(const struct intercept *i)
{
        return i->client->worker;
}

static struct bufferevent *bev_of(const struct intercept *i)
{
        return i->client->bev;
}

/* ---- the connection's events ---- */

static void on_io(evutil_socket_t fd, short what, void *arg);

static void want(struct intercept *i, short what)
{
        if (what == i->wanted)
                return;
        if (i->wanted)
                event_del(&i->io);
        i->wanted = what;
        if (!what)
                return;
        event_assign(&i->io, worker_of(i)->base, i->fd, (short)(what | EV_PERSIST), on_io, i);
        event_add(&i->io, NULL);
}

/* Later in this turn of the loop, when evhttp is through with what it does. */
static void later(struct intercept *i, short what)
{
        event_active(&i->turn, what, 0);
}

/* ---- carrying the plain text ---- */

/* How much more evhttp may find in its input. */
static size_t room_in(const struct intercept *i)
{
        const struct config *config = worker_of(i)->config;
        size_t most = i->client->exchange
                          ? AHEAD_BYTES
                          : config->clients.max_body + 2 * config->clients.max_header;
        size_t has = evbuffer_get_length(bufferevent_get_input(bev_of(i)));
        return has < most ? most - has : 0;
}

static void tell_of_distrust(struct intercept *i, const char *how);

/* After a call to OpenSSL did not do what it should: true where that is only a matter of time. */
static bool may_go_on(struct intercept *i, int result, short *ret_wants)
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

/* Hands `n` bytes to evhttp, which may close the connection on their account: `i` may be gone. */
static void hand_in(struct intercept *i, const char *data, size_t n)
{
        struct bufferevent *bev = bev_of(i);
        struct client *c = i->client;
        evbuffer_add(bufferevent_get_input(bev), data, n); /* which client.c looks at */
        if (c->refused || !(bufferevent_get_enabled(bev) & EV_READ))
                return;
        bufferevent_enable(bev, EV_READ); /* its timeout begins anew */
        bufferevent_trigger(bev, EV_READ, 0);
}

static void move_in(struct intercept *i)
{
        char part[RECORD_BYTES];
        size_t room = room_in(i);
        short wants;
        if (room == 0) {
                want(i, (short)(i->wanted & EV_WRITE));
                return;
        }
        ERR_clear_error();
        int n = SSL_read(i->ssl, part, (int)(room < sizeof part ? room : sizeof part));
        if (n > 0) {
                if (SSL_has_pending(i->ssl))
                        later(i, EV_READ);
                hand_in(i, part, (size_t)n);
        } else if (may_go_on(i, n, &wants)) {
                want(i, (short)(i->wanted | wants));
        } else {
                client_drop(i->client);
        }
}

/* evhttp may close the connection when all is written: `i` may be gone. */
static void move_out(struct intercept *i)
{
        struct bufferevent *bev = bev_of(i);
        struct evbuffer *output = bufferevent_get_output(bev);
        char part[RECORD_BYTES];
        ev_ssize_t n;
        bool moved = false;
        while ((n = evbuffer_copyout(output, part, sizeof part)) > 0) {
                short wants;
                ERR_clear_error();
                int written = SSL_write(i->ssl, part, (int)n);
                if (written <= 0) {
                        if (!may_go_on(i, written, &wants)) {
                                client_drop(i->client);
                                return;
                        }
                        want(i, (short)(i->wanted | wants));
                        if (moved)
                                bufferevent_enable(bev, EV_WRITE); /* its timeout begins anew */
                        return;
                }
                evbuffer_drain(output, (size_t)written);
                moved = true;
        }
        want(i, (short)(i->wanted & ~EV_WRITE));
        if (moved) {
                bufferevent_disable(bev, EV_WRITE); /* and with it the timeout */
                bufferevent_trigger(bev, EV_WRITE, 0);
        }
}

static void on_output(struct evbuffer *output, const struct evbuffer_cb_info *info, void *arg)
{
        struct intercept *i = arg;
        (void)output;
        if (info->n_added > 0 && i->phase == OPEN)
                later(i, EV_WRITE);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
        struct intercept *i = arg;
        (void)fd;
        if (i->phase != OPEN)
                return;
        if ((what & EV_READ) && (what & EV_WRITE))
                later(i, EV_READ); /* this one may be the last */
        if (what & EV_WRITE)
                move_out(i);
        else
                move_in(i);
}

void intercept_resume(struct intercept *i)
{
        if (i->phase != OPEN)
                return;
        want(i, (short)(i->wanted | EV_READ));
        if (SSL_has_pending(i->ssl))
                later(i, EV_READ);
}

void intercept_say_last(struct intercept *i, struct span text)
{
        if (i->broken)
                return;
        ERR_clear_error();
        SSL_write(i->ssl, text.ptr, (int)text.len);
        SSL_shutdown(i->ssl);
        i->broken = true;
}

/* ---- HTTP no longer ---- */

/* libevent's bufferevent asks OpenSSL only when the socket has something: what OpenSSL has read
 * ahead would wait for ever. */
static void empty_into(SSL *ssl, struct evbuffer *input)
{
        char part[RECORD_BYTES];
        int n;
        while (SSL_has_pending(ssl) && (n = SSL_read(ssl, part, sizeof part)) > 0)
                evbuffer_add(input, part, (size_t)n);
        SSL_set_read_ahead(ssl, 0);
        ERR_clear_error();
}

struct bufferevent *intercept_take_over(struct intercept *i)
{
        struct bufferevent *before = bev_of(i);
        want(i, 0);
        event_del(&i->turn);
        evbuffer_remove_cb(bufferevent_get_output(before), on_output, i);
        i->phase = TAKEN;
        SSL_set_options(i->ssl, SSL_OP_IGNORE_UNEXPECTED_EOF); /* it is up to those who speak */
        struct bufferevent *bev = bufferevent_openssl_socket_new(worker_of(i)->base, i->fd, i->ssl,
                                                                 BUFFEREVENT_SSL_OPEN, 0);
        if (!bev)
                abort(); /* out of memory */
        evbuffer_add_buffer(bufferevent_get_input(bev), bufferevent_get_input(before));
        empty_into(i->ssl, bufferevent_get_input(bev));
        return bev;
}

void intercept_finish(struct bufferevent *bev)
{
        ERR_clear_error();
        SSL_shutdown(bufferevent_openssl_get_ssl(bev));
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
        struct bufferevent *bev = bev_of(i);
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

static void begin_open(struct intercept *i)
{
        if (!end_connect(i))
                return;
        i->phase = OPEN;
        evbuffer_add_cb(bufferevent_get_output(bev_of(i)), on_output, i);
        want(i, EV_READ);
        later(i, EV_READ); /* the first request may have come along */
}

static void shake_hands(struct intercept *i)
{
        short wants;
        ERR_clear_error();
        int r = SSL_do_handshake(i->ssl);
        if (r == 1) {
                begin_open(i);
        } else if (may_go_on(i, r, &wants)) {
                want(i, wants);
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
        i->phase = SHAKING;
        shake_hands(i);
}

/* Gives the connection back to the bufferevent, with what was read of it. */
static void give_back(struct intercept *i)
{
        struct bufferevent *bev = bev_of(i);
        want(i, 0);
        i->phase = PLAIN;
        bufferevent_setfd(bev, i->fd);
        client_watch_again(i->client);
}

static void begin_plain(struct intercept *i)
{
        struct bufferevent *bev = bev_of(i);
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
        evbuffer_add(bufferevent_get_input(bev_of(i)), i->sniffed, i->sniffed_len);
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
                n = recv(i->fd, i->sniffed + i->sniffed_len, SNIFF_BYTES - i->sniffed_len, 0);
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
        case SNIFFING:
                sniff(i);
                break;
        case SHAKING:
                shake_hands(i);
                break;
        case OPEN:
                if (what & EV_WRITE)
                        later(i, EV_READ); /* reading may have waited for it too */
                on_turn(fd, what, i);
                break;
        case PLAIN:
        case TAKEN:
        default:
                break;
        }
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
        want(i, 0);
        event_del(&i->turn);
        event_del(&i->timer);
        if (i->phase == OPEN) {
                evbuffer_remove_cb(bufferevent_get_output(bev_of(i)), on_output, i);
                if (!i->broken)
                        SSL_shutdown(i->ssl);
        }
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
        return i->phase != PLAIN;
}

bool intercept_is_opening(const struct intercept *i)
{
        return i->phase == SNIFFING || i->phase == SHAKING;
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
        want(i, EV_READ);
}
