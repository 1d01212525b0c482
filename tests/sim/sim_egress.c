/*
 * The governor with pools, in virtual time: endpoints that fail, hosts that block, sessions,
 * clients that go away and reloads that take endpoints away. What must hold is checked with every
 * grant.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "core/governor.h"

#define MSEC USEC_PER_MSEC
#define SEC USEC_PER_SEC

enum { POOLS = 3, ENDPOINTS = 10, HOSTS = 12, SESSIONS = 30, SCOPES = 14 };
enum step { ARRIVE, ACCEPT, ANSWER, FINISH };

struct request {
        struct ticket ticket;
        struct heap_node next;
        struct heap_node leave;
        usec_t arrived, deadline;
        size_t scope, host, session, client, serial;
        unsigned priority;
        enum step step;
        unsigned attempts, ended;
        bool mailed, granted, keeps;
        size_t endpoint; /* while granted */
};

struct scope {
        char key[64];
        struct lane_policy policy;
        size_t pool; /* POOLS: none */
        bool one_host;
};

struct endpoint_world {
        char name[48];
        bool is_there;
        unsigned in_flight; /* granted */
        unsigned faults;    /* in a row */
        usec_t avoided_until[HOSTS];
        unsigned blocks[HOSTS];
        usec_t blocked[HOSTS]; /* last */
};

struct session_world {
        size_t endpoint; /* ENDPOINTS: none */
        usec_t used;
        unsigned inside;       /* tickets in the governor */
        struct request *owner; /* in order */
        size_t serial;         /* of the one that began last */
};

/* A configuration of a pool; counted, and freed with its last user. */
struct snapshot {
        struct pool_policy policy;
        struct endpoint_policy endpoints[ENDPOINTS];
        unsigned users;
};

struct plan {
        const char *name;
        size_t requests;
        usec_t length, patience;
        double leaving;
        usec_t reload_every;  /* 0: never */
        usec_t closing;       /* 0: never */
        double faulty;        /* share of the time in which an endpoint fails */
        unsigned block_share; /* one in so many hosts blocks an endpoint for a while; 0: none */
};

struct world {
        const struct plan *plan;
        struct governor *g;
        struct prng prng;
        usec_t now, reload_at;
        unsigned generation;
        struct heap steps, leaves;
        struct request *requests;
        struct list mailbox;
        struct scope scopes[SCOPES];
        struct snapshot *snapshots[POOLS];
        struct endpoint_world endpoints[POOLS][ENDPOINTS];
        struct session_world sessions[POOLS + 1][SESSIONS];
        size_t ended, serial;
        bool gone[POOLS];
        bool closed;
};

/* What all runs have been through together. */
static struct {
        size_t replies[TICKET_CLOSING + 1], cancelled[TICKET_KEEPING + 1];
        size_t moved, elsewhere, failed_over, kept, bound, in_order, removed, snapshots;
} seen;

static bool chance(struct world *w, double share)
{
        return prng_unit(&w->prng) < share;
}

static size_t pick(struct world *w, size_t count)
{
        return (size_t)(prng_unit(&w->prng) * (double)count);
}

static void schedule(struct world *w, struct request *r, enum step step, usec_t wait)
{
        r->step = step;
        heap_set(&w->steps, &r->next, w->now + wait);
}

/* --- the configuration --- */

static void hold(void *owner)
{
        ((struct snapshot *)owner)->users++;
}

static void drop(void *owner)
{
        struct snapshot *s = owner;
        if (--s->users > 0)
                return;
        seen.snapshots--;
        free(s);
}

static void forget_blocks(struct endpoint_world *e)
{
        memset(e->avoided_until, 0, sizeof e->avoided_until);
        memset(e->blocks, 0, sizeof e->blocks);
}

