#include "cli/ca.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cli/usage.h"
#include "proxy/intercept_ca.h"
#include "runtime/clock.h"
#include "runtime/state.h"

#define COMMAND "weir ca"

/* Its certificate alone: the key is for the proxy. */
static int load(const char *dir, struct intercept_ca **ret, char **ret_error)
{
        char *path = xasprintf("%s/" INTERCEPT_CA_CERTIFICATE, dir);
        int r = intercept_ca_load(path, NULL, ret, ret_error);
        if (r == -ENOENT) {
                free(*ret_error);
                *ret_error =
                    xasprintf("there is no CA in %s: weir ca init makes one, as does a proxy that "
                              "opens HTTPS",
                              dir);
        }
        free(path);
        return r;
}

static int show(const char *dir, char **ret_error)
{
        struct intercept_ca *ca;
        struct intercept_ca_facts facts;
        char date[CLOCK_TEXT_SIZE];
        int r = load(dir, &ca, ret_error);
        if (r < 0)
                return r;
        intercept_ca_describe(ca, &facts);
        printf("certificate  %s/%s\n", dir, INTERCEPT_CA_CERTIFICATE);
        printf("subject      %s\n", facts.subject);
        printf("fingerprint  SHA-256 %s\n", facts.fingerprint);
        printf("expires      %.10s\n", clock_text(facts.not_after, date));
        intercept_ca_facts_done(&facts);
        intercept_ca_free(ca);
        return 0;
}

static int export(const char *dir, char **ret_error)
{
        struct intercept_ca *ca;
        int r = load(dir, &ca, ret_error);
        if (r < 0)
                return r;
        char *pem = intercept_ca_export(ca);
        fputs(pem, stdout);
        free(pem);
        intercept_ca_free(ca);
        return 0;
}

static int init(const char *dir, char **ret_error)
{
        struct state *state = NULL; /* makes the directory */
        int r = state_open(dir, &state, ret_error);
        if (r == 0)
                r = intercept_ca_make(dir, ret_error);
        state_close(state);
        return r < 0 ? r : show(dir, ret_error);
}

static const struct verb {
        const char *name;
        int (*run)(const char *dir, char **ret_error);
} verbs[] = {{"init", init}, {"show", show}, {"export", export}};

static const struct verb *find(const char *name)
{
        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
                if (strcmp(verbs[i].name, name) == 0)
                        return &verbs[i];
        return NULL;
}

static int run(const struct verb *verb, const char *dir)
{
        char *error = NULL, *path = state_find(dir);
        int r = -ENOENT;
        if (path)
                r = verb->run(path, &error);
        else
                error = xstrdup("HOME is not set: say with --dir where the CA is");
        if (r == 0 && fflush(stdout) != 0) {
                r = -errno;
                error = xasprintf("cannot write: %s", strerrordesc_np(-r));
        }
        if (r < 0)
                fprintf(stderr, COMMAND ": %s\n", error);
        free(error);
        free(path);
        return r < 0 ? 1 : 0;
}

int ca_main(int argc, char **argv)
{
        static const struct option options[] = {
            {"dir", required_argument, NULL, 'd'},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        const char *dir = "";
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
        for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
                if (o == 'd') {
                        dir = optarg;
                } else {
                        return o == 'h' ? usage_print("ca") : usage_refuse("ca");
                }
        }
        const struct verb *verb = optind + 1 == argc ? find(argv[optind]) : NULL;
        if (!verb)
                return usage_refuse("ca");
        return run(verb, dir);
}
