/* What others get to see and to keep of the governor. */
#include <string.h>

#include "core/governor_state.h"
#include "core/scope_key.h"

void governor_stats(const struct governor *g, struct governor_stats *ret_stats)
{
        *ret_stats = g->stats;
        ret_stats->lanes = HASH_COUNT(g->lanes);
}

/* --- scopes --- */

/* How much of a portion a lane takes: it is not divided. */
static size_t weight(const struct lane *l, size_t most)
{
        size_t n = 1 + (l->egress ? l->egress->count : 0);
        return n < most ? n : most;
}

static void look_at_slot(const struct lane_slot *slot, usec_t now,
                         void (*each)(void *arg, const struct governor_change *view), void *arg)
{
        struct governor_change change = {.now = now,
                                         .key = slot->key,
                                         .queued = slot->parked ? slot->parked->queued : 0,
                                         .sent = slot->sent};
        lane_slot_look(slot, now, &change.view);
        each(arg, &change);
}

bool governor_look(struct governor *g, bool begin, size_t lanes, usec_t now,
                   void (*each)(void *arg, const struct governor_change *view), void *arg)
{
        if (begin)
                g->look = g->lanes;
        for (; g->look && lanes > 0; lanes -= weight(g->look, lanes), g->look = g->look->hh.next) {
                const struct lane *l = g->look;
                const struct lane_egress *x = l->egress;
                struct governor_change change = {.now = now,
                                                 .key = l->key,
                                                 .queued = l->queued + l->held,
                                                 .sleeping = l->sleeping,
                                                 .sent = l->sent};
                lane_look(l, now, &change.view);
                each(arg, &change);
                for (size_t i = 0; x && x->by_endpoint && i < x->room; i++)
                        if (x->slots[i])
                                look_at_slot(x->slots[i], now, each, arg);
        }
        return g->look != NULL;
}

/* The limiter of an endpoint, by its key. */
static struct lane_slot *find_slot(const struct governor *g, struct span key)
{
        struct span scope, name;
        if (!scope_key_split_endpoint(key, &scope, &name))
                return NULL;
        struct lane *l = governor_find(g, scope);
        for (size_t i = 0; l && l->egress && l->egress->by_endpoint && i < l->egress->room; i++) {
                struct lane_slot *slot = l->egress->slots[i];
                if (slot && span_equal(span_of(slot->key), key))
                        return slot;
        }
        return NULL;
}

static void reset_slot(struct governor *g, struct lane_slot *slot, usec_t now)
{
        free(slot->memory);
        slot->memory = NULL;
        slot->wake = 0;
        limiter_reset(&slot->limiter, now);
        governor_report(g, slot->lane, slot, LIMITER_RESET, now);
}

static void reset_lane(struct governor *g, struct lane *l, usec_t now)
{
        struct lane_egress *x = l->egress;
        limiter_reset(&l->limiter, now);
        retry_budget_init(&l->budget);
        if (x)
                x->circuit = (struct hold){.closed = false};
        for (size_t i = 0; x && x->by_endpoint && i < x->room; i++)
                if (x->slots[i])
                        reset_slot(g, x->slots[i], now);
        governor_report(g, l, NULL, LIMITER_RESET, now);
}

bool governor_reset(struct governor *g, struct span key, usec_t now)
{
        key = governor_not_null(key);
        struct lane *l = governor_find(g, key);
        struct lane_slot *slot = l ? NULL : find_slot(g, key);
        if (!l && !slot)
                return false;
        g->stats.resets++;
        if (slot) {
                l = slot->lane;
                reset_slot(g, slot, now);
        } else if (l->memory || l->unclaimed) { /* it is nothing but that */
                governor_forget(g, l);
                return true;
        } else {
                reset_lane(g, l, now);
        }
        governor_touch(g, l);
        governor_work_off(g, now);
        return true;
}

bool governor_series(const struct governor *g, struct span key, usec_t since,
                     void (*each)(void *arg, const struct series_record *record), void *arg)
{
        key = governor_not_null(key);
        const struct lane *l = governor_find(g, key);
        const struct lane_slot *slot = l ? NULL : find_slot(g, key);
        if (l || slot)
                series_read(l ? &l->series : &slot->series, since, each, arg);
        return l || slot;
}

/* --- memory --- */

bool governor_export(struct governor *g, bool begin, size_t lanes, usec_t now,
                     void (*each)(void *arg, const char *key, const struct limiter_memory *m),
                     void *arg)
{
        struct limiter_memory m;
        if (begin)
                g->export = g->lanes;
        for (; g->export && lanes > 0;
             lanes -= weight(g->export, lanes), g->export = g->export->hh.next) {
                const struct lane *l = g->export;
                const struct lane_egress *x = l->egress;
                if (!(x && x->by_endpoint) && lane_export(l, now, &m))
                        each(arg, l->key, &m);
                for (size_t i = 0; x && x->by_endpoint && i < x->room; i++)
                        if (x->slots[i] && lane_slot_export(x->slots[i], now, &m))
                                each(arg, x->slots[i]->key, &m);
        }
        return g->export != NULL;
}

