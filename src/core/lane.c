#include "core/lane.h"

#include <string.h>

/* How many clients lane_ahead looks at one by one. */
#define CLIENTS_COUNTED 32

/* The latest deadline: every waiting ticket is in `expiries`, which knows no "never". */
#define LATEST (USEC_MAX - 1)

/* The tickets of one client and one priority that wait in one lane. */
struct lane_client {
        UT_hash_handle hh; /* in its level's clients */
        struct list turn;  /* in its level's turns while `queued` is not 0 */
        struct list fresh; /* queued, each arrived no earlier than the one before */
        struct heap
            older; /* queued, those that came when a younger one was at the end of `fresh` */
        size_t queued, all; /* all: the sleeping ones included */
        char name[];
};

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
static struct lane_client *client_find(const struct lane_level *level, struct span name)
{
        struct lane_client *c;
        HASH_FIND(hh, level->clients, name.ptr, name.len, c);
        return c;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct lane_client *client_for(struct lane_level *level, struct span name)
{
        struct lane_client *c = client_find(level, name);
        if (c)
                return c;
        c = xmalloc(sizeof *c + name.len);
        *c = (struct lane_client){0};
        list_init(&c->turn);
        list_init(&c->fresh);
        if (name.len)
                memcpy(c->name, name.ptr, name.len);
        HASH_ADD_KEYPTR(hh, level->clients, c->name, name.len, c);
        return c;
}

static void client_queue(struct lane *l, struct lane_client *c, struct ticket *t, usec_t now)
{
        struct lane_level *level = &l->levels[t->priority];
        if (!list_empty(&c->fresh) &&
            LIST_ENTRY_OF(c->fresh.prev, struct ticket, link)->arrived > t->arrived)
                heap_set(&c->older, &t->wake, t->arrived);
        else
                list_append(&c->fresh, &t->link);
        if (c->queued++ == 0) {
                list_append(&level->turns, &c->turn);
                level->turn_count++;
        }
        level->queued++;
        l->queued++;
        t->queued_at = now;
        t->state = TICKET_QUEUED;
}

static struct ticket *client_first(const struct lane_client *c)
{
        struct ticket *old = NULL, *fresh = NULL;
        if (heap_first(&c->older))
                old = LIST_ENTRY_OF(heap_first(&c->older), struct ticket, wake);
        if (!list_empty(&c->fresh))
                fresh = LIST_ENTRY_OF(c->fresh.next, struct ticket, link);
        if (!old || !fresh)
                return old ? old : fresh;
        return old->arrived <= fresh->arrived ? old : fresh;
}

static void join(struct lane *l, struct ticket *t, struct span client)
{
        t->client = client_for(&l->levels[t->priority], client);
        t->client->all++;
        t->deadline = usec_min(t->deadline, LATEST);
        t->arrived = usec_min(t->arrived, LATEST);
        heap_set(&l->expiries, &t->expiry, t->deadline);
}

struct lane *lane_new(struct span key, const struct lane_policy *policy)
{
        struct lane *l = xmalloc(sizeof *l + key.len + 1);
        *l = (struct lane){.policy = *policy};
        limiter_init(&l->limiter, &policy->limit);
        series_init(&l->series);
        retry_budget_init(&l->budget);
        list_init(&l->idle);
        for (unsigned i = 0; i < TICKET_PRIORITIES; i++)
                list_init(&l->levels[i].turns);
        heap_init(&l->expiries);
        heap_init(&l->sleepers);
        if (key.len)
                memcpy(l->key, key.ptr, key.len);
        l->key[key.len] = '\0';
        return l;
}

void lane_free(struct lane *l)
{
        if (!l)
                return;
        lane_rest(l);
        free(l->memory);
        free(l);
}

struct lane *lane_new_remembered(struct span key, const struct limiter_memory *m, usec_t now)
{
        struct lane *l = lane_new(key, &(struct lane_policy){0});
        l->memory = xmalloc(sizeof *l->memory);
        *l->memory = (struct lane_memory){now, *m};
        return l;
}

static void learned_by(const struct lane_memory *memory, usec_t now, struct limiter_memory *ret)
{
        *ret = memory->learned;
        limiter_memory_age(ret, usec_sub(now, memory->at));
}

void lane_recall(struct lane *l, const struct lane_policy *policy, usec_t now)
{
        struct limiter_memory learned;
        learned_by(l->memory, now, &learned);
        limiter_import(&l->limiter, &policy->limit, &learned, now);
        l->policy = *policy;
        free(l->memory);
        l->memory = NULL;
}

bool lane_export(const struct lane *l, usec_t now, struct limiter_memory *ret)
{
        if (!l->memory)
                return limiter_export(&l->limiter, now, ret);
        learned_by(l->memory, now, ret);
        return true;
}

void lane_look(const struct lane *l, usec_t now, struct limiter_view *ret_view)
{
        struct limiter_memory learned;
        if (!l->memory) {
                limiter_look(&l->limiter, now, ret_view);
                return;
        }
        learned_by(l->memory, now, &learned);
        limiter_memory_look(&learned, now, ret_view);
}

void lane_sleep(struct lane *l, struct ticket *t, struct span client, usec_t until)
{
        join(l, t, client);
        heap_set(&l->sleepers, &t->wake, usec_min(until, LATEST));
        l->sleeping++;
        t->state = TICKET_SLEEPING;
}

void lane_enqueue(struct lane *l, struct ticket *t, struct span client, usec_t now)
{
        join(l, t, client);
        client_queue(l, t->client, t, now);
}

void lane_wake(struct lane *l, usec_t now)
{
        for (struct heap_node *n; (n = heap_first(&l->sleepers)) && n->at <= now;) {
                struct ticket *t = LIST_ENTRY_OF(n, struct ticket, wake);
                heap_remove(&l->sleepers, n);
                l->sleeping--;
                client_queue(l, t->client, t, now);
        }
}

void lane_take_out(struct lane *l, struct ticket *t)
{
        struct lane_client *c = t->client;
        struct lane_level *level = &l->levels[t->priority];
        heap_remove(&l->expiries, &t->expiry);
        if (t->state == TICKET_SLEEPING) {
                heap_remove(&l->sleepers, &t->wake);
                l->sleeping--;
        } else {
                heap_remove(&c->older, &t->wake);
                list_remove(&t->link);
                l->queued--;
                if (--level->queued == 0)
                        level->passed = 0;
                if (--c->queued == 0) {
                        list_remove(&c->turn);
                        level->turn_count--;
                }
        }
        t->client = NULL;
        if (--c->all == 0) {
                HASH_DEL(level->clients, c);
                heap_done(&c->older);
                free(c);
        }
}

/* The priority whose turn it is, one with a ticket queued; takes note of those it passes over. */
static struct lane_level *next_level(struct lane *l)
{
        struct lane_level *level = NULL;
        for (unsigned i = TICKET_PRIORITIES; i-- > 0;) {
                if (l->levels[i].queued == 0)
                        continue;
                if (l->levels[i].passed >= TICKET_MOST_PASSED) {
                        level = &l->levels[i];
                        break;
                }
                if (!level)
                        level = &l->levels[i];
        }
        if (!level)
                return NULL;
        level->passed = 0;
        for (struct lane_level *lower = l->levels; lower < level; lower++)
                lower->passed += lower->queued > 0;
        return level;
}

struct ticket *lane_next(struct lane *l)
{
        struct lane_level *level = next_level(l);
        if (!level)
                return NULL;
        struct lane_client *c = LIST_ENTRY_OF(level->turns.next, struct lane_client, turn);
        struct ticket *t = client_first(c);
        list_remove(&c->turn);
        list_append(&level->turns, &c->turn);
        lane_take_out(l, t);
        return t;
}

struct ticket *lane_expired(const struct lane *l, usec_t until)
{
        struct heap_node *n = heap_first(&l->expiries);
        return n && n->at < until ? LIST_ENTRY_OF(n, struct ticket, expiry) : NULL;
}

/* The same among those of one priority. */
static size_t ahead_in_level(const struct lane_level *level, struct span client, usec_t arrived)
{
        const struct lane_client *own = client_find(level, client);
        size_t ahead = 0, rounds = 1, looked = 0;
        if (own && own->queued) {
                const struct ticket *last =
                    list_empty(&own->fresh) ? NULL
                                            : LIST_ENTRY_OF(own->fresh.prev, struct ticket, link);
                if (last && last->arrived > arrived)
                        return 0; /* somewhere ahead of its own: perhaps the very next */
                rounds = own->queued;
        }
        list_foreach (it, &level->turns) {
                const struct lane_client *c = LIST_ENTRY_OF(it, struct lane_client, turn);
                if (looked++ == CLIENTS_COUNTED)
                        return ahead + level->turn_count - CLIENTS_COUNTED;
                ahead += c->queued < rounds ? c->queued : rounds;
        }
        return ahead;
}

size_t lane_ahead(const struct lane *l, unsigned priority, struct span client, usec_t arrived)
{
        const struct lane_level *level = &l->levels[priority];
        size_t ahead = ahead_in_level(level, client, arrived), higher = 0;
        for (unsigned i = priority + 1; i < TICKET_PRIORITIES; i++)
                higher += l->levels[i].queued;
        /* each of those ahead, and then itself, lets so many pass at most */
        size_t passing = TICKET_MOST_PASSED * (ahead + 1) -
                         (level->passed < TICKET_MOST_PASSED ? level->passed : TICKET_MOST_PASSED);
        return ahead + (higher < passing ? higher : passing);
}

usec_t lane_due(const struct lane *l)
{
        const struct heap_node *expiry = heap_first(&l->expiries);
        const struct heap_node *sleeper = heap_first(&l->sleepers);
        usec_t due = l->queued ? l->limiter_wake : USEC_MAX;
        if (expiry)
                due = usec_min(due, expiry->at);
        if (sleeper)
                due = usec_min(due, sleeper->at);
        return due < LATEST ? due : USEC_MAX;
}

void lane_rest(struct lane *l)
{
        heap_done(&l->expiries);
        heap_done(&l->sleepers);
}
