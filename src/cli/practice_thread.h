/* cli/practice_thread.h - an event loop on a thread of its own, ended from outside. */
#ifndef WEIR_CLI_PRACTICE_THREAD_H
#define WEIR_CLI_PRACTICE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/mailbox.h"

struct event_base;

/* Lives inside its owner, and stays where it is. */
struct practice_thread {
        struct event_base *base;
        struct mailbox stop;
        bool running;
        pthread_t thread;
};

/* Makes the loop; until practice_thread_start it belongs to the caller's thread. 0 or -errno; on
 * failure there is nothing to free. */
int practice_thread_init(struct practice_thread *t);

/* Runs the loop. From now on its events belong to that thread alone. 0 or -errno. */
int practice_thread_start(struct practice_thread *t);

/* Ends the loop and waits for it; the events belong to the caller again. Harmless when it does not
 * run. */
void practice_thread_stop(struct practice_thread *t);

/* Frees the loop of a thread that does not run; no event may be left in it. */
void practice_thread_done(struct practice_thread *t);

#endif
