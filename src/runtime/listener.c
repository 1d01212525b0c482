#include "runtime/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/xalloc.h"

#define BACKLOG 4096

/* "host:port" or "[host]:port" with a numeric host; port 0 is any free one. */
static int parse_tcp(const char *address, struct sockaddr_storage *ret, socklen_t *ret_size)
{
        const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                       .ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL;
        char host[INET6_ADDRSTRLEN + 2];
        const char *colon = strrchr(address, ':');
        size_t n = colon ? (size_t)(colon - address) : 0;
        if (n == 0 || n >= sizeof host)
                return -EINVAL;
        bool bracketed = address[0] == '[' && address[n - 1] == ']';
        snprintf(host, sizeof host, "%.*s", (int)(bracketed ? n - 2 : n), address + bracketed);
        if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
                return -EINVAL;
        memcpy(ret, found->ai_addr, found->ai_addrlen);
        *ret_size = found->ai_addrlen;
        freeaddrinfo(found);
        return 0;
}

static int open_tcp(struct sockaddr *sa, socklen_t size)
{
        int one = 1;
        int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0 ||
            bind(fd, sa, size) < 0 || getsockname(fd, sa, &size) < 0) {
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

/* A socket left behind by a killed process refuses connections; a living one does not, and what is
 * no socket is somebody's file. */
static void remove_left_behind(const struct sockaddr_un *sa)
{
        struct stat st;
        if (lstat(sa->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
                return;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return;
        if (connect(fd, (const struct sockaddr *)sa, sizeof *sa) < 0 && errno == ECONNREFUSED)
                unlink(sa->sun_path);
        close(fd);
}

static int open_local(const char *path)
{
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        if (strlen(path) >= sizeof sa.sun_path)
                return -ENAMETOOLONG;
        strcpy(sa.sun_path, path);
        remove_left_behind(&sa);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0) {
                int r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

/* `size` of a local address tells how long its path is; one without a name has none. */
static void describe_local(const struct sockaddr_un *un, socklen_t size,
                           char text[static LISTENER_TEXT_SIZE])
{
        size_t before = offsetof(struct sockaddr_un, sun_path);
        int n = size > before ? (int)(size - before) : 0;
        bool abstract = n > 0 && un->sun_path[0] == '\0';
        snprintf(text, LISTENER_TEXT_SIZE, "unix:%s%.*s", abstract || n == 0 ? "@" : "",
                 abstract ? n - 1 : n, un->sun_path + abstract);
}

/* Returns the port, 0 for a local address. */
static unsigned describe(const struct sockaddr_storage *ss, socklen_t size,
                         char text[static LISTENER_TEXT_SIZE])
{
        char host[INET6_ADDRSTRLEN] = "?";
        if (ss->ss_family == AF_UNIX) {
                describe_local((const struct sockaddr_un *)ss, size, text);
                return 0;
        }
        if (ss->ss_family == AF_INET6) {
                const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
                inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
                snprintf(text, LISTENER_TEXT_SIZE, "[%s]:%u", host, ntohs(in6->sin6_port));
                return ntohs(in6->sin6_port);
        }
        const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(text, LISTENER_TEXT_SIZE, "%s:%u", host, ntohs(in->sin_port));
        return ntohs(in->sin_port);
}

int listener_adopt(int fd, char ret_text[static LISTENER_TEXT_SIZE], unsigned *ret_port)
{
        struct sockaddr_storage ss = {0};
        int type = 0, listening = 0;
        socklen_t size = sizeof type;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
                return -errno;
        size = sizeof listening;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0)
                return -errno;
        size = sizeof ss;
        if (getsockname(fd, (struct sockaddr *)&ss, &size) < 0)
                return -errno;
        bool known = ss.ss_family == AF_INET || ss.ss_family == AF_INET6 || ss.ss_family == AF_UNIX;
        if (type != SOCK_STREAM || !listening || !known)
                return -EPROTOTYPE;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return -errno;
        *ret_port = describe(&ss, size, ret_text);
        return 0;
}

int listener_listen(int fd)
{
        return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

int listener_bind(const char *address, size_t count, int *ret_fds,
                  char ret_text[static LISTENER_TEXT_SIZE], unsigned *ret_port)
{
        struct sockaddr_storage ss;
        socklen_t size = sizeof ss;
        int r = 0;
        bool local = strncmp(address, "unix:", 5) == 0;
        size_t opened = 0;
        if (!local) {
                r = parse_tcp(address, &ss, &size);
                if (r == 0)
                        r = check_free((struct sockaddr *)&ss, size);
                if (r < 0)
                        return r;
        }
        for (; opened < count; opened++) {
                int fd;
                if (!local)
                        fd = open_tcp((struct sockaddr *)&ss, size);
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
        *ret_port = local ? 0 : describe(&ss, size, ret_text);
        return 0;
fail:
        while (opened > 0)
                close(ret_fds[--opened]);
        return r;
}

/* "" where there is none; some end with where to do something about it. */
static const char *advice(int r, bool local, bool *ret_where)
{
        *ret_where = r == -EADDRINUSE || r == -EADDRNOTAVAIL;
        switch (-r) {
        case EADDRINUSE:
                return local ? "; another process listens there, or a file is in the place: "
                               "choose another path with "
                             : "; choose another with ";
        case EADDRNOTAVAIL:
                return "; this machine has no such address: see ";
        case EACCES:
                return local ? "; see to the permissions of its directory"
                             : "; ports below 1024 take CAP_NET_BIND_SERVICE or a socket unit";
        case ENOENT:
        case ENOTDIR:
                return "; make its directory first";
        default:
                return "";
        }
}

char *listener_fault(int r, const char *address, const char *setting)
{
        bool where;
        const char *text = advice(r, strncmp(address, "unix:", 5) == 0, &where);
        return xasprintf("cannot listen on %s: %s%s%s", address, strerrordesc_np(-r), text,
                         where ? setting : "");
}

void listener_local_note(const char *address, struct listener_local *ret)
{
        struct stat st;
        *ret = (struct listener_local){.path = NULL};
        if (strncmp(address, "unix:", 5) == 0 && lstat(address + 5, &st) == 0)
                *ret = (struct listener_local){xstrdup(address + 5), st.st_dev, st.st_ino};
}

void listener_local_remove(struct listener_local *l)
{
        struct stat st;
        if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->device && st.st_ino == l->inode)
                unlink(l->path);
        free(l->path);
        l->path = NULL;
}
