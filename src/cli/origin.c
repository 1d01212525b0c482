#include "cli/origin.h"

#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/practice_args.h"
#include "cli/practice_origin.h"
#include "cli/practice_signals.h"
#include "cli/usage.h"
#include "runtime/clock.h"

#define COMMAND "weir origin"

struct origin_options {
        struct sockaddr_storage listen;
        struct practice_settings settings;
        usec_t duration;
        bool help;
};

/* Beyond the characters, which stand for short options. */
enum {
        OPTION_LISTEN = PRACTICE_ARG_LONG,
        OPTION_POLICY,
        OPTION_LATENCY,
        OPTION_RETRY_AFTER,
        OPTION_SECONDS
};

static int read_option(int option, void *arg)
{
        struct origin_options *o = arg;
        switch (option) {
        case OPTION_LISTEN:
                return practice_arg_address(COMMAND, "--listen", optarg, &o->listen);
        case OPTION_POLICY:
                return practice_arg_policy(COMMAND, optarg, &o->settings.policy);
        case OPTION_LATENCY:
                return practice_arg_duration(COMMAND, "--latency", optarg, 0, &o->settings.latency);
        case OPTION_RETRY_AFTER:
                return practice_arg_hint(COMMAND, optarg, &o->settings);
        case OPTION_SECONDS:
                return practice_arg_duration(COMMAND, "--seconds", optarg, USEC_PER_SEC,
                                             &o->duration);
        default:
                o->help = true;
                return 0;
        }
}

static int read_options(int argc, char **argv, struct origin_options *o)
{
        static const struct option options[] = {
            {"listen", required_argument, NULL, OPTION_LISTEN},
            {"policy", required_argument, NULL, OPTION_POLICY},
            {"latency", required_argument, NULL, OPTION_LATENCY},
            {"retry-after", required_argument, NULL, OPTION_RETRY_AFTER},
            {"seconds", required_argument, NULL, OPTION_SECONDS},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        if (practice_args_read(COMMAND, argc, argv, options, read_option, o) < 0)
                return -1;
        if (o->listen.ss_family == AF_UNSPEC && !o->help) {
                fputs(COMMAND ": --listen ADDR is missing\n", stderr);
                return -1;
        }
        return 0;
}

static void print_figures(const struct practice_figures *f)
{
        printf("served %llu, refused %llu, at most %u at a time", (unsigned long long)f->served,
               (unsigned long long)f->refused, f->peak);
        if (f->tolerated > 0 && f->tolerated < HUGE_VAL)
                printf(", %.0f tolerated in %.1f s (%.1f %% served)", f->tolerated,
                       usec_seconds(f->span), 100 * (double)f->served / f->tolerated);
        putchar('\n');
        fflush(stdout);
}

int origin_main(int argc, char **argv)
{
        struct origin_options o = {
            .settings = PRACTICE_SETTINGS_DEFAULT,
            .duration = USEC_MAX,
        };
        if (read_options(argc, argv, &o) < 0)
                return 2;
        if (o.help)
                return usage_print("origin");
        practice_signals_block();
        struct practice_origin *origin;
        char *error = NULL;
        if (practice_origin_start(&o.settings, &o.listen, &origin, &error) < 0) {
                fprintf(stderr, COMMAND ": %s\n", error);
                free(error);
                return 1;
        }
        char *limit = practice_policy_describe(&o.settings.policy);
        printf("listening on port %u, letting through %s\n", practice_origin_port(origin), limit);
        fflush(stdout);
        free(limit);

        practice_signals_wait(o.duration == USEC_MAX ? USEC_MAX
                                                     : usec_add(clock_now(), o.duration));
        struct practice_figures figures;
        practice_origin_look(origin, &figures);
        print_figures(&figures);
        practice_origin_free(origin);
        return 0;
}
