/* proxy/intercept_cert.h - what the certificates of the CA and those of hosts have in common. */
#ifndef WEIR_PROXY_INTERCEPT_CERT_H
#define WEIR_PROXY_INTERCEPT_CERT_H

#include <openssl/x509.h>
#include <stdbool.h>

#define INTERCEPT_CERT_DAY ((long)24 * 60 * 60)

/* A key on P-256; NULL: OpenSSL cannot. */
EVP_PKEY *intercept_cert_key(void);

/* A certificate with a random serial number, for `key`, valid from a day ago (clocks differ) for
 * `days` from now; NULL: OpenSSL cannot. No subject, issuer or signature as yet. */
X509 *intercept_cert_new(EVP_PKEY *key, int days);

/* Adds one extension, with its value as in OpenSSL's configuration files; `issuer` may be the
 * certificate itself. False: OpenSSL cannot. */
bool intercept_cert_extend(X509 *cert, X509 *issuer, int nid, const char *value);

/* Signs it, with the digest that suits the key. */
bool intercept_cert_sign(X509 *cert, EVP_PKEY *key);

/* What OpenSSL said last, for people; its queue of errors is empty then. */
const char *intercept_cert_error(void);

#endif
