/* cli/client_trust.h - the files that tell clients whom to trust: all CAs of the system, those that
 * the user has named, and ours. */
#ifndef WEIR_CLI_CLIENT_TRUST_H
#define WEIR_CLI_CLIENT_TRUST_H

#include "base/span.h"

#define CLIENT_TRUST_BUNDLE "bundle.pem"
#define CLIENT_TRUST_STORE "bundle.p12"
#define CLIENT_TRUST_WGETRC "wgetrc"

struct client_trust {
        char *bundle; /* paths; owned */
        char *store;  /* NULL: it could not be made */
};

/*
 * Writes the bundle and the trust store for Java into a directory. Each takes the place of an older
 * one at once, so that a client never reads half of it; where nothing would change it stays. What
 * cannot be read of the user's own files is warned of.
 *
 * ca         ours, as PEM
 * ret_error  one plain line on failure, freed by the caller
 *
 * Returns 0 or -errno.
 */
int client_trust_write(const char *dir, struct span ca, struct client_trust *ret, char **ret_error);

/*
 * Writes a copy of the user's wgetrc that names the bundle as well: wget reads one such file only.
 * *ret is its path, freed by the caller. Returns and tells as above.
 */
int client_trust_write_wgetrc(const char *dir, const char *bundle, char **ret, char **ret_error);

void client_trust_done(struct client_trust *t); /* the files stay */

#endif
