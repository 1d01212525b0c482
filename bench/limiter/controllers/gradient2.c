#include <math.h>

#include "bench/limiter/controllers/window.h"

static const double smoothing = .2, tolerance = 1.5, queue = 4, most = 2000;
static const double long_window = 600; /* samples */
static const unsigned warm_up = 10, samples_min = 10;
static const usec_t window_span = USEC_PER_SEC;

struct gradient {
        struct window window;
        double long_rtt; /* seconds */
        unsigned updates;
        struct { /* of this second */
                usec_t end;
                double sum;
                unsigned count, in_flight;
        } sample;
};

static void init(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)sc;
        (void)host;
        *(struct gradient *)state = (struct gradient){.window.limit = 20};
}

static void update(struct gradient *g, double rtt, unsigned in_flight)
{
        double weight = g->updates < warm_up ? 1. / (g->updates + 1) : 2 / (long_window + 1);
        g->long_rtt += (rtt - g->long_rtt) * weight;
        g->updates++;
        if (g->long_rtt / rtt > 2) /* the load went: forget faster */
                g->long_rtt *= .95;
        if (in_flight < g->window.limit / 2)
                return;
        double gradient = fmax(.5, fmin(1, tolerance * g->long_rtt / rtt));
        double wanted = g->window.limit * gradient + queue;
        g->window.limit = g->window.limit * (1 - smoothing) + wanted * smoothing;
        g->window.limit = fmin(fmax(g->window.limit, 1), most);
}

static enum limiter_event answer(void *state, struct sim_request *r, const struct answer *a,
                                 usec_t now, struct prng *prng)
{
        struct gradient *g = state;
        (void)prng;
        g->sample.in_flight =
            r->in_flight > g->sample.in_flight ? r->in_flight : g->sample.in_flight;
        if (window_is_refused(a)) /* it looks at times alone */
                return LIMITER_UNCHANGED;
        g->sample.sum += usec_seconds(now - r->sent);
        g->sample.count++;
        if (now < g->sample.end || g->sample.count < samples_min)
                return LIMITER_UNCHANGED;
        update(g, g->sample.sum / g->sample.count, g->sample.in_flight);
        g->sample.end = now + window_span;
        g->sample.sum = 0;
        g->sample.count = g->sample.in_flight = 0;
        return LIMITER_UNCHANGED;
}

const struct sim_controller controller_gradient2 = {
    .name = "gradient2",
    .state_size = sizeof(struct gradient),
    .init = init,
    .may_go = window_may_go,
    .go = window_go,
    .answer = answer,
    .back_off = controller_back_off,
};
