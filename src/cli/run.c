#include "cli/run.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/xalloc.h"
#include "cli/config_file.h"
#include "cli/inherited.h"
#include "cli/process.h"
#include "cli/usage.h"
#include "proxy/named_files.h"
#include "proxy/server.h"
#include "runtime/clock.h"
#include "runtime/line_out.h"
#include "runtime/log.h"
#include "runtime/sd.h"

struct run {
        const char *path; /* NULL: built-in defaults */
        struct inherited inherited;
        const char **listen; /* what takes the place of `listen`; NULL-terminated, NULL: nothing */
        struct config *config;
        struct config *started; /* at the start, with what only a restart changes */
        struct state *state;    /* NULL: nothing is remembered */
        struct server *server;
        struct admin *admin; /* NULL: off */
        usec_t next_save;
        usec_t next_tell, tell_every; /* systemd how it goes; USEC_MAX: it does not listen */
        bool beats;                   /* the workers, when it was told last */
        int signals;
};

static void log_faults(const struct config_faults *faults, const char *path)
{
        for (size_t i = 0; i < faults->count; i++) {
                const struct config_fault *f = &faults->list[i];
                if (f->line)
                        log_error("%s:%u:%u: %s", path, f->line, f->column, f->text);
                else
                        log_error("%s%s%s", path ? path : "", path ? ": " : "", f->text);
        }
}

/* Reads the file, anew or for the first time; NULL with every fault logged where it is bad. */
static struct config *load(const struct run *run, struct config_faults *ret_faults)
{
        struct config *config = NULL;
        if (config_reload(run->path, run->listen, run->started, &config, ret_faults) < 0)
                log_faults(ret_faults, run->path);
        return config;
}

/* log.file: the log is standard error, wherever that leads. */
static int open_log(const struct config *config, struct config_faults *faults)
{
        if (strcmp(config->log.file, "-") == 0)
                return 0;
        int fd = line_out_open(config->log.file);
        int r = fd < 0 ? fd : dup2(fd, STDERR_FILENO) < 0 ? -errno : 0;
        if (r < 0)
                named_files_unwritable(config, "log.file", config->log.file, r, faults);
        if (fd > STDERR_FILENO)
                close(fd);
        log_set_journal(sd_is_journal(STDERR_FILENO));
        return r;
}

/* The next save comes save_every from now, or earlier where that was to be. */
static void plan_save(struct run *run)
{
        run->next_save =
            usec_min(run->next_save, usec_add(clock_now(), run->config->state.save_every));
}

static void save_if_due(struct run *run)
{
        if (clock_now() < run->next_save)
                return;
        server_save(run->server);
        run->next_save = USEC_MAX;
        plan_save(run);
}

/* ---- systemd ---- */

#define TELL_EVERY (5 * USEC_PER_SEC)

/* Several times in each interval of the watchdog, so that a worker may take its time with an
 * answer.
 */
static void plan_telling(struct run *run)
{
        run->beats = true;
        run->next_tell = sd_listens() ? clock_now() : USEC_MAX;
        run->tell_every = usec_min(TELL_EVERY, sd_watchdog() / 4);
}

/* The watchdog is kept quiet as long as no worker is stuck. */
static void tell_if_due(struct run *run)
{
        struct server_counts counts;
        if (clock_now() < run->next_tell)
                return;
        bool beats = server_beats(run->server);
        if (beats)
                sd_tell_alive();
        if (beats != run->beats)
                log_warn("%s", beats ? "all workers answer again"
                                     : "a worker does not answer: some requests stand still, and "
                                       "a watchdog will end this process");
        run->beats = beats;
        server_count(run->server, &counts);
        sd_tell_status("%zu scopes, %zu requests in flight, %zu queued", counts.governor.lanes,
                       counts.governor.in_flight, counts.governor.queued);
        run->next_tell = usec_add(clock_now(), run->tell_every);
}

/* ---- signals ---- */

/* Keys that only a restart changes. */
struct restart {
        const char **keys; /* NULL-terminated */
        size_t count;
};

static void on_restart_key(void *arg, const char *key)
{
        struct restart *r = arg;
        r->keys = xrealloc(r->keys, (r->count + 2) * sizeof *r->keys);
        r->keys[r->count++] = key;
        r->keys[r->count] = NULL;
        log_warn("%s has changed: that takes effect with the next start", key);
}

/* A proxy that anybody can reach and use will be found, and used. */
static void warn_of_openness(const struct config *config)
{
        bool open = false;
        for (char *const *address = config->listen; *address; address++)
                open = open || !config_is_on_loopback(*address);
        if (open && config_admits_everybody(config))
                log_warn("the proxy listens on more than loopback, and whoever reaches it may use "
                         "it: narrow clients.allow, or set clients.users");
}

