#include "runtime/acceptor.h"

#include <event2/util.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#define TELL_EVERY (60 * USEC_PER_SEC)
static const struct timeval pause = {0, 100000};

/* libevent says that accepting failed, but not to whom. */
static _Thread_local struct acceptor *here;

static void tell(int error)
{
        static _Atomic usec_t last; /* 0: never */
        usec_t now = clock_now(), before = atomic_load(&last);
        if (before && now - before < TELL_EVERY)
                return;
        if (atomic_compare_exchange_strong(&last, &before, now))
                log_error("cannot accept connections: %s; those that are open go on. Is "
                          "LimitNOFILE (ulimit -n) too low for clients.max_connections?",
                          evutil_socket_error_to_string(error));
}

static void on_error(struct evconnlistener *listener, void *arg)
{
        (void)arg;
        int error = EVUTIL_SOCKET_ERROR();
        tell(error);
        evconnlistener_disable(listener);
        event_add(here->again, &pause);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        struct acceptor *a = arg;
        for (size_t i = 0; i < a->count; i++)
                evconnlistener_enable(a->listeners[i]);
}

void acceptor_init(struct acceptor *a, struct event_base *base)
{
        *a = (struct acceptor){.again = evtimer_new(base, on_again, a)};
        if (!a->again)
                abort(); /* out of memory */
}

void acceptor_done(struct acceptor *a)
{
        event_free(a->again);
        free(a->listeners);
}

void acceptor_add(struct acceptor *a, struct evconnlistener *listener)
{
        a->listeners = xrealloc(a->listeners, (a->count + 1) * sizeof *a->listeners);
        a->listeners[a->count++] = listener;
        evconnlistener_set_error_cb(listener, on_error);
}

void acceptor_forget(struct acceptor *a)
{
        a->count = 0;
        event_del(a->again);
}

void acceptor_enter(struct acceptor *a)
{
        here = a;
}
