/* cli/exec_child.h - the command that `weir exec` runs: started, given its signals, waited for. */
#ifndef WEIR_CLI_EXEC_CHILD_H
#define WEIR_CLI_EXEC_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/usec.h"

struct exec_child {
        pid_t pid;
        bool own_group; /* it has a process group of its own: no terminal's signal reaches it there
                         */
        bool job;       /* there is a terminal: who stops it wants weir to stop as well */
        int signals;    /* a descriptor */
        sigset_t original;
        bool default_pipe; /* SIGPIPE was not ignored */
        int *inherited;    /* descriptors that it shall have besides the standard ones */
        size_t inherited_count;
};

/* Notes what the command shall find as weir found it: open descriptors and the treatment of
 * signals. From now on signals wait for exec_child_wait. Before anything is opened, and before
 * there are other threads. 0 or -errno. */
int exec_child_prepare(struct exec_child *c);

/*
 * Starts it, looked for in PATH. It gets the descriptors that were open at exec_child_prepare, and
 * none that was opened since; the signals' treatment of then; and, unless weir is what the terminal
 * runs in the foreground, a process group of its own, so that a signal for weir's group reaches it
 * once.
 *
 * envp  its whole environment
 *
 * Returns 0 or -errno: -ENOENT: there is no such command; -EACCES and others: it cannot be
 * executed.
 */
int exec_child_start(struct exec_child *c, char *const argv[], char *const envp[]);

/*
 * Waits for its end, passing on to it the signals that weir gets: all that ask a process to end,
 * stop, go on or read its settings anew. Those that a terminal sends to both are not doubled.
 *
 * every    0, or how often `on_time` is called while it waits
 *
 * Returns its exit status, or 128 and the number of the signal that ended it.
 */
int exec_child_wait(struct exec_child *c, usec_t every, void (*on_time)(void *arg), void *arg);

void exec_child_done(struct exec_child *c);

#endif
