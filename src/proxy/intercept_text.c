/* Carries plain text between TLS and the buffers that evhttp works with. */
#include "proxy/intercept_state.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <stdlib.h>

/* A record of TLS holds no more. */
#define RECORD_BYTES 16384

/* What a client may send ahead while it waits for an answer. */
#define AHEAD_BYTES ((size_t)RECORD_BYTES)

/* How much more evhttp may find in its input. */
static size_t room_in(const struct intercept *i)
{
        const struct config *config = i->client->worker->config;
        size_t most = i->client->exchange
                          ? AHEAD_BYTES
                          : config->clients.max_body + 2 * config->clients.max_header;
        size_t has = evbuffer_get_length(bufferevent_get_input(i->client->bev));
        return has < most ? most - has : 0;
}

/* Hands `n` bytes to evhttp, which may close the connection on their account: `i` may be gone. */
static void hand_in(struct intercept *i, const char *data, size_t n)
{
        struct bufferevent *bev = i->client->bev;
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
                intercept_want(i, (short)(i->wanted & EV_WRITE));
                return;
        }
        ERR_clear_error();
        int n = SSL_read(i->ssl, part, (int)(room < sizeof part ? room : sizeof part));
        if (n > 0) {
                if (SSL_has_pending(i->ssl))
                        intercept_later(i, EV_READ);
                hand_in(i, part, (size_t)n);
        } else if (intercept_may_go_on(i, n, &wants)) {
                intercept_want(i, (short)(i->wanted | wants));
        } else {
                client_drop(i->client);
        }
}

/* evhttp may close the connection when all is written: `i` may be gone. */
static void move_out(struct intercept *i)
{
        struct bufferevent *bev = i->client->bev;
        struct evbuffer *output = bufferevent_get_output(bev);
        char part[RECORD_BYTES];
        ev_ssize_t n;
        bool moved = false;
        while ((n = evbuffer_copyout(output, part, sizeof part)) > 0) {
                short wants;
                ERR_clear_error();
                int written = SSL_write(i->ssl, part, (int)n);
                if (written <= 0) {
                        if (!intercept_may_go_on(i, written, &wants)) {
                                client_drop(i->client);
                                return;
                        }
                        intercept_want(i, (short)(i->wanted | wants));
                        if (moved)
                                bufferevent_enable(bev, EV_WRITE); /* its timeout begins anew */
                        return;
                }
                evbuffer_drain(output, (size_t)written);
                moved = true;
        }
        intercept_want(i, (short)(i->wanted & ~EV_WRITE));
        if (moved) {
                bufferevent_disable(bev, EV_WRITE); /* and with it the timeout */
                bufferevent_trigger(bev, EV_WRITE, 0);
        }
}

static void on_output(struct evbuffer *output, const struct evbuffer_cb_info *info, void *arg)
{
        struct intercept *i = arg;
        (void)output;
        if (info->n_added > 0 && i->phase == INTERCEPT_OPEN)
                intercept_later(i, EV_WRITE);
}

void intercept_begin_text(struct intercept *i)
{
        i->phase = INTERCEPT_OPEN;
        evbuffer_add_cb(bufferevent_get_output(i->client->bev), on_output, i);
        intercept_want(i, EV_READ);
        intercept_later(i, EV_READ); /* the first request may have come along */
}

void intercept_end_text(struct intercept *i)
{
        evbuffer_remove_cb(bufferevent_get_output(i->client->bev), on_output, i);
        if (!i->broken)
                SSL_shutdown(i->ssl);
}

void intercept_move_text(struct intercept *i, short what)
{
        if (i->phase != INTERCEPT_OPEN)
                return;
        if ((what & EV_READ) && (what & EV_WRITE))
                intercept_later(i, EV_READ); /* this one may be the last */
        if (what & EV_WRITE)
                move_out(i);
        else
                move_in(i);
}

void intercept_resume(struct intercept *i)
{
        if (i->phase != INTERCEPT_OPEN)
                return;
        intercept_want(i, (short)(i->wanted | EV_READ));
        if (SSL_has_pending(i->ssl))
                intercept_later(i, EV_READ);
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
        struct bufferevent *before = i->client->bev;
        intercept_want(i, 0);
        event_del(&i->turn);
        evbuffer_remove_cb(bufferevent_get_output(before), on_output, i);
        i->phase = INTERCEPT_TAKEN;
        SSL_set_options(i->ssl, SSL_OP_IGNORE_UNEXPECTED_EOF); /* it is up to those who speak */
        struct bufferevent *bev = bufferevent_openssl_socket_new(i->client->worker->base, i->fd,
                                                                 i->ssl, BUFFEREVENT_SSL_OPEN, 0);
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
