/* cli/inherited.h - the sockets that systemd opened for `weir run`: one named "admin" takes the
 * place of `admin.listen`, the others that of `listen`. */
#ifndef WEIR_CLI_INHERITED_H
#define WEIR_CLI_INHERITED_H

#include <stddef.h>

#include "proxy/listening.h"

struct inherited {
        size_t count; /* of those for the proxy */
        struct listening_socket *sockets;
        const char **addresses; /* each of them once, NULL-terminated; NULL where there are none */
        int admin;              /* -1: none */
};

/* Before there are other threads. 0, or -errno with *ret_error: one plain line, freed by the
 * caller. */
int inherited_take(struct inherited *ret, char **ret_error);
void inherited_done(struct inherited *i); /* leaves the sockets open */

#endif
