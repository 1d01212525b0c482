#include "cli/exec.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "cli/client_env.h"
#include "cli/client_trust.h"
#include "cli/config_file.h"
#include "cli/exec_child.h"
#include "cli/exec_figures.h"
#include "cli/exec_report.h"
#include "cli/process.h"
#include "cli/usage.h"
#include "proxy/intercept_ca.h"
#include "proxy/server.h"
#include "runtime/clock.h"
#include "runtime/line_out.h"
#include "runtime/log.h"

#define COMMAND "weir exec"

/* What the command has left open ends at once: its clients are gone with it. */
#define DRAIN_GRACE (2 * USEC_PER_SEC)

#define NOT_EXECUTABLE 126
#define NOT_FOUND 127

/* Settings of a file that make no sense for one command are left out: where to listen, and for
 * whom.
 */
static const char below[] = "log: {level: warn}\n"
                            "defaults: {https: intercept}\n";
static const char above[] = "listen: [\"127.0.0.1:0\"]\n"
                            "clients: {allow: [\"127.0.0.0/8\"], users: \"\"}\n"
                            "admin: {listen: \"\"}\n";
/* Of the system's file the daemon's own files as well, which are not the user's. */
static const char above_system[] = "log: {file: \"-\", access: \"\", series: \"\"}\n"
                                   "state: {dir: \"\"}\n"
                                   "ca: {certificate: \"\", key: \"\"}\n";

struct exec {
        const char *path;  /* NULL: built-in defaults */
        bool named;        /* with -c */
        const char *https; /* NULL: as the file says */
        const char *summary;
        char **command;
        FILE *to; /* the summary; NULL: nowhere */
        struct exec_child child;
        struct config *config;
        struct state *state;
        struct server *server;
        char *dir; /* temporary; NULL: none */
        struct client_trust trust;
        char *wgetrc;
};

/* ---- setting up ---- */

static bool load(struct exec *x)
{
        char *https = x->https ? xasprintf("defaults: {https: %s}\n", x->https) : xstrdup("");
        char *text = xasprintf("%s%s%s", above, x->path && !x->named ? above_system : "", https);
        struct config_given given = {below, text};
        x->config = config_file_load(x->path, &given);
        free(text);
        free(https);
        return x->config != NULL;
}

static int open_log(struct exec *x, char **ret_error)
{
        const char *path = x->config->log.file;
        log_set(x->config->log.level, x->config->log.format);
        if (strcmp(path, "-") == 0)
                return 0;
        int fd = line_out_open(path);
        if (fd < 0) {
                *ret_error = xasprintf("cannot write to %s: %s", path, strerrordesc_np(-fd));
                return fd;
        }
        log_to(fd);
        return 0;
}

/* Before the command runs: whether it will work is to be known then. */
static int open_summary(struct exec *x, char **ret_error)
{
        if (!x->summary)
                x->to = stderr;
        else if (strcmp(x->summary, "none") != 0)
                x->to = fopen(x->summary, "we");
        else
                return 0;
        if (x->to)
                return 0;
        int r = -errno;
        *ret_error = xasprintf("cannot write to %s: %s", x->summary, strerrordesc_np(-r));
        return r;
}

