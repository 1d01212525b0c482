/* core/scope_key.h - the text that names the limiter of a request: parts of it, in order. */
#ifndef WEIR_CORE_SCOPE_KEY_H
#define WEIR_CORE_SCOPE_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

enum scope_part_kind {
        SCOPE_HOST,   /* the authority, host:port */
        SCOPE_DOMAIN, /* the registrable domain: all hosts below it together */
        SCOPE_PORT,   /* the port alone; of use beside a rule or a domain */
        SCOPE_RULE,   /* all requests of the rule together */
        SCOPE_CLIENT,
        SCOPE_SESSION,
        SCOPE_PATH,     /* the first segments of the path */
        SCOPE_HEADER,   /* the value of a header field: an account, an API key */
        SCOPE_ENDPOINT, /* each endpoint of the pool by itself */
};

/* Most of them for one policy; and what a path group is made of at most. */
#define SCOPE_MAX_PARTS 8
#define SCOPE_MAX_SEGMENTS 16
#define SCOPE_MAX_PATH_BYTES 256

struct scope_part {
        enum scope_part_kind kind;
        unsigned segments; /* SCOPE_PATH: from 1 on */
        struct span name;  /* SCOPE_HEADER: of the field; borrowed */
};

struct scope_subject {
        struct span host; /* lower-case, without brackets */
        unsigned port;
        struct span domain; /* as found by the caller; the host where it has none */
        struct span rule;
        struct span client;
        struct span session; /* empty: none */
        struct span pool;    /* that it goes through; empty: none */
        struct span path;    /* as sent, from "/" on; a query after it is passed over */
        /* For each part SCOPE_HEADER, in their order: what stands for the field's value. Never the
         * value itself, which may be a secret. Empty: there is no such field. */
        const struct span *header_digests;
};

/*
 * Composes the key. The host is written as it is, "example.com:80" or "[2001:db8::1]:80", so that
 * with the default parts the key is the authority; every other part has its name before it:
 * "rule=api client=192.0.2.1 path=/v1 header:authorization=5d41402abc4b2a76". A path group is the
 * path's first segments, no more than SCOPE_MAX_PATH_BYTES of them, without a "/" at its end.
 * Different subjects never share a key: space, "=", "%" and what is not printable ASCII are written
 * as %XX. No parts at all give "*", one scope for all.
 *
 * What goes through a pool is a scope of its own, since hosts see another client then: behind all
 * parts stands "pool=NAME", or, where one of them is SCOPE_ENDPOINT, "endpoint=NAME" with the name
 * of the pool. Without a pool that part says nothing.
 *
 * The caller frees it.
 */
char *scope_key_new(const struct scope_part *parts, size_t count,
                    const struct scope_subject *subject);

/* "example.com:80 endpoint=POOL/NAME": the limiter of one endpoint under a key of a scope that
 * names the endpoint. A "/" within the name is written as %2F. The caller frees it. */
char *scope_key_of_endpoint(struct span key, struct span name);

/* The way back: true where `key` is one of those, with the key of its scope and the endpoint's name
 * as it is written there, both borrowed from it. */
bool scope_key_split_endpoint(struct span key, struct span *ret_scope, struct span *ret_name);

/* The same with the names of pool and endpoint as they are, both freed by the caller. */
bool scope_key_read_endpoint(struct span key, char **ret_pool, char **ret_name);

/*
 * Reads one part as written in the configuration: "host", "domain", "port", "rule", "client",
 * "session", "endpoint", "path:N", "header:NAME".
 *
 * text  borrowed: the name of a header field points into it
 *
 * 0, or -EINVAL with *ret_part untouched.
 */
int scope_part_parse(struct span text, struct scope_part *ret_part);

/* "host", "path", "header" … */
const char *scope_part_name(enum scope_part_kind kind);

#endif
