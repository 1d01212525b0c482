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

static const struct command {
        const char *name;
        int (*main)(int argc, char **argv);
        const char *arguments, *help;
} commands[] = {
    {"run", run_main, "[-c FILE] [--listen ADDR] [--show-config]", "the proxy, in the foreground"},
    {"exec", exec_main,
     "[-c FILE] [--https tunnel|intercept] [--summary FILE|none] -- COMMAND [ARGUMENT ...]",
     "runs one command behind a proxy of its own, HTTPS opened, and sums up"},
    {"env", env_main, "[-c FILE]", "prints what a shell has to set to use a running proxy"},
    {"ca", ca_main, "init|show|export [--dir DIR]", "makes and shows the CA that opens HTTPS"},
    {"check", check_main, "[-c FILE]", "validates a configuration file"},
    {"explain", explain_main, "[-c FILE] [--header 'K: V'] [--session S] URL",
     "shows what would apply to a URL, and where that is written"},
    {"demo", demo_main,
     "[--rate N] [--latency D] [--workers N] [--seconds N] [--policy P] [--plain]",
     "shows a hidden limit being found, in one process"},
    {"origin", origin_main, "--listen ADDR --policy P",
     "an origin with a limit, to practise against"},
};

static void print_help(FILE *to)
{
        fputs("weir: a forward HTTP proxy that finds each host's rate limit and stays below it\n\n"
              "usage: weir COMMAND [OPTION ...]\n\n",
              to);
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
        fputs("  version  prints the version\n"
              "  help     prints this, or the usage of one command: weir help COMMAND\n\n"
              "Point clients at it with HTTP_PROXY=http://127.0.0.1:8080\n",
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
        const struct command *c = find(name);
        if (!c)
                return unknown(name);
        printf("usage: weir %s %s\n%s\n", c->name, c->arguments, c->help);
        return 0;
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