/* A new configuration of a pool: some of the endpoints, one at the least. */
static void configure(struct world *w, size_t pool, bool all)
{
        static const enum egress_choose ways[POOLS] = {EGRESS_LEAST_USED, EGRESS_ROUND_ROBIN,
                                                       EGRESS_RANDOM};
        static const char *const names[POOLS] = {"res", "dc", "mob"};
        struct snapshot *s = xcalloc(1, sizeof *s);
        seen.snapshots++;
        size_t count = 0, sure = pick(w, ENDPOINTS);
        for (size_t i = 0; i < ENDPOINTS; i++) {
                struct endpoint_world *e = &w->endpoints[pool][i];
                bool stays = all || i == sure || chance(w, .7);
                if (e->is_there && !stays) {
                        seen.removed++;
                        forget_blocks(e);
                }
                e->is_there = stays;
                if (stays)
                        s->endpoints[count++] = (struct endpoint_policy){
                            .name = e->name,
                            .max_in_flight = 1 + (pool == 1 ? (unsigned)pick(w, 3) : 0),
                            .weight = 1 + (unsigned)pick(w, 3)};
        }
        s->policy = (struct pool_policy){.name = names[pool],
                                         .endpoints = s->endpoints,
                                         .endpoint_count = count,
                                         .choose = ways[pool],
                                         .sticky = pool != 2,
                                         .sticky_ttl = 60 * SEC,
                                         .quarantine = {1 + (unsigned)pool, 100 * SEC},
                                         .generation = w->generation,
                                         .owner = s,
                                         .hold = hold,
                                         .drop = drop};
        s->users = 1;
        if (w->snapshots[pool])
                drop(w->snapshots[pool]);
        w->snapshots[pool] = s;
}

/* While the configuration has not the pool, and requests under way alone have it yet, it may be
 * forgotten at any time what was known of it. */
static void forget_if_gone(struct world *w, size_t pool)
{
        for (size_t i = 0; w->gone[pool] && i < ENDPOINTS; i++)
                forget_blocks(&w->endpoints[pool][i]);
        for (size_t i = 0; w->gone[pool] && i < SESSIONS; i++)
                w->sessions[pool][i].endpoint = ENDPOINTS;
}

static void reload(struct world *w)
{
        const struct pool_policy *policies[POOLS];
        size_t told = 0;
        w->generation++;
        for (size_t p = 0; p < POOLS; p++) {
                forget_if_gone(w, p);
                w->gone[p] = p == 1 && w->generation % 3 == 0;
                if (w->gone[p])
                        continue;
                configure(w, p, w->generation == 1);
                policies[told++] = &w->snapshots[p]->policy;
        }
        for (size_t i = 0; i < SCOPES; i++)
                w->scopes[i].policy.generation = w->generation;
        governor_pools(w->g, policies, told, w->now);
}

/* --- what must hold --- */

static size_t index_of(const struct world *w, size_t pool, const char *name)
{
        for (size_t i = 0; i < ENDPOINTS; i++)
                if (strcmp(w->endpoints[pool][i].name, name) == 0)
                        return i;
        fail_msg("no endpoint is named %s", name);
        return ENDPOINTS;
}

static void check_session(struct world *w, struct request *r, size_t pool, size_t endpoint)
{
        struct session_world *s = &w->sessions[pool][r->session];
        bool in_order = w->scopes[r->scope].policy.session_order;
        if (in_order) {
                assert_true(!s->owner || s->owner == r);
                assert_true(s->owner == r || r->serial > s->serial);
                seen.in_order += !s->owner;
                s->owner = r;
                s->serial = r->serial;
        }
        if (pool == POOLS || !w->snapshots[pool]->policy.sticky)
                return;
        const struct endpoint_world *old =
            s->endpoint < ENDPOINTS ? &w->endpoints[pool][s->endpoint] : NULL;
        if (old && s->endpoint != endpoint) {
                bool lost = !old->is_there || old->faults >= 3 ||
                            old->avoided_until[r->host] > w->now || r->ticket.moved;
                assert_true(lost);
                assert_true(r->ticket.moved);
        }
        seen.bound += old && s->endpoint == endpoint;
        seen.moved += r->ticket.moved;
        s->endpoint = endpoint;
        s->used = w->now;
}

/* Decided just now. */
static void granted(struct world *w, struct request *r)
{
        const struct scope *scope = &w->scopes[r->scope];
        size_t pool = scope->pool, i = ENDPOINTS;
        if (pool < POOLS)
                forget_if_gone(w, pool);
        assert_false(r->granted);
        r->granted = true;
        if (pool < POOLS) {
                assert_non_null(r->ticket.endpoint);
                i = index_of(w, pool, r->ticket.endpoint->name);
                struct endpoint_world *e = &w->endpoints[pool][i];
                assert_true(e->is_there);
                assert_true(e->in_flight < r->ticket.endpoint->max_in_flight);
                assert_true(e->avoided_until[r->host] <= w->now);
                e->in_flight++;
                r->endpoint = i;
        } else {
                assert_null(r->ticket.endpoint);
        }
        if (r->session < SESSIONS)
                check_session(w, r, pool, i);
}

