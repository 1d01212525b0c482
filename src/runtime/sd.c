#include "runtime/sd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "base/xalloc.h"
#include "runtime/clock.h"

/* NOLINTBEGIN(concurrency-mt-unsafe): the environment changes only in sd_sockets_take, before there
 * are other threads */

int sd_sockets_take(struct sd_socket **ret_list, size_t *ret_count)
{
        char **names = NULL;
        int n = sd_listen_fds_with_names(1, &names);
        if (n < 0)
                return n;
        struct sd_socket *list = xcalloc((size_t)n + 1, sizeof *list);
        for (int i = 0; i < n; i++)
                list[i] = (struct sd_socket){SD_LISTEN_FDS_START + i, names[i]};
        free(names);
        *ret_list = list;
        *ret_count = (size_t)n;
        return 0;
}

void sd_sockets_free(struct sd_socket *list, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(list[i].name);
        free(list);
}

bool sd_listens(void)
{
        return getenv("NOTIFY_SOCKET") != NULL;
}

/* Where it fails nothing can be done about it: what matters will be missed by systemd itself. */
static void tell(const char *what)
{
        sd_notify(0, what);
}

void sd_tell_ready(void)
{
        tell("READY=1");
}

void sd_tell_reloading(void)
{
        char *text = xasprintf("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now());
        tell(text);
        free(text);
}

void sd_tell_stopping(usec_t within)
{
        char *text = xasprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64, within);
        tell(text);
        free(text);
}

void sd_tell_alive(void)
{
        if (sd_watchdog() != USEC_MAX)
                tell("WATCHDOG=1");
}

void sd_tell_status(const char *format, ...)
{
        static char *last;
        va_list ap;
        if (!sd_listens())
                return;
        va_start(ap, format);
        char *said = xvasprintf(format, ap);
        va_end(ap);
        char *text = xasprintf("STATUS=%s", said);
        free(said);
        if (!last || strcmp(last, text) != 0)
                tell(text);
        free(last);
        last = text;
}

usec_t sd_watchdog(void)
{
        uint64_t interval;
        return sd_watchdog_enabled(0, &interval) > 0 ? interval : USEC_MAX;
}

bool sd_is_journal(int fd)
{
        const char *named = getenv("JOURNAL_STREAM");
        struct stat st;
        if (!named || fstat(fd, &st) < 0)
                return false;
        char *ours = xasprintf("%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
        bool same = strcmp(named, ours) == 0;
        free(ours);
        return same;
}

/* NOLINTEND(concurrency-mt-unsafe) */
