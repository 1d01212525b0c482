/* proxy/message.h - reads and checks a request to a proxy, and prepares fields for the other side.
 */
#ifndef WEIR_PROXY_MESSAGE_H
#define WEIR_PROXY_MESSAGE_H

#include <event2/http.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/fields.h"
#include "base/span.h"
#include "proxy/head.h"
#include "proxy/steering.h"

/* Where a tunnel leads to that a request came through. */
struct message_inside {
        bool tls;         /* https it is */
        const char *host; /* as in struct message */
        unsigned port;
        struct steering steering; /* of its CONNECT: what a request inside does not say itself */
};

/* A request that may be forwarded. The spans point into `text` or into the evhttp request. */
struct message {
        struct span method;
        bool connect;          /* CONNECT: a tunnel to host and port is wanted */
        bool tls;              /* the host is asked over https */
        bool upgraded;         /* although the client asked for http */
        char *host;            /* lower-case, without port and brackets; owned */
        unsigned port;         /* 80, or 443 over https, where the target names none */
        struct span authority; /* as the client spelled it: for Host */
        char *target;          /* path and query exactly as sent, "/" where there is none; owned */
        struct fields fields;  /* what goes upstream */
        struct steering steering;
        bool wants_switch; /* to another protocol, which may be relayed; the fields say so */
        char *url;         /* as it is told in logs; owned; NULL: as evhttp has it */
        bool chunked;      /* the body came in chunks; it goes on with a Content-Length */
        bool wants_close;  /* the client asked for the connection to be closed */
};

/*
 * Fills *ret from `req`, whose head has passed head_check. Hop-by-hop fields and those that
 * Connection names are left out, but for those that ask for a switch; so are weir's own, which are
 * read into `steering`; Host is made to match the target, Via is added.
 *
 * field_count  fields of the head; an unpatched libevent adds those of a trailer behind them
 * inside       the tunnel that it came through, to whose end it must be; NULL: none
 * via          our own entry for Via; where the request carries it already it came round in a loop
 *
 * Returns true, or false with *ret_fault filled. message_done is due either way.
 */
bool message_read(struct message *ret, struct evhttp_request *req, unsigned field_count,
                  const struct message_inside *inside, const char *via,
                  struct message_fault *ret_fault);
void message_done(struct message *m);

/* `https: upgrade`: a request for http becomes one for https. */
void message_upgrade(struct message *m);

/* Copies the end-to-end fields of an answer to the request `m` to `req`'s output headers, with Via
 * added; of a 101 also those that say to which protocol the connection switches. */
void message_copy_answer(struct evhttp_request *req, const struct message *m, int status,
                         const struct fields *answer, const char *via);

#endif
