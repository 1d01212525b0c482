/* proxy/client.h - one accepted connection: who it is, how long its head may take, when it has
 * gone. */
#ifndef WEIR_PROXY_CLIENT_H
#define WEIR_PROXY_CLIENT_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <uthash.h>

#include "base/list.h"
#include "proxy/head.h"
#include "proxy/worker.h"

struct exchange;

enum client_phase {
        CLIENT_IDLE,   /* between requests */
        CLIENT_HEAD,   /* a head has begun to arrive; clients.header_timeout runs */
        CLIENT_BODY,   /* its head is complete; evhttp reads the body */
        CLIENT_BUSY,   /* an exchange has the request */
        CLIENT_REFUSED /* told to go; what it still sends is dropped */
};

struct client {
        struct list link; /* worker->clients */
        UT_hash_handle hh;
        struct worker *worker;
        struct bufferevent *bev;         /* belongs to evhttp */
        struct evhttp_connection *evcon; /* the same; NULL until adopted */
        struct event watch;              /* has the peer gone? */
        bool pipelined;                  /* it has sent more while an exchange is under way */
        struct event head_timer;
        enum client_phase phase;
        struct head head; /* what has arrived of it, in phase HEAD */
        struct exchange *exchange;
        struct sockaddr_storage peer;
        char address[INET6_ADDRSTRLEN]; /* text; "unix" for a local socket */
};

/* For evhttp_set_bevcb: makes the bufferevent of a connection that was just accepted. */
struct bufferevent *client_accept(struct event_base *base, void *worker);

struct client *client_find(const struct worker *w, const struct evhttp_connection *evcon);

/* The exchange has the request and will reply: the connection's read timeout is put off. */
void client_begin(struct client *c, struct exchange *ex);
/* The reply has been written: the connection waits for its next request. */
void client_end(struct client *c);

/* Closes the connection now. A reply that is not yet written is lost. */
void client_drop(struct client *c);

#endif
