/* core/scope_key.h - the text that names the limiter of a request: parts of it, in order. */
#ifndef WEIR_CORE_SCOPE_KEY_H
#define WEIR_CORE_SCOPE_KEY_H

#include <stddef.h>

#include "base/span.h"

enum scope_part_kind {
        SCOPE_HOST, /* the authority, host:port */
        SCOPE_PORT, /* the port alone; of use beside a rule */
        SCOPE_RULE, /* all requests of the rule together */
        SCOPE_CLIENT,
};

struct scope_part {
        enum scope_part_kind kind;
};

struct scope_subject {
        struct span host; /* lower-case, without brackets */
        unsigned port;
        struct span rule;
        struct span client;
};

/*
 * Composes the key. The host is written as it is, "example.com:80" or "[2001:db8::1]:80", so that
 * with the default parts the key is the authority; every other part has its name before it:
 * "rule=api client=192.0.2.1". Different subjects never share a key: space, "=", "%" and what is
 * not printable ASCII are written as %XX in names. No parts at all give "*", one scope for all.
 *
 * The caller frees it.
 */
char *scope_key_new(const struct scope_part *parts, size_t count,
                    const struct scope_subject *subject);

/* Reads one part as written in the configuration ("host", "port", "rule", "client"); 0, or -EINVAL
 * with *ret_part untouched. */
int scope_part_parse(struct span text, struct scope_part *ret_part);

#endif
