#include "core/lane.h"

#include <string.h>

#include "core/lane_egress.h"

/* The latest deadline: every waiting ticket is in `expiries`, which knows no "never". */
#define LATEST (USEC_MAX - 1)

struct lane *lane_new(struct span key, const struct lane_policy *policy)
{
        struct lane *l = xmalloc(sizeof *l + key.len + 1);
        *l = (struct lane){.policy = *policy};
        limiter_init(&l->limiter, &policy->limit);
        series_init(&l->series);
        retry_budget_init(&l->budget);
        list_init(&l->idle);
        list_init(&l->touched);
        turns_init(&l->turns);
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
        lane_egress_free(l->egress);
        free(l->memory);
        free(l);
}

/* --- memory --- */

struct lane_memory *lane_memory_new(const struct limiter_memory *m, usec_t now)
{
        struct lane_memory *memory = xmalloc(sizeof *memory);
        *memory = (struct lane_memory){now, *m};
        return memory;
}

void lane_memory_read(const struct lane_memory *memory, usec_t now, struct limiter_memory *ret)
{
        *ret = memory->learned;
        limiter_memory_age(ret, usec_sub(now, memory->at));
}

struct lane *lane_new_remembered(struct span key, const struct limiter_memory *m, usec_t now)
{
        struct lane *l = lane_new(key, &(struct lane_policy){0});
        l->memory = lane_memory_new(m, now);
        return l;
}

void lane_recall(struct lane *l, const struct lane_policy *policy, usec_t now)
{
        struct limiter_memory learned;
        lane_memory_read(l->memory, now, &learned);
        limiter_import(&l->limiter, &policy->limit, &learned, now);
        l->policy = *policy;
        free(l->memory);
        l->memory = NULL;
}

bool lane_export(const struct lane *l, usec_t now, struct limiter_memory *ret)
{
        if (!l->memory)
                return limiter_export(&l->limiter, now, ret);
        lane_memory_read(l->memory, now, ret);
        return true;
}

void lane_look(const struct lane *l, usec_t now, struct limiter_view *ret_view)
{
        struct limiter_memory learned;
        if (l->egress) {
                lane_egress_look(l, now, ret_view);
        } else if (l->memory) {
                lane_memory_read(l->memory, now, &learned);
                limiter_memory_look(&learned, now, ret_view);
        } else {
                limiter_look(&l->limiter, now, ret_view);
        }
}

/* --- who waits --- */

void lane_join(struct lane *l, struct ticket *t, struct span client)
{
        turns_join(&l->turns, t, client);
        t->deadline = usec_min(t->deadline, LATEST);
        t->arrived = usec_min(t->arrived, LATEST);
        heap_set(&l->expiries, &t->expiry, t->deadline);
}

void lane_leave(struct lane *l, struct ticket *t)
{
        heap_remove(&l->expiries, &t->expiry);
        turns_leave(t);
}

void lane_doze(struct lane *l, struct ticket *t, usec_t until)
{
        heap_set(&l->sleepers, &t->wake, usec_min(until, LATEST));
        l->sleeping++;
        t->state = TICKET_SLEEPING;
}

void lane_queue(struct lane *l, struct ticket *t, usec_t now)
{
        turns_add(t, now);
        l->queued++;
}

void lane_sleep(struct lane *l, struct ticket *t, struct span client, usec_t until)
{
        lane_join(l, t, client);
        lane_doze(l, t, until);
}

struct ticket *lane_awake(struct lane *l, usec_t now)
{
        struct heap_node *n = heap_first(&l->sleepers);
        if (!n || n->at > now)
                return NULL;
        struct ticket *t = LIST_ENTRY_OF(n, struct ticket, wake);
        lane_unqueue(l, t);
        return t;
}

void lane_take_turn(struct lane *l)
{
        turns_take_first(&l->turns);
        l->queued--;
}

struct ticket *lane_next(struct lane *l)
{
        struct ticket *t = turns_first(&l->turns);
        if (!t)
                return NULL;
        lane_take_turn(l);
        lane_leave(l, t);
        return t;
}

void lane_unqueue(struct lane *l, struct ticket *t)
{
        if (t->state == TICKET_SLEEPING) {
                heap_remove(&l->sleepers, &t->wake);
                list_remove(&t->link);
                l->sleeping--;
        } else if (t->place == TICKET_IN_TURNS) {
                turns_remove(t);
                l->queued--;
        } else {
                lane_egress_unqueue(l, t);
        }
}

void lane_take_out(struct lane *l, struct ticket *t)
{
        lane_unqueue(l, t);
        lane_leave(l, t);
}

struct ticket *lane_expired(const struct lane *l, usec_t until)
{
        struct heap_node *n = heap_first(&l->expiries);
        return n && n->at < until ? LIST_ENTRY_OF(n, struct ticket, expiry) : NULL;
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
        if (l->egress)
                lane_egress_rest(l->egress);
}
