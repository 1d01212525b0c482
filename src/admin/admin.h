/* admin/admin.h - the admin listener: metrics and a JSON API, on a thread of its own. */
#ifndef WEIR_ADMIN_ADMIN_H
#define WEIR_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "runtime/gate.h"
#include "runtime/metrics.h"
#include "runtime/reports.h"

struct admin;

/* What it tells of; all of it outlives it. */
struct admin_sources {
        struct gate *gate;
        const struct metrics *metrics;
        struct reports *reports;
};

/*
 * Opens the socket of admin.listen, to which nobody can connect as yet.
 *
 * given      one that takes the place of admin.listen, as listener_adopt wants it: its own from now
 *            on; -1: none
 * ret        NULL where that is ""; all functions below do nothing for NULL
 * ret_error  one plain line on failure, freed by the caller
 *
 * Returns 0 or -errno.
 */
int admin_open(struct config *config, int given, struct admin **ret, char **ret_error);

/* Lets clients connect; they are served once the thread runs. 0, or -errno with *ret_error. */
int admin_listen(struct admin *a, char **ret_error);

/* Starts the thread; signals are blocked in it. 0 or -errno. */
int admin_start(struct admin *a, const struct admin_sources *sources);

void admin_reload(struct admin *a, struct config *config); /* takes a reference of its own */

/* From now on /readyz says no, and nothing is reloaded. */
void admin_drain(struct admin *a);

/* Ends the thread, closes the socket and frees it all. Also one that was never started. */
void admin_stop(struct admin *a);

/* ---- a reload that somebody asks for; done by the thread that owns the configuration ---- */

/* Readable when there is one; -1: never. */
int admin_reload_fd(const struct admin *a);

/* Its number, for the answer; 0: there is none after all. */
uint64_t admin_reload_wanted(struct admin *a);

/* What came of it. */
struct admin_reloaded {
        const char *path;                   /* of the file; NULL: the built-in defaults */
        const struct config_faults *faults; /* NULL: it is in force */
        const char *const *restart; /* keys that take effect with the next start; NULL-terminated */
};
void admin_reload_done(struct admin *a, uint64_t number, const struct admin_reloaded *what);

#endif
