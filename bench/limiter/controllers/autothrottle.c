#include <math.h>

#include "bench/limiter/controllers/window.h"

static const double start_delay = 5, delay_max = 60; /* seconds */
static const unsigned connections = 8;

struct autothrottle {
        double target; /* requests in flight on average */
        double delay;  /* between two */
        usec_t next;
};

static void init_1(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)sc;
        (void)host;
        *(struct autothrottle *)state = (struct autothrottle){.target = 1, .delay = start_delay};
}

static void init_8(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)sc;
        (void)host;
        *(struct autothrottle *)state = (struct autothrottle){.target = 8, .delay = start_delay};
}

static bool may_go(void *state, unsigned in_flight, usec_t now, usec_t *ret_wake)
{
        struct autothrottle *t = state;
        if (in_flight >= connections)
                return false;
        if (now >= t->next)
                return true;
        *ret_wake = t->next;
        return false;
}

static enum limiter_event go(void *state, struct sim_request *r, usec_t now, struct prng *prng)
{
        struct autothrottle *t = state;
        (void)r;
        t->next = now + usec_from_seconds(t->delay * (.5 + prng_unit(prng)));
        return LIMITER_UNCHANGED;
}

static enum limiter_event answer(void *state, struct sim_request *r, const struct answer *a,
                                 usec_t now, struct prng *prng)
{
        struct autothrottle *t = state;
        double wanted = usec_seconds(now - r->sent) / t->target;
        (void)prng;
        wanted = fmin(fmax(wanted, (t->delay + wanted) / 2), delay_max);
        if (window_is_refused(a) && wanted <= t->delay) /* an error never speeds up */
                return LIMITER_UNCHANGED;
        t->delay = wanted;
        return LIMITER_UNCHANGED;
}

const struct sim_controller controller_autothrottle_1 = {
    .name = "autothrottle-1",
    .state_size = sizeof(struct autothrottle),
    .init = init_1,
    .may_go = may_go,
    .go = go,
    .answer = answer,
};

const struct sim_controller controller_autothrottle_8 = {
    .name = "autothrottle-8",
    .state_size = sizeof(struct autothrottle),
    .init = init_8,
    .may_go = may_go,
    .go = go,
    .answer = answer,
};
