#include "runtime/mailbox.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
        (void)what;
        struct mailbox *m = arg;
        uint64_t count;
        ssize_t ignored = read((int)fd, &count, sizeof count);
        (void)ignored;
        m->on_ring(m->arg);
}

int mailbox_init(struct mailbox *m, struct event_base *base, void (*on_ring)(void *arg), void *arg)
{
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0)
                return -errno;
        *m = (struct mailbox){.fd = fd, .on_ring = on_ring, .arg = arg};
        m->event = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, m);
        if (!m->event || event_add(m->event, NULL) < 0)
                abort();
        return 0;
}

void mailbox_done(struct mailbox *m)
{
        if (!m->event)
                return;
        event_free(m->event);
        close(m->fd);
        *m = (struct mailbox){.fd = -1};
}

void mailbox_ring(struct mailbox *m)
{
        uint64_t one = 1;
        ssize_t ignored = write(m->fd, &one, sizeof one);
        (void)ignored; /* a full counter has been rung enough */
}
