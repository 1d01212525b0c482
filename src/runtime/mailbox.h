/* runtime/mailbox.h - the bell of one worker's event loop, which any thread may ring. */
#ifndef WEIR_RUNTIME_MAILBOX_H
#define WEIR_RUNTIME_MAILBOX_H

#include <event2/event.h>

struct mailbox {
        int fd; /* an eventfd */
        struct event *event;
        void (*on_ring)(void *arg);
        void *arg;
};

/* on_ring is called in the loop of `base`, once for any number of rings. 0 or -errno. */
int mailbox_init(struct mailbox *m, struct event_base *base, void (*on_ring)(void *arg), void *arg);
void mailbox_done(struct mailbox *m);
void mailbox_ring(struct mailbox *m);

#endif
