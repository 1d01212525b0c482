#include <math.h>

#include "bench/limiter/controllers/controllers.h"

usec_t controller_back_off(void *state, const struct sim_request *r, const struct answer *a,
                           struct prng *prng)
{
        (void)state;
        if (a->wait > 0)
                return a->wait;
        double most = fmin(30, .5 * pow(2, r->attempts - 1));
        return usec_from_seconds(most * prng_unit(prng));
}
