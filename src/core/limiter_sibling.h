/* core/limiter_sibling.h - what the limit on one way to a host says about that on another: limiters
 * of one scope, each for an endpoint of its own. */
#ifndef WEIR_CORE_LIMITER_SIBLING_H
#define WEIR_CORE_LIMITER_SIBLING_H

#include <stdbool.h>

#include "core/limiter.h"

/* A limiter that nothing was sent by as yet begins with what `sibling` has learned, if anything:
 * its rate, slots and round trip; none of its holds. Only `adaptive` does. */
void limiter_begin_as(struct limiter *l, const struct limiter *sibling, usec_t now);

/*
 * `sibling` has just been refused, and cut its rate. Where `l` knows the same limit, or none as
 * yet, and had come to the same rate, it climbs anew from where the sibling does, without a refusal
 * of its own. At most four times in a row: then it sees for itself.
 *
 * True: so it does.
 */
bool limiter_heed(struct limiter *l, const struct limiter *sibling, usec_t now);

#endif
