/* /api/v1/endpoints: the ways out, who avoids them, and the sessions that go by them. */
#include <jansson.h>
#include <string.h>

#include "admin/admin_state.h"
#include "admin/answer.h"
#include "admin/endpoints.h"
#include "admin/query.h"
#include "runtime/clock.h"

#define SESSIONS_SHOWN 1000 /* where ?limit does not say otherwise */
#define SESSIONS_SHOWN_MOST 100000

static json_t *count(uint64_t n)
{
        return json_integer((json_int_t)n);
}

static const char *kind_name(enum egress_kind kind)
{
        static const char *const names[] = {
            [EGRESS_DIRECT] = "direct", [EGRESS_SOURCE] = "source", [EGRESS_HTTP] = "http",
            [EGRESS_HTTPS] = "https",   [EGRESS_SOCKS5] = "socks5", [EGRESS_SOCKS5H] = "socks5h",
        };
        return names[kind];
}

/* What the configuration says of it; NULL: it has it no more. */
static const struct egress_endpoint *configured(const struct config *c,
                                                const struct endpoint_view *view)
{
        const struct egress_config *pool = config_pool(c, view->pool);
        for (size_t i = 0; pool && i < pool->endpoints.count; i++)
                if (strcmp(pool->endpoints.list[i].name, view->name) == 0)
                        return &pool->endpoints.list[i];
        return NULL;
}

static json_t *endpoint_json(const struct config *c, const struct endpoint_view *e)
{
        const struct egress_endpoint *known = configured(c, e);
        json_t *o = json_object();
        json_object_set_new(o, "pool", json_string(e->pool));
        json_object_set_new(o, "name", json_string(e->name));
        json_object_set_new(o, "kind", known ? json_string(kind_name(known->kind)) : json_null());
        json_object_set_new(o, "exit_address", e->exit[0] ? json_string(e->exit) : json_null());
        json_object_set_new(o, "in_flight", count(e->in_flight));
        json_object_set_new(o, "max_in_flight",
                            e->max_in_flight ? count(e->max_in_flight) : json_null());
        json_object_set_new(o, "gone", json_boolean(e->max_in_flight == 0));
        json_object_set_new(o, "requests", count(e->uses));
        json_object_set_new(o, "faults", count(e->faults));
        json_object_set_new(o, "faults_in_row", count(e->faults_in_row));
        json_object_set_new(o, "backs_off_until", answer_time(answer_real_time(e->back_off_until)));
        json_object_set_new(o, "blocked", count(e->blocks));
        json_object_set_new(o, "sessions", count(e->sessions));
        json_object_set_new(o, "quarantines", json_array());
        return o;
}

struct listing {
        const struct endpoints *endpoints;
        json_t *list; /* of them, in the same order */
};

static void on_quarantine(void *arg, const struct quarantine_view *view)
{
        const struct listing *l = arg;
        const struct endpoints_row *row = endpoints_find(l->endpoints, view->pool, view->endpoint);
        if (!row)
                return;
        json_t *o = json_array_get(l->list, (size_t)(row - l->endpoints->list));
        json_array_append_new(json_object_get(o, "quarantines"),
                              json_pack("{s:s, s:o}", "host", view->host, "until",
                                        answer_time(answer_real_time(view->until))));
}

static void on_session(void *arg, const struct session_view *view)
{
        json_array_append_new(arg, json_pack("{s:s, s:s, s:s, s:o, s:o}", "session", view->session,
                                             "pool", view->pool, "endpoint", view->endpoint,
                                             "last_used", answer_time(answer_real_time(view->used)),
                                             "open", count(view->tickets)));
}

static json_t *direct_json(const struct gate *gate, const struct endpoints *endpoints)
{
        struct governor_stats stats;
        size_t elsewhere = 0;
        gate_stats((struct gate *)gate, &stats);
        for (size_t i = 0; i < endpoints->count; i++)
                elsewhere += endpoints->list[i].view.in_flight;
        size_t all = stats.in_flight + stats.ready;
        return json_pack("{s:s, s:s, s:o, s:n}", "name", "direct", "kind", "direct", "in_flight",
                         count(all > elsewhere ? all - elsewhere : 0), "max_in_flight");
}

void page_endpoints(struct admin *a, struct evhttp_request *req, const char *key)
{
        (void)key;
        size_t limit;
        if (!query_count(req, "limit", SESSIONS_SHOWN, SESSIONS_SHOWN_MOST, &limit)) {
                answer_fault(req, 400, "limit: expected a whole number from 1 to 100000");
                return;
        }
        struct endpoints endpoints;
        json_t *list = json_array(), *sessions = json_array();
        endpoints_look(a->sources.gate, &endpoints);
        for (size_t i = 0; i < endpoints.count; i++)
                json_array_append_new(list, endpoint_json(a->config, &endpoints.list[i].view));
        gate_look_quarantines(a->sources.gate, on_quarantine, &(struct listing){&endpoints, list});
        gate_look_sessions(a->sources.gate, limit, on_session, sessions);
        json_array_insert_new(list, 0, direct_json(a->sources.gate, &endpoints));
        endpoints_done(&endpoints);
        answer_json(req, 200,
                    json_pack("{s:o, s:o, s:o}", "time", answer_time(clock_real()), "endpoints",
                              list, "sessions", sessions));
}
