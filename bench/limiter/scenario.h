/* bench/limiter/scenario.h - reads files of scenarios: one for each line, tab separated, a group, a
 * name, then KEY=VALUE; times in seconds, rates in requests/s. README.md explains the keys. */
#ifndef WEIR_BENCH_LIMITER_SCENARIO_H
#define WEIR_BENCH_LIMITER_SCENARIO_H

#include "tests/sim/simulator.h"

struct scenario {
        char *name; /* owned */
        struct sim_scenario sim;
};

struct scenarios {
        struct scenario *all; /* owned */
        size_t count;
};

/* Returns 0; -errno where the file cannot be read, -EINVAL for a fault in it, which is told on
 * stderr. */
int scenarios_read(const char *path, struct scenarios *ret);
void scenarios_done(struct scenarios *s);

/* 30 requests in each second, Retry-After: 1, 350 ms, 40 workers. */
struct sim_scenario scenario_demo(usec_t duration);

#endif
