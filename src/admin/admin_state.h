/* admin/admin_state.h - the inside of the admin listener, for the files that make it up. */
#ifndef WEIR_ADMIN_ADMIN_STATE_H
#define WEIR_ADMIN_ADMIN_STATE_H

#include <event2/event.h>
#include <event2/http.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "admin/admin.h"
#include "admin/recent.h"
#include "admin/tallies.h"
#include "base/list.h"
#include "runtime/acceptor.h"
#include "runtime/listener.h"
#include "runtime/mailbox.h"

/* The answer to all reloads up to a number. */
struct reload_letter {
        uint64_t number;
        int status;
        json_t *body; /* owned */
};

/* Everything here but the letters is touched by its own thread alone, once that runs. */
struct admin {
        int socket;                       /* -1 once evhttp has it */
        bool given;                       /* it was opened by somebody else */
        char address[LISTENER_TEXT_SIZE]; /* of it */
        struct listener_local local;
        bool running;
        pthread_t thread;
        struct event_base *base;
        struct evhttp *http;
        struct acceptor acceptor;
        struct mailbox mailbox;
        struct event *bell; /* of the reports */
        struct config *config;
        struct admin_sources sources;
        struct tallies *tallies;
        struct recent recent;
        usec_t process_started;
        struct list reloads; /* requests that wait for one */
        uint64_t reloads_asked;
        /* letters */
        int reload_fd;
        atomic_uint_fast64_t reload_wanted;
        _Atomic(struct reload_letter *) reloaded;
        _Atomic(struct config *) new_config;
        atomic_bool draining, asked_to_stop;
};

/* Answers a request (routes.c). */
void routes_answer(struct evhttp_request *req, void *admin);

/* Takes in what the workers have reported. */
void admin_catch_up(struct admin *a);

/* The request waits until a reload has been done. */
void admin_ask_for_reload(struct admin *a, struct evhttp_request *req);

/* What is served; `key` is that of the scope in the path, or NULL. Each ends the request. */
void page_index(struct admin *a, struct evhttp_request *req, const char *key);
void page_health(struct admin *a, struct evhttp_request *req, const char *key);
void page_ready(struct admin *a, struct evhttp_request *req, const char *key);
void page_reload(struct admin *a, struct evhttp_request *req, const char *key);
void page_endpoints(struct admin *a, struct evhttp_request *req, const char *key);
void page_metrics(struct admin *a, struct evhttp_request *req, const char *key);
void page_scopes(struct admin *a, struct evhttp_request *req, const char *key);
void page_series(struct admin *a, struct evhttp_request *req, const char *key);
void page_reset(struct admin *a, struct evhttp_request *req, const char *key);
void page_recent(struct admin *a, struct evhttp_request *req, const char *key);

#endif
