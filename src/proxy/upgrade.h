/* proxy/upgrade.h - `https: upgrade`: the client asks for http://, the host is asked for https://.
 */
#ifndef WEIR_PROXY_UPGRADE_H
#define WEIR_PROXY_UPGRADE_H

#include "base/span.h"

/* The port at the host of a request for `port`: 443 for 80, any other as it is. */
unsigned upgrade_port(unsigned port);

/*
 * The Location of an answer to a request that was upgraded, as the client is to see it: a redirect
 * to https on the same host becomes one to http, which will be upgraded in its turn.
 *
 * value  of the field
 * host   of the request, as in struct target
 *
 * Returns the new value, freed by the caller, or NULL where it stays as it is.
 */
char *upgrade_location(struct span value, const char *host);

/* The same for a Set-Cookie: without Secure, since the client would never send such a cookie by
 * http (RFC 6265, 5.4). On its way to the host it goes over TLS as ever. */
char *upgrade_cookie(struct span value);

#endif
