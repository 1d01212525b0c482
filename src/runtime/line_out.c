#include "runtime/line_out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

int line_out_open(const char *path)
{
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
        return fd < 0 ? -errno : fd;
}

bool line_out(int fd, const char *line, size_t len)
{
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
                return false;
        return write(fd, line, len) == (ssize_t)len;
}
