/* bench/limiter/controllers/window.h - what the controllers share that only bound the requests in
 * flight. */
#ifndef WEIR_BENCH_LIMITER_WINDOW_H
#define WEIR_BENCH_LIMITER_WINDOW_H

#include "bench/limiter/controllers/controllers.h"

/* First member of their states. */
struct window {
        double limit; /* requests in flight; its whole part counts */
        usec_t closed_until;
};

bool window_may_go(void *state, unsigned in_flight, usec_t now, usec_t *ret_wake);
enum limiter_event window_go(void *state, struct sim_request *r, usec_t now, struct prng *prng);
bool window_is_refused(const struct answer *a);

#endif
