/* proxy/intercept_leaf.h - the certificates that clients are shown: one for each host, made when it
 * is asked for, and kept for the next time. */
#ifndef WEIR_PROXY_INTERCEPT_LEAF_H
#define WEIR_PROXY_INTERCEPT_LEAF_H

#include <openssl/x509.h>
#include <stddef.h>

#include "base/usec.h"
#include "proxy/intercept_ca.h"

/* Used by one thread alone. */
struct intercept_leaves;

struct intercept_leaf {
        X509 *certificate;
        usec_t told; /* when the log last told of a client that did not trust it; 0: never */
};

/*
 * ca, key  whose certificates they are, and the one key that they are all for; borrowed
 * most     kept at a time; of more, the one that was not asked for the longest goes
 */
struct intercept_leaves *intercept_leaves_new(const struct intercept_ca *ca, EVP_PKEY *key,
                                              size_t most);
void intercept_leaves_free(struct intercept_leaves *l); /* NULL is fine */

/*
 * The certificate for a host: 30 days at most, but no longer than the CA; made anew in good time.
 *
 * host      a name or an address, without brackets; upper and lower case are the same
 * now_real  wall clock
 *
 * Returns it, to be used until the next call; NULL where `host` is neither name nor address, or
 * OpenSSL cannot.
 */
struct intercept_leaf *intercept_leaf_get(struct intercept_leaves *l, const char *host,
                                          usec_t now_real);

#endif
