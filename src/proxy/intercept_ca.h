/* proxy/intercept_ca.h - the certificate authority in whose name HTTPS is opened: two files, made,
 * read and checked. */
#ifndef WEIR_PROXY_INTERCEPT_CA_H
#define WEIR_PROXY_INTERCEPT_CA_H

#include <openssl/x509.h>
#include <stdbool.h>

#include "base/usec.h"

/* The files in a directory, where nothing else is configured. */
#define INTERCEPT_CA_CERTIFICATE "ca.pem"
#define INTERCEPT_CA_KEY "ca.key"

/* Does not change once it is loaded: all threads may use it. */
struct intercept_ca {
        char *path; /* of the certificate's file */
        X509 *certificate;
        STACK_OF(X509) * above; /* the further certificates of the file; may be empty */
        EVP_PKEY *key;
};

/*
 * Makes one in the directory `path`, which is there: a certificate for ten years, and its key on
 * P-256. The key's file is never open to others (0600), and each file appears whole or not at all.
 *
 * ret_error  one plain line on failure, freed by the caller
 *
 * Returns 0; -EEXIST where one of the files is there: they are never overwritten; -errno of the
 * directory and the files; -EIO where OpenSSL fails.
 */
int intercept_ca_make(const char *path, char **ret_error);

/*
 * Loads a certificate and its key from two files (PEM) and checks that it is a CA, that it is valid
 * now and that the key is its.
 *
 * key        NULL: the certificate alone is read, for who shows it; there is no key then
 * ret        freed with intercept_ca_free
 * ret_error  one plain line that says which file, what is wrong and what to do; freed by the caller
 *
 * Returns 0, -errno of reading the files (-ENOENT: one is not there), or -EINVAL.
 */
int intercept_ca_load(const char *certificate, const char *key, struct intercept_ca **ret,
                      char **ret_error);

/* Loads it from a directory, and makes it before where neither file is there (*ret_made). Several
 * processes may do so at a time: they agree on one. Returns as the two above. */
int intercept_ca_need(const char *path, struct intercept_ca **ret, bool *ret_made,
                      char **ret_error);

/* The same for who does not want one made: *ret is NULL then. */
int intercept_ca_find(const char *path, struct intercept_ca **ret, char **ret_error);

void intercept_ca_free(struct intercept_ca *ca); /* NULL is fine */

/* What people compare, and want to know of it. */
struct intercept_ca_facts {
        char fingerprint[sizeof "AB:" * 32]; /* SHA-256 of the certificate, "AB:CD:…" */
        char *subject;                       /* on one line */
        usec_t not_after;                    /* wall clock */
};
void intercept_ca_describe(const struct intercept_ca *ca, struct intercept_ca_facts *ret);
void intercept_ca_facts_done(struct intercept_ca_facts *facts);

/* The certificates of the file as PEM, for clients to trust; freed by the caller. */
char *intercept_ca_export(const struct intercept_ca *ca);

#endif
