/* bench/limiter/report.h - tables of the figures. */
#ifndef WEIR_BENCH_LIMITER_REPORT_H
#define WEIR_BENCH_LIMITER_REPORT_H

#include <stdio.h>

#include "bench/limiter/figures.h"
#include "bench/limiter/scenario.h"

/* Of each controller, for each scenario, `seeds` runs; then, for each controller, `seeds` runs of
 * the demonstration of 25 s and as many of 240 s. */
struct report {
        const struct scenarios *scenarios;
        const struct sim_controller *const *controllers;
        size_t controller_count, seeds;
        const struct figures *runs;
        const struct figures *demo;
};

/* Tab separated: a row for each scenario and controller, means over the seeds. */
void report_rows(const struct report *r, FILE *f);

/* Tab separated, for the picture: a row for each controller. */
void report_points(const struct report *r, FILE *f);

/* The tables for people, in Markdown. */
void report_summary(const struct report *r, FILE *f);

#endif
