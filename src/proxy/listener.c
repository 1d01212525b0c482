#include "proxy/listener.h"

#include <errno.h>
#include <event2/util.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

static int open_tcp(struct sockaddr *sa, socklen_t size)
{
        int one = 1;
        int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0 ||
            bind(fd, sa, size) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, sa, &size) < 0) {
                int r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

/* SO_REUSEPORT lets a second weir share the port silently; only a plain bind finds that out. */
static int check_free(const struct sockaddr *sa, socklen_t size)
{
        int one = 1, r = 0;
        int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, sa, size) < 0)
                r = -errno;
        close(fd);
        return r;
}

static int open_local(const char *path)
{
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        if (strlen(path) >= sizeof sa.sun_path)
                return -ENAMETOOLONG;
        strcpy(sa.sun_path, path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* A socket left behind by a killed process refuses connections; a living one does not. */
        if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0 && errno == ECONNREFUSED)
                unlink(path);
        close(fd);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0 || listen(fd, BACKLOG) < 0) {
                int r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

static unsigned describe(const struct sockaddr *sa, char text[static LISTENER_TEXT_SIZE])
{
        char host[INET6_ADDRSTRLEN] = "?";
        if (sa->sa_family == AF_INET6) {
                const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
                evutil_inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
                snprintf(text, LISTENER_TEXT_SIZE, "[%s]:%u", host, ntohs(in6->sin6_port));
                return ntohs(in6->sin6_port);
        }
        const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
        evutil_inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(text, LISTENER_TEXT_SIZE, "%s:%u", host, ntohs(in->sin_port));
        return ntohs(in->sin_port);
}

int listener_open(const char *address, size_t count, int *ret_fds,
                  char ret_text[static LISTENER_TEXT_SIZE], unsigned *ret_port)
{
        struct sockaddr_storage ss;
        int size = sizeof ss, r = 0;
        bool local = strncmp(address, "unix:", 5) == 0;
        size_t opened = 0;
        if (!local) {
                if (evutil_parse_sockaddr_port(address, (struct sockaddr *)&ss, &size) < 0)
                        return -EINVAL;
                r = check_free((struct sockaddr *)&ss, (socklen_t)size);
                if (r < 0)
                        return r;
        }
        for (; opened < count; opened++) {
                int fd;
                if (!local)
                        fd = open_tcp((struct sockaddr *)&ss, (socklen_t)size);
                else if (opened == 0)
                        fd = open_local(address + 5);
                else
                        fd = fcntl(ret_fds[0], F_DUPFD_CLOEXEC, 3);
                if (fd < 0) {
                        r = local && opened ? -errno : fd;
                        goto fail;
                }
                ret_fds[opened] = fd;
        }
        if (local)
                snprintf(ret_text, LISTENER_TEXT_SIZE, "%s", address);
        *ret_port = local ? 0 : describe((struct sockaddr *)&ss, ret_text);
        return 0;
fail:
        while (opened > 0)
                close(ret_fds[--opened]);
        return r;
}
