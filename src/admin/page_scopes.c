/* The pages about scopes: how they stand, how their limits changed, and a reset. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin/admin_state.h"
#include "admin/answer.h"
#include "admin/query.h"
#include "admin/scopes.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#define SHOWN 1000 /* scopes, where ?limit does not say otherwise */
#define SHOWN_MOST 100000

static json_t *count(uint64_t n)
{
        return json_integer((json_int_t)n);
}

/* ---- /api/v1/scopes ---- */

static json_t *statuses_json(const struct tally *t)
{
        json_t *o = json_object();
        char name[16];
        for (size_t i = 0; i < t->status_count; i++) {
                snprintf(name, sizeof name, "%d", t->statuses[i].status);
                json_object_set_new(o, name, count(t->statuses[i].count));
        }
        if (t->other_statuses)
                json_object_set_new(o, "other", count(t->other_statuses));
        return o;
}

static json_t *durations_json(const struct histogram *h)
{
        if (h->count == 0)
                return json_null();
        return json_pack("{s:o, s:o, s:o, s:o}", "count", count(h->count), "p50",
                         answer_seconds(histogram_quantile(h, .5)), "p95",
                         answer_seconds(histogram_quantile(h, .95)), "p99",
                         answer_seconds(histogram_quantile(h, .99)));
}

static void add_tally(json_t *o, const struct tally *t)
{
        json_object_set_new(o, "requests", count(t->requests));
        json_object_set_new(o, "attempts", count(t->attempts));
        json_object_set_new(o, "successes", count(t->successes));
        json_object_set_new(o, "successes_per_minute", count(t->last_minute));
        json_object_set_new(o, "statuses", statuses_json(t));
        json_object_set_new(o, "status_429", count(t->refusals));
        json_object_set_new(o, "status_429_absorbed", count(t->refusals_absorbed));
        json_object_set_new(o, "bytes_in", count(t->bytes_in));
        json_object_set_new(o, "bytes_out", count(t->bytes_out));
        json_object_set_new(o, "duration", durations_json(&t->durations));
}

static json_t *scope_json(struct admin *a, const struct governor_change *s)
{
        const struct limiter_view *v = &s->view;
        struct tally tally = {.requests = 0};
        json_t *o = json_object();
        json_object_set_new(o, "scope", json_string(s->key));
        json_object_set_new(o, "rate", v->rate > 0 ? answer_real(v->rate) : json_null());
        json_object_set_new(o, "refused_rate",
                            v->refused_rate > 0 ? answer_real(v->refused_rate) : json_null());
        json_object_set_new(o, "concurrency_limit", answer_real(v->concurrency));
        json_object_set_new(o, "in_flight", count(v->in_flight));
        json_object_set_new(o, "queued", count(s->queued));
        json_object_set_new(o, "sleeping", count(s->sleeping));
        json_object_set_new(o, "closed_until", answer_time(answer_real_time(v->closed_until)));
        json_object_set_new(o, "circuit_open", json_boolean(v->circuit_open));
        json_object_set_new(o, "last_used", answer_time(answer_real_time(v->used)));
        tallies_find(a->tallies, s->key, s->now, &tally);
        add_tally(o, &tally);
        return o;
}

static bool is_wanted(const struct governor_change *s, const char *q)
{
        return !q || span_contains_nocase(span_of(s->key), span_of(q));
}

static json_t *list_json(struct admin *a, const char *q, size_t limit)
{
        struct scopes scopes;
        json_t *list = json_array();
        size_t found = 0;
        scopes_look(a->sources.gate, &scopes);
        for (size_t i = 0; i < scopes.count; i++) {
                if (!is_wanted(&scopes.list[i], q))
                        continue;
                if (found++ < limit)
                        json_array_append_new(list, scope_json(a, &scopes.list[i]));
        }
        json_t *o = json_pack("{s:o, s:o, s:o, s:o}", "time", answer_time(clock_real()), "known",
                              count(scopes.count), "found", count(found), "scopes", list);
        scopes_done(&scopes);
        return o;
}

void page_scopes(struct admin *a, struct evhttp_request *req, const char *key)
{
        (void)key;
        size_t limit;
        if (!query_count(req, "limit", SHOWN, SHOWN_MOST, &limit)) {
                answer_fault(req, 400, "limit: expected a whole number from 1 to 100000");
                return;
        }
        char *q = query_text(req, "q");
        admin_catch_up(a);
        answer_json(req, 200, list_json(a, q, limit));
        free(q);
}

/* ---- /api/v1/scopes/KEY/series ---- */

static json_t *record_json(const struct series_record *r)
{
        json_t *o = json_object();
        json_object_set_new(o, "time", answer_time(answer_real_time(r->at)));
        json_object_set_new(o, "event", json_string(limiter_event_name(r->event)));
        json_object_set_new(o, "rate", r->rate > 0 ? answer_real(r->rate) : json_null());
        json_object_set_new(o, "concurrency_limit", answer_real(r->concurrency));
        json_object_set_new(o, "in_flight", count(r->in_flight));
        json_object_set_new(o, "queued", count(r->queued));
        json_object_set_new(o, "closed_until",
                            r->closed_until > r->at ? answer_time(answer_real_time(r->closed_until))
                                                    : json_null());
        return o;
}

/* What is compared are moments of clock_now: the wall clock may be set while weir runs. "next" is
 * such a moment. False where `text` makes no sense. */
static bool read_since(const char *text, usec_t *ret)
{
        usec_t real, now_real = clock_real(), now = clock_now();
        if (text[0] == '@') {
                char *end;
                *ret = strtoull(text + 1, &end, 10);
                return end > text + 1 && *end == '\0';
        }
        if (!query_parse_time(text, &real))
                return false;
        *ret = real > now_real ? usec_add(now, real - now_real) : usec_sub(now, now_real - real);
        return true;
}

static json_t *series_json(const char *key, usec_t since, const struct series_record *list,
                           size_t n)
{
        char next[32];
        json_t *changes = json_array();
        usec_t last = n > 0 ? list[n - 1].at : since;
        for (size_t i = 0; i < n; i++)
                json_array_append_new(changes, record_json(&list[i]));
        snprintf(next, sizeof next, "@%" PRIu64, last);
        return json_pack("{s:s, s:s, s:o}", "scope", key, "next", next, "changes", changes);
}

static void answer_unknown(struct evhttp_request *req)
{
        answer_fault(req, 404,
                     "there is no such scope; its key is written as /api/v1/scopes shows "
                     "it, with %25 for each %");
}

void page_series(struct admin *a, struct evhttp_request *req, const char *key)
{
        struct series_record *list = NULL;
        size_t n = 0;
        usec_t since = 0;
        char *text = query_text(req, "since");
        bool good = !text || read_since(text, &since);
        free(text);
        if (!good) {
                answer_fault(req, 400,
                             "since: expected seconds since 1970 such as 1732951200.5, or "
                             "a time such as 2026-11-30T07:54:47.123Z");
                return;
        }
        if (!gate_series(a->sources.gate, span_of(key), since, &list, &n)) {
                answer_unknown(req);
                return;
        }
        answer_json(req, 200, series_json(key, since, list, n));
        free(list);
}

/* ---- /api/v1/scopes/KEY/reset ---- */

void page_reset(struct admin *a, struct evhttp_request *req, const char *key)
{
        if (!gate_reset(a->sources.gate, span_of(key))) {
                answer_unknown(req);
                return;
        }
        log_info("scope %s was reset", key);
        answer_json(req, 200, json_pack("{s:s, s:b}", "scope", key, "reset", 1));
}
