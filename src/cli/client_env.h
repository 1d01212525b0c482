/* cli/client_env.h - what is put into a client's environment so that it uses the proxy and trusts
 * its CA. */
#ifndef WEIR_CLI_CLIENT_ENV_H
#define WEIR_CLI_CLIENT_ENV_H

#include <stdbool.h>
#include <stddef.h>

enum client_env_kind {
        CLIENT_ENV_PROXY,
        CLIENT_ENV_NO_PROXY,
        CLIENT_ENV_SWITCH,
        CLIENT_ENV_BUNDLE,
        CLIENT_ENV_WGETRC,
        CLIENT_ENV_JAVA
};

/* One row each in client_env.def, which says what the kinds are. */
struct client_env_row {
        const char *name;
        enum client_env_kind kind;
};
extern const struct client_env_row client_env_rows[];
extern const size_t client_env_count;

/* Where the proxy is, and the files for who trusts it; all borrowed. */
struct client_env {
        const char *host; /* name or address, without brackets */
        unsigned port;
        const char *bundle;      /* NULL: nothing is opened, and no variable of a CA is touched */
        const char *trust_store; /* PKCS#12, for Java; NULL: none */
        const char *wgetrc;      /* NULL: none */
};

/* The password of every trust store: what is in it is public, but Java wants one. */
#define CLIENT_ENV_STORE_PASSWORD "changeit"

/*
 * Calls `each` for every variable that is to be set, with its value, borrowed for the call. Looks
 * at the environment of this process: what the user has set of NO_PROXY and of Java's options
 * stays.
 */
void client_env_each(const struct client_env *env,
                     void (*each)(void *arg, const char *name, const char *value), void *arg);

/* The user's own value of a variable; NULL: not set. Borrowed from the environment. */
const char *client_env_own(const char *name);

#endif
