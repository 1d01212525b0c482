#include "cli/demo_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "cli/practice_args.h"

#define COMMAND "weir demo"
#define MAX_DURATION (3600 * USEC_PER_SEC)

struct reading {
        struct demo_options options;
        bool rate, policy; /* given */
};

/* Beyond the characters, which stand for short options. */
enum {
        OPTION_RATE = PRACTICE_ARG_LONG,
        OPTION_POLICY,
        OPTION_LATENCY,
        OPTION_RETRY_AFTER,
        OPTION_WORKERS,
        OPTION_SECONDS,
        OPTION_PLAIN
};

static int read_rate(struct reading *r, const char *text)
{
        r->rate = true;
        r->options.origin.policy =
            (struct practice_policy){.kind = PRACTICE_FIXED, .window = USEC_PER_SEC};
        return practice_arg_count(COMMAND, "--rate", text, 1, PRACTICE_COUNT_MAX,
                                  &r->options.origin.policy.count);
}

static int read_option(int option, void *arg)
{
        struct reading *r = arg;
        struct demo_options *o = &r->options;
        const char *text = optarg;
        switch (option) {
        case OPTION_RATE:
                return read_rate(r, text);
        case OPTION_POLICY:
                r->policy = true;
                return practice_arg_policy(COMMAND, text, &o->origin.policy);
        case OPTION_LATENCY:
                return practice_arg_duration(COMMAND, "--latency", text, 0, &o->origin.latency);
        case OPTION_RETRY_AFTER:
                return practice_arg_hint(COMMAND, text, &o->origin);
        case OPTION_WORKERS:
                return practice_arg_count(COMMAND, "--workers", text, 1, 1000, &o->workers);
        case OPTION_SECONDS:
                return practice_arg_duration(COMMAND, "--seconds", text, USEC_PER_SEC,
                                             &o->duration);
        case OPTION_PLAIN:
                o->plain = true;
                return 0;
        default:
                o->help = true;
                return 0;
        }
}

static int check(const struct reading *r)
{
        if (r->rate && r->policy) {
                fputs(COMMAND ": --rate and --policy exclude each other\n", stderr);
                return -EINVAL;
        }
        if (r->options.duration > MAX_DURATION) {
                fputs(COMMAND ": --seconds: at most an hour\n", stderr);
                return -EINVAL;
        }
        return 0;
}

int demo_options_read(int argc, char **argv, struct demo_options *ret)
{
        static const struct option options[] = {
            {"rate", required_argument, NULL, OPTION_RATE},
            {"policy", required_argument, NULL, OPTION_POLICY},
            {"latency", required_argument, NULL, OPTION_LATENCY},
            {"retry-after", required_argument, NULL, OPTION_RETRY_AFTER},
            {"workers", required_argument, NULL, OPTION_WORKERS},
            {"seconds", required_argument, NULL, OPTION_SECONDS},
            {"plain", no_argument, NULL, OPTION_PLAIN},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        struct reading r = {
            .options = {.origin = PRACTICE_SETTINGS_DEFAULT,
                        .workers = 40,
                        .duration = 25 * USEC_PER_SEC},
        };
        r.options.origin.latency = 350 * USEC_PER_MSEC;
        if (practice_args_read(COMMAND, argc, argv, options, read_option, &r) < 0 || check(&r) < 0)
                return -EINVAL;
        *ret = r.options;
        return 0;
}