static void warn_of_unused_pools(const struct config *config)
{
        for (size_t i = 0; i < config->pool_count; i++)
                if (!config_uses_pool(config, &config->pools[i]))
                        log_warn("no request goes by the pool %s: no egress names it",
                                 config->pools[i].name);
}

/* 0 or -errno, with a fault where it cannot be used. */
static int put_in_force(struct run *run, struct config *config, struct config_faults *faults,
                        struct restart *restart)
{
        int r = server_reload(run->server, config, faults);
        if (r < 0) {
                log_faults(faults, run->path);
                return r;
        }
        config_needs_restart(run->config, config, on_restart_key, restart);
        warn_of_openness(config);
        warn_of_unused_pools(config);
        log_set(config->log.level, config->log.format);
        admin_reload(run->admin, config);
        config_unref(run->config);
        run->config = config;
        plan_save(run);
        return 0;
}

/* Reads the file anew, and takes it where it is good. */
static bool read_anew(struct run *run, struct config_faults *faults, struct restart *restart)
{
        struct config *config = load(run, faults);
        if (!config)
                return false;
        if (put_in_force(run, config, faults, restart) == 0)
                return true;
        config_unref(config);
        return false;
}

/* asked  the number of the request that asks for it; 0: a signal did */
static void reload(struct run *run, uint64_t asked)
{
        struct config_faults faults = {0};
        struct restart restart = {NULL, 0};
        sd_tell_reloading();
        bool good = read_anew(run, &faults, &restart);
        metrics_add(server_metrics_writer(run->server), METRIC_RELOADS, good, 1);
        if (good)
                log_info("configuration reloaded");
        else
                log_error("the configuration was not reloaded: the old one stays in force");
        if (asked)
                admin_reload_done(run->admin, asked,
                                  &(struct admin_reloaded){.path = run->path,
                                                           .faults = good ? NULL : &faults,
                                                           .restart = restart.keys});
        sd_tell_ready();
        free(restart.keys);
        config_faults_done(&faults);
}

static void reopen_logs(struct run *run)
{
        struct config_faults faults = {0};
        if (open_log(run->started, &faults) < 0)
                log_faults(&faults, run->path);
        config_faults_done(&faults);
        server_reopen_logs(run->server);
        log_info("log files reopened");
}

/* Waits for the next signal, at most until `deadline`; 0 when it came first, somebody asks for a
 * reload, or, once draining, the server has ended. */
static int next_signal(struct run *run, usec_t deadline, bool draining)
{
        deadline = usec_min(deadline, run->next_tell);
        struct pollfd fds[] = {
            {.fd = run->signals, .events = POLLIN},
            {.fd = draining ? server_done_fd(run->server) : admin_reload_fd(run->admin),
             .events = POLLIN}};
        int timeout = -1;
        if (deadline != USEC_MAX)
                timeout =
                    (int)usec_min(usec_sub(deadline, clock_now()) / USEC_PER_MSEC + 1, 1000000);
        struct signalfd_siginfo info;
        if (poll(fds, 2, timeout) > 0 && read(run->signals, &info, sizeof info) == sizeof info)
                return (int)info.ssi_signo;
        return 0;
}

static void serve(struct run *run)
{
        for (;;) {
                int signal = next_signal(run, run->next_save, false);
                uint64_t asked = admin_reload_wanted(run->admin);
                if (asked)
                        reload(run, asked);
                save_if_due(run);
                tell_if_due(run);
                switch (signal) {
                case SIGHUP:
                        reload(run, 0);
                        break;
                case SIGUSR1:
                        reopen_logs(run);
                        break;
                case SIGTERM:
                case SIGINT:
                        return;
                default:
                        break;
                }
        }
}

/* What it takes to save and to leave, once all requests have ended. */
#define STOP_WITHIN (15 * USEC_PER_SEC)

/* Lets what is under way end, for at most shutdown_grace or until a second signal. */
static void drain(struct run *run)
{
        struct server_counts counts;
        usec_t deadline = usec_add(clock_now(), run->config->shutdown_grace);
        sd_tell_stopping(usec_add(run->config->shutdown_grace, STOP_WITHIN));
        server_count(run->server, &counts);
        log_info("stopping: %zu requests open, of them %zu queued and %zu in flight",
                 counts.exchanges, counts.governor.queued + counts.governor.sleeping,
                 counts.governor.in_flight);
        admin_drain(run->admin);
        server_drain(run->server);
        while (!server_drained(run->server) && clock_now() < deadline) {
                int signal = next_signal(run, deadline, true);
                tell_if_due(run);
                if (signal == SIGTERM || signal == SIGINT) {
                        log_warn("second signal: dropping what is still open");
                        break;
                }
        }
        admin_stop(run->admin);
        server_stop(run->server, 0, &counts);
        log_info("stopped: %zu open, %zu queued, %zu in flight, %zu connections, %zu served",
                 counts.exchanges, counts.governor.queued + counts.governor.sleeping,
                 counts.governor.in_flight, counts.clients, counts.served);
}

