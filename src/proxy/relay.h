/* proxy/relay.h - carries bytes between two connections, both ways, until both ways have ended. */
#ifndef WEIR_PROXY_RELAY_H
#define WEIR_PROXY_RELAY_H

#include <stdint.h>

#include "base/usec.h"

struct bufferevent;
struct relay;

enum relay_end {
        RELAY_ENDED,       /* each side has ended its way in order, and all was delivered */
        RELAY_FRONT_BROKE, /* an error; what had come from there was delivered to the other side */
        RELAY_BACK_BROKE,
        RELAY_IDLE, /* no byte moved for too long */
};

/* Any kind of bufferevent: socket, TLS, one half of a pair (with BEV_OPT_DEFER_CALLBACKS).
 * Connected, or the relay waits until it is. When it tells an end of file, no more comes from it;
 * with BEV_EVENT_WRITING it takes no more either. The relay owns a reference to it
 * (bufferevent_free); who wants to keep the bufferevent takes one more before (bufferevent_incref).
 */
struct relay_side {
        struct bufferevent *bev;
        /* Says that no more bytes will follow, when all that were there have been written; from the
         * other side may more come still. For TLS: a close_notify. NULL: it is a plain socket,
         * which gets a shutdown(SHUT_WR), or a pair, whose other half gets an end of file. */
        void (*finish)(struct bufferevent *bev);
};

/* Bytes delivered to the back side, and to the front side; not those that were in the outputs
 * before the relay began. */
struct relay_counts {
        uint64_t forth, back;
};

/*
 * Starts. What is in the input of either side goes to the other one at once; reading and writing
 * are enabled. While more than 256 KiB wait for a slow side, the other one is not read.
 *
 * front, back  copied; the callbacks of both are taken over
 * idle         the pair ends when no byte was delivered either way for so long; at least 1
 * on_end       called once, from the event loop, never from within relay_new. Nothing moves after
 *              it; relay_free is due, there or later. Not called once relay_free was.
 */
struct relay *relay_new(const struct relay_side *front, const struct relay_side *back, usec_t idle,
                        void (*on_end)(void *arg, enum relay_end end), void *arg);

/* Gives up both sides, at any time; what was not yet delivered is lost. NULL is fine. */
void relay_free(struct relay *r);

struct relay_counts relay_count(const struct relay *r);

#endif
