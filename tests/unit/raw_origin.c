#include "tests/unit/raw_origin.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 5000

static void fail(const char *what)
{
        perror(what);
        abort();
}

static bool wait_for(int fd, short events, int ms)
{
        struct pollfd p = {.fd = fd, .events = events};

        return poll(&p, 1, ms) > 0;
}

static int do_accept(struct raw_origin *o)
{
        if (!wait_for(o->listener, POLLIN, PATIENCE_MS) || o->connections == RAW_MAX_CONNECTIONS)
                return -1;
        int fd = accept(o->listener, NULL, NULL);
        if (fd >= 0)
                o->fds[o->connections++] = fd;
        return fd;
}

static size_t read_some(struct raw_origin *o, int fd, size_t most)
{
        size_t room = sizeof o->log - 1 - o->log_len;

        if (!wait_for(fd, POLLIN, PATIENCE_MS))
                return 0;
        ssize_t n = recv(fd, o->log + o->log_len, most < room ? most : room, 0);
        if (n <= 0)
                return 0;
        o->log_len += (size_t)n;
        o->log[o->log_len] = '\0';
        return (size_t)n;
}

/* The head byte by byte, so that nothing of what follows is taken. */
static void do_read(struct raw_origin *o, int fd, bool body)
{
        size_t start = o->log_len;

        while (o->log_len < start + 4 || memcmp(o->log + o->log_len - 4, "\r\n\r\n", 4) != 0)
                if (!read_some(o, fd, 1))
                        return;
        const char *length = strcasestr(o->log + start, "\r\ncontent-length:");
        size_t left = body && length ? strtoul(length + 17, NULL, 10) : 0;
        for (size_t n; left > 0; left -= n)
                if (!(n = read_some(o, fd, left)))
                        return;
        o->reads++;
}

static void do_take(struct raw_origin *o, int fd, size_t left)
{
        for (size_t n; left > 0; left -= n)
                if (!(n = read_some(o, fd, left)))
                        return;
}

static void do_send(int fd, const char *text, size_t n_bytes)
{
        size_t left = n_bytes ? n_bytes : strlen(text);

        while (left > 0 && wait_for(fd, POLLOUT, PATIENCE_MS)) {
                ssize_t n = send(fd, text, left, MSG_NOSIGNAL);
                if (n < 0)
                        return;
                text += n;
                left -= (size_t)n;
        }
}

static void do_flood(struct raw_origin *o, int fd, size_t left)
{
        static const char block[16384];

        while (left > 0) {
                if (!wait_for(fd, POLLOUT, 100)) {
                        o->stalled = true;
                        if (!wait_for(fd, POLLOUT, PATIENCE_MS))
                                return;
                }
                ssize_t n = send(fd, block, left < sizeof block ? left : sizeof block,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0)
                        return;
                o->flooded += (size_t)n;
                left -= (size_t)n;
        }
}

static bool do_await_close(int fd)
{
        char buf[4096];

        while (wait_for(fd, POLLIN, PATIENCE_MS))
                if (recv(fd, buf, sizeof buf, 0) <= 0)
                        return true;
        return false;
}

static void do_reset(int fd)
{
        struct linger now = {.l_onoff = 1, .l_linger = 0};

        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        /* The number stays taken until the end, so that no other thread gets it. */
        int null = socket(AF_UNIX, SOCK_STREAM, 0);
        dup2(null, fd);
        close(null);
}

static void do_hold(struct raw_origin *o)
{
        for (int i = 0; i < PATIENCE_MS && !o->released; i++)
                poll(NULL, 0, 1);
        o->released = false;
}

static void *run(void *arg)
{
        struct raw_origin *o = arg;
        int fd = -1;

        for (size_t i = 0; i < o->count; i++) {
                const struct raw_step *s = &o->steps[i];
                o->step = i;
                switch (s->what) {
                case RAW_ACCEPT:
                        fd = do_accept(o);
                        break;
                case RAW_READ:
                case RAW_READ_HEAD:
                        do_read(o, fd, s->what == RAW_READ);
                        break;
                case RAW_TAKE:
                        do_take(o, fd, s->n);
                        break;
                case RAW_SEND:
                        do_send(fd, s->text, s->n);
                        break;
                case RAW_FLOOD:
                        do_flood(o, fd, s->n);
                        break;
                case RAW_CLOSE:
                        shutdown(fd, SHUT_WR);
                        break;
                case RAW_RESET:
                        do_reset(fd);
                        break;
                case RAW_AWAIT_CLOSE:
                        o->closed_by_peer = do_await_close(fd);
                        break;
                case RAW_HOLD:
                        do_hold(o);
                        break;
                }
        }
        return NULL;
}

void raw_origin_start(struct raw_origin *o, const struct raw_step *steps, size_t count)
{
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof sa;

        memset(o, 0, sizeof *o);
        o->steps = steps;
        o->count = count;
        o->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (o->listener < 0 || bind(o->listener, (struct sockaddr *)&sa, sizeof sa) < 0 ||
            listen(o->listener, 64) < 0 ||
            getsockname(o->listener, (struct sockaddr *)&sa, &len) < 0)
                fail("listen");
        o->port = ntohs(sa.sin_port);
        if (pthread_create(&o->thread, NULL, run, o) != 0)
                fail("pthread_create");
}

void raw_origin_release(struct raw_origin *o)
{
        o->released = true;
}

const char *raw_origin_stop(struct raw_origin *o)
{
        pthread_join(o->thread, NULL);
        for (unsigned i = 0; i < o->connections; i++)
                close(o->fds[i]);
        for (int fd; wait_for(o->listener, POLLIN, 0); o->pending++) {
                char buf[4096];
                fd = accept(o->listener, NULL, NULL);
                for (ssize_t n; (n = recv(fd, buf, sizeof buf, MSG_DONTWAIT)) > 0;)
                        o->pending_bytes += (size_t)n;
                close(fd);
        }
        close(o->listener);
        return o->log;
}
