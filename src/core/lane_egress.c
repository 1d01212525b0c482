#include "core/lane_egress.h"

#include <string.h>

#include "core/limiter_sibling.h"
#include "core/scope_key.h"

void lane_egress_attach(struct lane *l, struct egress_pool *pool, bool by_endpoint)
{
        struct lane_egress *x = xmalloc(sizeof *x);
        *x = (struct lane_egress){.lane = l, .pool = pool, .by_endpoint = by_endpoint};
        list_init(&x->of_pool);
        list_init(&x->waiting);
        list_init(&x->with_parked);
        list_init(&x->aside);
        list_init(&x->stranded);
        list_append(&pool->lanes, &x->of_pool);
        l->egress = x;
}

void lane_egress_free(struct lane_egress *x)
{
        if (!x)
                return;
        for (size_t i = 0; i < x->room; i++)
                lane_slot_free(x->slots[i]);
        free(x->slots);
        list_remove(&x->waiting);
        list_remove(&x->of_pool);
        free(x);
}

void lane_egress_rest(struct lane_egress *x)
{
        if (!x->has_parked)
                return;
        x->has_parked = false;
        for (size_t i = 0; i < x->room; i++) {
                struct lane_slot *slot = x->slots[i];
                if (!slot)
                        continue;
                free(slot->parked);
                slot->parked = NULL;
                if (!x->by_endpoint)
                        lane_slot_free(slot);
        }
}

/* --- the limiters of endpoints --- */

static void make_room(struct lane_egress *x, size_t id)
{
        size_t room = x->room ? x->room : 8;
        while (room <= id)
                room *= 2;
        if (room == x->room)
                return;
        x->slots = xrealloc(x->slots, room * sizeof(struct lane_slot *));
        for (size_t i = x->room; i < room; i++)
                x->slots[i] = NULL;
        x->room = room;
}

/* No more in flight than the endpoint takes at a time; that bounds the other numbers as well. */
static struct limiter_policy slot_policy(const struct lane_slot *slot)
{
        struct limiter_policy p = slot->lane->policy.limit;
        const struct endpoint_policy *e = slot->endpoint->policy;
        if (e && e->max_in_flight < p.ceiling) /* without: it is gone, but for those in flight */
                p.ceiling = e->max_in_flight;
        return p;
}

void lane_egress_configure(struct lane_egress *x)
{
        for (size_t i = 0; x->by_endpoint && i < x->room; i++) {
                struct lane_slot *slot = x->slots[i];
                if (!slot)
                        continue;
                slot->wake = 0;
                if (slot->memory)
                        continue;
                struct limiter_policy policy = slot_policy(slot);
                limiter_configure(&slot->limiter, &policy);
        }
}

void lane_slot_recall(struct lane_slot *slot, usec_t now)
{
        struct limiter_memory learned;
        struct limiter_policy policy = slot_policy(slot);
        lane_memory_read(slot->memory, now, &learned);
        limiter_import(&slot->limiter, &policy, &learned, now);
        free(slot->memory);
        slot->memory = NULL;
}

struct lane_slot *lane_slot_for(struct lane *l, struct endpoint *e, usec_t now)
{
        struct lane_egress *x = l->egress;
        struct lane_slot *slot = lane_slot_find(l, e);
        if (slot)
                return slot;
        make_room(x, e->id);
        slot = xmalloc(sizeof *slot);
        *slot = (struct lane_slot){.lane = l, .endpoint = e};
        series_init(&slot->series);
        list_init(&slot->waiting);
        list_init(&slot->with_parked);
        if (x->by_endpoint) {
                struct limiter_policy policy = slot_policy(slot);
                limiter_init(&slot->limiter, &policy);
                if (x->refused)
                        limiter_begin_as(&slot->limiter, &x->refused->limiter, now);
                slot->key = scope_key_of_endpoint(span_of(l->key), span_of(e->name));
        }
        x->slots[e->id] = slot;
        x->count++;
        return slot;
}

void lane_slot_refused(struct lane_slot *slot, usec_t now)
{
        struct lane_egress *x = slot->lane->egress;
        x->refused = slot;
        for (size_t i = 0; i < x->room; i++) {
                struct lane_slot *one = x->slots[i];
                if (one && one != slot && !one->memory &&
                    limiter_heed(&one->limiter, &slot->limiter, now))
                        one->wake = 0;
        }
}

void lane_slot_free(struct lane_slot *slot)
{
        if (!slot)
                return;
        struct lane_egress *x = slot->lane->egress;
        if (x->refused == slot)
                x->refused = NULL;
        x->slots[slot->endpoint->id] = NULL;
        x->count--;
        list_remove(&slot->waiting);
        list_remove(&slot->with_parked);
        free(slot->parked);
        free(slot->memory);
        free(slot->key);
        free(slot);
}

void lane_slot_remember(struct lane_slot *slot, const struct limiter_memory *m, usec_t now)
{
        free(slot->memory);
        slot->memory = lane_memory_new(m, now);
}

bool lane_slot_export(const struct lane_slot *slot, usec_t now, struct limiter_memory *ret)
{
        if (!slot->memory)
                return limiter_export(&slot->limiter, now, ret);
        lane_memory_read(slot->memory, now, ret);
        return true;
}

void lane_slot_look(const struct lane_slot *slot, usec_t now, struct limiter_view *ret_view)
{
        struct limiter_memory learned;
        if (!slot->memory) {
                limiter_look(&slot->limiter, now, ret_view);
                return;
        }
        lane_memory_read(slot->memory, now, &learned);
        limiter_memory_look(&learned, now, ret_view);
}

