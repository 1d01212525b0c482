/* proxy/tunnel.h - an exchange whose answer is a connection: CONNECT, and what follows a 101. */
#ifndef WEIR_PROXY_TUNNEL_H
#define WEIR_PROXY_TUNNEL_H

#include <stdbool.h>

struct bufferevent;
struct exchange;
struct upstream_answer;

/* May the CONNECT be asked a turn for? False: it has been refused, since its port is none of
 * destinations.connect_ports. */
bool tunnel_may_open(struct exchange *ex);

/* Refuses a CONNECT behind which bytes came before it was answered. */
void tunnel_refuse_early_bytes(struct exchange *ex);

/* The host has been reached: tells the limiter and the client, and relays until the exchange ends.
 * Takes `host` over. */
void tunnel_open(struct exchange *ex, struct bufferevent *host);

/* The answer is a 101, and ex->told holds what its fields say: goes on like tunnel_open. The
 * attempt stays with the exchange. */
void tunnel_switch(struct exchange *ex, const struct upstream_answer *answer);

#endif
