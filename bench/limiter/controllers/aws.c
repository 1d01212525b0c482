#include <math.h>

#include "bench/limiter/controllers/window.h"

static const double scale = .4, beta = .7;       /* of CUBIC */
static const double rate_min = .5, room_min = 1; /* of the bucket */
static const double smooth = .8;
static const double buckets_each_second = 2; /* in which the rate is measured */
static const double back_off_max = 20;

struct aws {
        bool throttled_once; /* before, nothing is limited */
        double rate, room, tokens;
        usec_t filled;
        double measured, bucket; /* requests/s, the time at which the bucket began */
        double count;
        double last_max;
        usec_t last_throttled;
};

static void init(void *state, const struct sim_scenario *sc, const struct origin *host)
{
        (void)sc;
        (void)host;
        *(struct aws *)state = (struct aws){0};
}

static bool may_go(void *state, unsigned in_flight, usec_t now, usec_t *ret_wake)
{
        struct aws *w = state;
        (void)in_flight;
        if (!w->throttled_once)
                return true;
        w->tokens = fmin(w->room, w->tokens + w->rate * usec_seconds(now - w->filled));
        w->filled = now;
        if (w->tokens >= 1)
                return true;
        *ret_wake = now + usec_from_seconds((1 - w->tokens) / w->rate) + 1;
        return false;
}

static enum limiter_event go(void *state, struct sim_request *r, usec_t now, struct prng *prng)
{
        struct aws *w = state;
        (void)r;
        (void)now;
        (void)prng;
        if (w->throttled_once)
                w->tokens--;
        return LIMITER_UNCHANGED;
}

static void measure(struct aws *w, usec_t now)
{
        double bucket = floor(usec_seconds(now) * buckets_each_second) / buckets_each_second;
        if (w->bucket <= 0)
                w->bucket = bucket;
        w->count++;
        if (bucket <= w->bucket)
                return;
        w->measured = w->count / (bucket - w->bucket) * smooth + w->measured * (1 - smooth);
        w->count = 0;
        w->bucket = bucket;
}

static enum limiter_event answer(void *state, struct sim_request *r, const struct answer *a,
                                 usec_t now, struct prng *prng)
{
        struct aws *w = state;
        double rate;
        (void)r;
        (void)prng;
        measure(w, now);
        if (window_is_refused(a)) {
                w->last_max = w->throttled_once ? fmin(w->measured, w->rate) : w->measured;
                w->last_throttled = now;
                if (!w->throttled_once)
                        w->filled = now;
                w->throttled_once = true;
                rate = w->last_max * beta;
        } else {
                double back = cbrt(w->last_max * (1 - beta) / scale); /* seconds to last_max */
                double since = usec_seconds(now - w->last_throttled);
                rate = scale * pow(since - back, 3) + w->last_max;
        }
        w->rate = fmax(fmin(rate, 2 * w->measured), rate_min);
        w->room = fmax(w->rate, room_min);
        w->tokens = fmin(w->tokens, w->room);
        return LIMITER_UNCHANGED;
}

static usec_t back_off(void *state, const struct sim_request *r, const struct answer *a,
                       struct prng *prng)
{
        (void)state;
        (void)a; /* it knows no Retry-After */
        return usec_from_seconds(prng_unit(prng) * fmin(pow(2, r->attempts - 1), back_off_max));
}

const struct sim_controller controller_aws = {
    .name = "aws-adaptive",
    .state_size = sizeof(struct aws),
    .init = init,
    .may_go = may_go,
    .go = go,
    .answer = answer,
    .back_off = back_off,
};
