#include "core/histogram.h"

#define FIRST_BITS 7 /* the first bucket ends at 2^7 µs */
#define LAST_BITS 37 /* the last begins at 2^37 µs */
#define STEP_BITS 2  /* 2^2 buckets to a doubling */

_Static_assert(HISTOGRAM_BUCKETS == 2 + ((LAST_BITS - FIRST_BITS) << STEP_BITS),
               "one bucket below, one above, and the doublings between");

void histogram_init(struct histogram *h)
{
        *h = (struct histogram){0};
}

size_t histogram_bucket(usec_t value)
{
        if (value >> FIRST_BITS == 0)
                return 0;
        if (value >> LAST_BITS != 0)
                return HISTOGRAM_BUCKETS - 1;
        unsigned bits = 63 - (unsigned)__builtin_clzll(value);
        size_t step = (value >> (bits - STEP_BITS)) & ((1u << STEP_BITS) - 1);
        return 1 + ((size_t)(bits - FIRST_BITS) << STEP_BITS) + step;
}

usec_t histogram_lower(size_t bucket)
{
        if (bucket == 0)
                return 0;
        size_t step = (bucket - 1) & ((1u << STEP_BITS) - 1);
        size_t bits = FIRST_BITS + ((bucket - 1) >> STEP_BITS);
        return (usec_t)((1u << STEP_BITS) + step) << (bits - STEP_BITS);
}

usec_t histogram_upper(size_t bucket)
{
        return bucket + 1 < HISTOGRAM_BUCKETS ? histogram_lower(bucket + 1) : USEC_MAX;
}

void histogram_add(struct histogram *h, usec_t value)
{
        h->buckets[histogram_bucket(value)]++;
        h->min = h->count > 0 ? usec_min(h->min, value) : value;
        h->max = usec_max(h->max, value);
        h->sum = usec_add(h->sum, value);
        h->count++;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
        if (from->count == 0)
                return;
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
                to->buckets[i] += from->buckets[i];
        to->min = to->count > 0 ? usec_min(to->min, from->min) : from->min;
        to->max = usec_max(to->max, from->max);
        to->sum = usec_add(to->sum, from->sum);
        to->count += from->count;
}

/* Evenly spread, as far as anyone knows, between the bounds of the bucket. */
static usec_t within(const struct histogram *h, size_t bucket, double share)
{
        usec_t low = usec_max(histogram_lower(bucket), h->min);
        usec_t high = usec_min(histogram_upper(bucket), h->max);
        return usec_min(low + (usec_t)((double)(high - low) * share), high);
}

usec_t histogram_quantile(const struct histogram *h, double q)
{
        if (h->count == 0)
                return 0;
        if (!(q > 0))
                return h->min;
        if (q >= 1)
                return h->max;
        double rank = q * (double)h->count, below = 0;
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
                double here = (double)h->buckets[i];
                if (here > 0 && below + here >= rank)
                        return within(h, i, (rank - below) / here);
                below += here;
        }
        return h->max;
}
