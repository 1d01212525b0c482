#include "core/limiter_state.h"
#include "tests/sim/controller.h"
#include "tests/sim/simulator.h"

static void init(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)host;
        limiter_init(state, &sc->policy);
}

static bool may_go(void *state, unsigned in_flight, usec_t now, usec_t *ret_wake)
{
        (void)in_flight;
        return limiter_may_go(state, now, ret_wake);
}

static enum limiter_event go(void *state, struct sim_request *r, usec_t now, struct prng *prng)
{
        return limiter_go(state, r->limited, now, prng, &r->pass);
}

static enum limiter_event answer(void *state, struct sim_request *r, const struct answer *a,
                                 usec_t now, struct prng *prng)
{
        return limiter_answer(state, &r->pass, a, now, prng);
}

static void finish(void *state, struct sim_request *r)
{
        limiter_finish(state, &r->pass);
}

static void look(const void *state, usec_t now, struct limiter_view *ret_view)
{
        limiter_look(state, now, ret_view);
}

const struct sim_controller sim_weir = {
    .name = "weir",
    .state_size = sizeof(struct limiter),
    .init = init,
    .may_go = may_go,
    .go = go,
    .answer = answer,
    .finish = finish,
    .look = look,
};
