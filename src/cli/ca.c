#include "cli/ca.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cli/config_file.h"
#include "cli/usage.h"
#include "proxy/intercept_ca.h"
#include "runtime/clock.h"
#include "runtime/state.h"

#define COMMAND "weir ca"

/* Whose CA is meant: a directory's, or the one that a configuration names. */
struct place {
        char *dir;         /* owned; NULL: the file names another one */
        char *certificate; /* owned */
        const char *given; /* the option that says so, for people; with `value` */
        const char *value; /* NULL: none was given */
};

/* Its certificate alone: the key is for the proxy. */
static int load(const struct place *p, struct intercept_ca **ret, char **ret_error)
{
        int r = intercept_ca_load(p->certificate, NULL, ret, ret_error);
        if (r == -ENOENT && p->dir) {
                free(*ret_error);
                *ret_error = xasprintf("there is no CA in %s: weir ca init%s%s makes one, as does "
                                       "a proxy that opens HTTPS",
                                       p->dir, p->value ? p->given : "", p->value ? p->value : "");
        }
        return r;
}

static int show(const struct place *p, char **ret_error)
{
        struct intercept_ca *ca;
        struct intercept_ca_facts facts;
        char date[CLOCK_TEXT_SIZE];
        int r = load(p, &ca, ret_error);
        if (r < 0)
                return r;
        intercept_ca_describe(ca, &facts);
        printf("certificate  %s\n", p->certificate);
        printf("subject      %s\n", facts.subject);
        printf("fingerprint  SHA-256 %s\n", facts.fingerprint);
        printf("expires      %.10s\n", clock_text(facts.not_after, date));
        intercept_ca_facts_done(&facts);
        intercept_ca_free(ca);
        return 0;
}

static int export(const struct place *p, char **ret_error)
{
        struct intercept_ca *ca;
        int r = load(p, &ca, ret_error);
        if (r < 0)
                return r;
        char *pem = intercept_ca_export(ca);
        fputs(pem, stdout);
        free(pem);
        intercept_ca_free(ca);
        return 0;
}

static int init(const struct place *p, char **ret_error)
{
        struct state *state = NULL; /* makes the directory */
        if (!p->dir) {
                *ret_error = xasprintf("the file names a CA of its own, %s (ca.certificate): none "
                                       "is made there",
                                       p->certificate);
                return -EINVAL;
        }
        int r = state_open(p->dir, &state, ret_error);
        if (r == 0)
                r = intercept_ca_make(p->dir, ret_error);
        state_close(state);
        return r < 0 ? r : show(p, ret_error);
}

static const struct verb {
        const char *name;
        int (*run)(const struct place *p, char **ret_error);
} verbs[] = {{"init", init}, {"show", show}, {"export", export}};

static const struct verb *find(const char *name)
{
        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
                if (strcmp(verbs[i].name, name) == 0)
                        return &verbs[i];
        return NULL;
}

static void find_ca(struct place *p, const char *state_dir, const char *certificate)
{
        bool named = *certificate != '\0';
        p->dir = named ? NULL : state_find(state_dir);
        if (named)
                p->certificate = xstrdup(certificate);
        else if (p->dir)
                p->certificate = xasprintf("%s/" INTERCEPT_CA_CERTIFICATE, p->dir);
}

/* False after faults of the file, which have been told. */
static bool find_place(const char *path, const char *dir, struct place *ret)
{
        if (dir || !path) {
                *ret = (struct place){.given = " --dir ", .value = dir};
                find_ca(ret, dir ? dir : "", "");
                return true;
        }
        struct config *config = config_file_load(path, NULL);
        if (!config)
                return false;
        *ret = (struct place){.given = " -c ", .value = path};
        find_ca(ret, config->state.dir, config->ca.certificate);
        config_unref(config);
        return true;
}

static int run(const struct verb *verb, const struct place *place)
{
        char *error = NULL;
        int r = -ENOENT;
        if (place->certificate)
                r = verb->run(place, &error);
        else
                error = xstrdup("HOME is not set: say with --dir where the CA is");
        if (r == 0 && fflush(stdout) != 0) {
                r = -errno;
                error = xasprintf("cannot write: %s", strerrordesc_np(-r));
        }
        if (r < 0)
                fprintf(stderr, COMMAND ": %s\n", error);
        free(error);
        return r < 0 ? 1 : 0;
}

int ca_main(int argc, char **argv)
{
        static const struct option options[] = {
            {"config", required_argument, NULL, 'c'},
            {"dir", required_argument, NULL, 'd'},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        const char *path = NULL, *dir = NULL;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
        for (int o; (o = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
                if (o == 'd') {
                        dir = optarg;
                } else if (o == 'c') {
                        path = optarg;
                } else {
                        return o == 'h' ? usage_print("ca") : usage_refuse("ca");
                }
        }
        const struct verb *verb = optind + 1 == argc ? find(argv[optind]) : NULL;
        struct place place;
        if (!verb || (path && dir))
                return usage_refuse("ca");
        if (!find_place(path, dir, &place))
                return 1;
        int status = run(verb, &place);
        free(place.certificate);
        free(place.dir);
        return status;
}