bool lane_slot_may_go(struct lane_slot *slot, usec_t now)
{
        usec_t wake = USEC_MAX;
        if (slot->wake > now)
                return false;
        if (limiter_may_go(&slot->limiter, now, &wake))
                return true;
        slot->wake = usec_max(wake, now + 1);
        slot->held_up = true;
        return false;
}

/* --- tickets that have had their turn --- */

void lane_egress_begin_to_wait(struct lane_egress *x)
{
        if (list_empty(&x->waiting) && list_empty(&x->with_parked))
                x->turn = ++x->pool->turns;
}

void lane_park(struct lane *l, struct ticket *t, struct endpoint *e, usec_t now)
{
        struct lane_slot *slot = lane_slot_for(l, e, now);
        l->egress->has_parked = true;
        if (!slot->parked) {
                slot->parked = xmalloc(sizeof *slot->parked);
                turns_init(slot->parked);
        }
        if (slot->parked->queued == 0) {
                lane_egress_begin_to_wait(l->egress);
                list_append(&e->waiting, &slot->waiting);
                list_append(&l->egress->with_parked, &slot->with_parked);
        }
        usec_t queued_at = t->queued_at;
        turns_move(t, slot->parked);
        turns_add(t, now);
        t->queued_at = queued_at;
        t->place = TICKET_PARKED;
        t->slot = slot;
        l->queued++;
}

void lane_put_aside(struct lane *l, struct ticket *t)
{
        list_append(&l->egress->aside, &t->link);
        l->egress->aside_count++;
        l->queued++;
        t->place = TICKET_ASIDE;
        t->state = TICKET_QUEUED;
}

/* `t` has just been taken out of those parked. */
static void unparked(struct ticket *t)
{
        struct lane_slot *slot = t->slot;
        turns_move(t, &slot->lane->turns);
        t->slot = NULL;
        t->place = TICKET_IN_TURNS;
        slot->lane->queued--;
        if (slot->parked->queued > 0)
                return;
        list_remove(&slot->waiting);
        list_remove(&slot->with_parked);
}

void lane_unpark_first(struct lane_slot *slot)
{
        struct ticket *t = turns_first(slot->parked);
        turns_take_first(slot->parked);
        unparked(t);
}

void lane_egress_unqueue(struct lane *l, struct ticket *t)
{
        switch (t->place) {
        case TICKET_PARKED:
                turns_remove(t);
                unparked(t);
                break;
        case TICKET_ASIDE:
                list_remove(&t->link);
                l->egress->aside_count--;
                l->queued--;
                break;
        case TICKET_HELD:
                list_remove(&t->link);
                l->held--;
                break;
        case TICKET_IN_TURNS:
                break;
        }
        t->place = TICKET_IN_TURNS;
}

void lane_queue_again(struct lane *l, struct ticket *t, usec_t now)
{
        usec_t queued_at = t->queued_at;
        lane_queue(l, t, now);
        t->queued_at = queued_at;
}

void lane_unpark_all(struct lane_slot *slot, usec_t now)
{
        struct ticket *t;
        while (slot->parked && (t = turns_first(slot->parked))) {
                lane_unqueue(slot->lane, t);
                lane_queue_again(slot->lane, t, now);
        }
}

void lane_take_back(struct lane *l, usec_t now)
{
        while (!list_empty(&l->egress->aside)) {
                struct ticket *t = LIST_ENTRY_OF(l->egress->aside.next, struct ticket, link);
                lane_unqueue(l, t);
                lane_queue_again(l, t, now);
        }
}

/* --- how it stands --- */

static void look_at_slots(const struct lane_egress *x, usec_t now, struct limiter_view *sum)
{
        size_t asked = 0;
        usec_t open_from = USEC_MAX;
        *sum = (struct limiter_view){.settled = true};
        for (size_t i = 0; i < x->room; i++) {
                struct limiter_view v;
                if (!x->slots[i])
                        continue;
                lane_slot_look(x->slots[i], now, &v);
                sum->rate += v.rate;
                sum->refused_rate += v.refused_rate;
                sum->concurrency += v.concurrency;
                sum->in_flight += v.in_flight;
                sum->used = usec_max(sum->used, v.used);
                sum->settled &= v.settled && v.rate > 0;
                if (!endpoint_is_up(x->slots[i]->endpoint))
                        continue; /* it will not make the lane wait */
                asked++;
                open_from = usec_min(open_from, v.closed_until);
        }
        if (asked < x->pool->up ||
            asked == 0) /* the others are open, and nothing is known of them */
                sum->settled = false;
        else
                sum->closed_until = open_from;
}

void lane_egress_look(const struct lane *l, usec_t now, struct limiter_view *ret_view)
{
        const struct lane_egress *x = l->egress;
        struct limiter_view v;
        struct limiter_memory learned;
        if (x->by_endpoint) {
                look_at_slots(x, now, &v);
        } else if (l->memory) {
                lane_memory_read(l->memory, now, &learned);
                limiter_memory_look(&learned, now, &v);
        } else {
                limiter_look(&l->limiter, now, &v);
        }
        if (x->circuit.closed) {
                v.closed_until = usec_max(v.closed_until, x->circuit.until);
                v.circuit_open |= x->circuit.circuit_open && now < x->circuit.until;
        }
        *ret_view = v;
}
