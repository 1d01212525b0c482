/* bench/tunnel_load.c - asks for a page of 1 KiB over https through a proxy's CONNECT, again and
 * again, each connection as soon as it has its answer.
 *
 * tunnel_load PROXY-PORT HOST-PORT SECONDS CONNECTIONS kept|new
 *
 * kept: all requests of a connection on one CONNECT. new: a connection, with its CONNECT and its
 * handshake, for each request. Prints how many requests were answered, and how many failed.
 * Verifies no certificates: what that costs is not the proxy's.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_BYTES 1024

struct load {
        struct event_base *base;
        SSL_CTX *ctx;
        struct sockaddr_in proxy;
        int host_port;
        bool fresh, over;
        long answered, failed;
};

struct connection {
        struct load *load;
        struct bufferevent *plain, *bev; /* the tunnel, and TLS inside */
};

static void begin(struct connection *c);

static void ask(struct connection *c)
{
        evbuffer_add_printf(bufferevent_get_output(c->bev),
                            "GET /1k HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", c->load->host_port);
}

static void end(struct connection *c)
{
        if (c->bev)
                bufferevent_free(c->bev); /* with what is below */
        else if (c->plain)
                bufferevent_free(c->plain);
        c->bev = c->plain = NULL;
}

static void again(struct connection *c)
{
        end(c);
        if (!c->load->over)
                begin(c);
}

/* Is a whole answer there? Takes it away. */
static bool take_answer(struct evbuffer *input)
{
        struct evbuffer_ptr end = evbuffer_search(input, "\r\n\r\n", 4, NULL);
        if (end.pos < 0 || evbuffer_get_length(input) < (size_t)end.pos + 4 + BODY_BYTES)
                return false;
        evbuffer_drain(input, (size_t)end.pos + 4 + BODY_BYTES);
        return true;
}

static void on_answer(struct bufferevent *bev, void *arg)
{
        struct connection *c = arg;
        char status[12] = "";
        evbuffer_copyout(bufferevent_get_input(bev), status, sizeof status);
        if (memcmp(status, "HTTP/1.1 200", sizeof status) != 0) {
                c->load->failed++;
                again(c);
                return;
        }
        if (!take_answer(bufferevent_get_input(bev)))
                return;
        c->load->answered++;
        if (c->load->fresh)
                again(c);
        else
                ask(c);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
        struct connection *c = arg;
        if (what & BEV_EVENT_CONNECTED) {
                if (bev == c->bev)
                        ask(c);
                return;
        }
        if (!c->load->over)
                c->load->failed++;
        again(c);
}

static void on_connected(struct bufferevent *bev, void *arg)
{
        struct connection *c = arg;
        struct evbuffer *input = bufferevent_get_input(bev);
        struct evbuffer_ptr head_end = evbuffer_search(input, "\r\n\r\n", 4, NULL);
        if (head_end.pos < 0)
                return;
        evbuffer_drain(input, (size_t)head_end.pos + 4);
        SSL *ssl = SSL_new(c->load->ctx);
        SSL_set_tlsext_host_name(ssl, "localhost");
        c->bev = bufferevent_openssl_filter_new(c->load->base, bev, ssl, BUFFEREVENT_SSL_CONNECTING,
                                                BEV_OPT_CLOSE_ON_FREE);
        bufferevent_setcb(c->bev, on_answer, NULL, on_event, c);
        bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

static void begin(struct connection *c)
{
        c->plain = bufferevent_socket_new(c->load->base, -1, BEV_OPT_CLOSE_ON_FREE);
        bufferevent_setcb(c->plain, on_connected, NULL, on_event, c);
        evbuffer_add_printf(bufferevent_get_output(c->plain),
                            "CONNECT localhost:%d HTTP/1.1\r\nHost: localhost:%d\r\n\r\n",
                            c->load->host_port, c->load->host_port);
        bufferevent_enable(c->plain, EV_READ | EV_WRITE);
        bufferevent_socket_connect(c->plain, (struct sockaddr *)&c->load->proxy,
                                   sizeof c->load->proxy);
}

/* What is no number in range counts as 0. */
static int number(const char *text, long max)
{
        char *end;
        long n = strtol(text, &end, 10);
        return *end || n < 0 || n > max ? 0 : (int)n;
}

int main(int argc, char **argv)
{
        int count = argc == 6 ? number(argv[4], 100000) : 0;
        if (count == 0) {
                fputs("usage: tunnel_load PROXY-PORT HOST-PORT SECONDS CONNECTIONS kept|new\n",
                      stderr);
                return 2;
        }
        struct load load = {.base = event_base_new(), .ctx = SSL_CTX_new(TLS_client_method())};
        struct timeval time = {number(argv[3], 3600), 0};
        struct connection *all = calloc((size_t)count, sizeof *all);
        if (!load.base || !load.ctx || !all)
                abort();
        load.proxy = (struct sockaddr_in){.sin_family = AF_INET,
                                          .sin_port = htons((uint16_t)number(argv[1], 65535)),
                                          .sin_addr = {htonl(INADDR_LOOPBACK)}};
        load.host_port = number(argv[2], 65535);
        load.fresh = strcmp(argv[5], "new") == 0;
        for (int i = 0; i < count; i++) {
                all[i].load = &load;
                begin(&all[i]);
        }
        event_base_loopexit(load.base, &time);
        event_base_dispatch(load.base);
        load.over = true;
        printf("%ld answered, %ld failed\n", load.answered, load.failed);
        for (int i = 0; i < count; i++)
                end(&all[i]);
        free(all);
        event_base_free(load.base);
        SSL_CTX_free(load.ctx);
        return 0;
}
