/* Pools, the lanes that go through them, and what is learned of their endpoints. */
#include <string.h>

#include "core/governor_state.h"

/* --- pools and lanes --- */

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
static struct egress_pool *find_pool(const struct governor *g, const char *name)
{
        struct egress_pool *p;
        HASH_FIND_STR(g->pools, name, p);
        return p;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct egress_pool *add_pool(struct governor *g, const struct pool_policy *policy)
{
        struct egress_pool *p = egress_pool_new(policy);
        HASH_ADD_KEYPTR(hh, g->pools, p->name, strlen(p->name), p);
        p->gone = g->pools_told; /* a request of an older configuration brings it once more */
        return p;
}

/* A retired endpoint with nothing in flight is forgotten. */
static void drop_if_retired(struct governor *g, struct endpoint *e)
{
        if (e->policy || e->in_flight > 0)
                return;
        list_foreach (it, &e->pool->lanes) {
                struct lane *l = LIST_ENTRY_OF(it, struct lane_egress, of_pool)->lane;
                struct lane_slot *slot = lane_slot_find(l, e);
                if (!slot)
                        continue;
                series_done(&slot->series, &g->series);
                g->limiters -= l->egress->by_endpoint;
                lane_slot_free(slot);
        }
        egress_pool_drop(e);
}

/* Tickets that wait for it alone are to look for another one. */
static void unpark_all(struct governor *g, struct endpoint *e, usec_t now)
{
        while (!list_empty(&e->waiting)) {
                struct lane_slot *slot = LIST_ENTRY_OF(e->waiting.next, struct lane_slot, waiting);
                governor_touch(g, slot->lane);
                lane_unpark_all(slot, now);
        }
}

/* Lanes that wait for any endpoint are to look again whether there is one to wait for. */
static void look_again(struct governor *g, struct egress_pool *p, usec_t now)
{
        list_foreach (it, &p->waiting) {
                struct lane *l = LIST_ENTRY_OF(it, struct lane_egress, waiting)->lane;
                lane_take_back(l, now);
                governor_touch(g, l);
        }
}

/* Sleepers for whom there was no endpoint are to look for one at once. */
static void wake_stranded(struct governor *g, struct lane *l, usec_t now)
{
        while (!list_empty(&l->egress->stranded)) {
                struct ticket *t = LIST_ENTRY_OF(l->egress->stranded.next, struct ticket, link);
                list_remove(&t->link);
                heap_set(&l->sleepers, &t->wake, now);
        }
        governor_touch(g, l);
}

static void reconfigure(struct governor *g, struct egress_pool *p, const struct pool_policy *policy,
                        usec_t now)
{
        egress_pool_configure(p, policy);
        for (size_t i = 0; i < p->room; i++) {
                struct endpoint *e = p->endpoints[i];
                if (!e)
                        continue;
                governor_offer_later(g, e);
                if (e->policy)
                        continue;
                heap_remove(&g->recoveries, &e->recovery);
                unpark_all(g, e, now);
                drop_if_retired(g, e);
        }
        list_foreach (it, &p->lanes) {
                struct lane_egress *x = LIST_ENTRY_OF(it, struct lane_egress, of_pool);
                lane_egress_configure(x);
                wake_stranded(g, x->lane, now);
        }
        look_again(g, p, now);
}

static struct egress_pool *pool_for(struct governor *g, const struct pool_policy *policy,
                                    usec_t now)
{
        struct egress_pool *p = find_pool(g, policy->name);
        if (!p)
                return add_pool(g, policy);
        if (policy->generation > p->policy->generation)
                reconfigure(g, p, policy, now);
        return p;
}

static bool is_used(const struct egress_pool *p)
{
        bool used = !list_empty(&p->lanes);
        for (size_t i = 0; i < p->room && !used; i++)
                used = p->endpoints[i] && p->endpoints[i]->in_flight > 0;
        return used;
}

static void forget_pool(struct governor *g, struct egress_pool *p)
{
        for (size_t i = 0; i < p->room; i++)
                if (p->endpoints[i])
                        heap_remove(&g->recoveries, &p->endpoints[i]->recovery);
        HASH_DEL(g->pools, p);
        egress_pool_free(p);
}

void governor_rest_pools(struct governor *g)
{
        g->pools_rest = false;
        for (struct egress_pool *p = g->pools, *next; p; p = next) {
                next = p->hh.next;
                if (p->gone && !is_used(p))
                        forget_pool(g, p);
        }
}

void governor_pools(struct governor *g, const struct pool_policy *const *pools, size_t count,
                    usec_t now)
{
        g->pools_told = true;
        for (struct egress_pool *p = g->pools; p; p = p->hh.next)
                p->gone = true;
        for (size_t i = 0; i < count; i++)
                pool_for(g, pools[i], now)->gone = false;
        g->pools_rest = true;
        governor_work_off(g, now);
}

void governor_egress_claim(struct governor *g, struct lane *l, const struct pool_policy *policy,
                           bool by_endpoint, usec_t now)
{
        if (!l->egress)
                lane_egress_attach(l, pool_for(g, policy, now), by_endpoint);
        else if (policy->generation > l->egress->pool->policy->generation)
                reconfigure(g, l->egress->pool, policy, now);
}

struct lane_slot *governor_slot(struct governor *g, struct lane *l, struct endpoint *e, usec_t now)
{
        size_t before = l->egress->count;
        struct lane_slot *slot = lane_slot_for(l, e, now);
        if (!l->egress->by_endpoint)
                return slot;
        g->limiters += l->egress->count - before;
        if (slot->memory && !l->unclaimed) {
                lane_slot_recall(slot, now);
                governor_report(g, l, slot, LIMITER_RESTORED, now);
        }
        return slot;
}

struct limiter *governor_limiter(struct lane *l, const struct ticket *t,
                                 struct lane_slot **ret_slot)
{
        *ret_slot = t->at && l->egress->by_endpoint ? lane_slot_find(l, t->at) : NULL;
        return *ret_slot ? &(*ret_slot)->limiter : &l->limiter;
}

/* --- what is learned of endpoints --- */

static void open_circuit(struct governor *g, struct lane *l, struct ticket *t, usec_t now)
{
        struct hold *circuit = &l->egress->circuit;
        const struct limiter_policy *limit = &l->policy.limit;
        double jitter = 1 + .1 * prng_unit(&g->prng);
        bool was_open = circuit->circuit_open;
        if (t->probes)
                hold_probe_refused(circuit, limit->breaker.cooldown, jitter, now);
        else if (hold_refused(circuit, limit->breaker.trip, limit->breaker.cooldown, jitter, now) &&
                 !was_open)
                governor_report(g, l, NULL, LIMITER_CIRCUIT_OPEN, now);
        t->probes = false;
}

static void close_circuit(struct governor *g, struct lane *l, struct ticket *t,
                          enum answer_class class, usec_t now)
{
        struct hold *circuit = &l->egress->circuit;
        if (class == ANSWER_SUCCESS)
                hold_accepted(circuit);
        if (t->probes && class == ANSWER_FAILED) {
                hold_probe_cancelled(circuit);
        } else if (t->probes) {
                hold_reopen(circuit, now);
                governor_report(g, l, NULL, LIMITER_REOPENED, now);
        }
        t->probes = false;
}

void governor_egress_answered(struct governor *g, struct lane *l, struct ticket *t,
                              enum answer_class class, usec_t now)
{
        struct endpoint *e = t->at;
        const struct pool_policy *policy = e->pool->policy;
        struct lane_slot *slot = lane_slot_find(l, e);
        if (slot)
                slot->wake = 0;
        endpoint_works(e);
        heap_remove(&g->recoveries, &e->recovery);
        governor_offer_later(g, e);
        if (class != ANSWER_BLOCKED) {
                if (class == ANSWER_SUCCESS)
                        quarantine_accepted(t->host, e->id, now);
                close_circuit(g, l, t, class, now);
                return;
        }
        e->blocks++;
        open_circuit(g, l, t, now);
        if (quarantine_blocked(t->host, e->id, policy->quarantine.after, policy->quarantine.time,
                               now)) {
                unpark_all(g, e, now);
                look_again(g, e->pool, now);
        }
}

bool governor_endpoint_failed(struct governor *g, struct ticket *t, usec_t now, usec_t *ret_wait)
{
        struct endpoint *e = t->at;
        bool news = endpoint_fail(e, t->pass.sent, now, &g->prng);
        usec_t at = egress_pool_expected(e->pool, t->host, NULL, now);
        *ret_wait = at < USEC_MAX ? at - now : USEC_MAX;
        if (!news)
                return false;
        if (e->policy)
                heap_set(&g->recoveries, &e->recovery, e->until);
        if (endpoint_is_lost(e))
                unpark_all(g, e, now);
        if (e->pool->up == 0)
                list_foreach (it, &e->pool->lanes)
                        governor_touch(g, LIST_ENTRY_OF(it, struct lane_egress, of_pool)->lane);
        governor_work_off(g, now);
        return true;
}

bool governor_egress_may_move(const struct ticket *t, usec_t deadline, usec_t now)
{
        const struct endpoint *e = t->at;
        if (!e)
                return false;
        bool keeps = t->session && t->session->endpoint == e && !endpoint_is_lost(e) &&
                     quarantine_until(t->host, e->id) <= now;
        return !keeps && egress_pool_expected(e->pool, t->host, e, now) <= deadline;
}

void governor_egress_release(struct governor *g, struct ticket *t)
{
        struct endpoint *e = t->at;
        struct egress_pool *pool = e->pool;
        const struct pool_policy *by = t->by;
        t->at = NULL;
        t->endpoint = NULL;
        t->by = NULL;
        endpoint_release(e);
        governor_offer_later(g, e);
        drop_if_retired(g, e);
        g->pools_rest |= pool->gone;
        if (by->drop)
                by->drop(by->owner);
}
