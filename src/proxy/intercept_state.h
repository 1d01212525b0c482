/* proxy/intercept_state.h - the inside of an opened tunnel, for the files that make it up. */
#ifndef WEIR_PROXY_INTERCEPT_STATE_H
#define WEIR_PROXY_INTERCEPT_STATE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "proxy/client.h"
#include "proxy/intercept.h"
#include "proxy/intercept_tls.h"
#include "proxy/message.h"
#include "proxy/worker.h"

/* As many bytes tell HTTP from anything else: its longest method is OPTIONS. */
#define INTERCEPT_SNIFF_BYTES 8

enum intercept_phase {
        INTERCEPT_SNIFFING, /* what does it speak? */
        INTERCEPT_SHAKING,  /* TLS is being agreed on */
        INTERCEPT_OPEN,     /* TLS carries requests */
        INTERCEPT_PLAIN,    /* evhttp has the connection as it is */
        INTERCEPT_TAKEN,    /* it is HTTP no longer, and none of our business */
};

struct intercept {
        struct client *client;
        enum intercept_phase phase;
        struct message_inside inside; /* its texts are owned */
        int fd;
        struct event io;    /* on the connection: `wanted` */
        struct event turn;  /* the rest of this turn of the loop: what there is to be moved */
        struct event timer; /* until it is known what is spoken */
        short wanted;
        bool broken; /* nothing more may be sent by TLS */
        char sniffed[INTERCEPT_SNIFF_BYTES];
        size_t sniffed_len;
        SSL *ssl;
        struct intercept_shake shake;
};

/* ---- the connection (intercept.c) ---- */

/* Waits for these events of it alone. */
void intercept_want(struct intercept *i, short what);

/* Moves text later in this turn of the loop, when evhttp is through with what it does. */
void intercept_later(struct intercept *i, short what);

/* After a call to OpenSSL did not do what it should: true where that is only a matter of time, with
 * what is to be waited for. */
bool intercept_may_go_on(struct intercept *i, int result, short *ret_wants);

/* ---- the text that TLS carries (intercept_text.c) ---- */

void intercept_begin_text(struct intercept *i); /* TLS has been agreed on */
void intercept_end_text(struct intercept *i);

/* Moves what there is, in the directions of `what`; `i` may be gone afterwards. */
void intercept_move_text(struct intercept *i, short what);

#endif
