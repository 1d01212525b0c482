/* proxy/intake.h - what a client sends, looked at before evhttp parses it. */
#ifndef WEIR_PROXY_INTAKE_H
#define WEIR_PROXY_INTAKE_H

#include <stddef.h>

#include "proxy/chunked.h"
#include "proxy/head.h"

enum intake_phase {
        INTAKE_IDLE, /* between requests */
        INTAKE_HEAD, /* a head has begun to arrive */
        INTAKE_BODY, /* its head is complete and good; the body follows, if there is one */
};

struct intake {
        enum intake_phase phase;
        struct head head; /* what has arrived of it */
        struct head_facts facts;
        struct chunked chunked;
};

/* Back to IDLE, for the next request. */
void intake_reset(struct intake *in);

/*
 * Looks at the next bytes of a request; those behind its end are not looked at, but for CONNECT,
 * where there may be none.
 *
 * max_header, max_body  bytes
 *
 * Returns true, or false with *ret_fault filled: the request must not be read on.
 */
bool intake_feed(struct intake *in, const char *data, size_t len, size_t max_header,
                 size_t max_body, struct message_fault *ret_fault);

#endif
