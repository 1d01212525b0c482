#include "proxy/worker.h"

#include <event2/buffer.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "proxy/client.h"
#include "proxy/exchange.h"
#include "proxy/prober.h"
#include "proxy/intercept_leaf.h"
#include "runtime/clock.h"
#include "runtime/log.h"

static const ev_uint16_t all_methods = EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                       EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
                                       EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH;

/* evhttp's limits for connections that are accepted from now on. Heads and announced lengths are
 * checked by client.c already; these are for bodies in chunks. */
static void apply_config(struct worker *w)
{
        const struct config *c = w->config;
        evhttp_set_max_headers_size(w->http, (ev_ssize_t)(2 * c->clients.max_header));
        evhttp_set_max_body_size(w->http, (ev_ssize_t)c->clients.max_body);
}

static void drain_clients(struct worker *w)
{
        list_foreach_safe (it, &w->clients)
                client_drain(LIST_ENTRY_OF(it, struct client, link));
}

static void close_listeners(struct worker *w)
{
        acceptor_forget(&w->acceptor);
        for (size_t i = 0; i < w->listener_count; i++)
                evhttp_del_accept_socket(w->http, w->listeners[i]);
        w->listener_count = 0;
}

static void start_draining(struct worker *w)
{
        if (w->draining)
                return;
        w->draining = true;
        if (w->prober)
                prober_stop(w->prober);
        close_listeners(w);
        drain_clients(w);
        worker_check_drained(w);
}

static void drop_everything(struct worker *w)
{
        start_draining(w);
        list_foreach_safe (it, &w->exchanges)
                exchange_abort(it);
        event_base_loopbreak(w->base);
}

void worker_check_drained(struct worker *w)
{
        if (w->draining && list_empty(&w->clients))
                event_base_loopexit(w->base, NULL);
}

static void add_one(int eventfd)
{
        uint64_t one = 1;
        ssize_t ignored = write(eventfd, &one, sizeof one);
        (void)ignored;
}

static void take_news(struct worker *w)
{
        struct worker_news *news = atomic_exchange(&w->news, NULL);
        if (!news)
                return;
        config_unref(w->config);
        w->config = news->config;
        login_book_use(&w->logins, news->users);
        free(news);
        apply_config(w);
        if (w->prober && !w->draining)
                prober_reload(w->prober);
        add_one(w->shared->taken);
}

static void drop_news(struct worker_news *news)
{
        if (!news)
                return;
        config_unref(news->config);
        users_unref(news->users);
        free(news);
}

static void on_letters(void *arg)
{
        struct worker *w = arg;
        atomic_store(&w->asked_for_a_beat, false);
        take_news(w);
        login_take_checked(w);
        struct ticket *t;
        enum ticket_reply reply;
        while ((t = gate_next(w->shared->gate, w->index, &reply)))
                if (!prober_turn(w->prober, t, reply))
                        exchange_turn(t, reply);
        if (atomic_load(&w->asked_to_stop))
                drop_everything(w);
        else if (atomic_load(&w->asked_to_drain))
                start_draining(w);
}

static void on_gate_timer(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        struct worker *w = arg;
        gate_tick(w->shared->gate);
}

static void *run(void *arg)
{
        struct worker *w = arg;
        acceptor_enter(&w->acceptor);
        event_base_dispatch(w->base);
        atomic_store(&w->ended, true);
        add_one(w->shared->done);
        return NULL;
}

static void make_http(struct worker *w)
{
        w->http = evhttp_new(w->base);
        if (!w->http)
                abort();
        evhttp_set_allowed_methods(w->http, all_methods);
        evhttp_set_default_content_type(w->http, NULL);
        evhttp_set_bevcb(w->http, client_accept, w);
        evhttp_set_gencb(w->http, exchange_receive, w);
}

int worker_start(struct worker *w, unsigned index, struct worker_shared *shared,
                 struct config *config, struct users *users, const int *listeners,
                 size_t listener_count)
{
        w->index = index;
        w->shared = shared;
        w->metrics = metrics_writer(shared->metrics, index);
        w->config = config_ref(config);
        list_init(&w->clients);
        list_init(&w->exchanges);
        login_book_init(&w->logins);
        login_book_use(&w->logins, users_ref(users));
        prng_init(&w->prng, clock_real() * (index + 1));
        w->base = event_base_new();
        w->scratch = evbuffer_new();
        if (!w->base || !w->scratch)
                abort();
        int r = mailbox_init(&w->mailbox, w->base, on_letters, w);
        if (r < 0)
                return r;
        gate_attach(shared->gate, index, &w->mailbox);
        login_desk_attach(shared->logins, index, &w->mailbox);
        if (index == 0) {
                w->timer = event_new(w->base, gate_timer(shared->gate), EV_READ | EV_PERSIST,
                                     on_gate_timer, w);
                event_add(w->timer, NULL);
        }
        acceptor_init(&w->acceptor, w->base);
        w->upstream = upstream_new(w->base);
        if (index == 0)
                w->prober = prober_new(w);
        make_http(w);
        apply_config(w);
        w->listeners = xcalloc(listener_count, sizeof *w->listeners);
        for (; w->listener_count < listener_count; w->listener_count++) {
                size_t i = w->listener_count;
                w->listeners[i] = evhttp_accept_socket_with_handle(w->http, listeners[i]);
                if (!w->listeners[i])
                        abort();
                acceptor_add(&w->acceptor, evhttp_bound_socket_get_listener(w->listeners[i]));
        }
        return -pthread_create(&w->thread, NULL, run, w);
}

void worker_reload(struct worker *w, struct config *config, struct users *users)
{
        struct worker_news *news = xmalloc(sizeof *news);
        *news = (struct worker_news){config_ref(config), users_ref(users)};
        drop_news(atomic_exchange(&w->news, news));
        mailbox_ring(&w->mailbox);
}

bool worker_beats(struct worker *w)
{
        if (atomic_load(&w->ended))
                return true;
        if (atomic_exchange(&w->asked_for_a_beat, true))
                return false; /* and the bell still rings */
        mailbox_ring(&w->mailbox);
        return true;
}

void worker_drain(struct worker *w)
{
        atomic_store(&w->asked_to_drain, true);
        mailbox_ring(&w->mailbox);
}

void worker_stop(struct worker *w)
{
        atomic_store(&w->asked_to_stop, true);
        mailbox_ring(&w->mailbox);
}

void worker_join(struct worker *w)
{
        pthread_join(w->thread, NULL);
        evhttp_free(w->http); /* closes what is still open */
        list_foreach_safe (it, &w->clients)
                client_abandon(LIST_ENTRY_OF(it, struct client, link));
        prober_free(w->prober);
        upstream_free(w->upstream);
        intercept_leaves_free(w->leaves);
        if (w->timer)
                event_free(w->timer);
        acceptor_done(&w->acceptor);
        mailbox_done(&w->mailbox);
        evbuffer_free(w->scratch);
        event_base_loop(w->base, EVLOOP_NONBLOCK); /* what bufferevents have put off holds memory */
        event_base_free(w->base);
        free(w->listeners);
        login_book_done(&w->logins);
        config_unref(w->config);
        drop_news(atomic_load(&w->news));
}
