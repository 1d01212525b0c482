#include "cli/practice_load.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "base/xalloc.h"
#include "cli/practice_thread.h"

/* Longer than the proxy keeps a request in its queue by default: the proxy answers first. */
#define ANSWER_TIMEOUT_SECONDS 180

struct load_worker {
        struct practice_load *load;
        struct evhttp_connection *connection;
        struct event *again; /* after a failure */
};

struct practice_load {
        struct practice_thread thread;
        char *url, *host;
        struct load_worker *workers;
        unsigned count;
        atomic_uint_fast64_t ok, refused, other, failed;
};

static void ask(struct load_worker *w);

/* A proxy that is gone must not be asked in a busy loop. */
static void fail(struct load_worker *w)
{
        static const struct timeval pause = {0, 100000};
        atomic_fetch_add(&w->load->failed, 1);
        evtimer_add(w->again, &pause);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        ask(arg);
}

/* evhttp has taken the request off its connection by now, so the next one may be made from here. */
static void on_answer(struct evhttp_request *request, void *arg)
{
        struct load_worker *w = arg;
        int status = request ? evhttp_request_get_response_code(request) : 0;
        if (status == 0) {
                fail(w);
                return;
        }
        if (status == 200)
                atomic_fetch_add(&w->load->ok, 1);
        else if (status == 429 || status == 503)
                atomic_fetch_add(&w->load->refused, 1);
        else
                atomic_fetch_add(&w->load->other, 1);
        ask(w);
}

static void ask(struct load_worker *w)
{
        struct evhttp_request *request = evhttp_request_new(on_answer, w);
        if (!request)
                abort(); /* out of memory, as in xalloc */
        /* Without it evhttp names the proxy. */
        evhttp_add_header(evhttp_request_get_output_headers(request), "Host", w->load->host);
        if (evhttp_make_request(w->connection, request, EVHTTP_REQ_GET, w->load->url) < 0)
                fail(w);
}

static int open_workers(struct practice_load *l, const struct practice_load_settings *settings)
{
        l->workers = xcalloc(settings->workers, sizeof(*l->workers));
        for (; l->count < settings->workers; l->count++) {
                struct load_worker *w = &l->workers[l->count];
                w->load = l;
                w->connection = evhttp_connection_base_new(l->thread.base, NULL, "127.0.0.1",
                                                           (uint16_t)settings->proxy_port);
                if (!w->connection)
                        return -ENOMEM;
                evhttp_connection_set_timeout(w->connection, ANSWER_TIMEOUT_SECONDS);
                w->again = evtimer_new(l->thread.base, on_again, w);
                if (!w->again) {
                        evhttp_connection_free(w->connection);
                        return -ENOMEM;
                }
        }
        for (unsigned i = 0; i < l->count; i++)
                ask(&l->workers[i]);
        return 0;
}

int practice_load_start(const struct practice_load_settings *settings, struct practice_load **ret,
                        char **ret_error)
{
        struct practice_load *l = xcalloc(1, sizeof *l);
        int r = practice_thread_init(&l->thread);
        if (r < 0) {
                *ret_error = xasprintf("cannot start an event loop: %s", strerror(-r));
                free(l);
                return r;
        }
        l->url = xstrdup(settings->url);
        l->host = xstrdup(settings->host);
        r = open_workers(l, settings);
        if (r == 0)
                r = practice_thread_start(&l->thread);
        if (r < 0) {
                *ret_error = xasprintf("cannot start the workers: %s", strerror(-r));
                practice_load_free(l);
                return r;
        }
        *ret = l;
        return 0;
}

void practice_load_look(const struct practice_load *l, struct practice_load_figures *ret)
{
        *ret = (struct practice_load_figures){
            .ok = atomic_load(&l->ok),
            .refused = atomic_load(&l->refused),
            .other = atomic_load(&l->other),
            .failed = atomic_load(&l->failed),
        };
}

void practice_load_stop(struct practice_load *l)
{
        practice_thread_stop(&l->thread);
        for (; l->count > 0; l->count--) {
                struct load_worker *w = &l->workers[l->count - 1];
                event_free(w->again);
                evhttp_connection_free(
                    w->connection); /* with its request, whose callback is not called */
        }
}

void practice_load_free(struct practice_load *l)
{
        if (!l)
                return;
        practice_load_stop(l);
        practice_thread_done(&l->thread);
        free(l->workers);
        free(l->url);
        free(l->host);
        free(l);
}
