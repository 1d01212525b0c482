/* runtime/acceptor.h - the listeners of one event loop, put aside while nothing can be accepted. */
#ifndef WEIR_RUNTIME_ACCEPTOR_H
#define WEIR_RUNTIME_ACCEPTOR_H

#include <event2/event.h>
#include <event2/listener.h>
#include <stddef.h>

/*
 * Where accepting fails, most likely because no descriptors are left, a listener stays readable: it
 * would be asked again and again. So it is put aside for a tenth of a second, and what is under way
 * goes on. That is logged, once a minute for the whole process.
 */
struct acceptor {
        struct event *again;
        struct evconnlistener **listeners; /* borrowed */
        size_t count;
};

void acceptor_init(struct acceptor *a, struct event_base *base);
void acceptor_done(struct acceptor *a);

void acceptor_add(struct acceptor *a, struct evconnlistener *listener);

/* All of them are about to be closed. */
void acceptor_forget(struct acceptor *a);

/* Called first by the thread that runs the loop. */
void acceptor_enter(struct acceptor *a);

#endif
