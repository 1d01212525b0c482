/* proxy/target.h - takes a URL apart: scheme, host, port, path. */
#ifndef WEIR_PROXY_TARGET_H
#define WEIR_PROXY_TARGET_H

#include "base/span.h"

struct target {
        struct span scheme;    /* as written; borrowed */
        struct span authority; /* as written; borrowed */
        char *host;            /* lower-case, without port, brackets and a last dot; owned */
        unsigned port;         /* 0: it names none */
        char *path;            /* with the query, as written, from "/" on; owned */
};

/*
 * Reads an absolute URL. A fragment is dropped, as it is never sent (RFC 9112, 3.2).
 *
 * Returns NULL, or one plain sentence that says what is wrong, for the client. target_done is due
 * either way.
 */
const char *target_read(struct target *ret, const char *url);

/* Reads "host", "host:port" or "[v6]:port" (RFC 3986, 3.2) into the fields authority, host and
 * port. The rest of *ret is left alone; it returns as target_read does. */
const char *target_read_authority(struct target *ret, struct span authority);

void target_done(struct target *t);

#endif
