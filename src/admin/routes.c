/* Which page answers which request, and who is let in. */
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_state.h"
#include "admin/answer.h"
#include "admin/door.h"
#include "base/xalloc.h"

static const struct route {
        const char *path;
        const char *tail; /* NULL: the path is all; else a scope's key is between them */
        enum evhttp_cmd_type method;
        void (*page)(struct admin *a, struct evhttp_request *req, const char *key);
} routes[] = {
    {"/", NULL, EVHTTP_REQ_GET, page_index},
    {"/metrics", NULL, EVHTTP_REQ_GET, page_metrics},
    {"/healthz", NULL, EVHTTP_REQ_GET, page_health},
    {"/readyz", NULL, EVHTTP_REQ_GET, page_ready},
    {"/api/v1/scopes", NULL, EVHTTP_REQ_GET, page_scopes},
    {"/api/v1/scopes/", "/series", EVHTTP_REQ_GET, page_series},
    {"/api/v1/scopes/", "/reset", EVHTTP_REQ_POST, page_reset},
    {"/api/v1/endpoints", NULL, EVHTTP_REQ_GET, page_endpoints},
    {"/api/v1/requests/recent", NULL, EVHTTP_REQ_GET, page_recent},
    {"/api/v1/reload", NULL, EVHTTP_REQ_POST, page_reload},
};

/* A scope's key may hold slashes, written as they are or as %2F. */
static bool fits(const struct route *r, const char *path, struct span *ret_key)
{
        size_t head = strlen(r->path), tail = r->tail ? strlen(r->tail) : 0, n = strlen(path);
        if (!r->tail)
                return strcmp(path, r->path) == 0;
        if (n <= head + tail || strncmp(path, r->path, head) != 0 ||
            strcmp(path + n - tail, r->tail) != 0)
                return false;
        *ret_key = (struct span){path + head, n - head - tail};
        return true;
}

static bool allows(const struct route *r, enum evhttp_cmd_type method)
{
        return r->method == method ||
               (r->method == EVHTTP_REQ_GET && method == EVHTTP_REQ_HEAD); /* RFC 9110, 9.3.2 */
}

/* The route, or NULL where the request has been answered. */
static const struct route *find(struct evhttp_request *req, const char *path, struct span *ret_key)
{
        const struct route *near = NULL;
        for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
                if (!fits(&routes[i], path, ret_key))
                        continue;
                if (allows(&routes[i], evhttp_request_get_command(req)))
                        return &routes[i];
                near = &routes[i];
        }
        if (near) {
                evhttp_add_header(evhttp_request_get_output_headers(req), "Allow",
                                  near->method == EVHTTP_REQ_GET ? "GET, HEAD" : "POST");
                answer_fault(req, 405, "this path takes another method");
        } else {
                answer_fault(req, 404, "there is no such path; GET / lists those there are");
        }
        return NULL;
}

static const char *field(const struct evhttp_request *req, const char *name)
{
        return evhttp_find_header(req->input_headers, name);
}

/* False where the request has been answered. */
static bool let_in(const struct admin *a, struct evhttp_request *req)
{
        const char *token = a->config->admin.token;
        if (token[0]) {
                if (door_token_fits(field(req, "Authorization"), token))
                        return true;
                evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate",
                                  "Bearer realm=\"weir\"");
                answer_fault(req, 401, "Authorization: Bearer with admin.token is needed");
                return false;
        }
        if (!door_host_is_safe(field(req, "Host"))) {
                answer_fault(req, 403,
                             "Host must be an address or localhost where admin.token is empty");
                return false;
        }
        if (evhttp_request_get_command(req) == EVHTTP_REQ_POST &&
            !door_origin_is_ours(field(req, "Origin"), field(req, "Sec-Fetch-Site"),
                                 field(req, "Host"))) {
                answer_fault(req, 403, "a page of another origin may not change anything here");
                return false;
        }
        return true;
}

void routes_answer(struct evhttp_request *req, void *admin)
{
        const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
        const char *path = uri && !evhttp_uri_get_host(uri) ? evhttp_uri_get_path(uri) : NULL;
        struct span key = {NULL, 0};
        req->flags &= ~EVHTTP_PROXY_REQUEST;
        if (!let_in(admin, req))
                return;
        const struct route *r = find(req, path ? path : "", &key);
        if (!r)
                return;
        char *encoded = xspandup(key), *plain = evhttp_uridecode(encoded, 0, NULL);
        r->page(admin, req, r->tail ? plain : NULL);
        free(plain);
        free(encoded);
}
