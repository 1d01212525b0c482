#include "cli/practice_args.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "config/value.h"

#define DAY (86400 * USEC_PER_SEC)

int practice_arg_count(const char *command, const char *option, const char *text, unsigned least,
                       unsigned most, unsigned *ret)
{
        unsigned n;
        if (value_count(span_of(text), &n) < 0 || n < least || n > most) {
                fprintf(stderr, "%s: %s %s: a whole number from %u to %u is wanted\n", command,
                        option, text, least, most);
                return -EINVAL;
        }
        *ret = n;
        return 0;
}

/* A number alone is seconds. */
static int read_duration(struct span text, usec_t *ret)
{
        double seconds;
        if (value_number(text, &seconds) < 0)
                return value_duration(text, ret);
        *ret = usec_from_seconds(seconds);
        return 0;
}

int practice_arg_duration(const char *command, const char *option, const char *text, usec_t least,
                          usec_t *ret)
{
        usec_t d;
        if (read_duration(span_of(text), &d) < 0 || d < least || d > DAY) {
                fprintf(stderr, "%s: %s %s: a duration such as 350ms or 25s is wanted%s\n", command,
                        option, text, least ? ", at least 1s" : "");
                return -EINVAL;
        }
        *ret = d;
        return 0;
}

int practice_arg_address(const char *command, const char *option, const char *text,
                         struct sockaddr_storage *ret)
{
        struct sockaddr_storage sa;
        if (value_address(span_of(text), &sa) < 0 || sa.ss_family == AF_UNIX) {
                fprintf(stderr,
                        "%s: %s %s: an address with a port such as 127.0.0.1:8000 is wanted\n",
                        command, option, text);
                return -EINVAL;
        }
        *ret = sa;
        return 0;
}

int practice_arg_policy(const char *command, const char *text, struct practice_policy *ret)
{
        int r = practice_policy_parse(span_of(text), ret);
        if (r < 0)
                fprintf(stderr,
                        "%s: --policy %s: wanted is one of fixed:30/1s, sliding:30/1s, "
                        "token:30/s:5, concurrency:10, none\n",
                        command, text);
        return r;
}

int practice_arg_hint(const char *command, const char *text, struct practice_settings *s)
{
        int r = practice_hint_parse(span_of(text), s);
        if (r < 0)
                fprintf(stderr,
                        "%s: --retry-after %s: wanted is whole seconds, exact, date or none\n",
                        command, text);
        return r;
}

static void refuse(const char *command, int returned, char *const argv[])
{
        const char *word = argv[optind - 1];
        if (returned == ':')
                fprintf(stderr, "%s: %s wants a value\n", command, word);
        else if (optopt > 0 && optopt < PRACTICE_ARG_LONG) /* among others in one word, perhaps */
                fprintf(stderr, "%s: unknown option -%c\n", command, optopt);
        else if (optopt != 0)
                fprintf(stderr, "%s: %s: that option takes no value\n", command, word);
        else
                fprintf(stderr, "%s: unknown option %s\n", command, word);
}

int practice_args_read(const char *command, int argc, char **argv, const struct option *options,
                       int (*take)(int option, void *arg), void *arg)
{
        opterr = 0;
        optind = 1;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
        for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
                if (c == '?' || c == ':') {
                        refuse(command, c, argv);
                        return -EINVAL;
                }
                if (take(c, arg) < 0)
                        return -EINVAL;
        }
        if (optind == argc)
                return 0;
        fprintf(stderr, "%s: unexpected argument %s\n", command, argv[optind]);
        return -EINVAL;
}
