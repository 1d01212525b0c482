/* proxy/listening.h - all that the proxy listens on: opened or handed over, dealt out to the
 * workers, and put away at the end. */
#ifndef WEIR_PROXY_LISTENING_H
#define WEIR_PROXY_LISTENING_H

#include <stddef.h>

struct listening;

/* A socket that listens already: see listener_adopt. */
struct listening_socket {
        int fd;
        const char *address; /* borrowed; those with the same address share its connections */
        unsigned port;       /* 0 for a local socket */
};

struct listening *listening_new(unsigned workers);

/* Closes what no worker has taken, and removes the local sockets that are still those that
 * listening_open made. NULL is fine. */
void listening_free(struct listening *l);

/*
 * Opens the addresses, all of them before anybody can connect to one.
 *
 * addresses  NULL-terminated; see listener_bind
 * ret_error  one plain line on failure, freed by the caller
 *
 * Returns 0 or -errno.
 */
int listening_open(struct listening *l, char *const *addresses, char **ret_error);

/* Takes over sockets that others have opened, and will remove. 0, or -errno with *ret_error. */
int listening_share(struct listening *l, const struct listening_socket *sockets, size_t count,
                    char **ret_error);

/* Hands a worker its descriptors: *ret_fds is valid until listening_free. */
size_t listening_take(struct listening *l, unsigned worker, const int **ret_fds);

unsigned listening_port(const struct listening *l); /* of the first TCP socket; 0: none */

#endif
