#include "admin/admin.h"

#include <errno.h>
#include <event2/buffer.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "admin/admin_state.h"
#include "admin/answer.h"
#include "admin/self.h"
#include "base/xalloc.h"
#include "runtime/log.h"

#define MAX_HEAD 16384
#define MAX_BODY 4096
#define TIMEOUT 30 /* s, of a connection on which nothing moves */

/* Scopes of which the requests are tallied: no more can be remembered by the governor. */
#define MAX_TALLIES 10000

/* A request that waits for a reload. */
struct waiting {
        struct list link;
        struct evhttp_request *req;
        uint64_t number;
};

/* ---- what the workers tell ---- */

static void on_report(void *arg, struct report *report)
{
        struct admin *a = arg;
        tallies_add(a->tallies, report);
        recent_add(&a->recent, report);
}

void admin_catch_up(struct admin *a)
{
        reports_take(a->sources.reports, on_report, a);
}

static void on_bell(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        admin_catch_up(arg);
}

/* ---- reloading ---- */

void admin_ask_for_reload(struct admin *a, struct evhttp_request *req)
{
        struct waiting *w = xmalloc(sizeof *w);
        uint64_t one = 1;
        *w = (struct waiting){.req = req, .number = ++a->reloads_asked};
        list_append(&a->reloads, &w->link);
        atomic_store(&a->reload_wanted, w->number);
        ssize_t ignored = write(a->reload_fd, &one, sizeof one);
        (void)ignored;
}

int admin_reload_fd(const struct admin *a)
{
        return a ? a->reload_fd : -1;
}

uint64_t admin_reload_wanted(struct admin *a)
{
        uint64_t rung;
        if (!a || read(a->reload_fd, &rung, sizeof rung) != sizeof rung)
                return 0;
        return atomic_load(&a->reload_wanted);
}

static json_t *faults_json(const char *path, const struct config_faults *faults)
{
        json_t *list = json_array();
        for (size_t i = 0; i < faults->count; i++) {
                const struct config_fault *f = &faults->list[i];
                json_array_append_new(list, json_pack("{s:s?, s:i, s:i, s:s}", "file", path, "line",
                                                      (int)f->line, "column", (int)f->column,
                                                      "text", f->text));
        }
        return json_pack("{s:b, s:s, s:o}", "reloaded", 0, "error",
                         "the configuration was not reloaded: the old one stays in force", "faults",
                         list);
}

static json_t *restart_json(const char *const *restart)
{
        json_t *list = json_array();
        for (; restart && *restart; restart++)
                json_array_append_new(list, json_string(*restart));
        return json_pack("{s:b, s:o}", "reloaded", 1, "needs_restart", list);
}

static void letter_free(struct reload_letter *l)
{
        if (!l)
                return;
        json_decref(l->body);
        free(l);
}

void admin_reload_done(struct admin *a, uint64_t number, const struct admin_reloaded *what)
{
        if (!a)
                return;
        struct reload_letter *l = xmalloc(sizeof *l);
        json_t *body =
            what->faults ? faults_json(what->path, what->faults) : restart_json(what->restart);
        *l = (struct reload_letter){number, what->faults ? 422 : 200, body};
        /* One that was not read yet is of a lower number. */
        letter_free(atomic_exchange(&a->reloaded, l));
        mailbox_ring(&a->mailbox);
}

static void answer_reloads(struct admin *a, const struct reload_letter *l)
{
        list_foreach_safe (it, &a->reloads) {
                struct waiting *w = LIST_ENTRY_OF(it, struct waiting, link);
                if (w->number > l->number)
                        break;
                list_remove(it);
                answer_json(w->req, l->status, json_incref(l->body));
                free(w);
        }
}

static void refuse_reloads(struct admin *a)
{
        list_foreach_safe (it, &a->reloads) {
                struct waiting *w = LIST_ENTRY_OF(it, struct waiting, link);
                list_remove(it);
                answer_fault(w->req, 503, "weir is shutting down");
                free(w);
        }
}

/* ---- the thread ---- */

static void on_letters(void *arg)
{
        struct admin *a = arg;
        struct config *config = atomic_exchange(&a->new_config, NULL);
        if (config) {
                config_unref(a->config);
                a->config = config;
        }
        struct reload_letter *l = atomic_exchange(&a->reloaded, NULL);
        if (l)
                answer_reloads(a, l);
        letter_free(l);
        if (atomic_load(&a->draining))
                refuse_reloads(a);
        if (atomic_load(&a->asked_to_stop))
                event_base_loopexit(a->base, NULL);
}

static void *run(void *arg)
{
        struct admin *a = arg;
        acceptor_enter(&a->acceptor);
        event_base_dispatch(a->base);
        return NULL;
}

