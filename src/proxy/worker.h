/* proxy/worker.h - one thread with its own event loop, listener, connections and upstream pool. */
#ifndef WEIR_PROXY_WORKER_H
#define WEIR_PROXY_WORKER_H

#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/prng.h"
#include "config/config.h"
#include "egress/upstream.h"
#include "proxy/login.h"
#include "proxy/login_desk.h"
#include "runtime/acceptor.h"
#include "runtime/gate.h"
#include "runtime/mailbox.h"
#include "runtime/metrics.h"
#include "runtime/reports.h"
#include "runtime/sink.h"

/* What all workers share; owned by the server. Only the counts change while they run. */
struct worker_shared {
        struct gate *gate;
        struct intercept_tls *tls; /* NULL as long as no configuration opens HTTPS */
        struct sink *access;       /* NULL: no access log */
        struct login_desk *logins;
        char *via; /* our entry in Via: the name, and a comment that tells this instance */
        int done;  /* an eventfd: each worker adds one when its loop has ended */
        int taken; /* the same when it has taken what a reload brings */
        struct reports *reports;
        struct metrics *metrics; /* a writer for each worker, and one for the main thread */
};

/* What a reload brings. */
struct worker_news {
        struct config *config;
        struct users *users; /* NULL: nobody is asked for a name */
};

/* Everything here but the letters is touched by the worker's own thread alone. */
struct worker {
        unsigned index;
        pthread_t thread;
        struct event_base *base;
        struct evhttp *http;
        struct evhttp_bound_socket **listeners; /* NULL-free; empty once it drains */
        size_t listener_count;
        struct acceptor acceptor;
        struct upstream *upstream;
        struct mailbox mailbox;
        struct worker_shared *shared;
        struct metrics_writer *metrics;
        struct config *config; /* the snapshot for requests that arrive from now on */
        struct list clients;
        struct client *client_by_connection; /* hash */
        struct list exchanges;
        struct login_book logins;
        struct intercept_leaves *leaves; /* NULL until it opens HTTPS */
        struct evbuffer *scratch;        /* empty between uses */
        struct prng prng;
        struct event *timer;   /* worker 0: the gate's */
        struct prober *prober; /* the same; NULL in others */
        usec_t port_told; /* when a port that CONNECT may not go to was last told of; 0: never */
        bool draining;
        /* letters: left by the main thread, which then rings the mailbox */
        _Atomic(struct worker_news *) news;
        atomic_bool asked_to_drain, asked_to_stop, asked_for_a_beat;
        atomic_bool ended; /* left by its own thread: the loop turns no more */
};

/* Takes the listening sockets over. 0 or -errno. */
int worker_start(struct worker *w, unsigned index, struct worker_shared *shared,
                 struct config *config, struct users *users, const int *listeners,
                 size_t listener_count);

/* From the main thread. */
/* Takes references of its own. */
void worker_reload(struct worker *w, struct config *config, struct users *users);
bool worker_beats(struct worker *w); /* has its loop turned since it was asked this last? */
void worker_drain(struct worker *w); /* no new connections; ends when its exchanges have ended */
void worker_stop(struct worker *w);  /* drops what is still open, and ends */
void worker_join(struct worker *w);  /* waits for its thread and frees all that it had */

/* From the worker's own thread: an exchange has ended or a connection closed. */
void worker_check_drained(struct worker *w);

#endif
