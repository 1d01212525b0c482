/* proxy/server.h - the proxy as a whole: workers, listeners and the governor, started and stopped
 * together. */
#ifndef WEIR_PROXY_SERVER_H
#define WEIR_PROXY_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/usec.h"
#include "config/config.h"
#include "core/answer_class.h"
#include "core/governor.h"
#include "proxy/listening.h"
#include "runtime/metrics.h"
#include "runtime/reports.h"
#include "runtime/state.h"

struct server;

struct server_counts {
        size_t clients;   /* connections open */
        size_t exchanges; /* requests not yet answered whole */
        size_t served;    /* exchanges ended since the start */
        /* since the start: */
        size_t answers[ANSWER_CLASSES]; /* of each class; none at all counts as failed */
        size_t by_address;              /* of those throttled: by the address that asked */
        size_t unreadable;              /* fields of answers that made no sense */
        struct governor_stats governor;
};

/*
 * Starts it on its own threads; signals are blocked in them. Takes its own reference to `config`.
 *
 * state   what was learned is restored from it, and saved at the end; borrowed, may be NULL
 * faults  gets at least one on failure
 *
 * Returns 0 or -errno.
 */
int server_start(struct config *config, struct state *state, struct server **ret,
                 struct config_faults *faults);

/* The same on sockets of others, where there are any: they take the place of config->listen. */
int server_start_on(const struct listening_socket *sockets, size_t socket_count,
                    struct config *config, struct state *state, struct server **ret,
                    struct config_faults *faults);

unsigned server_port(const struct server *s); /* of the first TCP listener */

/*
 * Requests that arrive from now on follow `config`; what has been learned stays.
 *
 * Returns 0, or -errno with faults as above where a file that it names cannot be used: the old one
 * stays in force then.
 */
int server_reload(struct server *s, struct config *config, struct config_faults *faults);

/* Have the loops of all workers turned since this was called last? */
bool server_beats(struct server *s);

/* Opens the access and series logs anew after rotation. */
void server_reopen_logs(struct server *s);

/* Saves what has been learned. By one thread at a time. */
void server_save(struct server *s);

/* No new connections; what waits is refused, what is under way ends. Returns at once. */
void server_drain(struct server *s);
int server_done_fd(const struct server *s); /* readable when a worker has ended */
bool server_drained(struct server *s);      /* have all workers ended? */

/* Drains for at most `grace`, drops the rest, joins the threads and frees it all.
 * ret_counts  what was left at the end; all gauges are zero unless something leaks; may be NULL */
void server_stop(struct server *s, usec_t grace, struct server_counts *ret_counts);

void server_count(struct server *s, struct server_counts *ret_counts);

/* What was counted since the start; until server_stop. */
const struct metrics *server_metrics(const struct server *s);

/* What the thread that started it may add to that. */
struct metrics_writer *server_metrics_writer(struct server *s);

/* For those who watch; the same. */
struct reports *server_reports(struct server *s);
struct gate *server_gate(struct server *s);

/* Calls `each` for every scope. By one thread at a time. */
void server_look(struct server *s, void (*each)(void *arg, const struct governor_change *view),
                 void *arg);

#endif
