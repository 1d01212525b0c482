#include "cli/practice_origin.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/listener.h>

#include "base/list.h"
#include "base/xalloc.h"
#include "cli/practice_thread.h"
#include "config/value.h"
#include "runtime/clock.h"

#define MAX_HEADER_BYTES (64 * 1024)
#define MAX_BODY_BYTES (16 * 1024 * 1024)

struct practice_origin {
        struct practice_settings settings;
        struct practice_thread thread;
        struct evhttp *http;
        unsigned port;
        /* the thread's alone */
        struct practice_limit limit;
        struct list held; /* struct held_request */
        /* read by practice_origin_look */
        atomic_uint_fast64_t served, refused, first; /* first: 1 + its moment; 0: none yet */
        atomic_uint in_flight, peak;
};

/* A request that was let in and waits for its answer. */
struct held_request {
        struct list link;
        struct practice_origin *origin;
        struct evhttp_request *request;
        struct event *due;
};

int practice_hint_parse(struct span text, struct practice_settings *s)
{
        static const struct {
                const char *name;
                enum practice_hint hint;
        } names[] = {
            {"none", PRACTICE_HINT_NONE},
            {"exact", PRACTICE_HINT_EXACT},
            {"date", PRACTICE_HINT_DATE},
        };
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (span_equal(text, span_of(names[i].name))) {
                        s->hint = names[i].hint;
                        return 0;
                }
        if (value_count(text, &s->hint_seconds) < 0)
                return -EINVAL;
        s->hint = PRACTICE_HINT_SECONDS;
        return 0;
}

static void add_hint(const struct practice_settings *s, struct evkeyvalq *headers, usec_t wait)
{
        char value[64];
        switch (s->hint) {
        case PRACTICE_HINT_NONE:
                return;
        case PRACTICE_HINT_SECONDS:
                snprintf(value, sizeof value, "%u", s->hint_seconds);
                break;
        case PRACTICE_HINT_EXACT: {
                usec_t msec = (wait + USEC_PER_MSEC - 1) / USEC_PER_MSEC;
                snprintf(value, sizeof value, "%u.%03u", (unsigned)(msec / 1000),
                         (unsigned)(msec % 1000));
                break;
        }
        case PRACTICE_HINT_DATE: {
                usec_t at = usec_add(clock_real(), wait + USEC_PER_SEC - 1);
                time_t seconds = (time_t)(at / USEC_PER_SEC);
                struct tm tm;
                evutil_date_rfc1123(value, sizeof value, gmtime_r(&seconds, &tm));
                break;
        }
        }
        evhttp_add_header(headers, "Retry-After", value);
}

static void reply(struct evhttp_request *request, int status, const char *reason, const char *text)
{
        evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
        struct evbuffer *body = evbuffer_new();
        if (body)
                evbuffer_add(body, text, strlen(text));
        evhttp_send_reply(request, status, reason, body);
        if (body)
                evbuffer_free(body);
}

static void held_free(struct held_request *h)
{
        practice_limit_release(&h->origin->limit);
        atomic_fetch_sub(&h->origin->in_flight, 1);
        list_remove(&h->link);
        event_free(h->due);
        free(h);
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
        struct held_request *h = arg;
        struct evhttp_request *request = h->request;
        (void)fd;
        (void)what;
        atomic_fetch_add(&h->origin->served, 1);
        held_free(h);
        reply(request, 200, "OK", "here you are\n");
}

/* evhttp does not read from a connection whose request is unanswered, so it cannot find it closed,
 * and the request stays valid until it is answered. */
static void hold(struct practice_origin *o, struct evhttp_request *request)
{
        struct held_request *h = xcalloc(1, sizeof *h);
        struct timeval tv = usec_timeval(o->settings.latency);
        h->origin = o;
        h->request = request;
        h->due = evtimer_new(o->thread.base, on_due, h);
        if (!h->due)
                abort(); /* out of memory, as in xalloc */
        list_append(&o->held, &h->link);
        unsigned now = atomic_fetch_add(&o->in_flight, 1) + 1;
        if (now > atomic_load(&o->peak)) /* this thread alone writes it */
                atomic_store(&o->peak, now);
        evtimer_add(h->due, &tv);
}

