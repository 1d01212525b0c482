/* proxy/request_scope.h - the scope key of one request. */
#ifndef WEIR_PROXY_REQUEST_SCOPE_H
#define WEIR_PROXY_REQUEST_SCOPE_H

#include "base/fields.h"
#include "base/span.h"
#include "config/policy.h"

struct request_scope {
        const struct policy *policy; /* the rule's */
        const char *host;            /* lower-case, without brackets */
        unsigned port;
        struct span target;          /* path and query */
        const struct fields *fields; /* as they go upstream */
        struct span client, session;
};

/*
 * Composes it of the parts that the policy names; the registrable domain and the digests of header
 * fields are found only where a part wants them. Of several fields of one name the values count
 * together (RFC 9110, 5.3). The caller frees it.
 */
char *request_scope_key(const struct request_scope *r);

#endif
