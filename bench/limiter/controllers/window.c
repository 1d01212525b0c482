#include "bench/limiter/controllers/window.h"

bool window_may_go(void *state, unsigned in_flight, usec_t now, usec_t *ret_wake)
{
        const struct window *w = state;
        if (now < w->closed_until) {
                *ret_wake = w->closed_until;
                return false;
        }
        return in_flight + 1 <= w->limit;
}

enum limiter_event window_go(void *state, struct sim_request *r, usec_t now, struct prng *prng)
{
        (void)state;
        (void)r;
        (void)now;
        (void)prng;
        return LIMITER_UNCHANGED;
}

bool window_is_refused(const struct answer *a)
{
        return a->class == ANSWER_THROTTLED || a->class == ANSWER_OVERLOADED;
}
