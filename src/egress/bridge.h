/* egress/bridge.h - a connection within libcurl's TLS with a proxy, made to look like a socket of
 * its own. */
#ifndef WEIR_EGRESS_BRIDGE_H
#define WEIR_EGRESS_BRIDGE_H

#include <curl/curl.h>

struct event_base;
struct bufferevent;
struct bridge;

/*
 * Makes a pair of sockets and relays between the one and the connection of `easy`, a finished
 * CONNECT_ONLY transfer that stays with its multi handle. When either side has ended, what is on
 * its way is delivered, and both are told; that one side alone has no more to say cannot be passed
 * on.
 *
 * ret_other  the other end of the pair; the caller's
 * on_end     called once, unless bridge_free comes first: the bridge is of no more use
 *
 * NULL with *ret_other untouched where the system has no more sockets.
 */
struct bridge *bridge_new(struct event_base *base, CURL *easy, struct bufferevent **ret_other,
                          void (*on_end)(void *arg), void *arg);
void bridge_free(struct bridge *b); /* NULL is fine */

#endif
