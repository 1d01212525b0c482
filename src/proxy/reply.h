/* proxy/reply.h - writes the head of an answer to the client: the upstream's, or weir's own. */
#ifndef WEIR_PROXY_REPLY_H
#define WEIR_PROXY_REPLY_H

#include <event2/http.h>
#include <stdbool.h>

#include "base/span.h"
#include "base/usec.h"
#include "egress/upstream.h"
#include "proxy/message.h"

/* What the Weir-… fields say of the request; NULL pointers to it leave them out. */
struct reply_note {
        bool moved;    /* its session goes by another endpoint from now on: Weir-Session-Moved */
        bool annotate; /* all the others */
        unsigned attempts;
        usec_t queued;
        const char *scope; /* NULL: not known yet */
};

/* Starts the upstream's answer to the request `m`; its body follows in chunks.
 * close     the connection ends after this answer */
void reply_forward(struct evhttp_request *req, const struct message *m,
                   const struct upstream_answer *answer, const char *via,
                   const struct reply_note *note, bool close);

/* Lets evhttp answer a CONNECT whose connection is to be used for more requests. */
void reply_connected(struct evhttp_request *req);

/* weir's own answer, whole. */
struct reply_refusal {
        int status;
        const char *error;  /* RFC 9209 error type; "" leaves Proxy-Status without one */
        const char *detail; /* for Proxy-Status; "" none */
        const char *text;   /* one plain sentence */
        usec_t retry_after; /* 0: waiting does not help */
        bool close;
};
void reply_refuse(struct evhttp_request *req, const struct reply_refusal *refusal,
                  const struct reply_note *note);

/* Writes to `to` the head of an answer after which the connection is HTTP no longer: evhttp has no
 * part in it. */
void reply_open(struct evhttp_request *req, int status, const char *reason,
                const struct reply_note *note, struct evbuffer *to);

/* The whole of a refusal as text, for a connection on which evhttp cannot reply; it closes the
 * connection. The caller frees it. */
char *reply_text(const struct message_fault *fault);

#endif
