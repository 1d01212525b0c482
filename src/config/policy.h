/* config/policy.h - what a rule (or the defaults) says of the requests that it matches. */
#ifndef WEIR_CONFIG_POLICY_H
#define WEIR_CONFIG_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "base/usec.h"
#include "config/config_faults.h"
#include "config/egress_config.h"
#include "core/classify.h"
#include "core/governor.h"
#include "core/retry.h"
#include "core/scope_key.h"

enum https_mode { HTTPS_TUNNEL, HTTPS_INTERCEPT, HTTPS_UPGRADE };
enum tls_version { TLS_1_2, TLS_1_3 };

/* Where in the file a value stands; line 0: nowhere, it is built in or the command line's. */
struct policy_place {
        unsigned line, column; /* from 1 */
};

struct policy {
        const char *name;         /* the rule's, or "default" */
        const char **hosts;       /* patterns: "host", "*.host", "*"; NULL-terminated */
        struct scope_part *scope; /* in order */
        size_t scope_count;
        struct lane_policy lane; /* limit, breaker, queue.max */
        usec_t queue_timeout;
        struct retry_policy retry;
        struct {
                usec_t connect, first_byte, read, total, tunnel;
        } timeouts;
        enum https_mode https;
        struct {
                bool verify;
                const char *ca_file; /* "": the system's */
                enum tls_version min_version;
        } tls; /* towards the host */
        bool http2;
        const char *egress;               /* "direct", or the pool's name */
        const struct egress_config *pool; /* NULL: direct */
        bool session_order;
        struct {
                const struct classify_rule *list;
                size_t count;
        } classify;                  /* before the built-in table */
        struct policy_place *places; /* of each row of the table of settings */
};

/* Is the host one of the policy's? `host` as for config_policy. */
bool policy_matches(const struct policy *p, struct span host);

/* Adds a fault where the value of `setting` stands: "defaults.https" is what the policy has, of its
 * own or from the defaults; settings of the whole configuration ("clients.users") are placed by the
 * defaults. Takes `text` over, which is one plain line. */
void policy_fault(const struct policy *p, const char *setting, char *text,
                  struct config_faults *faults);

#endif
