/* core/throttle.h - how often somebody may fail: a few times at once, and then once in a while. */
#ifndef WEIR_CORE_THROTTLE_H
#define WEIR_CORE_THROTTLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/usec.h"

#define THROTTLE_KEY_SIZE 16

struct throttle;

/*
 * max     keys that are kept; beyond it the one that failed longest ago is forgotten
 * burst   failures that are free
 * refill  after this long one more is
 */
struct throttle *throttle_new(size_t max, unsigned burst, usec_t refill);
void throttle_free(struct throttle *t); /* NULL is fine */

/* Counts a failure; also where none is free, up to four times as many as are: those that were under
 * way at once cost what they cost. */
void throttle_fail(struct throttle *t, const uint8_t key[THROTTLE_KEY_SIZE], usec_t now);

/* How long until one is free; 0: one is. */
usec_t throttle_wait(const struct throttle *t, const uint8_t key[THROTTLE_KEY_SIZE], usec_t now);

#endif
