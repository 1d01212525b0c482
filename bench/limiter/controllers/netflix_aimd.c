#include <math.h>

#include "bench/limiter/controllers/window.h"

static const double ratio = .9, most = 2000;
static const usec_t timeout = 5 * USEC_PER_SEC;

static void init(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)sc;
        (void)host;
        *(struct window *)state = (struct window){.limit = 20};
}

static enum limiter_event answer(void *state, struct sim_request *r, const struct answer *a,
                                 usec_t now, struct prng *prng)
{
        struct window *w = state;
        (void)prng;
        if (window_is_refused(a) || now - r->sent > timeout)
                w->limit = floor(w->limit * ratio);
        else if (r->in_flight * 2 >= w->limit)
                w->limit++;
        w->limit = fmin(fmax(w->limit, 1), most);
        return LIMITER_UNCHANGED;
}

const struct sim_controller controller_netflix_aimd = {
    .name = "netflix-aimd",
    .state_size = sizeof(struct window),
    .init = init,
    .may_go = window_may_go,
    .go = window_go,
    .answer = answer,
    .back_off = controller_back_off,
};
