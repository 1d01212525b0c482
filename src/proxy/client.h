/* proxy/client.h - one accepted connection: who it is, how long its head may take, when it has
 * gone. */
#ifndef WEIR_PROXY_CLIENT_H
#define WEIR_PROXY_CLIENT_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <netinet/in.h>

#include "base/hash.h"
#include "base/list.h"
#include "proxy/intake.h"
#include "proxy/worker.h"
#include "runtime/digest.h"

struct exchange;
struct intercept;

struct client {
        struct list link; /* worker->clients */
        UT_hash_handle hh;
        struct worker *worker;
        struct bufferevent *bev;         /* belongs to evhttp */
        struct evhttp_connection *evcon; /* the same; NULL until adopted */
        struct event watch;              /* has the peer gone? */
        bool ended;                      /* it had ended before there was an exchange */
        bool pipelined;                  /* it has sent more while an exchange is under way */
        bool just_read;     /* the exchange began with what the peer event is about to tell */
        struct event timer; /* of a head that arrives, or of a refusal */
        struct intake intake;
        bool refused;                /* told to go; what it still sends is dropped */
        struct intercept *intercept; /* what was made of its CONNECT; NULL: there was none */
        struct exchange *exchange;   /* the request that it waits for; NULL between requests */
        char *user;                  /* that its CONNECT named; owned; NULL: none */
        uint64_t login_serial;       /* the users among whom `login` was found; 0: it was not */
        uint8_t login[DIGEST_SIZE];
        struct sockaddr_storage peer;
        char address[INET6_ADDRSTRLEN]; /* text; "unix" for a local socket */
};

/* For evhttp_set_bevcb: makes the bufferevent of a connection that was just accepted. */
struct bufferevent *client_accept(struct event_base *base, void *worker);

struct client *client_find(const struct worker *w, const struct evhttp_connection *evcon);

/* Does clients.allow let it in? */
bool client_is_allowed(const struct client *c, const struct config *config);

/* The exchange has the request and will reply: the connection's read timeout is put off. */
void client_begin(struct client *c, struct exchange *ex);
/* The reply has been written: the connection waits for its next request. */
void client_end(struct client *c);

/* Its connection has a descriptor again: watches that for its end. */
void client_watch_again(struct client *c);

/* Has it sent anything behind the request that it waits for? */
bool client_has_sent_more(const struct client *c);

/* What the connection carries is HTTP no longer: its bytes are the caller's from now on, and evhttp
 * keeps it until client_drop. Returns a reference to its bufferevent, whose input may hold bytes,
 * and in *ret_finish how the peer is told that no more will follow (see struct relay_side). The
 * client stays with its exchange. */
struct bufferevent *client_take_over(struct client *c,
                                     void (**ret_finish)(struct bufferevent *bev));

/* No new requests: refuses one that has begun to arrive, drops the connection where none has. */
void client_drain(struct client *c);

/* Frees what evhttp's own end has left: a connection that was accepted and never looked at. */
void client_abandon(struct client *c);

/* Closes the connection now. A reply that is not yet written is lost. */
void client_drop(struct client *c);

#endif