static void given_back(struct world *w, struct request *r)
{
        size_t pool = w->scopes[r->scope].pool;
        if (r->granted && pool < POOLS)
                w->endpoints[pool][r->endpoint].in_flight--;
        r->granted = false;
}

/* It is in the governor no more. */
static void left(struct world *w, struct request *r)
{
        given_back(w, r);
        if (r->session == SESSIONS)
                return;
        struct session_world *s = &w->sessions[w->scopes[r->scope].pool][r->session];
        if (s->owner == r)
                s->owner = NULL;
        s->used = w->now;
        if (--s->inside == 0 && !w->snapshots[0]->policy.sticky)
                s->endpoint = ENDPOINTS;
}

static void end(struct world *w, struct request *r)
{
        assert_int_equal(r->ticket.state, TICKET_IDLE);
        assert_null(r->ticket.endpoint);
        assert_int_equal(r->ended++, 0);
        w->ended++;
        heap_remove(&w->steps, &r->next);
        heap_remove(&w->leaves, &r->leave);
}

/* --- a request --- */

static struct ticket_wish wish_of(const struct world *w, const struct request *r)
{
        static char client[32], host[48], session[32];
        bool has_session = r->session < SESSIONS;
        const struct scope *s = &w->scopes[r->scope];
        snprintf(client, sizeof client, "client%zu", r->client);
        snprintf(host, sizeof host, "host%zu.example", r->host);
        snprintf(session, sizeof session, "s%zu", r->session);
        return (struct ticket_wish){
            .key = span_of(s->key),
            .client = span_of(client),
            .policy = &s->policy,
            .pool = s->pool < POOLS ? &w->snapshots[s->pool]->policy : NULL,
            .host = span_of(host),
            .session = span_of(has_session ? session : ""),
            .arrived = r->arrived,
            .deadline = r->deadline,
            .priority = r->priority,
        };
}

/* What it had is over, as the governor does it: with the first that asks after that time. */
static void forget_session(struct world *w, const struct request *r)
{
        size_t pool = w->scopes[r->scope].pool;
        struct session_world *s = &w->sessions[pool][r->session];
        if (s->inside == 0 && pool < POOLS &&
            s->used + w->snapshots[pool]->policy.sticky_ttl <= w->now)
                s->endpoint = ENDPOINTS;
        s->inside++;
        s->used = w->now;
}

static void sent(struct world *w, struct request *r)
{
        r->attempts++;
        schedule(w, r, ANSWER, 20 * MSEC + prng_usec(&w->prng, 400 * MSEC));
}

static void ask(struct world *w, struct request *r)
{
        struct ticket_wish wish = wish_of(w, r);
        r->serial = ++w->serial;
        if (r->session < SESSIONS)
                forget_session(w, r);
        enum ticket_reply reply = governor_ask(w->g, &r->ticket, &wish, w->now);
        seen.replies[reply]++;
        if (reply == TICKET_GRANTED) {
                granted(w, r);
                sent(w, r);
        } else if (reply != TICKET_WAITING) {
                left(w, r);
                end(w, r);
        }
}

/* A few things that are so for a while, whoever asks. */
static bool is_so(size_t a, size_t b, usec_t now, usec_t period, double share)
{
        struct prng p;
        prng_init(&p, a * 1000003 + b * 7919 + now / period);
        prng_next(&p);
        return prng_unit(&p) < share;
}

static enum answer_class host(struct world *w, const struct request *r, size_t pool, usec_t *wait)
{
        unsigned blocks = w->plan->block_share;
        if (pool < POOLS && blocks > 0 &&
            is_so(r->host, 100 + pool * ENDPOINTS + r->endpoint, w->now, 200 * SEC, 1. / blocks))
                return ANSWER_BLOCKED;
        if (pool < POOLS && r->host == HOSTS - 1 && w->plan->block_share > 0)
                return ANSWER_BLOCKED; /* it wants nobody */
        if (chance(w, .05)) {
                *wait = chance(w, .5) ? SEC : 0;
                return ANSWER_THROTTLED;
        }
        return chance(w, .05) ? ANSWER_FAILED : ANSWER_SUCCESS;
}

