/* cli/practice_args.h - reads the option values that the practice commands share. */
#ifndef WEIR_CLI_PRACTICE_ARGS_H
#define WEIR_CLI_PRACTICE_ARGS_H

#include "base/usec.h"
#include "cli/practice_origin.h"

struct option;

/* All return 0, or -EINVAL after one line on stderr that names `command` ("weir demo"), the option
 * and what it takes. */
int practice_arg_count(const char *command, const char *option, const char *text, unsigned least,
                       unsigned most, unsigned *ret);

/* "350ms", "1s"; a number alone is seconds. At most a day. */
int practice_arg_duration(const char *command, const char *option, const char *text, usec_t least,
                          usec_t *ret);

/* "127.0.0.1:8000", "[::1]:0" */
int practice_arg_address(const char *command, const char *option, const char *text,
                         struct sockaddr_storage *ret);

int practice_arg_policy(const char *command, const char *text, struct practice_policy *ret);
int practice_arg_hint(const char *command, const char *text, struct practice_settings *s);

/* The first number for options that have a long name alone. */
#define PRACTICE_ARG_LONG 256

/* Reads a command line: calls `take` for each option, its value in optarg. Stops where that returns
 * less than 0, or tells of what is none of the options. */
int practice_args_read(const char *command, int argc, char **argv, const struct option *options,
                       int (*take)(int option, void *arg), void *arg);

#endif
