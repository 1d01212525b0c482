/* cli/demo_options.h - the command line of `weir demo`. */
#ifndef WEIR_CLI_DEMO_OPTIONS_H
#define WEIR_CLI_DEMO_OPTIONS_H

#include <stdbool.h>

#include "base/usec.h"
#include "cli/practice_origin.h"

struct demo_options {
        struct practice_settings origin;
        unsigned workers;
        usec_t duration;
        bool plain, help;
};

/* Fills *ret, defaults included. 0, or -EINVAL after one line on stderr. */
int demo_options_read(int argc, char **argv, struct demo_options *ret);

#endif