static void on_request(struct evhttp_request *request, void *arg)
{
        struct practice_origin *o = arg;
        usec_t now = clock_now(), wait = 0;
        /* evhttp takes an absolute target for a proxy's and would close the connection. */
        request->flags &= ~EVHTTP_PROXY_REQUEST;
        if (atomic_load(&o->first) == 0)
                atomic_store(&o->first, now + 1);
        if (practice_limit_admit(&o->limit, now, &wait)) {
                hold(o, request);
                return;
        }
        atomic_fetch_add(&o->refused, 1);
        add_hint(&o->settings, evhttp_request_get_output_headers(request), wait);
        reply(request, 429, "Too Many Requests", "too fast\n");
}

static unsigned port_of(const struct sockaddr_storage *sa)
{
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        memcpy(&in, sa, sizeof in);
        memcpy(&in6, sa, sizeof in6);
        return ntohs(sa->ss_family == AF_INET6 ? in6.sin6_port : in.sin_port);
}

static int bind_to(struct practice_origin *o, const struct sockaddr_storage *address,
                   char **ret_error)
{
        unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
        struct evconnlistener *listener =
            evconnlistener_new_bind(o->thread.base, NULL, NULL, flags, SOMAXCONN,
                                    (const struct sockaddr *)address, sizeof *address);
        if (!listener) {
                int r = -errno;
                *ret_error =
                    xasprintf("cannot listen on port %u: %s", port_of(address), strerror(-r));
                return r;
        }
        struct sockaddr_storage bound = {0};
        socklen_t size = sizeof bound;
        getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&bound, &size);
        o->port = port_of(&bound);
        if (!evhttp_bind_listener(o->http, listener)) {
                evconnlistener_free(listener);
                *ret_error = xstrdup("out of memory");
                return -ENOMEM;
        }
        return 0;
}

static int open_http(struct practice_origin *o, const struct sockaddr_storage *address,
                     char **ret_error)
{
        o->http = evhttp_new(o->thread.base);
        if (!o->http) {
                *ret_error = xstrdup("out of memory");
                return -ENOMEM;
        }
        evhttp_set_allowed_methods(o->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                                EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                                EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
        evhttp_set_max_headers_size(o->http, MAX_HEADER_BYTES);
        evhttp_set_max_body_size(o->http, MAX_BODY_BYTES);
        evhttp_set_gencb(o->http, on_request, o);
        return bind_to(o, address, ret_error);
}

int practice_origin_start(const struct practice_settings *settings,
                          const struct sockaddr_storage *address, struct practice_origin **ret,
                          char **ret_error)
{
        struct practice_origin *o = xcalloc(1, sizeof *o);
        o->settings = *settings;
        list_init(&o->held);
        int r = practice_thread_init(&o->thread);
        if (r < 0) {
                *ret_error = xasprintf("cannot start an event loop: %s", strerror(-r));
                free(o);
                return r;
        }
        practice_limit_init(&o->limit, &settings->policy);
        r = open_http(o, address, ret_error);
        if (r == 0) {
                r = practice_thread_start(&o->thread);
                if (r < 0)
                        *ret_error = xasprintf("cannot start a thread: %s", strerror(-r));
        }
        if (r < 0) {
                practice_origin_free(o);
                return r;
        }
        *ret = o;
        return 0;
}

unsigned practice_origin_port(const struct practice_origin *o)
{
        return o->port;
}

void practice_origin_look(const struct practice_origin *o, struct practice_figures *ret)
{
        usec_t first = atomic_load(&o->first);
        usec_t span = first ? usec_sub(clock_now(), first - 1) : 0;
        *ret = (struct practice_figures){
            .served = atomic_load(&o->served),
            .refused = atomic_load(&o->refused),
            .in_flight = atomic_load(&o->in_flight),
            .peak = atomic_load(&o->peak),
            .span = span,
        };
        if (first)
                ret->tolerated =
                    practice_policy_tolerated(&o->settings.policy, span, o->settings.latency);
}

void practice_origin_free(struct practice_origin *o)
{
        if (!o)
                return;
        practice_thread_stop(&o->thread);
        list_foreach_safe (it, &o->held)
                held_free(LIST_ENTRY_OF(it, struct held_request, link));
        if (o->http)
                evhttp_free(o->http); /* with it the requests that were held */
        practice_limit_done(&o->limit);
        practice_thread_done(&o->thread);
        free(o);
}
