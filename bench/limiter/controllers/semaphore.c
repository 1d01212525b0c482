#include "bench/limiter/controllers/window.h"

static void init(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)sc;
        (void)host;
        *(struct window *)state = (struct window){.limit = 32};
}

static enum limiter_event answer(void *state, struct sim_request *r, const struct answer *a,
                                 usec_t now, struct prng *prng)
{
        (void)state;
        (void)r;
        (void)a;
        (void)now;
        (void)prng;
        return LIMITER_UNCHANGED;
}

const struct sim_controller controller_semaphore = {
    .name = "semaphore",
    .state_size = sizeof(struct window),
    .init = init,
    .may_go = window_may_go,
    .go = window_go,
    .answer = answer,
    .back_off = controller_back_off,
};
