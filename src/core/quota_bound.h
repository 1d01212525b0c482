/* core/quota_bound.h - the upper bound that a host's quotas set on the rate while they are fresh.
 */
#ifndef WEIR_CORE_QUOTA_BOUND_H
#define WEIR_CORE_QUOTA_BOUND_H

#include <stdint.h>

#include "base/usec.h"
#include "core/quota.h"

/* All zeroes: none. */
struct quota_bound {
        double rate;  /* requests/s */
        usec_t until; /* it counts before */
};

/*
 * Takes in what an answer tells: the rate at which the scarcest of the quotas lasts until it is
 * whole again; where a host tells the length of its period but not when it ends, what it allows in
 * the long run. It counts for 4 s, or as long as two requests at that rate take. An answer that
 * tells nothing of use leaves the bound as it is.
 *
 * Passed over are quotas of fewer than 10 requests and those with less than 3 s to go: to them a
 * whole request or a whole second more or less makes too much of a difference.
 *
 * sent  requests sent since the one that was answered
 * rtt   from the sending of that one to now
 */
void quota_bound_read(struct quota_bound *b, const struct quota *quota, uint64_t sent, usec_t rtt,
                      usec_t now);

double quota_bound_rate(const struct quota_bound *b, usec_t now); /* 0: none */

#endif
