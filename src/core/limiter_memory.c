#include "core/limiter_memory.h"

#include <math.h>

#include "core/limiter_state.h"

static const usec_t srtt_max = 3600 * USEC_PER_SEC;

/* Jitter lengthens a hold by up to a tenth. */
static usec_t longest_hold(const struct limiter_policy *p)
{
        usec_t longest = usec_max(usec_max(p->max_hold, p->breaker.cooldown), HOLD_BACK_OFF_MAX);
        return usec_add(longest, longest / 10);
}

static void export_hold(const struct hold *h, usec_t now, struct limiter_memory *m)
{
        m->closed = h->closed;
        m->half_open = h->half_open;
        m->circuit_open = h->circuit_open;
        m->closed_age = h->closed ? usec_sub(now, h->since) : 0;
        m->closed_length = h->closed ? usec_sub(h->until, h->since) : 0;
        m->back_off = h->back_off;
        m->refusals = h->refusals;
}

bool limiter_export(const struct limiter *l, usec_t now, struct limiter_memory *ret)
{
        enum limiter_algorithm algorithm = l->policy.algorithm;
        bool learned = algorithm == LIMITER_ADAPTIVE ? l->pace.rate > 0
                       : algorithm == LIMITER_AIMD   ? l->srtt > 0 || l->cut > 0
                                                     : false;
        if (!learned && !l->hold.closed && l->hold.refusals == 0)
                return false;
        *ret = (struct limiter_memory){
            .algorithm = algorithm,
            .slots = l->slots.known,
            .slots_confirmed = l->slots.confirmed,
            .window = l->aimd.window,
            .srtt = l->srtt,
            .idle = l->in_flight ? 0 : usec_sub(now, l->used),
            .episode_refusals = l->episode_refusals,
            .refused_epochs = l->refused_epochs,
            .full_hold = l->full_hold,
            .unmoved = l->unmoved,
            .cycle_age = usec_sub(now, l->cycle_start),
            .cycle_accepted = l->cycle_accepted,
        };
        pace_export(&l->pace, &ret->pace);
        export_hold(&l->hold, now, ret);
        return true;
}

static void import_hold(struct limiter *l, const struct limiter_memory *m, usec_t now)
{
        struct hold *h = &l->hold;
        usec_t left = usec_sub(m->closed_length, m->closed_age);
        h->refusals = m->refusals;
        if (m->back_off)
                h->back_off = usec_min(usec_max(m->back_off, HOLD_BACK_OFF_MIN), HOLD_BACK_OFF_MAX);
        if (!m->closed)
                return;
        hold_close(h, 0, m->half_open, now);
        h->circuit_open = m->circuit_open;
        if (left > 0) {
                h->until = usec_add(now, usec_min(left, longest_hold(&l->policy)));
                h->since = usec_sub(now, m->closed_age);
        } else {
                h->until = usec_sub(now, m->closed_age - m->closed_length);
                h->since = usec_sub(h->until, m->closed_length);
        }
}

static void import_learned(struct limiter *l, const struct limiter_memory *m)
{
        l->srtt = usec_min(m->srtt, srtt_max);
        if (l->policy.algorithm == LIMITER_ADAPTIVE && m->pace.rate > 0 && l->srtt > 0) {
                pace_import(&l->pace, &m->pace);
                slots_import(&l->slots, m->slots, m->slots_confirmed);
        } else if (l->policy.algorithm == LIMITER_AIMD && m->window > 0) {
                l->aimd.window = m->window;
        }
}

void limiter_import(struct limiter *l, const struct limiter_policy *policy,
                    const struct limiter_memory *m, usec_t now)
{
        limiter_init(l, policy);
        l->sends = 1; /* those of before */
        l->used = l->cut = l->marks[0].at = l->marks[1].at = now;
        l->episode_refusals = m->episode_refusals;
        l->refused_epochs = m->refused_epochs;
        l->full_hold = m->full_hold;
        l->unmoved = m->unmoved;
        l->cycle_start = usec_sub(now, m->cycle_age);
        l->cycle_accepted = m->cycle_accepted;
        import_hold(l, m, now);
        if (m->algorithm == policy->algorithm)
                import_learned(l, m);
        if (m->idle >= LIMITER_IDLE)
                limiter_resume(l, now);
        limiter_configure(l, policy); /* its bounds hold for what was imported */
}

void limiter_memory_age(struct limiter_memory *m, usec_t elapsed)
{
        m->idle = usec_add(m->idle, elapsed);
        m->cycle_age = usec_add(m->cycle_age, elapsed);
        if (m->closed)
                m->closed_age = usec_add(m->closed_age, elapsed);
}

void limiter_memory_look(const struct limiter_memory *m, usec_t now, struct limiter_view *ret_view)
{
        bool adaptive = m->algorithm == LIMITER_ADAPTIVE;
        usec_t left = usec_sub(m->closed_length, m->closed_age);
        *ret_view = (struct limiter_view){
            .rate = adaptive ? m->pace.rate : 0,
            .refused_rate = adaptive ? m->pace.max : 0,
            .concurrency = adaptive ? m->slots : m->window,
            .closed_until = m->closed ? usec_add(now, left) : 0,
            .circuit_open = m->circuit_open && left > 0,
            .settled = adaptive && !m->pace.slow_start,
            .used = usec_sub(now, m->idle),
        };
}
