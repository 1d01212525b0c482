#include <math.h>

#include "bench/limiter/controllers/window.h"

struct tcp {
        struct window window;
        double threshold; /* of slow start */
        usec_t cut;       /* what was sent before belongs to the round trip that was cut */
};

static void init(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)sc;
        (void)host;
        *(struct tcp *)state = (struct tcp){.window.limit = 4, .threshold = INFINITY};
}

static enum limiter_event answer(void *state, struct sim_request *r, const struct answer *a,
                                 usec_t now, struct prng *prng)
{
        struct tcp *t = state;
        double *limit = &t->window.limit;
        (void)prng;
        if (window_is_refused(a)) {
                if (r->sent < t->cut)
                        return LIMITER_UNCHANGED;
                t->threshold = *limit = fmax(1, *limit / 2);
                t->cut = now;
        } else if (r->in_flight * 2 >= *limit) { /* the window, not the demand, was the limit */
                *limit += *limit < t->threshold ? 1 : 1 / *limit;
        }
        return LIMITER_UNCHANGED;
}

const struct sim_controller controller_tcp = {
    .name = "tcp",
    .state_size = sizeof(struct tcp),
    .init = init,
    .may_go = window_may_go,
    .go = window_go,
    .answer = answer,
    .back_off = controller_back_off,
};