static int make_directory(struct exec *x, char **ret_error)
{
        const char *tmp = client_env_own("TMPDIR");
        char *dir = xasprintf("%s/weir-exec-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
        if (!mkdtemp(dir)) {
                int r = -errno;
                *ret_error =
                    xasprintf("cannot make the directory %s: %s", dir, strerrordesc_np(-r));
                free(dir);
                return r;
        }
        x->dir = dir;
        return 0;
}

static void remove_directory(const struct exec *x)
{
        static const char *const names[] = {CLIENT_TRUST_BUNDLE, CLIENT_TRUST_STORE,
                                            CLIENT_TRUST_WGETRC, INTERCEPT_CA_CERTIFICATE,
                                            INTERCEPT_CA_KEY,    STATE_LEARNED};
        for (size_t i = 0; i < sizeof names / sizeof names[0] && x->dir; i++) {
                char *path = xasprintf("%s/%s", x->dir, names[i]);
                unlink(path);
                free(path);
        }
        if (x->dir && rmdir(x->dir) < 0)
                log_warn("cannot remove the directory %s: %s", x->dir, strerrordesc_np(errno));
}

/* Where the user has no place for it, a CA is made for this command alone. */
static int open_state(struct exec *x, char **ret_error)
{
        int r = state_open(x->config->state.dir, &x->state, ret_error);
        if (r == 0 && config_opens_https(x->config))
                r = make_directory(x, ret_error);
        if (r == 0 && x->dir && !x->state)
                r = state_open(x->dir, &x->state, ret_error);
        return r;
}

static int load_ca(const struct exec *x, struct intercept_ca **ret, char **ret_error)
{
        bool made;
        if (*x->config->ca.certificate)
                return intercept_ca_load(x->config->ca.certificate, x->config->ca.key, ret,
                                         ret_error);
        return intercept_ca_need(state_path(x->state), ret, &made, ret_error);
}

/* The files for clients that are to trust the proxy. */
static int write_trust(struct exec *x, char **ret_error)
{
        struct intercept_ca *ca = NULL;
        if (!config_opens_https(x->config))
                return 0;
        int r = load_ca(x, &ca, ret_error);
        if (r == 0) {
                char *pem = intercept_ca_export(ca);
                r = client_trust_write(x->dir, span_of(pem), &x->trust, ret_error);
                free(pem);
        }
        if (r == 0)
                r = client_trust_write_wgetrc(x->dir, x->trust.bundle, &x->wgetrc, ret_error);
        intercept_ca_free(ca);
        return r;
}

static int start_proxy(struct exec *x)
{
        struct config_faults faults = {0};
        int r = server_start(x->config, x->state, &x->server, &faults);
        config_faults_print(&faults, x->path, stderr);
        config_faults_done(&faults);
        return r;
}

/* Everything that can go wrong before the command runs. */
static int start(struct exec *x)
{
        char *error = NULL;
        int r = open_log(x, &error);
        if (r == 0)
                r = open_summary(x, &error);
        if (r == 0)
                r = open_state(x, &error);
        if (r == 0)
                r = write_trust(x, &error);
        if (r == 0)
                r = start_proxy(x);
        else
                fprintf(stderr, COMMAND ": %s\n", error);
        free(error);
        return r;
}

/* ---- the command ---- */

struct environment {
        char **list; /* NULL-terminated */
        size_t count;
};

static void append(struct environment *e, char *text)
{
        e->list = xrealloc(e->list, (e->count + 2) * sizeof *e->list);
        e->list[e->count++] = text;
        e->list[e->count] = NULL;
}

static void set(void *arg, const char *name, const char *value)
{
        struct environment *e = arg;
        size_t len = strlen(name);
        char *text = xasprintf("%s=%s", name, value);
        for (size_t i = 0; i < e->count; i++)
                if (strncmp(e->list[i], text, len + 1) == 0) {
                        free(e->list[i]);
                        e->list[i] = text;
                        return;
                }
        append(e, text);
}

static int run_command(struct exec *x)
{
        struct environment e = {NULL, 0};
        struct client_env told = {
            .host = "127.0.0.1",
            .port = server_port(x->server),
            .bundle = x->trust.bundle,
            .trust_store = x->trust.store,
            .wgetrc = x->wgetrc,
        };
        for (char **own = environ; *own; own++)
                append(&e, xstrdup(*own));
        client_env_each(&told, set, &e);
        int r = exec_child_start(&x->child, x->command, e.list);
        for (size_t i = 0; i < e.count; i++)
                free(e.list[i]);
        free(e.list);
        if (r == 0)
                return 0;
        fprintf(stderr, COMMAND ": %s: %s\n", x->command[0], strerrordesc_np(-r));
        return r == -ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

static void on_save(void *arg)
{
        struct exec *x = arg;
        server_save(x->server);
}

/* Until what it still had open has ended as well, so that it is counted. */
static void drain(struct exec *x)
{
        usec_t deadline = usec_add(clock_now(), DRAIN_GRACE);
        server_drain(x->server);
        for (usec_t left; !server_drained(x->server) && (left = usec_sub(deadline, clock_now()));) {
                struct pollfd p = {.fd = server_done_fd(x->server), .events = POLLIN};
                poll(&p, 1, (int)(left / USEC_PER_MSEC + 1));
        }
}

static void report(struct exec *x, usec_t span)
{
        struct exec_figures figures;
        if (!x->to)
                return;
        exec_figures_take(x->server, &figures);
        figures.span = span;
        exec_report_print(x->to, &figures);
        exec_figures_done(&figures);
        if (fflush(x->to) != 0 && x->to != stderr)
                log_error("cannot write to %s: %s", x->summary, strerrordesc_np(errno));
}

static int serve(struct exec *x)
{
        usec_t started = clock_now();
        int status = run_command(x);
        if (status != 0)
                return status;
        process_raise_descriptor_limit(); /* not for the command */
        status = exec_child_wait(&x->child, x->config->state.save_every, on_save, x);
        usec_t span = usec_sub(clock_now(), started);
        drain(x);
        report(x, span);
        return status;
}

static void done(struct exec *x)
{
        if (x->server)
                server_stop(x->server, 0, NULL);
        state_close(x->state);
        remove_directory(x);
        client_trust_done(&x->trust);
        free(x->wgetrc);
        free(x->dir);
        config_unref(x->config);
        exec_child_done(&x->child);
        if (x->to && x->to != stderr)
                fclose(x->to);
}

/* ---- the command line ---- */

static int read_options(int argc, char **argv, struct exec *x)
{
        static const struct option options[] = {
            {"config", required_argument, NULL, 'c'},
            {"https", required_argument, NULL, 't'},
            {"summary", required_argument, NULL, 's'},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        /* "+": what follows the command is the command's own.
         * NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
        for (int o; (o = getopt_long(argc, argv, "+c:h", options, NULL)) != -1;) {
                switch (o) {
                case 'c':
                        x->path = optarg;
                        x->named = true;
                        break;
                case 't':
                        if (strcmp(optarg, "tunnel") != 0 && strcmp(optarg, "intercept") != 0) {
                                fprintf(stderr,
                                        COMMAND ": --https: expected tunnel or intercept, got "
                                                "\"%.80s\"\n",
                                        optarg);
                                return usage_refuse("exec");
                        }
                        x->https = optarg;
                        break;
                case 's':
                        x->summary = optarg;
                        break;
                case 'h':
                        exit(usage_print("exec"));
                default:
                        return usage_refuse("exec");
                }
        }
        x->command = argv + optind;
        if (!*x->command) {
                fputs(COMMAND ": there is no command to run\n", stderr);
                return usage_refuse("exec");
        }
        return 0;
}

int exec_main(int argc, char **argv)
{
        struct exec x = {.path = config_file_default()};
        process_fill_standard_descriptors();
        int status = read_options(argc, argv, &x);
        if (status != 0)
                return status;
        status = 1;
        if (exec_child_prepare(&x.child) < 0)
                fputs(COMMAND ": no descriptors are left\n", stderr);
        else if (load(&x) && start(&x) == 0)
                status = serve(&x);
        done(&x);
        return status;
}
