#include "cli/practice_thread.h"

#include <errno.h>

#include <event2/event.h>

static void on_stop(void *arg)
{
        struct practice_thread *t = arg;
        event_base_loopbreak(t->base);
}

static void *run(void *arg)
{
        struct practice_thread *t = arg;
        event_base_dispatch(t->base);
        return NULL;
}

int practice_thread_init(struct practice_thread *t)
{
        *t = (struct practice_thread){.base = event_base_new()};
        if (!t->base)
                return -ENOMEM;
        int r = mailbox_init(&t->stop, t->base, on_stop, t);
        if (r < 0)
                event_base_free(t->base);
        return r;
}

int practice_thread_start(struct practice_thread *t)
{
        int r = pthread_create(&t->thread, NULL, run, t);
        t->running = r == 0;
        return -r;
}

void practice_thread_stop(struct practice_thread *t)
{
        if (!t->running)
                return;
        mailbox_ring(&t->stop);
        pthread_join(t->thread, NULL);
        t->running = false;
}

void practice_thread_done(struct practice_thread *t)
{
        mailbox_done(&t->stop);
        event_base_free(t->base);
}
