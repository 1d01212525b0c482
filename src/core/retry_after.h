/* core/retry_after.h - reads the Retry-After response header (RFC 9110, 10.2.3). */
#ifndef WEIR_CORE_RETRY_AFTER_H
#define WEIR_CORE_RETRY_AFTER_H

#include <stddef.h>

#include "base/span.h"
#include "base/usec.h"

struct fields;

/*
 * Turns a header value into a wait, counted from now_real.
 *
 * Beyond the RFC's whole seconds and dates: fractions, one "+", Go durations ("6m0s"), epoch
 * seconds (a number from 1,000,000,000 on), the odd dates of http_date.h, and lists, of which the
 * longest readable member counts.
 *
 * value     len bytes, not NUL-terminated; borrowed
 * now_real  wall-clock time at which the response arrived
 * ret_wait  filled; a past date gives 0, an absurd number USEC_MAX (policy caps it)
 *
 * Returns 0, or -EINVAL with *ret_wait untouched. Pure.
 */
int retry_after_parse(const char *value, size_t len, usec_t now_real, usec_t *ret_wait);

/*
 * Finds the wait that an answer names: a readable Retry-After-Ms (milliseconds) before any
 * Retry-After, and of several the longest.
 *
 * Moments are counted from the answer's own Date where it has a readable one, so that a clock that
 * differs from ours does no harm; else from now_real.
 *
 * Returns 0; or, with *ret_wait untouched, -ENOENT where it names none, -EINVAL where none of what
 * it names can be read.
 */
int retry_after_read(const struct fields *fields, usec_t now_real, usec_t *ret_wait);

/*
 * Finds the wait that a JSON text names with a member "retry_after": {"retry_after": 1.5}, at
 * whatever depth. Seconds; above 1000 milliseconds, as those who mean these never say less. The
 * text may end anywhere.
 *
 * Returns 0; or -ENOENT with *ret_wait untouched where there is none, or none that can be read.
 */
int retry_after_in_json(struct span text, usec_t *ret_wait);

#endif
