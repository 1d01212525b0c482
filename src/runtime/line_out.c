#include "runtime/line_out.h"

#include <poll.h>
#include <unistd.h>

bool line_out(int fd, const char *line, size_t len)
{
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
                return false;
        return write(fd, line, len) == (ssize_t)len;
}
