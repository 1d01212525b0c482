#include "proxy/login_desk.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "runtime/clock.h"

#define MAX_SOURCES 10000
#define FREE_FAILURES 10
#define FAILURE_EVERY (6 * USEC_PER_SEC)

/* Passwords that wait to be checked. */
#define MAX_WAITING 1000
#define MAX_WAITING_EACH 64

struct window {
        struct list checked; /* guarded by the mutex */
        struct mailbox *mailbox;
};

struct login_desk {
        pthread_mutex_t mutex; /* guards all below but `windows[].mailbox` and `data` */
        pthread_cond_t changed;
        struct list waiting;
        size_t count;
        struct throttle *failures;
        bool running, ending;
        pthread_t thread;
        struct window *windows; /* one for each worker */
        unsigned window_count;
        struct crypt_data data; /* the thread's own */
};

void login_check_free(struct login_check *c)
{
        if (!c)
                return;
        users_unref(c->users);
        explicit_bzero(c->password, strlen(c->password));
        free(c->password);
        free(c);
}

struct login_desk *login_desk_new(unsigned workers)
{
        struct login_desk *d = xcalloc(1, sizeof *d);
        pthread_mutex_init(&d->mutex, NULL);
        pthread_cond_init(&d->changed, NULL);
        list_init(&d->waiting);
        d->failures = throttle_new(MAX_SOURCES, FREE_FAILURES, FAILURE_EVERY);
        d->windows = xcalloc(workers, sizeof *d->windows);
        d->window_count = workers;
        for (unsigned i = 0; i < workers; i++)
                list_init(&d->windows[i].checked);
        return d;
}

static void free_all(struct list *checks)
{
        list_foreach_safe (it, checks)
                login_check_free(LIST_ENTRY_OF(it, struct login_check, link));
}

static void end_thread(struct login_desk *d)
{
        pthread_mutex_lock(&d->mutex);
        d->ending = true;
        pthread_cond_signal(&d->changed);
        pthread_mutex_unlock(&d->mutex);
        pthread_join(d->thread, NULL);
}

void login_desk_free(struct login_desk *d)
{
        if (!d)
                return;
        if (d->running)
                end_thread(d);
        free_all(&d->waiting);
        for (unsigned i = 0; i < d->window_count; i++)
                free_all(&d->windows[i].checked);
        throttle_free(d->failures);
        pthread_cond_destroy(&d->changed);
        pthread_mutex_destroy(&d->mutex);
        free(d->windows);
        free(d);
}

void login_desk_attach(struct login_desk *d, unsigned worker, struct mailbox *mailbox)
{
        d->windows[worker].mailbox = mailbox;
}

/* ---- the thread ---- */

/* Called with the mutex held, as it returns. */
static void hand_back(struct login_desk *d, struct login_check *c)
{
        struct window *w = &d->windows[c->worker];
        if (!c->good)
                throttle_fail(d->failures, c->source, clock_now());
        list_append(&w->checked, &c->link);
        mailbox_ring(w->mailbox);
}

static void *run(void *arg)
{
        struct login_desk *d = arg;
        pthread_mutex_lock(&d->mutex);
        while (!d->ending) {
                if (list_empty(&d->waiting)) {
                        pthread_cond_wait(&d->changed, &d->mutex);
                        continue;
                }
                struct login_check *c = LIST_ENTRY_OF(d->waiting.next, struct login_check, link);
                list_remove(&c->link);
                d->count--;
                pthread_mutex_unlock(&d->mutex);
                c->good = users_check(c->users, c->user, c->password, &d->data);
                pthread_mutex_lock(&d->mutex);
                hand_back(d, c);
        }
        pthread_mutex_unlock(&d->mutex);
        return NULL;
}

/* Only those who ask for names need it. It inherits that signals are blocked. */
static void need_thread(struct login_desk *d)
{
        if (d->running)
                return;
        if (pthread_create(&d->thread, NULL, run, d) != 0)
                abort(); /* no thread, no room: nothing else would go either */
        pthread_setname_np(d->thread, "passwords");
        d->running = true;
}

/* ---- the workers' side ---- */

usec_t login_desk_wait(struct login_desk *d, const uint8_t source[THROTTLE_KEY_SIZE])
{
        pthread_mutex_lock(&d->mutex);
        usec_t wait = throttle_wait(d->failures, source, clock_now());
        pthread_mutex_unlock(&d->mutex);
        return wait;
}

static bool has_room(const struct login_desk *d, const struct login_check *c)
{
        size_t same = 0;
        if (d->count < MAX_WAITING_EACH)
                return true;
        list_foreach (it, &d->waiting)
                same += memcmp(LIST_ENTRY_OF(it, struct login_check, link)->source, c->source,
                               sizeof c->source) == 0;
        return d->count < MAX_WAITING && same < MAX_WAITING_EACH;
}

bool login_desk_ask(struct login_desk *d, struct login_check *c)
{
        pthread_mutex_lock(&d->mutex);
        bool room = has_room(d, c);
        if (room) {
                need_thread(d);
                list_append(&d->waiting, &c->link);
                d->count++;
                pthread_cond_signal(&d->changed);
        }
        pthread_mutex_unlock(&d->mutex);
        return room;
}

struct login_check *login_desk_next(struct login_desk *d, unsigned worker)
{
        struct login_check *c = NULL;
        struct list *checked = &d->windows[worker].checked;
        pthread_mutex_lock(&d->mutex);
        if (!list_empty(checked)) {
                c = LIST_ENTRY_OF(checked->next, struct login_check, link);
                list_remove(&c->link);
        }
        pthread_mutex_unlock(&d->mutex);
        return c;
}
