#include "core/egress_pool.h"

#include <string.h>

static const double jitter_max = .1;

/* --- its endpoints --- */

/* Keeps `free` true. Returns whether it is free now and was not before. */
static bool update(struct endpoint *e)
{
        bool was = endpoint_is_free(e);
        unsigned most = !e->policy || e->down ? 0 : e->faults_in_row ? 1 : e->policy->max_in_flight;
        bool is = e->in_flight < most;
        if (is && !was) {
                if (e->served < e->pool->served)
                        e->served = e->pool->served;
                list_append(&e->pool->free, &e->free);
        } else if (!is && was) {
                list_remove(&e->free);
        }
        return is && !was;
}

static struct endpoint *endpoint_new(struct egress_pool *p, const struct endpoint_policy *policy,
                                     size_t id)
{
        size_t len = strlen(policy->name) + 1;
        struct endpoint *e = xmalloc(sizeof *e + len);
        *e = (struct endpoint){.pool = p, .id = id};
        list_init(&e->free);
        list_init(&e->offer);
        list_init(&e->waiting);
        memcpy(e->name, policy->name, len);
        p->endpoints[id] = e;
        return e;
}

static size_t unused_id(struct egress_pool *p)
{
        size_t id = 0;
        while (id < p->room && p->endpoints[id])
                id++;
        if (id == p->room) {
                p->room = p->room ? 2 * p->room : 8;
                p->endpoints = xrealloc(p->endpoints, p->room * sizeof *p->endpoints);
                memset(p->endpoints + id, 0, (p->room - id) * sizeof *p->endpoints);
        }
        return id;
}

/* hint  where it is most likely */
static struct endpoint *find(const struct egress_pool *p, const char *name, size_t hint)
{
        for (size_t i = 0; i < p->room; i++) {
                struct endpoint *e = p->endpoints[(hint + i) % p->room];
                if (e && strcmp(e->name, name) == 0)
                        return e;
        }
        return NULL;
}

struct endpoint *egress_pool_find(const struct egress_pool *p, const char *name)
{
        return find(p, name, 0);
}

static void count_up(struct egress_pool *p)
{
        p->up = 0;
        for (size_t i = 0; i < p->room; i++)
                p->up += p->endpoints[i] && endpoint_is_up(p->endpoints[i]);
}

/* --- a pool --- */

static void hold(const struct pool_policy *policy)
{
        if (policy && policy->hold)
                policy->hold(policy->owner);
}

static void drop(const struct pool_policy *policy)
{
        if (policy && policy->drop)
                policy->drop(policy->owner);
}

struct egress_pool *egress_pool_new(const struct pool_policy *policy)
{
        size_t len = strlen(policy->name) + 1;
        struct egress_pool *p = xmalloc(sizeof *p + len);
        *p = (struct egress_pool){.policy = NULL};
        list_init(&p->free);
        list_init(&p->lanes);
        list_init(&p->waiting);
        sessions_init(&p->sessions);
        quarantine_init(&p->quarantine);
        memcpy(p->name, policy->name, len);
        egress_pool_configure(p, policy);
        return p;
}

void egress_pool_drop(struct endpoint *e)
{
        struct egress_pool *p = e->pool;
        quarantine_forget(&p->quarantine, e->id);
        p->endpoints[e->id] = NULL;
        list_remove(&e->free);
        list_remove(&e->offer);
        free(e);
}

void egress_pool_free(struct egress_pool *p)
{
        if (!p)
                return;
        sessions_done(&p->sessions);
        for (size_t i = 0; i < p->room; i++)
                if (p->endpoints[i])
                        egress_pool_drop(p->endpoints[i]);
        quarantine_done(&p->quarantine);
        free(p->endpoints);
        drop(p->policy);
        free(p);
}

void egress_pool_configure(struct egress_pool *p, const struct pool_policy *policy)
{
        const struct pool_policy *old = p->policy;
        hold(policy);
        p->policy = policy;
        for (size_t i = 0; i < p->room; i++)
                if (p->endpoints[i])
                        p->endpoints[i]->policy = NULL;
        for (size_t i = 0; i < policy->endpoint_count; i++) {
                const struct endpoint_policy *one = &policy->endpoints[i];
                struct endpoint *e = find(p, one->name, i);
                if (!e)
                        e = endpoint_new(p, one, unused_id(p));
                e->policy = one;
        }
        for (size_t i = 0; i < p->room; i++) {
                struct endpoint *e = p->endpoints[i];
                if (!e)
                        continue;
                update(e);
                if (!e->policy && e->sessions > 0)
                        sessions_lose_endpoint(&p->sessions, e);
        }
        count_up(p);
        drop(old);
}

