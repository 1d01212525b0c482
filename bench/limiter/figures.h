/* bench/limiter/figures.h - what is measured of one controller at one host. */
#ifndef WEIR_BENCH_LIMITER_FIGURES_H
#define WEIR_BENCH_LIMITER_FIGURES_H

#include "tests/sim/simulator.h"

enum phase_kind { PHASE_START, PHASE_HALVED, PHASE_DOUBLED, PHASE_KINDS };

/* Plain numbers without pointers. Goodput is a share of the tolerated rate, refused one of what was
 * answered; `settled` is the last half of each phase between steps. */
struct figures {
        double settled_goodput, settled_refused;
        double whole_goodput, whole_refused;
        double start_goodput, start_refused; /* the first 25 s */
        double gave_up;                      /* of all requests that ended */
        double wait_p50, wait_p95;           /* added before the last attempt, seconds */
        double silence;                      /* the longest while requests were queued, seconds */
        double starved; /* 1: a request waited over 30 s and five times its share of the rate */
        double parked;  /* 1: nothing was ever going to happen again */
        double converged[PHASE_KINDS]; /* seconds; INFINITY never; NAN where there was none */
};

/* Runs it. */
void figures_measure(const struct sim_scenario *sc, struct figures *ret);

/* The mean of each; of `converged` the mean where all runs did. */
void figures_mean(const struct figures *runs, size_t count, struct figures *ret);

/* At least 97 % of what is tolerated and under 1 % refused, once settled. */
bool figures_pass(const struct figures *f);

#endif
