#include "base/prng.h"

/* SplitMix64: one word of state, passes BigCrush, and any seed is a good one. */
void prng_init(struct prng *p, uint64_t seed)
{
        p->state = seed;
}

uint64_t prng_next(struct prng *p)
{
        uint64_t z = p->state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

double prng_unit(struct prng *p)
{
        return (double)(prng_next(p) >> 11) * 0x1.0p-53;
}

usec_t prng_usec(struct prng *p, usec_t max)
{
        return (usec_t)(prng_unit(p) * ((double)max + 1.0));
}
