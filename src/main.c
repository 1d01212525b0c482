/* main.c - the command line: finds the command and hands over. */
#include <stdio.h>
#include <string.h>

#include "cli/ca.h"
#include "cli/check.h"
#include "cli/demo.h"
#include "cli/env.h"
#include "cli/exec.h"
#include "cli/explain.h"
#include "cli/origin.h"
#include "cli/run.h"
#include "cli/usage.h"

static const struct command {
        const char *name;
        int (*main)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, arguments, help, about) {#name, name##_main},
#include "cli/commands.def"
};

static void print_help(FILE *to)
{
        fputs(
            "weir: a forward HTTP(S) proxy that finds each host's rate limit and stays below it\n\n"
            "usage: weir COMMAND [OPTION ...]\n\n",
            to);
        for (size_t i = 0; i < usage_command_count; i++)
                fprintf(to, "  %-8s %s\n", usage_commands[i].name, usage_commands[i].help);
        fputs("  version  prints the version\n"
              "  help     prints this, or the options of one command: weir help COMMAND\n\n"
              "Point clients at it with HTTP_PROXY=http://127.0.0.1:8080 (http_proxy for curl "
              "and wget), or run\none command behind a proxy of its own: weir exec -- COMMAND\n",
              to);
}

static const struct command *find(const char *name)
{
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}

static int unknown(const char *name)
{
        fprintf(stderr, "weir: there is no command '%s'; see weir help\n", name);
        return 2;
}

static int help(const char *name)
{
        if (!name) {
                print_help(stdout);
                return 0;
        }
        return usage_find(name) ? usage_print(name) : unknown(name);
}

int main(int argc, char **argv)
{
        if (argc < 2) {
                print_help(stderr);
                return 2;
        }
        const char *name = argv[1];
        if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
                puts("weir " PACKAGE_VERSION);
                return 0;
        }
        if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
                return help(argv[2]);
        const struct command *c = find(name);
        return c ? c->main(argc - 1, argv + 1) : unknown(name);
}
