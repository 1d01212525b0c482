/* bench/limiter/controllers/controllers.h - what weir's limiter is compared with: short plain forms
 * of what others do, each written from its published description. */
#ifndef WEIR_BENCH_LIMITER_CONTROLLERS_H
#define WEIR_BENCH_LIMITER_CONTROLLERS_H

#include "tests/sim/controller.h"

/* Knows the host's limit at each moment and paces at 99 % of it. */
extern const struct sim_controller controller_oracle;

/* The recipe found in many clients: one more in flight for each success, half as many for each
 * refusal, and six refusals in a row close all for the wait that was named, or a second. */
extern const struct sim_controller controller_recipe;

/* 32 in flight. */
extern const struct sim_controller controller_semaphore;

/* TCP Reno's window: slow start, then one more each round trip; halved at most once in each. */
extern const struct sim_controller controller_tcp;

/* AIMDLimit and Gradient2Limit of Netflix' concurrency-limits with its defaults, but from 1 to 2000
 * in flight. */
extern const struct sim_controller controller_netflix_aimd, controller_gradient2;

/* The client rate limiter of the AWS SDKs' adaptive retry mode: a token bucket whose rate follows
 * CUBIC in time. Without the quota of retries. */
extern const struct sim_controller controller_aws;

/* Scrapy's AutoThrottle for AUTOTHROTTLE_TARGET_CONCURRENCY 1 and 8. Refused requests go again at
 * once, as they do there. */
extern const struct sim_controller controller_autothrottle_1, controller_autothrottle_8;

/* What most clients do for one refused request: the named wait, else U(0, min(30 s, .5 s * 2^n)).
 * Of those above that keep no back-off of their own. */
usec_t controller_back_off(void *state, const struct sim_request *r, const struct answer *a,
                           struct prng *prng);

#endif
