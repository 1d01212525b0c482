/* cli/practice_signals.h - waits in the main thread for the end of the time or for the user's. */
#ifndef WEIR_CLI_PRACTICE_SIGNALS_H
#define WEIR_CLI_PRACTICE_SIGNALS_H

#include <stdbool.h>

#include "base/usec.h"

/* Keeps SIGINT, SIGTERM and SIGHUP for practice_signals_wait, in this thread and those that it
 * starts from now on, and ignores SIGPIPE. */
void practice_signals_block(void);

/* Waits until `until` (monotonic; USEC_MAX: without end). True: one of the signals came first. */
bool practice_signals_wait(usec_t until);

#endif