static void make_http(struct admin *a)
{
        a->http = evhttp_new(a->base);
        if (!a->http)
                abort();
        /* All, so that those which do not fit are answered with 405. */
        evhttp_set_allowed_methods(a->http, UINT16_MAX);
        evhttp_set_default_content_type(a->http, NULL);
        evhttp_set_max_headers_size(a->http, MAX_HEAD);
        evhttp_set_max_body_size(a->http, MAX_BODY);
        evhttp_set_timeout(a->http, TIMEOUT);
        evhttp_set_gencb(a->http, routes_answer, a);
        struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(a->http, a->socket);
        if (!bound)
                abort();
        a->socket = -1;
        acceptor_init(&a->acceptor, a->base);
        acceptor_add(&a->acceptor, evhttp_bound_socket_get_listener(bound));
}

static void warn_of_openness(const struct config *config, const char *address)
{
        if (config->admin.token[0] == '\0' && !config_is_on_loopback(address))
                log_warn("admin.listen is open to others (%s) and admin.token is empty: whoever "
                         "reaches it may read what is fetched, and reset scopes",
                         address);
}

static int fail(const struct config *config, int r, char **ret_error)
{
        *ret_error = listener_fault(r, config->admin.listen, "admin.listen in the configuration");
        return r;
}

int admin_open(struct config *config, int given, struct admin **ret, char **ret_error)
{
        const char *address = config->admin.listen;
        unsigned port;
        *ret = NULL;
        if (given < 0 && address[0] == '\0')
                return 0;
        struct admin *a = xcalloc(1, sizeof *a);
        list_init(&a->reloads);
        a->reload_fd = -1;
        a->socket = given;
        a->given = given >= 0;
        int r = a->given ? listener_adopt(given, a->address, &port)
                         : listener_bind(address, 1, &a->socket, a->address, &port);
        if (r < 0) {
                free(a);
                return fail(config, r, ret_error);
        }
        if (!a->given)
                listener_local_note(address, &a->local);
        a->config = config_ref(config);
        *ret = a;
        return 0;
}

int admin_listen(struct admin *a, char **ret_error)
{
        int r = a && !a->given ? listener_listen(a->socket) : 0;
        if (r < 0)
                return fail(a->config, r, ret_error);
        if (!a)
                return 0;
        warn_of_openness(a->config, a->given ? a->address : a->config->admin.listen);
        log_info("admin on %s%s", a->address, a->given ? ", opened by systemd" : "");
        return 0;
}

static int start_thread(struct admin *a)
{
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        int r = -pthread_create(&a->thread, NULL, run, a);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        a->running = r == 0;
        return r;
}

int admin_start(struct admin *a, const struct admin_sources *sources)
{
        if (!a)
                return 0;
        a->sources = *sources;
        a->process_started = self_started();
        a->reload_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        a->base = event_base_new();
        if (!a->base || a->reload_fd < 0)
                abort();
        int r = mailbox_init(&a->mailbox, a->base, on_letters, a);
        if (r < 0)
                return r;
        a->tallies = tallies_new(MAX_TALLIES);
        make_http(a);
        a->bell =
            event_new(a->base, reports_bell(sources->reports), EV_READ | EV_PERSIST, on_bell, a);
        event_add(a->bell, NULL);
        reports_watch(sources->reports, true);
        return start_thread(a);
}

void admin_reload(struct admin *a, struct config *config)
{
        if (!a)
                return;
        config_unref(atomic_exchange(&a->new_config, config_ref(config)));
        mailbox_ring(&a->mailbox);
}

void admin_drain(struct admin *a)
{
        if (!a)
                return;
        atomic_store(&a->draining, true);
        mailbox_ring(&a->mailbox);
}

static void end_thread(struct admin *a)
{
        atomic_store(&a->draining, true);
        atomic_store(&a->asked_to_stop, true);
        mailbox_ring(&a->mailbox);
        pthread_join(a->thread, NULL);
}

void admin_stop(struct admin *a)
{
        if (!a)
                return;
        if (a->running)
                end_thread(a);
        if (a->http) {
                reports_watch(a->sources.reports, false);
                evhttp_free(a->http);
                event_free(a->bell);
                acceptor_done(&a->acceptor);
                mailbox_done(&a->mailbox);
        }
        if (a->base)
                event_base_free(a->base);
        if (a->socket >= 0)
                close(a->socket);
        if (a->reload_fd >= 0)
                close(a->reload_fd);
        listener_local_remove(&a->local);
        letter_free(atomic_load(&a->reloaded));
        tallies_free(a->tallies);
        recent_done(&a->recent);
        config_unref(a->config);
        config_unref(atomic_load(&a->new_config));
        free(a);
}
