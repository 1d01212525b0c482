#include "bench/limiter/controllers/controllers.h"
#include "tests/sim/origin.h"
#include "tests/sim/simulator.h"

struct oracle {
        const struct origin *host;
        usec_t service;
        usec_t next;
};

static void init(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        double seconds = usec_seconds(sc->latency) * (1 - sc->network_share);
        *(struct oracle *)state = (struct oracle){host, usec_from_seconds(seconds), 0};
}

static bool may_go(void *state, unsigned in_flight, usec_t now, usec_t *ret_wake)
{
        struct oracle *o = state;
        (void)in_flight;
        if (now >= o->next)
                return true;
        *ret_wake = o->next;
        return false;
}

static enum limiter_event go(void *state, struct sim_request *r, usec_t now, struct prng *prng)
{
        struct oracle *o = state;
        (void)r;
        (void)prng;
        double rate = .99 * origin_tolerates(o->host, o->service);
        o->next = usec_add(usec_max(o->next, now), usec_from_seconds(1 / rate));
        return LIMITER_UNCHANGED;
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

const struct sim_controller controller_oracle = {
    .name = "oracle",
    .state_size = sizeof(struct oracle),
    .init = init,
    .may_go = may_go,
    .go = go,
    .answer = answer,
};