/* The endpoint that a key of a limiter names, if there is such a one. */
static struct endpoint *named_endpoint(const struct governor *g, struct span key)
{
        struct endpoint *found = NULL;
        char *pool, *name;
        if (!scope_key_read_endpoint(key, &pool, &name))
                return NULL;
        for (struct egress_pool *p = g->pools; p; p = p->hh.next)
                if (strcmp(p->name, pool) == 0)
                        found = egress_pool_find(p, name);
        free(pool);
        free(name);
        return found;
}

static void import_slot(struct governor *g, struct span scope, struct endpoint *e,
                        const struct limiter_memory *m, usec_t now)
{
        struct lane *l = governor_find(g, scope);
        if (!l) {
                l = governor_add(g, lane_new(scope, &(struct lane_policy){0}), scope);
                l->unclaimed = true;
                lane_egress_attach(l, e->pool, true);
        }
        if (l->unclaimed && l->egress && l->egress->pool == e->pool)
                lane_slot_remember(governor_slot(g, l, e, now), m, now);
        governor_settle(g, l);
}

void governor_import(struct governor *g, struct span key, const struct limiter_memory *m,
                     usec_t now)
{
        struct span scope, name;
        struct endpoint *e;
        key = governor_not_null(key);
        if (!scope_key_split_endpoint(key, &scope, &name)) {
                if (!governor_find(g, key))
                        governor_settle(g, governor_add(g, lane_new_remembered(key, m, now), key));
        } else if ((e = named_endpoint(g, key))) {
                import_slot(g, scope, e, m, now);
        }
}

/* --- pools --- */

size_t governor_look_endpoints(const struct governor *g, size_t from, size_t count,
                               void (*each)(void *arg, const struct endpoint_view *view), void *arg)
{
        size_t at = 0, told = 0;
        for (const struct egress_pool *p = g->pools; p; p = p->hh.next)
                for (size_t i = 0; i < p->room && told < count; i++) {
                        const struct endpoint *e = p->endpoints[i];
                        if (!e || at++ < from)
                                continue;
                        struct endpoint_view view = {
                            .pool = p->name,
                            .name = e->name,
                            .in_flight = e->in_flight,
                            .max_in_flight = e->policy ? e->policy->max_in_flight : 0,
                            .uses = e->uses,
                            .faults = e->faults,
                            .blocks = e->blocks,
                            .faults_in_row = e->faults_in_row,
                            .back_off_until = e->down ? e->until : 0,
                            .sessions = e->sessions,
                        };
                        memcpy(view.exit, e->exit, sizeof view.exit);
                        each(arg, &view);
                        told++;
                }
        return told;
}

void governor_exit(struct governor *g, const struct ticket *t, char exit[ENDPOINT_EXIT_MAX])
{
        (void)g;
        if (t->at && exit[0])
                memcpy(t->at->exit, exit, ENDPOINT_EXIT_MAX);
        else if (t->at)
                memcpy(exit, t->at->exit, ENDPOINT_EXIT_MAX);
}

size_t governor_look_quarantines(const struct governor *g, size_t from, size_t count, usec_t now,
                                 void (*each)(void *arg, const struct quarantine_view *view),
                                 void *arg)
{
        size_t at = 0, told = 0;
        for (const struct egress_pool *p = g->pools; p; p = p->hh.next)
                list_foreach (it, &p->quarantine.by_block) {
                        const struct quarantine_host *h =
                            LIST_ENTRY_OF(it, struct quarantine_host, by_block);
                        for (size_t i = 0; i < h->room && told < count; i++) {
                                if (quarantine_until(h, i) <= now || at++ < from)
                                        continue;
                                each(arg,
                                     &(struct quarantine_view){.pool = p->name,
                                                               .endpoint = p->endpoints[i]->name,
                                                               .host = h->name,
                                                               .until = h->marks[i].until});
                                told++;
                        }
                }
        return told;
}

size_t governor_look_sessions(const struct governor *g, size_t from, size_t count,
                              void (*each)(void *arg, const struct session_view *view), void *arg)
{
        size_t at = 0, told = 0;
        for (const struct egress_pool *p = g->pools; p; p = p->hh.next)
                for (const struct session *s = p->sessions.table; s && told < count;
                     s = s->hh.next) {
                        if (!s->endpoint || s->pinned || at++ < from)
                                continue;
                        each(arg, &(struct session_view){.pool = p->name,
                                                         .endpoint = s->endpoint->name,
                                                         .session = s->key,
                                                         .used = s->used,
                                                         .tickets = s->tickets});
                        told++;
                }
        return told;
}

void governor_import_quarantine(struct governor *g, const struct quarantine_view *q, usec_t now)
{
        for (struct egress_pool *p = g->pools; p; p = p->hh.next) {
                struct endpoint *e =
                    strcmp(p->name, q->pool) == 0 ? egress_pool_find(p, q->endpoint) : NULL;
                if (!e)
                        continue;
                struct quarantine_host *h = quarantine_enter(&p->quarantine, span_of(q->host));
                quarantine_set(h, e->id,
                               usec_min(q->until, usec_add(now, p->policy->quarantine.time)));
                quarantine_leave(h, now);
        }
}
