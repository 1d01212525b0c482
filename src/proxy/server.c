#include "proxy/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "proxy/intercept_cert.h"
#include "proxy/intercept_tls.h"
#include "proxy/named_files.h"
#include "proxy/worker.h"
#include "runtime/clock.h"
#include "runtime/log.h"

/* Scopes that are remembered although nothing goes on in them. */
#define MAX_LANES 10000

struct server {
        struct worker_shared shared;
        struct sink *series;
        struct state *state;
        const char *state_dir; /* borrowed from it; NULL: there is none */
        struct worker *workers;
        unsigned worker_count, started, ended;
        struct listening *listening;
};

static int open_logs(struct server *s, const struct config *config, struct config_faults *faults)
{
        struct {
                const char *setting, *path;
                struct sink **sink;
        } logs[] = {{"log.access", config->log.access, &s->shared.access},
                    {"log.series", config->log.series, &s->series}};
        for (size_t i = 0; i < 2; i++) {
                int r = sink_open(logs[i].path, logs[i].sink);
                if (r < 0) {
                        named_files_unwritable(config, logs[i].setting, logs[i].path, r, faults);
                        return r;
                }
        }
        return 0;
}

/* For top -H, debuggers and the like: at most 15 characters. */
static void name_worker(const struct worker *w)
{
        char name[16];
        snprintf(name, sizeof name, "worker %u", w->index);
        pthread_setname_np(w->thread, name);
}

/* Once it is there it stays, whatever later configurations say. Takes `ca` over. */
static int set_up_tls(struct server *s, struct intercept_ca *ca, struct config_faults *faults)
{
        int r = intercept_tls_new(ca, &s->shared.tls);
        if (r < 0)
                config_faults_add(faults, 0, 0, NULL, "cannot set up TLS: OpenSSL says: %s",
                                  intercept_cert_error());
        return r;
}

/* What requests would fail for the lack of. The users are the caller's to unref, whatever else
 * fails; of a configuration that is not to be used nothing else stays. */
static int need_files(struct server *s, const struct config *config, struct users **ret_users,
                      struct config_faults *faults)
{
        struct intercept_ca *ca = NULL;
        int r = named_files_read(config, ret_users, faults);
        int failed = s->shared.tls ? 0 : named_files_ca(config, s->state_dir, &ca, faults);
        if (r == 0)
                r = failed;
        if (r == 0 && ca)
                return set_up_tls(s, ca, faults);
        intercept_ca_free(ca);
        return r;
}

static void tell_pools(const struct server *s, const struct config *config)
{
        const struct pool_policy **pools = xcalloc(config->pool_count + 1, sizeof *pools);
        for (size_t i = 0; i < config->pool_count; i++)
                pools[i] = &config->pools[i].policy;
        gate_pools(s->shared.gate, pools, config->pool_count);
        free(pools);
}

static int open_listeners(struct server *s, const struct listening_socket *sockets, size_t count,
                          const struct config *config, struct config_faults *faults)
{
        char *error = NULL;
        int r = count ? listening_share(s->listening, sockets, count, &error)
                      : listening_open(s->listening, config->listen, &error);
        if (r < 0)
                policy_fault(&config->defaults, "listen", error, faults);
        return r;
}

