/* Who would wait for how long: reports and predictions. */
#include "core/governor_state.h"

/* How long the view of a scope with many limiters serves. */
#define VIEW_AGE (100 * USEC_PER_MSEC)

void governor_report(struct governor *g, struct lane *l, struct lane_slot *slot,
                     enum limiter_event event, usec_t now)
{
        if (event == LIMITER_UNCHANGED)
                return;
        struct governor_change change = {.now = now,
                                         .key = slot ? slot->key : l->key,
                                         .event = event,
                                         .queued = l->queued + l->held,
                                         .sleeping = l->sleeping,
                                         .sent = slot ? slot->sent : l->sent};
        const struct limiter_view *view = &change.view;
        if (slot)
                lane_slot_look(slot, now, &change.view);
        else
                lane_look(l, now, &change.view);
        series_add(slot ? &slot->series : &l->series, &g->series,
                   &(struct series_record){
                       .at = now,
                       .event = event,
                       .rate = view->rate,
                       .concurrency = view->concurrency,
                       .in_flight = view->in_flight,
                       .queued = change.queued,
                       .closed_until = view->closed_until,
                   });
        if (g->config.on_change)
                g->config.on_change(g->config.arg, &change);
        if (l->egress)
                l->egress->seen.until = 0;
}

void governor_view(struct lane *l, usec_t now, struct limiter_view *ret_view)
{
        struct lane_egress *x = l->egress;
        if (!x || !x->by_endpoint) {
                lane_look(l, now, ret_view);
                return;
        }
        if (x->seen.until <= now) {
                lane_look(l, now, &x->seen.view);
                x->seen.until = usec_add(now, VIEW_AGE);
        }
        *ret_view = x->seen.view;
}

static double lower(double rate, double bound)
{
        return bound > 0 && (rate <= 0 || bound < rate) ? bound : rate;
}

/* Requests/s that the lane can be expected to send at most; 0 where nothing is known. */
static double expected_rate(const struct lane *l, const struct limiter_view *view)
{
        const struct limiter_policy *limit = &l->policy.limit;
        const struct lane_egress *x = l->egress;
        double limiters = x && x->by_endpoint ? (double)x->pool->policy->endpoint_count : 1;
        double rate = lower(view->settled ? view->rate : 0, limiters * limit->max_rate);
        return limit->min_delay ? lower(rate, limiters / usec_seconds(limit->min_delay)) : rate;
}

static usec_t time_to_send(size_t tickets, double rate)
{
        return rate > 0 ? usec_from_seconds((double)tickets / rate) : 0;
}

usec_t governor_expected_wait(const struct lane *l, const struct limiter_view *view, size_t ahead,
                              usec_t now)
{
        return usec_add(usec_sub(view->closed_until, now),
                        time_to_send(ahead, expected_rate(l, view)));
}

/*
 * Would a ticket of this wish certainly wait beyond its deadline? The rate that counts is twice the
 * present one: one that is low for a moment must refuse nobody who would have been served.
 */
static bool is_too_long(const struct lane *l, const struct limiter_view *view,
                        const struct ticket_wish *wish, usec_t now)
{
        usec_t start = usec_max(usec_max(now, wish->not_before), view->closed_until);
        if (start > wish->deadline)
                return true;
        if (wish->not_before > now)
                return false; /* who queues when its sleep ends is not known yet */
        double rate = 2 * expected_rate(l, view);
        usec_t left = wish->deadline - start;
        return time_to_send(l->queued, rate) > left &&
               time_to_send(turns_ahead(&l->turns, wish->priority, wish->client, wish->arrived),
                            rate) > left;
}

bool governor_refuses_all(const struct lane *l, const struct limiter_view *view, usec_t now)
{
        return l->policy.refuse_when_open && view->circuit_open && view->closed_until > now;
}

enum ticket_reply governor_may_wait(struct lane *l, const struct ticket *t,
                                    const struct ticket_wish *wish, usec_t now, usec_t *ret_wait)
{
        struct limiter_view view;
        governor_view(l, now, &view);
        *ret_wait = usec_max(governor_expected_wait(l, &view, l->queued, now),
                             usec_sub(wish->not_before, now));
        if (governor_refuses_all(l, &view, now))
                return TICKET_CIRCUIT_OPEN;
        if (!wish->retry && l->queued + l->held + l->sleeping >= l->policy.queue_max)
                return TICKET_QUEUE_FULL;
        if (is_too_long(l, &view, wish, now))
                return TICKET_TOO_LONG;
        *ret_wait = 0;
        if (!l->egress)
                return TICKET_WAITING;
        usec_t at = egress_pool_expected(l->egress->pool, t->host, NULL, now);
        if (at <= usec_max(now, wish->deadline))
                return TICKET_WAITING;
        *ret_wait = at < USEC_MAX ? at - now : 0;
        return TICKET_NO_ENDPOINT;
}
