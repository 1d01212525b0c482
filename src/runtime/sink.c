#include "runtime/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "runtime/line_out.h"
#include "runtime/log.h"

struct sink {
        int fd; /* stays the same number over a reopen, so that writers need no lock */
        char *path;
        atomic_size_t lost; /* lines since the last one that was taken */
};

static int open_path(const char *path)
{
        if (strcmp(path, "-") != 0)
                return line_out_open(path);
        int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        return fd < 0 ? -errno : fd;
}

int sink_open(const char *path, struct sink **ret)
{
        if (!*path) {
                *ret = NULL;
                return 0;
        }
        int fd = open_path(path);
        if (fd < 0)
                return fd;
        struct sink *s = xmalloc(sizeof *s);
        *s = (struct sink){.fd = fd, .path = xstrdup(path)};
        *ret = s;
        return 0;
}

void sink_close(struct sink *s)
{
        if (!s)
                return;
        close(s->fd);
        free(s->path);
        free(s);
}

int sink_reopen(struct sink *s)
{
        if (!s)
                return 0;
        int fd = open_path(s->path);
        if (fd < 0)
                return fd;
        int r = dup3(fd, s->fd, O_CLOEXEC) < 0 ? -errno : 0;
        close(fd);
        return r;
}

static const char *name_of(const struct sink *s)
{
        return strcmp(s->path, "-") == 0 ? "standard output" : s->path;
}

void sink_write(struct sink *s, json_t *record)
{
        /* As many digits as a double is certain to have: 0.1, not 0.10000000000000001. */
        char *line = s ? json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
        json_decref(record);
        if (!line)
                return;
        size_t n = strlen(line);
        line[n] = '\n'; /* in place of the NUL: the length is known */
        if (line_out(s->fd, line, n + 1)) {
                size_t lost = atomic_exchange(&s->lost, 0);
                if (lost)
                        log_warn("%s: %zu lines were lost; its reader was too slow", name_of(s),
                                 lost);
        } else if (atomic_fetch_add(&s->lost, 1) == 0) {
                log_warn("%s takes no more lines: they are lost until it does", name_of(s));
        }
        free(line);
}
