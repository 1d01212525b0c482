/* proxy/tunnel.h - an exchange whose answer is a connection: what CONNECT asks for. */
#ifndef WEIR_PROXY_TUNNEL_H
#define WEIR_PROXY_TUNNEL_H

#include <stdbool.h>

struct bufferevent;
struct exchange;

/* May the CONNECT be asked a turn for? False: it has been refused, since its port is none of
 * destinations.connect_ports. */
bool tunnel_may_open(struct exchange *ex);

/* Refuses a CONNECT behind which bytes came before it was answered. */
void tunnel_refuse_early_bytes(struct exchange *ex);

/* The host has been reached: tells the limiter and the client, and relays until the exchange ends.
 * Takes `host` over. */
void tunnel_open(struct exchange *ex, struct bufferevent *host);

#endif
