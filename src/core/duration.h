/* core/duration.h - decimal numbers and lengths of time as hosts write them: "1.5", "1m30s". */
#ifndef WEIR_CORE_DURATION_H
#define WEIR_CORE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "base/usec.h"

/* A number without a sign or an exponent, exact to the ninth decimal place. */
struct decimal {
        uint64_t whole;     /* UINT64_MAX where it does not fit */
        uint32_t billionth; /* the fraction; digits beyond are dropped */
        bool is_whole;      /* there was no point */
};

/* Takes a number off the front of *rest. 0; or -EINVAL, with *rest and *ret untouched, where it
 * does not begin with one (a digit at least, "5." and ".5" included). */
int decimal_take(struct span *rest, struct decimal *ret);

/* The whole of `text` as a number, spaces around it and one "+" before it allowed. 0, or -EINVAL:
 * "-1", "1e3", "0x10", "nan" and "" are none. */
int decimal_parse(struct span text, struct decimal *ret);

/* That many times `unit`, cut to whole microseconds; USEC_MAX where it does not fit. */
usec_t decimal_usec(struct decimal d, usec_t unit);

/*
 * Reads a length of time as Go's time.Duration writes it: numbers, each with its unit (h, m, s, ms,
 * us, µs, ns), one after the other: "1m0s", "1.5h", "1500ms". One "+" before it is allowed, a bare
 * number is not. 0, or -EINVAL. USEC_MAX where it does not fit.
 */
int duration_parse(struct span text, usec_t *ret);

#endif