static bool requeue(struct world *w, struct request *r, usec_t wait, bool elsewhere)
{
        struct ticket_wish wish = wish_of(w, r);
        wish.retry = true;
        wish.elsewhere = elsewhere;
        wish.not_before = w->now + wait;
        if (r->attempts >= 6 || !governor_requeue(w->g, &r->ticket, &wish, w->now))
                return false;
        given_back(w, r);
        return true;
}

static void finish(struct world *w, struct request *r)
{
        governor_finish(w->g, &r->ticket, w->now);
        left(w, r);
        end(w, r);
}

static void learn_of(struct endpoint_world *e, const struct pool_policy *policy,
                     const struct request *r, enum answer_class class, usec_t now)
{
        e->faults = 0;
        if (class == ANSWER_SUCCESS)
                e->blocks[r->host] = 0;
        if (class != ANSWER_BLOCKED || !e->is_there)
                return;
        if (e->blocked[r->host] + policy->quarantine.time <= now)
                e->blocks[r->host] = 0;
        e->blocked[r->host] = now;
        if (++e->blocks[r->host] >= policy->quarantine.after)
                e->avoided_until[r->host] = now + policy->quarantine.time;
}

static void answered(struct world *w, struct request *r)
{
        size_t pool = w->scopes[r->scope].pool;
        struct endpoint_world *e = pool < POOLS ? &w->endpoints[pool][r->endpoint] : NULL;
        usec_t wait = 0;
        if (e && is_so(pool, r->endpoint, w->now, 30 * SEC, w->plan->faulty)) {
                e->faults++;
                governor_endpoint_failed(w->g, &r->ticket, w->now, &wait);
                if (requeue(w, r, 0, false))
                        seen.failed_over++;
                else
                        schedule(w, r, FINISH, 0);
                return;
        }
        enum answer_class class = host(w, r, pool, &wait);
        if (chance(w, .98)) {
                struct answer answer = {.class = class, .wait = wait};
                class = governor_answer(w->g, &r->ticket, &answer, w->now);
                if (e)
                        learn_of(e, &w->snapshots[pool]->policy, r, class, w->now);
        }
        if (class == ANSWER_BLOCKED && requeue(w, r, 0, true)) {
                seen.elsewhere++;
                return;
        }
        if ((class == ANSWER_THROTTLED || class == ANSWER_FAILED) &&
            requeue(w, r, wait + prng_usec(&w->prng, SEC), false))
                return;
        usec_t longest = 200 * MSEC;
        if (class == ANSWER_SUCCESS && r->keeps) {
                seen.kept++;
                longest = 5 * SEC;
                governor_keep(w->g, &r->ticket, w->now);
                if (r->ticket.state == TICKET_IDLE) {
                        left(w, r);
                        end(w, r);
                        return;
                }
        }
        schedule(w, r, FINISH, chance(w, .5) ? 0 : prng_usec(&w->prng, longest));
}

/* --- events --- */

static void accepted(struct world *w, struct request *r)
{
        enum ticket_reply reply = governor_accept(w->g, &r->ticket);
        r->mailed = false;
        if (reply == TICKET_GRANTED) {
                sent(w, r);
        } else {
                end(w, r);
        }
}

static void step(struct world *w, struct request *r)
{
        heap_remove(&w->steps, &r->next);
        switch (r->step) {
        case ARRIVE:
                ask(w, r);
                break;
        case ACCEPT:
                accepted(w, r);
                break;
        case ANSWER:
                answered(w, r);
                break;
        case FINISH:
                finish(w, r);
                break;
        }
}

static void leave(struct world *w, struct request *r)
{
        enum ticket_state state = r->ticket.state;
        seen.cancelled[state]++;
        governor_cancel(w->g, &r->ticket, w->now);
        if (state != TICKET_IDLE && !(state == TICKET_READY && !r->granted))
                left(w, r);
        end(w, r);
}

