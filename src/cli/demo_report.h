/* cli/demo_report.h - what a demo run says in words. */
#ifndef WEIR_CLI_DEMO_REPORT_H
#define WEIR_CLI_DEMO_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/usec.h"
#include "cli/demo_picture.h"
#include "cli/practice_load.h"
#include "cli/practice_origin.h"

/* Both sides of the run at one moment. */
struct demo_tally {
        struct practice_figures origin;
        struct practice_load_figures clients;
};

/* Were clients served, and every request answered? */
bool demo_tally_worked(const struct demo_tally *t);

/* "served 310 of 360 (86.1 %), refused 3 (0.9 %)": of what is tolerated, of what was sent; the
 * caller frees it. */
char *demo_report_status(const struct demo_tally *t);

/* One line for one second: the sums in `second` are of that second, the rest is at its end. */
void demo_report_second(FILE *to, unsigned second, const struct demo_sample *sample,
                        const struct demo_tally *t);

/* The figures of the whole run and one plain sentence. */
void demo_report_end(FILE *to, const struct demo_tally *t);

#endif
