/* proxy/steering.h - the Weir-* fields with which a client steers one request. */
#ifndef WEIR_PROXY_STEERING_H
#define WEIR_PROXY_STEERING_H

#include <stdbool.h>

#include "base/span.h"
#include "base/usec.h"

#define STEERING_MAX_SESSION 128

struct steering {
        struct span session; /* Weir-Session; borrowed; empty: none */
        unsigned priority;   /* Weir-Priority: 0 to 9, higher first */
        usec_t deadline;     /* Weir-Deadline: no later than this after its arrival; or USEC_MAX */
        bool no_retry;       /* Weir-Retry: no */
        unsigned seen;       /* which were given */
};

void steering_init(struct steering *s); /* nothing given */

/*
 * Is the field one of weir's own, which never goes upstream? Any name that begins with "Weir-" is.
 * If so it is read: *ret_fault is NULL, or one plain sentence that says what is wrong with it. An
 * unknown one says nothing.
 *
 *   Weir-Session   1 to 128 visible ASCII characters
 *   Weir-Priority  0 to 9; 5 where it is not given
 *   Weir-Deadline  30s, 1m30s, 250ms; a number alone counts seconds; more than 0
 *   Weir-Retry     no, or yes
 */
bool steering_take(struct steering *s, struct span name, struct span value, const char **ret_fault);

/* A session that was named in another way: it counts where Weir-Session does not name one.
 * `session` is borrowed. False: it is not what Weir-Session may be either. */
bool steering_offer_session(struct steering *s, struct span session);

#endif
