/* proxy/head.h - a request's head as it arrives: where it ends, and whether it is one at all. */
#ifndef WEIR_PROXY_HEAD_H
#define WEIR_PROXY_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/* Why a request is not forwarded. */
struct message_fault {
        int status;
        const char *error; /* RFC 9209 error type, "" where none fits */
        const char *text;  /* one plain sentence for the client */
        bool close; /* its framing is in doubt: nothing more may be read from this connection */
};

/* The bytes of a head so far; all zeroes to begin with. */
struct head {
        char *text; /* owned */
        size_t len, room;
        bool line_empty; /* nothing but CR since the last LF */
};

/* Takes bytes up to the empty line that ends the head, *ret_used of them; true when that line was
 * among them. */
bool head_feed(struct head *h, const char *data, size_t len, size_t *ret_used);
void head_clear(struct head *h); /* frees the text */

/* What a good head says. */
struct head_facts {
        unsigned fields;
        bool chunked; /* the body comes in chunks */
        bool connect; /* CONNECT: nothing may follow before it has been answered */
};

/*
 * Checks a whole head, raw as it was sent, by RFC 9112, and of CONNECT the target too. evhttp is
 * lenient where it matters: what it takes for a body, or for none, decides where the next request
 * begins.
 *
 * max_body  bytes that Content-Length may announce
 *
 * Returns true with *ret_facts filled, or false with *ret_fault filled, whose `close` is set
 * always. Pure.
 */
bool head_check(struct span head, size_t max_body, struct head_facts *ret_facts,
                struct message_fault *ret_fault);

#endif
