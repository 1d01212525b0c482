/* The pages about the service as a whole. */
#include <event2/buffer.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_state.h"
#include "admin/answer.h"

static void answer_text(struct evhttp_request *req, int status, const char *text)
{
        struct evbuffer *body = evbuffer_new();
        if (!body)
                abort(); /* out of memory */
        evbuffer_add(body, text, strlen(text));
        answer_buffer(req, status, "text/plain; charset=utf-8", body);
        evbuffer_free(body);
}

void page_index(struct admin *a, struct evhttp_request *req, const char *key)
{
        (void)a, (void)key;
        answer_text(
            req, 200,
            "weir " PACKAGE_VERSION "\n\n"
            "GET  /metrics                     figures for Prometheus\n"
            "GET  /healthz                     200 while the process lives\n"
            "GET  /readyz                      200 while requests are taken, 503 while it "
            "shuts down\n"
            "GET  /api/v1/scopes               every scope: limits, queue, what came of its "
            "requests\n"
            "       ?q=TEXT                    only those whose key contains it\n"
            "       ?limit=N                   the first N (1000), busy ones first\n"
            "GET  /api/v1/scopes/KEY/series    the last changes of its limit\n"
            "       ?since=TIME                later than TIME, or than \"next\" of before\n"
            "POST /api/v1/scopes/KEY/reset     forgets what was learned of it\n"
            "GET  /api/v1/requests/recent      the last requests that have ended\n"
            "       ?limit=N                   the last N (50), 200 at most\n"
            "GET  /api/v1/endpoints            the ways out\n"
            "POST /api/v1/reload               reads the configuration anew\n");
}

void page_health(struct admin *a, struct evhttp_request *req, const char *key)
{
        (void)a, (void)key;
        answer_text(req, 200, "alive\n");
}

void page_ready(struct admin *a, struct evhttp_request *req, const char *key)
{
        (void)key;
        bool draining = atomic_load(&a->draining);
        answer_text(req, draining ? 503 : 200, draining ? "shutting down\n" : "ready\n");
}

void page_reload(struct admin *a, struct evhttp_request *req, const char *key)
{
        (void)key;
        if (atomic_load(&a->draining))
                answer_fault(req, 503, "weir is shutting down");
        else
                admin_ask_for_reload(a, req);
}
