#include "runtime/gate.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "runtime/clock.h"

/* One worker's end of the gate: decided tickets lie here until their worker comes for them. */
struct post {
        struct list ready; /* guarded by the mutex */
        struct mailbox *mailbox;
};

struct gate {
        pthread_mutex_t mutex; /* guards all below but `timer`, `series` and `posts[].mailbox` */
        struct governor *governor;
        struct post *posts;
        unsigned post_count;
        int timer;
        usec_t armed; /* when the timer fires; USEC_MAX: it does not */
        struct sink *series;
        json_t *changes; /* records made under the mutex, written after it */
};

/* Lanes, endpoints or sessions looked at under one hold of the mutex: some 10 us. */
#define PORTION 32

/* What was copied under the mutex, to be told after it. */
struct copies {
        void *list;
        size_t count, room;
};

/* Room for one more of that size, zeroed. */
static void *copies_add(struct copies *c, size_t size)
{
        if (c->count == c->room) {
                c->room = c->room ? 2 * c->room : PORTION;
                c->list = xrealloc(c->list, c->room * size);
        }
        return memset((char *)c->list + size * c->count++, 0, size);
}

/* Nobody reads further than to the sixth digit behind the point. */
static double micros(double value)
{
        return round(value * 1e6) / 1e6;
}

static void on_change(void *arg, const struct governor_change *c)
{
        struct gate *g = arg;
        usec_t real = clock_real();
        char time[CLOCK_TEXT_SIZE], until[CLOCK_TEXT_SIZE];
        bool closed = c->view.closed_until > c->now;
        if (closed)
                clock_text(usec_add(real, c->view.closed_until - c->now), until);
        json_t *record = json_pack(
            "{s:s, s:s, s:s, s:f, s:f, s:i, s:I, s:s?}", "time", clock_text(real, time), "scope",
            c->key, "event", limiter_event_name(c->event), "rate", micros(c->view.rate),
            "concurrency", micros(c->view.concurrency), "in_flight", (int)c->view.in_flight,
            "queued", (json_int_t)c->queued, "closed_until", closed ? until : NULL);
        json_array_append_new(g->changes, record);
}

struct gate *gate_new(unsigned workers, size_t max_lanes, struct sink *series)
{
        struct gate *g = xcalloc(1, sizeof *g);
        struct governor_config config = {.max_lanes = max_lanes};
        if (getrandom(&config.seed, sizeof config.seed, 0) < 0)
                config.seed = clock_real();
        if (series) {
                config.on_change = on_change;
                config.arg = g;
                g->changes = json_array();
        }
        pthread_mutex_init(&g->mutex, NULL);
        g->governor = governor_new(&config);
        g->posts = xcalloc(workers, sizeof *g->posts);
        g->post_count = workers;
        for (unsigned i = 0; i < workers; i++)
                list_init(&g->posts[i].ready);
        g->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (g->timer < 0)
                abort();
        g->armed = USEC_MAX;
        g->series = series;
        return g;
}

void gate_free(struct gate *g)
{
        if (!g)
                return;
        governor_free(g->governor);
        close(g->timer);
        json_decref(g->changes);
        free(g->posts);
        pthread_mutex_destroy(&g->mutex);
        free(g);
}

void gate_attach(struct gate *g, unsigned worker, struct mailbox *mailbox)
{
        g->posts[worker].mailbox = mailbox;
}

int gate_timer(const struct gate *g)
{
        return g->timer;
}