/* --- what happens to an endpoint --- */

void endpoint_take(struct endpoint *e)
{
        e->in_flight++;
        e->uses++;
        e->pool->served = e->served;
        e->served += 1.0 / e->policy->weight;
        update(e);
}

bool endpoint_release(struct endpoint *e)
{
        e->in_flight--;
        return update(e);
}

bool endpoint_works(struct endpoint *e)
{
        e->faults_in_row = 0;
        if (e->down && e->policy)
                e->pool->up++;
        e->down = false;
        return update(e);
}

bool endpoint_recover(struct endpoint *e)
{
        if (e->down && e->policy)
                e->pool->up++;
        e->down = false;
        return update(e);
}

bool endpoint_fail(struct endpoint *e, usec_t sent, usec_t now, struct prng *prng)
{
        e->faults++;
        if (e->down || (e->fault_at > 0 && sent < e->fault_at))
                return false;
        usec_t back_off = ENDPOINT_BACK_OFF_MIN;
        for (unsigned i = 0; i < e->faults_in_row && back_off < ENDPOINT_BACK_OFF_MAX; i++)
                back_off *= 2;
        back_off = usec_min(back_off, ENDPOINT_BACK_OFF_MAX);
        back_off += usec_from_seconds(usec_seconds(back_off) * jitter_max * prng_unit(prng));
        if (e->policy)
                e->pool->up--;
        e->faults_in_row++;
        e->fault_at = now;
        e->down = true;
        e->until = usec_add(now, back_off);
        update(e);
        return true;
}

/* --- choosing --- */

struct choice {
        struct endpoint *e;
        double used; /* requests in flight, or sessions, by weight */
};

static bool is_better(const struct choice *a, const struct choice *b, enum egress_choose choose)
{
        if (!b->e || (choose == EGRESS_LEAST_USED && a->used < b->used))
                return true;
        return (choose != EGRESS_LEAST_USED || a->used <= b->used) && a->e->served < b->e->served;
}

/* Who asks for which. */
struct asking {
        bool for_session;
        bool sound; /* that did not fail last */
        bool (*may)(void *arg, struct endpoint *e);
        void *arg;
};

static bool will_do(const struct asking *a, struct endpoint *e)
{
        return (!a->sound || e->faults_in_row == 0) && a->may(a->arg, e);
}

static struct endpoint *choose_by_chance(struct egress_pool *p, const struct asking *asking,
                                         struct prng *prng)
{
        struct endpoint *chosen = NULL;
        double weights = 0;
        list_foreach (it, &p->free) {
                struct endpoint *e = LIST_ENTRY_OF(it, struct endpoint, free);
                if (!will_do(asking, e))
                        continue;
                weights += e->policy->weight;
                if (prng_unit(prng) * weights < e->policy->weight)
                        chosen = e; /* with just its share of all those seen so far */
        }
        return chosen;
}

static struct endpoint *choose(struct egress_pool *p, const struct asking *asking,
                               struct prng *prng)
{
        struct choice best = {NULL, 0};
        if (p->policy->choose == EGRESS_RANDOM)
                return choose_by_chance(p, asking, prng);
        list_foreach (it, &p->free) {
                struct endpoint *e = LIST_ENTRY_OF(it, struct endpoint, free);
                double count = (double)(asking->for_session ? e->sessions : e->in_flight);
                struct choice one = {e, count / e->policy->weight};
                if (is_better(&one, &best, p->policy->choose) && will_do(asking, e))
                        best = one;
        }
        return best.e;
}

struct endpoint *egress_pool_choose(struct egress_pool *p, bool for_session, struct prng *prng,
                                    bool (*may)(void *arg, struct endpoint *e), void *arg)
{
        struct asking asking = {for_session, for_session, may, arg};
        struct endpoint *e = choose(p, &asking, prng);
        if (e || !asking.sound)
                return e;
        asking.sound = false;
        return choose(p, &asking, prng);
}

usec_t egress_pool_expected(const struct egress_pool *p, const struct quarantine_host *h,
                            const struct endpoint * not, usec_t now)
{
        usec_t expected = USEC_MAX;
        if (!not &&p->up > 0 && !quarantine_is_on(h, now))
                return now;
        for (size_t i = 0; i < p->room && expected > now; i++) {
                const struct endpoint *e = p->endpoints[i];
                if (!e || !e->policy || e == not )
                        continue;
                usec_t at = usec_max(e->down ? e->until : now, quarantine_until(h, i));
                expected = usec_min(expected, usec_max(at, now));
        }
        return expected;
}
