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

/* Takes bytes up to the empty line that ends the head; true when that was among them. */
bool head_feed(struct head *h, const char *data, size_t len);
void head_clear(struct head *h); /* frees the text */

/*
 * Checks a whole head, raw as it was sent, by RFC 9112. evhttp is lenient where it matters: what it
 * takes for a body, or for none, decides where the next request begins.
 *
 * max_body  bytes that Content-Length may announce
 *
 * Returns true, or false with *ret_fault filled, whose `close` is set always. Pure.
 */
bool head_check(struct span head, size_t max_body, struct message_fault *ret_fault);

#endif
