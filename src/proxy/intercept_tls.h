/* proxy/intercept_tls.h - the server's side of TLS towards clients: what all connections share. */
#ifndef WEIR_PROXY_INTERCEPT_TLS_H
#define WEIR_PROXY_INTERCEPT_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "proxy/intercept_ca.h"
#include "proxy/intercept_leaf.h"

/* The CA, one key for all certificates, and the settings and tickets of TLS. Does not change: all
 * threads may use it. */
struct intercept_tls;

/* Takes `ca` over, also on failure. 0, or -EIO where OpenSSL cannot. */
int intercept_tls_new(struct intercept_ca *ca, struct intercept_tls **ret);
void intercept_tls_free(struct intercept_tls *t); /* no connection may be left; NULL is fine */

/* In whose name; borrowed. */
const struct intercept_ca *intercept_tls_ca(const struct intercept_tls *t);

/* The certificates for one thread. */
struct intercept_leaves *intercept_tls_leaves(const struct intercept_tls *t);

/* What the handshake needs to know; must stay until the connection is freed. */
struct intercept_shake {
        const struct intercept_tls *tls;
        struct intercept_leaves *leaves;
        const char *host; /* whose certificate is shown to who names none (RFC 6066, 3) */
};

/*
 * The server's side of a connection on the socket `fd`, which stays the caller's: TLS 1.2 or 1.3,
 * HTTP/1.1 where the client asks what is spoken. NULL: OpenSSL cannot.
 */
SSL *intercept_tls_accept(const struct intercept_shake *shake, int fd);

/* After a failure of `ssl`: did the client turn the certificate down? Its alert says so, in words
 * that stay; NULL: no such alert came. OpenSSL's queue of errors is left as it is. */
const char *intercept_tls_distrust(void);

#endif
