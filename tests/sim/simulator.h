/* tests/sim/simulator.h - clients, the real limiter and a modelled host, event by event in virtual
 * time. */
#ifndef WEIR_TESTS_SIM_SIMULATOR_H
#define WEIR_TESTS_SIM_SIMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/histogram.h"
#include "core/limiter.h"
#include "tests/sim/controller.h"
#include "tests/sim/origin.h"

enum sim_latency { SIM_LATENCY_EVEN, SIM_LATENCY_LOGNORMAL, SIM_LATENCY_BIMODAL };

enum sim_retry_after {
        SIM_WAIT_NONE,
        SIM_WAIT_EXACT, /* rounded up to whole seconds, at least 1 */
        SIM_WAIT_ZERO,
        SIM_WAIT_DATE, /* of the moment, rounded up; minus a Date rounded down */
        SIM_WAIT_LONG, /* much too long: `long_wait` */
        SIM_WAIT_ONE   /* always 1 s */
};

/* How a host of windows tells when its quota is whole again: in seconds. */
enum sim_quota { SIM_QUOTA_NONE, SIM_QUOTA_EXACT, SIM_QUOTA_UP, SIM_QUOTA_DOWN };

/* A moment from which on the host's limit is `scale` times what it was at first. */
struct sim_step {
        usec_t at;
        double scale;
};

struct sim_scenario {
        const char *name;
        struct origin_config origin;
        usec_t latency;          /* mean, from sending to the head of the answer */
        double network_share;    /* of the latency; the rest is the host's work */
        enum sim_latency spread; /* of the host's work */
        bool slow_refusals;      /* take as long as answers */
        bool overloaded;         /* refusals are 503, not 429 */
        enum sim_retry_after retry_after;
        usec_t long_wait;
        enum sim_quota quota; /* with every answer */
        unsigned workers;     /* each always wants to send; a retry goes ahead of all */
        unsigned jobs;        /* requests in all; 0 = without end */
        usec_t on_off;        /* demand for so long, then none for so long; 0 = always */
        unsigned attempts;
        struct sim_step steps[2]; /* `at` 0: none */
        usec_t duration;
        usec_t late_max;                              /* timers fire up to this late */
        double fail_share, cancel_share, block_share; /* of what the host served or refused */
        const struct sim_controller *controller;      /* NULL: sim_weir */
        struct limiter_policy policy;
        uint64_t seed;
        /* Optional: told of each change, `at` since the start. */
        void (*watch)(void *arg, usec_t at, enum limiter_event event, const struct limiter_view *v);
        void *watch_arg;
};

struct sim_tally {
        double span;      /* seconds */
        double tolerated; /* requests that the host would have borne and the workers offered */
        unsigned long sent, accepted, refused;
};

/* Between two steps; times since the start. */
struct sim_phase {
        usec_t from, until;
        double tolerated; /* requests/s, no more than the workers can offer */
};

struct sim_send {
        usec_t at; /* since the start */
        unsigned in_flight;
        bool probe;
};

struct sim_result {
        struct sim_tally whole, start; /* `start`: the first 25 s */
        struct sim_tally settled;      /* the last half of each phase between steps */
        struct sim_phase phases[3];
        size_t phase_count;
        struct histogram waits; /* of accepted requests, from when they came to their last send */
        unsigned long gave_up, circuit_opened, events[LIMITER_REOPENED + 1];
        bool parked;            /* requests waited, and nothing was ever going to happen */
        usec_t longest_silence; /* between two sends, while something was queued */
        struct sim_send *sends; /* owned */
        size_t send_count, send_room;
        unsigned long *served_in, *refused_in; /* in each second; owned */
        struct limiter_view last;
};

void sim_run(const struct sim_scenario *scenario, struct sim_result *ret_result);
void sim_result_done(struct sim_result *r);

/* Served as a share of tolerated; refused as a share of answered. */
double sim_goodput(const struct sim_tally *t);
double sim_refused_share(const struct sim_tally *t);

/* The most requests sent within any `span` (half open) that lies in [from, until). */
size_t sim_most_within(const struct sim_result *r, usec_t span, usec_t from, usec_t until);

#endif