static int block_signals(void)
{
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGUSR1);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int start_admin(struct run *run)
{
        return admin_start(run->admin,
                           &(struct admin_sources){.gate = server_gate(run->server),
                                                   .metrics = server_metrics(run->server),
                                                   .reports = server_reports(run->server)});
}

static int open_state(struct run *run, struct config_faults *faults)
{
        char *error = NULL;
        int r = state_open(run->config->state.dir, &run->state, &error);
        if (r < 0)
                policy_fault(&run->config->defaults, "state.dir", error, faults);
        return r;
}

/* r is what came of it, with `error`, which is taken over. */
static int tell_of_admin(const struct run *run, int r, char *error, struct config_faults *faults)
{
        if (r < 0)
                policy_fault(&run->config->defaults, "admin.listen", error, faults);
        return r;
}

static int open_admin(struct run *run, struct config_faults *faults)
{
        char *error = NULL;
        int r = admin_open(run->config, run->inherited.admin, &run->admin, &error);
        return tell_of_admin(run, r, error, faults);
}

static int let_admin_listen(struct run *run, struct config_faults *faults)
{
        char *error = NULL;
        int r = admin_listen(run->admin, &error);
        return tell_of_admin(run, r, error, faults);
}

/* Everything that can refuse to start. Nobody can connect before all sockets are bound. */
static int start(struct run *run)
{
        struct config_faults faults = {0};
        int r = open_log(run->config, &faults);
        if (r == 0)
                r = open_state(run, &faults);
        if (r == 0)
                r = open_admin(run, &faults);
        if (r == 0)
                r = server_start_on(run->inherited.sockets, run->inherited.count, run->config,
                                    run->state, &run->server, &faults);
        if (r == 0 && (r = let_admin_listen(run, &faults)) < 0)
                server_stop(run->server, 0, NULL);
        if (r < 0) {
                log_faults(&faults, run->path);
                admin_stop(run->admin);
        }
        config_faults_done(&faults);
        return r;
}

/* From the ready listeners to the last request. */
static void serve_to_the_end(struct run *run)
{
        if (start_admin(run) < 0)
                abort(); /* no thread, no eventfd: nothing else would go either */
        warn_of_openness(run->config);
        warn_of_unused_pools(run->config);
        log_info("ready: %u workers, configuration %s", run->config->workers,
                 run->path ? run->path : "built in");
        plan_save(run);
        plan_telling(run);
        sd_tell_ready();
        serve(run);
        drain(run);
}

/* Reads the configuration: with the sockets of systemd in it, or else --listen. False after a
 * fault, which has been told. */
static bool configure(struct run *run, const char *listen)
{
        static const char *list[2];
        char *error = NULL;
        list[0] = listen;
        if (inherited_take(&run->inherited, &error) < 0) {
                log_error("%s", error);
                free(error);
                return false;
        }
        run->listen = run->inherited.count ? run->inherited.addresses : listen ? list : NULL;
        struct config_faults faults = {0};
        run->config = load(run, &faults);
        config_faults_done(&faults);
        return run->config != NULL;
}

int run_main(int argc, char **argv)
{
        static const struct option options[] = {
            {"config", required_argument, NULL, 'c'},
            {"listen", required_argument, NULL, 'l'},
            {"show-config", no_argument, NULL, 's'},
            {"help", no_argument, NULL, 'h'},
            {0},
        };
        struct run run = {.path = config_file_default(), .next_save = USEC_MAX};
        const char *listen = NULL;
        bool show = false;
        process_fill_standard_descriptors();
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
        for (int o; (o = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
                switch (o) {
                case 'c':
                        run.path = optarg;
                        break;
                case 'l':
                        listen = optarg;
                        break;
                case 's':
                        show = true;
                        break;
                case 'h':
                        return usage_print("run");
                default:
                        return usage_refuse("run");
                }
        }
        if (optind < argc)
                return usage_refuse("run");
        log_set_journal(sd_is_journal(STDERR_FILENO));
        int status = 1;
        if (!configure(&run, listen))
                goto out;
        if (show) {
                config_show(run.config, stdout);
                status = 0;
                goto out;
        }
        run.started = config_ref(run.config);
        log_set(run.config->log.level, run.config->log.format);
        process_raise_descriptor_limit();
        run.signals = block_signals();
        if (start(&run) == 0) {
                serve_to_the_end(&run);
                status = 0;
        }
        state_close(run.state);
        close(run.signals);
out:
        config_unref(run.started);
        config_unref(run.config);
        inherited_done(&run.inherited);
        return status;
}
