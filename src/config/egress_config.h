/* config/egress_config.h - a pool: the ways out among which the requests of a policy are spread. */
#ifndef WEIR_CONFIG_EGRESS_CONFIG_H
#define WEIR_CONFIG_EGRESS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/endpoint.h"

/* Most of them in one pool. */
#define EGRESS_MAX_ENDPOINTS 1000

enum egress_kind {
        EGRESS_DIRECT,
        EGRESS_SOURCE,  /* from an address of this machine */
        EGRESS_HTTP,    /* by an upstream proxy */
        EGRESS_HTTPS,   /* the same, spoken to over TLS */
        EGRESS_SOCKS5,  /* names of hosts are resolved here */
        EGRESS_SOCKS5H, /* names of hosts are resolved by the proxy */
};

struct egress_endpoint {
        const char *name; /* no other of its pool has it; for logs, metrics and the API */
        enum egress_kind kind;
        const char *host; /* of the proxy: a name, or an address without brackets */
        unsigned port;
        const char *user, *password; /* as they are sent, NULL where there are none. Secrets: never
                                        logged, never shown */
        const char *source;          /* the local address */
        const char *shown;           /* as it was written, without what is secret */
        unsigned max_in_flight; /* requests at a time; 0 until the whole pool is read: not said */
        unsigned weight;
        bool named; /* the name was given, not found */
};

struct policy_place;

enum egress_sticky { EGRESS_STICKY_NONE, EGRESS_STICKY_SESSION, EGRESS_STICKY_CLIENT };

struct egress_config {
        const char *name;
        struct {
                struct egress_endpoint *list;
                size_t count; /* at least one */
        } endpoints;
        unsigned max_in_flight; /* of an endpoint that does not say otherwise */
        enum egress_sticky sticky;
        struct pool_policy policy; /* what the governor goes by; `egress` of each of its endpoints
                                      is the struct egress_endpoint. Owned by the configuration */
        struct {
                const char *header; /* "": none */
                const char *probe;  /* "": none */
        } exit_ip;
        struct policy_place *places; /* of each row of the table of settings, as in struct policy */
};

static inline bool egress_is_proxy(enum egress_kind kind)
{
        return kind >= EGRESS_HTTP;
}

#endif