/* Looks at what was decided. */
static void take(struct world *w)
{
        struct list ready;
        list_init(&ready);
        governor_take(w->g, w->now, &ready);
        while (!list_empty(&ready)) {
                struct ticket *t = LIST_ENTRY_OF(ready.next, struct ticket, link);
                struct request *r = LIST_ENTRY_OF(t, struct request, ticket);
                list_remove(&t->link);
                list_append(&w->mailbox, &t->link);
                r->mailed = true;
                seen.replies[t->reply]++;
                if (t->reply == TICKET_GRANTED)
                        granted(w, r);
                else
                        left(w, r);
                schedule(w, r, ACCEPT, chance(w, .7) ? 0 : prng_usec(&w->prng, 200 * MSEC));
        }
        assert_true(governor_next_wake(w->g) > w->now);
}

static bool advance(struct world *w)
{
        struct heap_node *next = heap_first(&w->steps), *gone = heap_first(&w->leaves);
        usec_t at = governor_next_wake(w->g);
        if (next)
                at = usec_min(at, next->at);
        if (gone)
                at = usec_min(at, gone->at);
        if (at == USEC_MAX || w->ended == w->plan->requests)
                return false;
        w->now = at;
        if (w->plan->reload_every && at >= w->reload_at) {
                reload(w);
                w->reload_at = at + prng_usec(&w->prng, 2 * w->plan->reload_every);
        } else if (w->plan->closing && at >= w->plan->closing && !w->closed) {
                governor_close(w->g, w->now);
                w->closed = true;
        } else if (gone && gone->at == at) {
                leave(w, LIST_ENTRY_OF(gone, struct request, leave));
        } else if (next && next->at == at) {
                step(w, LIST_ENTRY_OF(next, struct request, next));
        }
        take(w);
        return true;
}

/* --- the making of a world --- */

static void make_scope(struct world *w, size_t i)
{
        static const char *const pools[] = {"res", "dc", "mob"};
        struct scope *s = &w->scopes[i];
        s->pool = i == SCOPES - 1 ? POOLS : i % POOLS;
        s->one_host = i % 4 != 3;
        s->policy = (struct lane_policy){
            .limit = {.algorithm = i % 5 == 4 ? LIMITER_FIXED : LIMITER_ADAPTIVE,
                      .start = 4,
                      .floor = 1,
                      .ceiling = i % 7 ? 32 : 4,
                      .max_rate = i % 6 ? 0 : 3,
                      .max_hold = 900 * SEC,
                      .breaker = {.trip = 6, .cooldown = 30 * SEC}},
            .refuse_when_open = i % 4 == 1,
            .queue_max = i % 9 ? 1000 : 20,
            .retry_share = .2,
            .by_endpoint = i % 2 && s->pool < POOLS,
            .session_order = i % 3 == 0 || s->pool == POOLS,
        };
        snprintf(s->key, sizeof s->key, "scope%zu%s%s", i,
                 s->policy.by_endpoint ? " endpoint=" : "",
                 s->policy.by_endpoint ? pools[s->pool] : "");
}

static void make_request(struct world *w, size_t i)
{
        const struct plan *plan = w->plan;
        struct request *r = &w->requests[i];
        r->scope = pick(w, 1 + pick(w, SCOPES));
        if (i % 50 == 0)
                r->scope = SCOPES - 1;
        r->host = w->scopes[r->scope].one_host ? r->scope % HOSTS : pick(w, HOSTS);
        r->client = pick(w, 5);
        r->session = chance(w, .5) ? pick(w, SESSIONS) : SESSIONS;
        r->priority = chance(w, .2) ? (unsigned)pick(w, TICKET_PRIORITIES) : 5;
        r->keeps = chance(w, .05);
        r->arrived = SEC + (i % 2 ? prng_usec(&w->prng, plan->length)
                                  : plan->length / 3 + prng_usec(&w->prng, 60 * SEC));
        r->deadline = USEC_MAX;
        if (plan->patience)
                r->deadline = r->arrived + prng_usec(&w->prng, 2 * plan->patience);
        schedule(w, r, ARRIVE, r->arrived);
        if (chance(w, plan->leaving))
                heap_set(&w->leaves, &r->leave,
                         r->arrived + (chance(w, .5) ? prng_usec(&w->prng, 30 * SEC)
                                                     : prng_usec(&w->prng, SEC)));
}

