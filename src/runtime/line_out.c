#include "runtime/line_out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

int line_out_open(const char *path)
{
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
        return fd < 0 ? -errno : fd;
}

int line_out_look(const char *path)
{
        struct stat st;
        if (stat(path, &st) == 0)
                return S_ISDIR(st.st_mode)                               ? -EISDIR
                       : faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 ? -errno
                                                                         : 0;
        if (errno != ENOENT)
                return -errno;
        const char *slash = strrchr(path, '/');
        char *dir =
            slash ? xspandup((struct span){path, (size_t)(slash - path) + 1}) : xstrdup(".");
        int r = faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
        free(dir);
        return r;
}

bool line_out(int fd, const char *line, size_t len)
{
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
                return false;
        return write(fd, line, len) == (ssize_t)len;
}
