/* tests/sim/controller.h - what decides in the simulator when a request may go: weir's limiter, or
 * another in its place. */
#ifndef WEIR_TESTS_SIM_CONTROLLER_H
#define WEIR_TESTS_SIM_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/prng.h"
#include "base/usec.h"
#include "core/answer.h"
#include "core/limiter.h"

struct origin;
struct sim_scenario;

/* One attempt. */
struct sim_request {
        usec_t sent;
        unsigned in_flight;       /* when sent, itself included */
        unsigned attempts;        /* of this request, this one included */
        bool limited;             /* it waited, and others still did behind it */
        struct limiter_pass pass; /* weir's own */
};

/* Optional functions may be NULL. */
struct sim_controller {
        const char *name;
        size_t state_size; /* all zeroes before `init` */
        /* The host is for the one that knows all; it outlives the state. */
        void (*init)(void *state, const struct sim_scenario *sc, const struct origin *host);
        /* ret_wake is USEC_MAX before: only an answer can change a no. */
        bool (*may_go)(void *state, unsigned in_flight, usec_t now, usec_t *ret_wake);
        enum limiter_event (*go)(void *state, struct sim_request *r, usec_t now, struct prng *prng);
        enum limiter_event (*answer)(void *state, struct sim_request *r, const struct answer *a,
                                     usec_t now, struct prng *prng);
        void (*finish)(void *state, struct sim_request *r); /* optional */
        /* Optional: how long a refused request waits, without a slot, before it asks again. */
        usec_t (*back_off)(void *state, const struct sim_request *r, const struct answer *a,
                           struct prng *prng);
        void (*look)(const void *state, usec_t now, struct limiter_view *ret_view); /* optional */
};

/* core/limiter, as the scenario's policy asks. */
extern const struct sim_controller sim_weir;

#endif
