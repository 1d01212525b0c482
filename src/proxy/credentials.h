/* proxy/credentials.h - what Proxy-Authorization says: a name, a password, and a session. */
#ifndef WEIR_PROXY_CREDENTIALS_H
#define WEIR_PROXY_CREDENTIALS_H

#include <stdbool.h>

struct credentials {
        char *name;          /* owned */
        char *password;      /* points into the same */
        const char *session; /* the same; NULL: none */
};

/* What divides a user's name from a session: "alice-session-abc123". */
#define CREDENTIALS_SESSION "-session-"

/*
 * Reads "Basic …" (RFC 7617). False, and *ret untouched, where it is anything else, where there is
 * no colon, or a control character.
 */
bool credentials_read(const char *field, struct credentials *ret);

/* Wipes and frees it; all NULL is fine. */
void credentials_done(struct credentials *c);

#endif
