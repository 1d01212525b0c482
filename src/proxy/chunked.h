/* proxy/chunked.h - follows a request body that comes in chunks, to its end and within bounds. */
#ifndef WEIR_PROXY_CHUNKED_H
#define WEIR_PROXY_CHUNKED_H

#include <stddef.h>

#include "proxy/head.h"

enum chunked_state {
        CHUNKED_SIZE,    /* in the digits of a size */
        CHUNKED_SIZE_LF, /* after the CR behind them */
        CHUNKED_DATA,    /* in a chunk */
        CHUNKED_DATA_CR, /* behind it */
        CHUNKED_DATA_LF,
        CHUNKED_TRAILER, /* behind the last chunk */
        CHUNKED_END,
};

/* All zeroes before the first byte. */
struct chunked {
        enum chunked_state state;
        unsigned digits;
        size_t left;    /* of this chunk */
        size_t total;   /* of all chunks so far */
        size_t trailer; /* bytes of the trailer section */
        bool line_empty;
};

/*
 * Takes bytes of the body up to its end (RFC 9112, 7.1), more strictly than evhttp, which waits for
 * ever for the end of a size line, and cannot read extensions.
 *
 * Returns true, also when the end was reached (state CHUNKED_END), or false with *ret_fault filled.
 */
bool chunked_feed(struct chunked *c, const char *data, size_t len, size_t max_body,
                  size_t max_trailer, struct message_fault *ret_fault);

#endif
