#include <math.h>

#include "bench/limiter/controllers/window.h"

static const unsigned trip = 6;

struct recipe {
        struct window window;
        unsigned refused_in_a_row;
};

static void init(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)sc;
        (void)host;
        *(struct recipe *)state = (struct recipe){.window.limit = 4};
}

static enum limiter_event answer(void *state, struct sim_request *r, const struct answer *a,
                                 usec_t now, struct prng *prng)
{
        struct recipe *p = state;
        (void)r;
        (void)prng;
        if (!window_is_refused(a)) {
                p->window.limit++;
                p->refused_in_a_row = 0;
                return LIMITER_UNCHANGED;
        }
        p->window.limit = fmax(1, p->window.limit / 2);
        if (++p->refused_in_a_row < trip)
                return LIMITER_UNCHANGED;
        p->refused_in_a_row = 0;
        p->window.closed_until = now + usec_max(a->wait, USEC_PER_SEC);
        return LIMITER_UNCHANGED;
}

const struct sim_controller controller_recipe = {
    .name = "recipe",
    .state_size = sizeof(struct recipe),
    .init = init,
    .may_go = window_may_go,
    .go = window_go,
    .answer = answer,
    .back_off = controller_back_off,
};
