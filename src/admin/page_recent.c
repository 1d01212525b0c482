/* /api/v1/requests/recent: the last requests that have ended. */
#include <jansson.h>
#include <stdlib.h>

#include "admin/admin_state.h"
#include "admin/answer.h"
#include "admin/query.h"
#include "core/answer.h"
#include "runtime/safe_url.h"

#define SHOWN 50

/* Workers report each in its own order. */
static int by_end(const void *a, const void *b)
{
        usec_t x = (*(const struct report *const *)a)->ended;
        usec_t y = (*(const struct report *const *)b)->ended;
        return x > y ? -1 : x < y ? 1 : 0;
}

static json_t *text_or_null(const char *text)
{
        return text && text[0] ? json_string(text) : json_null();
}

static json_t *report_json(const struct report *r)
{
        char *url = safe_url(r->url);
        json_t *o = json_object();
        json_object_set_new(o, "time", answer_time(r->arrived_real));
        json_object_set_new(o, "client", json_string(r->client));
        json_object_set_new(o, "method", json_string(r->method));
        json_object_set_new(o, "url", json_string(url));
        json_object_set_new(o, "scope", text_or_null(r->scope));
        json_object_set_new(o, "outcome", json_string(outcome_name(r->outcome)));
        json_object_set_new(o, "class",
                            text_or_null(r->answered ? answer_class_name(r->class) : NULL));
        json_object_set_new(o, "status", r->status ? json_integer(r->status) : json_null());
        json_object_set_new(o, "attempts", json_integer(r->attempts));
        json_object_set_new(o, "status_429", json_integer(r->refusals));
        json_object_set_new(o, "queued", answer_seconds(r->queued));
        json_object_set_new(o, "duration", answer_seconds(r->duration));
        json_object_set_new(o, "bytes_in", json_integer((json_int_t)r->bytes_in));
        json_object_set_new(o, "bytes_out", json_integer((json_int_t)r->bytes_out));
        json_object_set_new(o, "endpoint",
                            text_or_null(r->endpoint   ? r->endpoint
                                         : r->attempts ? "direct"
                                                       : NULL));
        json_object_set_new(o, "exit_address", text_or_null(r->exit_address));
        json_object_set_new(o, "address", text_or_null(r->address));
        free(url);
        return o;
}

void page_recent(struct admin *a, struct evhttp_request *req, const char *key)
{
        (void)key;
        const struct report *list[RECENT_MAX];
        size_t limit, n = 0;
        if (!query_count(req, "limit", SHOWN, RECENT_MAX, &limit)) {
                answer_fault(req, 400, "limit: expected a whole number from 1 to 200");
                return;
        }
        admin_catch_up(a);
        while (n < RECENT_MAX && (list[n] = recent_get(&a->recent, n)))
                n++;
        qsort(list, n, sizeof list[0], by_end);
        json_t *requests = json_array();
        for (size_t i = 0; i < n && i < limit; i++)
                json_array_append_new(requests, report_json(list[i]));
        answer_json(req, 200, json_pack("{s:o}", "requests", requests));
}