/* A timer that fires too early costs one look; so it is only ever moved forward. */
static void arm(struct gate *g)
{
        usec_t next = governor_next_wake(g->governor);
        if (next >= g->armed)
                return;
        g->armed = next;
        struct itimerspec at = {
            .it_value = {(time_t)(next / USEC_PER_SEC), (long)(next % USEC_PER_SEC) * 1000}};
        if (next == 0)
                at.it_value.tv_nsec = 1; /* zero would disarm it */
        timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Hands decided tickets to their workers' posts, and rings those that were empty. */
static void deliver(struct gate *g, usec_t now)
{
        struct list ready;
        list_init(&ready);
        governor_take(g->governor, now, &ready);
        list_foreach_safe (it, &ready) {
                struct ticket *t = LIST_ENTRY_OF(it, struct ticket, link);
                struct post *post = &g->posts[t->worker];
                bool first = list_empty(&post->ready);
                list_remove(it);
                list_append(&post->ready, it);
                if (first)
                        mailbox_ring(post->mailbox);
        }
        arm(g);
}

static usec_t enter(struct gate *g)
{
        pthread_mutex_lock(&g->mutex);
        return clock_now();
}

/* Ends an operation. Series records are written outside of the mutex: a slow disk holds up nobody.
 */
static void leave(struct gate *g, usec_t now)
{
        json_t *records = NULL;
        deliver(g, now);
        if (g->changes && json_array_size(g->changes)) {
                records = g->changes;
                g->changes = json_array();
        }
        pthread_mutex_unlock(&g->mutex);
        size_t i;
        json_t *record;
        json_array_foreach(records, i, record) sink_write(g->series, json_incref(record));
        json_decref(records);
}

void gate_tick(struct gate *g)
{
        uint64_t count;
        ssize_t ignored = read(g->timer, &count, sizeof count);
        (void)ignored;
        usec_t now = enter(g);
        g->armed = USEC_MAX;
        leave(g, now);
}

enum ticket_reply gate_ask(struct gate *g, struct ticket *t, const struct ticket_wish *wish)
{
        usec_t now = enter(g);
        enum ticket_reply reply = governor_ask(g->governor, t, wish, now);
        leave(g, now);
        return reply;
}

enum answer_class gate_answer(struct gate *g, struct ticket *t, const struct answer *answer)
{
        usec_t now = enter(g);
        enum answer_class class = governor_answer(g->governor, t, answer, now);
        leave(g, now);
        return class;
}

bool gate_requeue(struct gate *g, struct ticket *t, const struct ticket_wish *wish)
{
        usec_t now = enter(g);
        bool waits = governor_requeue(g->governor, t, wish, now);
        leave(g, now);
        return waits;
}

void gate_finish(struct gate *g, struct ticket *t)
{
        usec_t now = enter(g);
        governor_finish(g->governor, t, now);
        leave(g, now);
}

void gate_cancel(struct gate *g, struct ticket *t)
{
        usec_t now = enter(g);
        governor_cancel(g->governor, t, now);
        leave(g, now);
}

void gate_keep(struct gate *g, struct ticket *t)
{
        usec_t now = enter(g);
        governor_keep(g->governor, t, now);
        leave(g, now);
}

void gate_exit(struct gate *g, const struct ticket *t, char exit[ENDPOINT_EXIT_MAX])
{
        pthread_mutex_lock(&g->mutex);
        governor_exit(g->governor, t, exit);
        pthread_mutex_unlock(&g->mutex);
}

bool gate_endpoint_failed(struct gate *g, struct ticket *t, usec_t *ret_wait)
{
        usec_t now = enter(g);
        bool news = governor_endpoint_failed(g->governor, t, now, ret_wait);
        leave(g, now);
        return news;
}

void gate_pools(struct gate *g, const struct pool_policy *const *pools, size_t count)
{
        usec_t now = enter(g);
        governor_pools(g->governor, pools, count, now);
        leave(g, now);
}

struct ticket *gate_next(struct gate *g, unsigned worker, enum ticket_reply *ret_reply)
{
        struct ticket *t = NULL;
        struct list *ready = &g->posts[worker].ready;
        pthread_mutex_lock(&g->mutex);
        if (!list_empty(ready)) {
                t = LIST_ENTRY_OF(ready->next, struct ticket, link);
                *ret_reply = governor_accept(g->governor, t);
        }
        pthread_mutex_unlock(&g->mutex);
        return t;
}

void gate_close(struct gate *g)
{
        usec_t now = enter(g);
        governor_close(g->governor, now);
        leave(g, now);
}

void gate_stats(struct gate *g, struct governor_stats *ret_stats)
{
        pthread_mutex_lock(&g->mutex);
        governor_stats(g->governor, ret_stats);
        pthread_mutex_unlock(&g->mutex);
}

static void on_look(void *arg, const struct governor_change *view)
{
        struct governor_change *copy = copies_add(arg, sizeof *copy);
        *copy = *view;
        copy->key = xstrdup(view->key);
}

void gate_look(struct gate *g, void (*each)(void *arg, const struct governor_change *view),
               void *arg)
{
        struct copies c = {NULL, 0, 0};
        bool more = true;
        for (bool begin = true; more; begin = false) {
                c.count = 0;
                usec_t now = enter(g);
                more = governor_look(g->governor, begin, PORTION, now, on_look, &c);
                pthread_mutex_unlock(&g->mutex);
                const struct governor_change *views = c.list;
                for (size_t i = 0; i < c.count; i++) {
                        each(arg, &views[i]);
                        free((char *)views[i].key);
                }
        }
        free(c.list);
}

static void on_record(void *arg, const struct series_record *record)
{
        *(struct series_record *)copies_add(arg, sizeof *record) = *record;
}

bool gate_series(struct gate *g, struct span key, usec_t since, struct series_record **ret,
                 size_t *ret_count)
{
        struct copies c = {NULL, 0, 0};
        pthread_mutex_lock(&g->mutex);
        bool found = governor_series(g->governor, key, since, on_record, &c);
        pthread_mutex_unlock(&g->mutex);
        if (!found)
                return false;
        *ret = c.list;
        *ret_count = c.count;
        return true;
}

bool gate_reset(struct gate *g, struct span key)
{
        usec_t now = enter(g);
        bool found = governor_reset(g->governor, key, now);
        leave(g, now);
        return found;
}

struct memory_copy {
        char *key;
        struct limiter_memory memory;
};

static void on_export(void *arg, const char *key, const struct limiter_memory *m)
{
        struct memory_copy *copy = copies_add(arg, sizeof *copy);
        *copy = (struct memory_copy){xstrdup(key), *m};
}

void gate_export(struct gate *g,
                 void (*each)(void *arg, const char *key, const struct limiter_memory *m),
                 void *arg)
{
        struct copies c = {NULL, 0, 0};
        bool more = true;
        for (bool begin = true; more; begin = false) {
                c.count = 0;
                usec_t now = enter(g);
                more = governor_export(g->governor, begin, PORTION, now, on_export, &c);
                pthread_mutex_unlock(&g->mutex);
                const struct memory_copy *copies = c.list;
                for (size_t i = 0; i < c.count; i++) {
                        each(arg, copies[i].key, &copies[i].memory);
                        free(copies[i].key);
                }
        }
        free(c.list);
}

void gate_import(struct gate *g, struct span key, const struct limiter_memory *m)
{
        usec_t now = enter(g);
        governor_import(g->governor, key, m, now);
        leave(g, now);
}

/* ---- pools ---- */

static void on_endpoint(void *arg, const struct endpoint_view *view)
{
        struct endpoint_view *copy = copies_add(arg, sizeof *copy);
        *copy = *view;
        copy->pool = xstrdup(view->pool);
        copy->name = xstrdup(view->name);
}

void gate_look_endpoints(struct gate *g, void (*each)(void *arg, const struct endpoint_view *view),
                         void *arg)
{
        struct copies c = {NULL, 0, 0};
        for (size_t from = 0;; from += PORTION) {
                c.count = 0;
                pthread_mutex_lock(&g->mutex);
                governor_look_endpoints(g->governor, from, PORTION, on_endpoint, &c);
                pthread_mutex_unlock(&g->mutex);
                if (c.count == 0)
                        break;
                const struct endpoint_view *views = c.list;
                for (size_t i = 0; i < c.count; i++) {
                        each(arg, &views[i]);
                        free((char *)views[i].pool);
                        free((char *)views[i].name);
                }
        }
        free(c.list);
}

static void on_quarantine(void *arg, const struct quarantine_view *view)
{
        struct quarantine_view *copy = copies_add(arg, sizeof *copy);
        *copy = *view;
        copy->pool = xstrdup(view->pool);
        copy->endpoint = xstrdup(view->endpoint);
        copy->host = xstrdup(view->host);
}

void gate_look_quarantines(struct gate *g,
                           void (*each)(void *arg, const struct quarantine_view *view), void *arg)
{
        struct copies c = {NULL, 0, 0};
        for (size_t from = 0;; from += PORTION) {
                c.count = 0;
                usec_t now = enter(g);
                governor_look_quarantines(g->governor, from, PORTION, now, on_quarantine, &c);
                pthread_mutex_unlock(&g->mutex);
                if (c.count == 0)
                        break;
                const struct quarantine_view *views = c.list;
                for (size_t i = 0; i < c.count; i++) {
                        each(arg, &views[i]);
                        free((char *)views[i].pool);
                        free((char *)views[i].endpoint);
                        free((char *)views[i].host);
                }
        }
        free(c.list);
}

static void on_session(void *arg, const struct session_view *view)
{
        struct session_view *copy = copies_add(arg, sizeof *copy);
        *copy = *view;
        copy->pool = xstrdup(view->pool);
        copy->endpoint = xstrdup(view->endpoint);
        copy->session = xstrdup(view->session);
}

void gate_look_sessions(struct gate *g, size_t most,
                        void (*each)(void *arg, const struct session_view *view), void *arg)
{
        struct copies c = {NULL, 0, 0};
        for (size_t from = 0; from < most; from += PORTION) {
                c.count = 0;
                pthread_mutex_lock(&g->mutex);
                governor_look_sessions(g->governor, from,
                                       most - from < PORTION ? most - from : PORTION, on_session,
                                       &c);
                pthread_mutex_unlock(&g->mutex);
                if (c.count == 0)
                        break;
                const struct session_view *views = c.list;
                for (size_t i = 0; i < c.count; i++) {
                        each(arg, &views[i]);
                        free((char *)views[i].pool);
                        free((char *)views[i].endpoint);
                        free((char *)views[i].session);
                }
        }
        free(c.list);
}

void gate_import_quarantine(struct gate *g, const struct quarantine_view *q)
{
        usec_t now = enter(g);
        governor_import_quarantine(g->governor, q, now);
        leave(g, now);
}
