/* runtime/sd.h - what systemd hands to weir and what weir tells it (sd_listen_fds(3),
 * sd_notify(3)); where systemd did not start this process, all of it comes to nothing. */
#ifndef WEIR_RUNTIME_SD_H
#define WEIR_RUNTIME_SD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/usec.h"

/* ---- sockets that it opened for us ---- */

struct sd_socket {
        int fd;     /* close-on-exec */
        char *name; /* FileDescriptorName= of its unit; without it the unit's name */
};

/*
 * Takes all of them over, once for the process and before it has other threads; a child would not
 * see them any more.
 *
 * ret_list   freed by sd_sockets_free, which leaves the descriptors open
 * ret_count  0: none were handed over
 *
 * Returns 0, or -errno where the environment makes no sense.
 */
int sd_sockets_take(struct sd_socket **ret_list, size_t *ret_count);
void sd_sockets_free(struct sd_socket *list, size_t count);

/* ---- what it is told; by the main thread ---- */

bool sd_listens(void);                /* is anything below of use? */
void sd_tell_ready(void);             /* the listeners are open, or the reload is over */
void sd_tell_reloading(void);         /* until sd_tell_ready */
void sd_tell_stopping(usec_t within); /* which then may take longer than TimeoutStopSec= */
void sd_tell_alive(void);             /* keeps the watchdog quiet for another interval */

/* One line for `systemctl status`; the same line again is not sent. */
void sd_tell_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How long the watchdog waits for sd_tell_alive before it ends this process; USEC_MAX: there is
 * none. */
usec_t sd_watchdog(void);

/* ---- journald ---- */

/* Is what is written to the descriptor read by journald? $JOURNAL_STREAM names the stream that
 * systemd connected to it; after a redirection it is another. See systemd.exec(5). */
bool sd_is_journal(int fd);

#endif
