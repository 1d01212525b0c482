/* core/histogram.h - how long things took: counts in fixed buckets, from which shares are read. */
#ifndef WEIR_CORE_HISTOGRAM_H
#define WEIR_CORE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/usec.h"

/* One bucket below 128 µs, four to each doubling up to 2^37 µs (38 hours), one for all above: a
 * bucket is at most a quarter wider than its lower bound. */
#define HISTOGRAM_BUCKETS 122

struct histogram {
        uint64_t buckets[HISTOGRAM_BUCKETS];
        uint64_t count;
        usec_t sum;      /* USEC_MAX where it does not fit */
        usec_t min, max; /* of what was added; 0 while empty */
};

void histogram_init(struct histogram *h); /* all zeroes do as well */
void histogram_add(struct histogram *h, usec_t value);
void histogram_merge(struct histogram *to, const struct histogram *from);

/* The bucket that counts this value, below HISTOGRAM_BUCKETS. */
size_t histogram_bucket(usec_t value);

/* The bounds of a bucket: it counts values from _lower on and below _upper (USEC_MAX for the last).
 */
usec_t histogram_lower(size_t bucket);
usec_t histogram_upper(size_t bucket);

/* An estimate of the value below which the share q (0 to 1) of all values lies: inside the bucket
 * of the true one, never outside what was added. 0 while empty. */
usec_t histogram_quantile(const struct histogram *h, double q);

#endif
