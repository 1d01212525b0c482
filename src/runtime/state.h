/* runtime/state.h - the directory in which weir remembers what it has learned, over restarts. */
#ifndef WEIR_RUNTIME_STATE_H
#define WEIR_RUNTIME_STATE_H

#include "base/usec.h"
#include "runtime/gate.h"

/* The file of what was learned, in the directory. */
#define STATE_LEARNED "learned.json"

struct state;

/*
 * Where it is: `dir` as configured, or for "" the service's ($STATE_DIRECTORY) or the user's
 * ($XDG_STATE_HOME/weir, ~/.local/state/weir). The caller frees it; NULL where there is none. Need
 * not be there.
 */
char *state_find(const char *dir);

/*
 * Opens the directory, made with mode 0700 where it is missing.
 *
 * dir        as for state_find
 * ret        the directory; NULL, after a warning, where such a default cannot be used: nothing is
 *            remembered then, and all functions below do nothing for NULL
 * ret_error  one plain line on failure, freed by the caller
 *
 * Returns 0, or -errno where a configured directory cannot be used.
 */
int state_open(const char *dir, struct state **ret, char **ret_error);
void state_close(struct state *s);

/* What would come of that, for who opens none: nothing is made. *ret_path is that of the directory,
 * freed by the caller, or NULL as above. */
int state_look(const char *dir, char **ret_path, char **ret_error);

/* Of the directory that was opened, borrowed; NULL for NULL. */
const char *state_path(const struct state *s);

/* Hands to the gate what was saved. Before the workers run. A damaged file, or one of a later
 * version, is renamed and warned of. */
void state_restore(struct state *s, struct gate *g);

/*
 * Writes what was learned where something was since the last time: to a new file that takes the
 * place of the old one once it is on the disk. Where another process has saved meanwhile, each
 * scope is taken from the one that used it last. A failure is warned of once, until it works again.
 * By one thread at a time; the gate is not held for long.
 */
void state_save(struct state *s, struct gate *g);

#endif
