/* core/aimd.h - the classic rule: a window of requests in flight, additive increase, multiplicative
 * decrease. */
#ifndef WEIR_CORE_AIMD_H
#define WEIR_CORE_AIMD_H

#include "core/limiter.h"

struct aimd {
        double window; /* requests in flight */
};

void aimd_init(struct aimd *a, const struct limiter_policy *policy);

/* Brings the window into [floor, ceiling] of the policy. */
void aimd_bound(struct aimd *a, const struct limiter_policy *policy);

/* A request was accepted that was number `in_flight` when sent. A window that is not half used does
 * not grow: nothing was learned about its end. */
void aimd_grow(struct aimd *a, const struct limiter_policy *policy, unsigned in_flight);

/* Once for each epoch of refusals. */
void aimd_cut(struct aimd *a, const struct limiter_policy *policy);

/* After a long idleness: half the window, but no smaller than a new one where it was not. */
void aimd_resume(struct aimd *a, const struct limiter_policy *policy);

#endif
