#include "core/aimd.h"

#include <math.h>

void aimd_init(struct aimd *a, const struct limiter_policy *policy)
{
        a->window = policy->start;
        aimd_bound(a, policy);
}

void aimd_bound(struct aimd *a, const struct limiter_policy *policy)
{
        a->window = fmax(fmin(fmax(a->window, policy->floor), policy->ceiling), 1);
}

void aimd_grow(struct aimd *a, const struct limiter_policy *policy, unsigned in_flight)
{
        if (2.0 * in_flight < floor(a->window))
                return;
        double successes = policy->aimd.per == AIMD_PER_ROUND_TRIP ? a->window : 1;
        a->window += policy->aimd.increase / successes;
        aimd_bound(a, policy);
}

void aimd_cut(struct aimd *a, const struct limiter_policy *policy)
{
        a->window *= policy->aimd.decrease;
        aimd_bound(a, policy);
}

void aimd_resume(struct aimd *a, const struct limiter_policy *policy)
{
        a->window = fmax(a->window / 2, fmin(a->window, policy->start));
        aimd_bound(a, policy);
}
