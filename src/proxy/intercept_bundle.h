/* proxy/intercept_bundle.h - the CAs that a client shall trust: gathered from files, and written as
 * clients read them. */
#ifndef WEIR_PROXY_INTERCEPT_BUNDLE_H
#define WEIR_PROXY_INTERCEPT_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

struct intercept_bundle;

struct intercept_bundle *intercept_bundle_new(void);
void intercept_bundle_free(struct intercept_bundle *b); /* NULL is fine */

/* Adds the certificates of a PEM text; those that are there already are passed over, as is all that
 * is no certificate. Returns how many it holds. */
size_t intercept_bundle_add(struct intercept_bundle *b, struct span pem);

/* The same for a file. Returns 0; -EINVAL where it holds no certificate; -errno of reading it. */
int intercept_bundle_add_file(struct intercept_bundle *b, const char *path);

/* Adds the file in which this system keeps its CAs. False: none of the usual ones is there. */
bool intercept_bundle_add_system(struct intercept_bundle *b);

/* All of them as PEM; the caller frees ret->ptr. */
void intercept_bundle_pem(const struct intercept_bundle *b, struct span *ret);

/*
 * All of them as a trust store for Java: PKCS#12, with the attribute by which Java tells a CA to be
 * trusted from a certificate that is merely stored. Not encrypted: what is in it is public.
 *
 * password  of its checksum, which Java wants
 * ret       the caller frees ret->ptr
 *
 * Returns 0, or -EIO where OpenSSL cannot.
 */
int intercept_bundle_store(const struct intercept_bundle *b, const char *password,
                           struct span *ret);

#endif
