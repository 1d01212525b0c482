#include "core/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/heap.h"

/* How many clients turns_ahead looks at one by one. */
#define CLIENTS_COUNTED 32

/* The tickets of one client and one priority that have joined one queue. */
struct turns_client {
        UT_hash_handle hh; /* in its level's clients */
        struct turns *queue;
        struct list turn;  /* in its level's turns while `queued` is not 0 */
        struct list fresh; /* queued, each arrived no earlier than the one before */
        struct heap
            older; /* queued, those that came when a younger one was at the end of `fresh` */
        size_t queued, joined;
        size_t name_len;
        char name[];
};

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
static struct turns_client *client_find(const struct turns_level *level, struct span name)
{
        struct turns_client *c;
        HASH_FIND(hh, level->clients, name.ptr, name.len, c);
        return c;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct turns_client *client_for(struct turns *q, unsigned priority, struct span name)
{
        struct turns_level *level = &q->levels[priority];
        struct turns_client *c = client_find(level, name);
        if (c)
                return c;
        c = xmalloc(sizeof *c + name.len);
        *c = (struct turns_client){.queue = q, .name_len = name.len};
        list_init(&c->turn);
        list_init(&c->fresh);
        if (name.len)
                memcpy(c->name, name.ptr, name.len);
        HASH_ADD_KEYPTR(hh, level->clients, c->name, name.len, c);
        return c;
}

static struct ticket *client_first(const struct turns_client *c)
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

void turns_init(struct turns *q)
{
        *q = (struct turns){.queued = 0};
        for (unsigned i = 0; i < TICKET_PRIORITIES; i++)
                list_init(&q->levels[i].turns);
}

void turns_join(struct turns *q, struct ticket *t, struct span client)
{
        t->client = client_for(q, t->priority, client);
        t->client->joined++;
}

void turns_leave(struct ticket *t)
{
        struct turns_client *c = t->client;
        t->client = NULL;
        if (--c->joined > 0)
                return;
        HASH_DEL(c->queue->levels[t->priority].clients, c);
        heap_done(&c->older);
        free(c);
}

void turns_move(struct ticket *t, struct turns *to)
{
        const struct turns_client *c = t->client;
        struct turns_client *next =
            client_for(to, t->priority, (struct span){c->name, c->name_len});
        next->joined++;
        turns_leave(t);
        t->client = next;
}

void turns_add(struct ticket *t, usec_t now)
{
        struct turns_client *c = t->client;
        struct turns_level *level = &c->queue->levels[t->priority];
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
        c->queue->queued++;
        t->queued_at = now;
        t->state = TICKET_QUEUED;
}

void turns_remove(struct ticket *t)
{
        struct turns_client *c = t->client;
        struct turns_level *level = &c->queue->levels[t->priority];
        heap_remove(&c->older, &t->wake);
        list_remove(&t->link);
        c->queue->queued--;
        if (--level->queued == 0)
                level->passed = 0;
        if (--c->queued == 0) {
                list_remove(&c->turn);
                level->turn_count--;
        }
}

/* The priority whose turn it is: one with a ticket queued, or NULL. */
static const struct turns_level *next_level(const struct turns *q)
{
        const struct turns_level *level = NULL;
        for (unsigned i = TICKET_PRIORITIES; i-- > 0;) {
                if (q->levels[i].queued == 0)
                        continue;
                if (q->levels[i].passed >= TICKET_MOST_PASSED)
                        return &q->levels[i];
                if (!level)
                        level = &q->levels[i];
        }
        return level;
}

struct ticket *turns_first(const struct turns *q)
{
        const struct turns_level *level = next_level(q);
        return level ? client_first(LIST_ENTRY_OF(level->turns.next, struct turns_client, turn))
                     : NULL;
}

void turns_take_first(struct turns *q)
{
        struct turns_level *level = &q->levels[next_level(q) - q->levels];
        struct turns_client *c = LIST_ENTRY_OF(level->turns.next, struct turns_client, turn);
        level->passed = 0;
        for (struct turns_level *lower = q->levels; lower < level; lower++)
                lower->passed += lower->queued > 0;
        list_remove(&c->turn);
        list_append(&level->turns, &c->turn);
        turns_remove(client_first(c));
}

/* The same among those of one priority. */
static size_t ahead_in_level(const struct turns_level *level, struct span client, usec_t arrived)
{
        const struct turns_client *own = client_find(level, client);
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
                const struct turns_client *c = LIST_ENTRY_OF(it, struct turns_client, turn);
                if (looked++ == CLIENTS_COUNTED)
                        return ahead + level->turn_count - CLIENTS_COUNTED;
                ahead += c->queued < rounds ? c->queued : rounds;
        }
        return ahead;
}

size_t turns_ahead(const struct turns *q, unsigned priority, struct span client, usec_t arrived)
{
        const struct turns_level *level = &q->levels[priority];
        size_t ahead = ahead_in_level(level, client, arrived), higher = 0;
        for (unsigned i = priority + 1; i < TICKET_PRIORITIES; i++)
                higher += q->levels[i].queued;
        /* each of those ahead, and then itself, lets so many pass at most */
        size_t passing = TICKET_MOST_PASSED * (ahead + 1) -
                         (level->passed < TICKET_MOST_PASSED ? level->passed : TICKET_MOST_PASSED);
        return ahead + (higher < passing ? higher : passing);
}
