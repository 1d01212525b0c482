/* config/endpoint_url.h - the URL of an upstream proxy, with ${NAME} for what the environment
 * knows. */
#ifndef WEIR_CONFIG_ENDPOINT_URL_H
#define WEIR_CONFIG_ENDPOINT_URL_H

#include <stdbool.h>

#include "base/span.h"
#include "config/egress_config.h"

/* All owned. */
struct endpoint_url {
        enum egress_kind kind;
        char *host; /* lower case; an address without brackets */
        unsigned port;
        char *user, *password; /* NULL: none */
        char *name;            /* "HOST:PORT" as it is written; NULL where a variable is in it */
};

/*
 * Reads "SCHEME://[USER[:PASSWORD]@]HOST:PORT[/]", where SCHEME is http, https, socks5 or socks5h.
 * ${NAME} stands for a variable of the environment: anywhere behind the scheme, or for the whole
 * URL; "${" that begins no such name is a fault. In user and password a variable's value is taken
 * as it is; all else there may be percent-encoded.
 *
 * ret  filled on success; freed with endpoint_url_done
 *
 * Returns NULL, or what is wrong, owned by the caller; it holds nothing of any variable's value and
 * nothing of a password.
 */
char *endpoint_url_read(struct span text, struct endpoint_url *ret);
void endpoint_url_done(struct endpoint_url *u);

/* The text without what may be secret in it, whether it is a URL or not: for a password, and a user
 * name without one, there is "***", unless they are nothing but variables. The caller frees it. */
char *endpoint_url_shown(struct span text);

/* Is it a URL of http or https with a host, without credentials and blanks? */
bool endpoint_url_is_probe(struct span text);

#endif
