/* base/prng.h - small seeded random numbers for jitter; never for secrets. */
#ifndef WEIR_BASE_PRNG_H
#define WEIR_BASE_PRNG_H

#include <stdint.h>

#include "base/usec.h"

struct prng {
        uint64_t state;
};

void prng_init(struct prng *p, uint64_t seed);
uint64_t prng_next(struct prng *p);           /* 64 even bits */
double prng_unit(struct prng *p);             /* in [0, 1) */
usec_t prng_usec(struct prng *p, usec_t max); /* in [0, max] */

#endif