/* Signals belong to the thread that called server_start. */
static int start_workers(struct server *s, struct config *config, struct users *users,
                         struct config_faults *faults)
{
        sigset_t all, before;
        int r = 0;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        for (; s->started < s->worker_count && r == 0; s->started++) {
                const int *listeners;
                size_t count = listening_take(s->listening, s->started, &listeners);
                r = worker_start(&s->workers[s->started], s->started, &s->shared, config, users,
                                 listeners, count);
                if (r < 0) {
                        config_faults_add(faults, 0, 0, NULL, "cannot start a worker: %s",
                                          strerrordesc_np(-r));
                        break;
                }
                name_worker(&s->workers[s->started]);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

static void server_free(struct server *s)
{
        listening_free(s->listening);
        login_desk_free(s->shared.logins);
        intercept_tls_free(s->shared.tls);
        gate_free(s->shared.gate);
        sink_close(s->shared.access);
        sink_close(s->series);
        if (s->shared.done >= 0)
                close(s->shared.done);
        if (s->shared.taken >= 0)
                close(s->shared.taken);
        metrics_free(s->shared.metrics);
        reports_free(s->shared.reports);
        free(s->shared.via);
        free(s->workers);
        free(s);
}

static void on_libevent_log(int severity, const char *text)
{
        if (severity >= EVENT_LOG_WARN)
                log_warn("libevent: %s", text);
        else
                log_debug("libevent: %s", text);
}

int server_start(struct config *config, struct state *state, struct server **ret,
                 struct config_faults *faults)
{
        return server_start_on(NULL, 0, config, state, ret, faults);
}

int server_start_on(const struct listening_socket *sockets, size_t socket_count,
                    struct config *config, struct state *state, struct server **ret,
                    struct config_faults *faults)
{
        struct server *s = xcalloc(1, sizeof *s);
        struct prng prng;
        event_set_log_callback(on_libevent_log);
        prng_init(&prng, clock_real() ^ ((uint64_t)getpid() << 40));
        s->worker_count = config->workers;
        s->workers = xcalloc(s->worker_count, sizeof *s->workers);
        s->listening = listening_new(s->worker_count);
        s->shared.via = xasprintf("weir (%08x)", (unsigned)prng_next(&prng));
        s->shared.metrics = metrics_new(s->worker_count + 1);
        s->shared.reports = reports_new(s->worker_count);
        s->shared.logins = login_desk_new(s->worker_count);
        s->shared.done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        s->shared.taken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        s->state_dir = state_path(state);
        struct users *users = NULL;
        int r = need_files(s, config, &users, faults);
        if (r == 0)
                r = open_logs(s, config, faults);
        if (r == 0) {
                s->shared.gate = gate_new(s->worker_count, MAX_LANES, s->series);
                tell_pools(s, config);
                state_restore(state, s->shared.gate);
                r = open_listeners(s, sockets, socket_count, config, faults);
        }
        if (r == 0)
                r = start_workers(s, config, users, faults);
        users_unref(users);
        if (r < 0) {
                server_stop(s, 0, NULL);
                return r;
        }
        s->state = state;
        *ret = s;
        return 0;
}

unsigned server_port(const struct server *s)
{
        return listening_port(s->listening);
}

#define TAKEN_WITHIN USEC_PER_SEC

/* Until all workers have it, so that whoever is told of the reload finds it done; but not for long:
 * one that is stuck must not keep the others' owner. */
static void hand_out(struct server *s, struct config *config, struct users *users)
{
        usec_t deadline = usec_add(clock_now(), TAKEN_WITHIN);
        struct pollfd p = {.fd = s->shared.taken, .events = POLLIN};
        uint64_t n, taken = 0;
        ssize_t ignored = read(s->shared.taken, &n, sizeof n); /* late ones of before */
        (void)ignored;
        for (unsigned i = 0; i < s->started; i++)
                worker_reload(&s->workers[i], config, users);
        while (taken < s->started && clock_now() < deadline) {
                poll(&p, 1, (int)(usec_sub(deadline, clock_now()) / USEC_PER_MSEC) + 1);
                if (read(s->shared.taken, &n, sizeof n) == sizeof n)
                        taken += n;
        }
}

int server_reload(struct server *s, struct config *config, struct config_faults *faults)
{
        struct users *users = NULL;
        int r = need_files(s, config, &users, faults);
        if (r == 0) {
                tell_pools(s, config);
                hand_out(s, config, users);
        }
        users_unref(users);
        return r;
}

bool server_beats(struct server *s)
{
        bool all = true;
        for (unsigned i = 0; i < s->started; i++)
                all = worker_beats(&s->workers[i]) && all;
        return all;
}

void server_reopen_logs(struct server *s)
{
        int a = sink_reopen(s->shared.access), b = sink_reopen(s->series);
        if (a < 0 || b < 0)
                log_error("cannot reopen a log file: %s; the old one stays in use",
                          strerror(a < 0 ? -a : -b));
}

void server_save(struct server *s)
{
        state_save(s->state, s->shared.gate);
}

void server_drain(struct server *s)
{
        if (s->shared.gate)
                gate_close(s->shared.gate);
        for (unsigned i = 0; i < s->started; i++)
                worker_drain(&s->workers[i]);
}

int server_done_fd(const struct server *s)
{
        return s->shared.done;
}

bool server_drained(struct server *s)
{
        uint64_t n;
        if (read(s->shared.done, &n, sizeof n) == sizeof n)
                s->ended += (unsigned)n;
        return s->ended >= s->started;
}

void server_stop(struct server *s, usec_t grace, struct server_counts *ret_counts)
{
        usec_t deadline = usec_add(clock_now(), grace);
        server_drain(s);
        while (!server_drained(s)) {
                usec_t left = usec_sub(deadline, clock_now());
                if (left == 0)
                        break;
                struct pollfd p = {.fd = s->shared.done, .events = POLLIN};
                poll(&p, 1, (int)usec_min(left / USEC_PER_MSEC + 1, 1000));
        }
        for (unsigned i = 0; i < s->started; i++)
                worker_stop(&s->workers[i]);
        for (unsigned i = 0; i < s->started; i++)
                worker_join(&s->workers[i]);
        if (ret_counts)
                server_count(s, ret_counts);
        server_save(s);
        server_free(s);
}

void server_count(struct server *s, struct server_counts *ret)
{
        const struct metrics *m = s->shared.metrics;
        *ret = (struct server_counts){
            .clients = metrics_get(m, METRIC_CONNECTIONS, 0),
            .exchanges = metrics_get(m, METRIC_OPEN, 0),
            .served = metrics_total(m, METRIC_REQUESTS),
            .by_address = metrics_total(m, METRIC_BY_ADDRESS),
            .unreadable = metrics_total(m, METRIC_UNREADABLE),
        };
        for (size_t i = 0; i < ANSWER_CLASSES; i++)
                ret->answers[i] = metrics_get(m, METRIC_ANSWERS, i);
        gate_stats(s->shared.gate, &ret->governor);
}

const struct metrics *server_metrics(const struct server *s)
{
        return s->shared.metrics;
}

struct metrics_writer *server_metrics_writer(struct server *s)
{
        return metrics_writer(s->shared.metrics, s->worker_count);
}

struct reports *server_reports(struct server *s)
{
        return s->shared.reports;
}

struct gate *server_gate(struct server *s)
{
        return s->shared.gate;
}

void server_look(struct server *s, void (*each)(void *arg, const struct governor_change *view),
                 void *arg)
{
        gate_look(s->shared.gate, each, arg);
}