static void is_idle(void *arg, const struct endpoint_view *view)
{
        (void)arg;
        assert_int_equal(view->in_flight, 0);
}

static void run(const struct plan *plan, uint64_t seed)
{
        struct world *w = xcalloc(1, sizeof *w);
        w->plan = plan;
        prng_init(&w->prng, seed);
        list_init(&w->mailbox);
        w->g = governor_new(&(struct governor_config){.max_lanes = 8, .seed = seed});
        w->requests = xcalloc(plan->requests, sizeof *w->requests);
        for (size_t p = 0; p < POOLS; p++)
                for (size_t i = 0; i < ENDPOINTS; i++)
                        snprintf(w->endpoints[p][i].name, sizeof w->endpoints[p][i].name,
                                 "e%zu/%zu", p, i);
        for (size_t p = 0; p <= POOLS; p++)
                for (size_t i = 0; i < SESSIONS; i++)
                        w->sessions[p][i].endpoint = ENDPOINTS;
        for (size_t i = 0; i < SCOPES; i++)
                make_scope(w, i);
        reload(w);
        for (size_t i = 0; i < plan->requests; i++)
                make_request(w, i);
        for (size_t n = 0; advance(w); n++)
                assert_true(n < 200 * plan->requests); /* it comes to an end */
        if (w->ended != plan->requests)
                fail_msg("%s, seed %lu: %zu of %zu ended: the rest is parked", plan->name,
                         (unsigned long)seed, w->ended, plan->requests);
        struct governor_stats s;
        governor_stats(w->g, &s);
        assert_int_equal(s.queued + s.sleeping + s.in_flight + s.ready, 0);
        governor_look_endpoints(w->g, 0, SIZE_MAX, is_idle, NULL);
        governor_free(w->g);
        for (size_t p = 0; p < POOLS; p++)
                drop(w->snapshots[p]);
        assert_int_equal(seen.snapshots, 0); /* nobody holds one any more */
        heap_done(&w->steps);
        heap_done(&w->leaves);
        free(w->requests);
        free(w);
}

static const struct plan plans[] = {
    {.name = "an hour of everything",
     .requests = 10000,
     .length = 3600 * SEC,
     .patience = 60 * SEC,
     .leaving = .2,
     .reload_every = 60 * SEC,
     .faulty = .1,
     .block_share = 8},
    {.name = "no deadlines: what is to come carries on",
     .requests = 4000,
     .length = 1800 * SEC,
     .reload_every = 100 * SEC,
     .faulty = .2,
     .block_share = 4},
    {.name = "all is well",
     .requests = 6000,
     .length = 600 * SEC,
     .patience = 100 * SEC,
     .leaving = .1},
    {.name = "nothing works",
     .requests = 3000,
     .length = 600 * SEC,
     .patience = 60 * SEC,
     .faulty = .97,
     .block_share = 1},
    {.name = "closed in the middle",
     .requests = 3000,
     .length = 300 * SEC,
     .patience = 60 * SEC,
     .leaving = .1,
     .reload_every = 30 * SEC,
     .faulty = .1,
     .block_share = 8,
     .closing = 120 * SEC},
};

static void every_ticket_ends_and_no_rule_is_broken(void **state)
{
        (void)state;
        memset(&seen, 0, sizeof seen);
        for (size_t i = 0; i < COUNT_OF(plans); i++)
                for (uint64_t seed = 1; seed <= 4; seed++)
                        run(&plans[i], seed);
        for (size_t i = 0; i < COUNT_OF(seen.replies); i++)
                if (seen.replies[i] < 10)
                        fail_msg("reply %zu: only %zu times", i, seen.replies[i]);
        for (size_t i = TICKET_SLEEPING; i < COUNT_OF(seen.cancelled); i++)
                if (seen.cancelled[i] < 10)
                        fail_msg("cancelled in state %zu: only %zu times", i, seen.cancelled[i]);
        assert_true(seen.moved > 100 && seen.elsewhere > 100 && seen.failed_over > 100);
        assert_true(seen.kept > 100 && seen.bound > 1000 && seen.in_order > 1000);
        assert_true(seen.removed > 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_ticket_ends_and_no_rule_is_broken),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
