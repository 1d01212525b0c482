#include "core/limiter.h"

#include <math.h>

#include "core/limiter_state.h"

/* ---- what is in force ---- */

static bool is_bound_by_quota(const struct limiter *l, usec_t now)
{
        double bound = quota_bound_rate(&l->quota, now), rate = limiter_learned_rate(l);
        return bound > 0 && (rate <= 0 || bound < rate) && l->policy.algorithm != LIMITER_FIXED;
}

double limiter_paced_rate(const struct limiter *l, usec_t now)
{
        return is_bound_by_quota(l, now) ? l->quota.rate : limiter_learned_rate(l);
}

unsigned limiter_bounded(const struct limiter *l, unsigned in_flight)
{
        unsigned n = in_flight > l->policy.floor ? in_flight : l->policy.floor;
        n = n < l->policy.ceiling ? n : l->policy.ceiling;
        return n > 0 ? n : 1;
}

unsigned limiter_allowed(const struct limiter *l)
{
        switch (l->policy.algorithm) {
        case LIMITER_AIMD:
                return (unsigned)l->aimd.window;
        case LIMITER_FIXED:
                return limiter_bounded(l, l->policy.start);
        case LIMITER_ADAPTIVE:
                break;
        }
        return l->pace.rate > 0 ? l->slots.limit : limiter_bounded(l, l->policy.start);
}

/* ---- events ---- */

enum limiter_event limiter_told(struct limiter *l, enum limiter_event event)
{
        l->told.rate = limiter_learned_rate(l);
        l->told.allowed = limiter_allowed(l);
        l->told.until = l->hold.closed ? l->hold.until : 0;
        return event;
}

/* ---- setting up ---- */

static void learn_anew(struct limiter *l)
{
        pace_init(&l->pace);
        slots_init(&l->slots, l->policy.floor, l->policy.ceiling);
        aimd_init(&l->aimd, &l->policy);
}

void limiter_init(struct limiter *l, const struct limiter_policy *policy)
{
        *l = (struct limiter){.policy = *policy};
        learn_anew(l);
        limiter_told(l, LIMITER_UNCHANGED);
}

void limiter_configure(struct limiter *l, const struct limiter_policy *policy)
{
        bool same = l->policy.algorithm == policy->algorithm;
        l->policy = *policy;
        if (!same)
                learn_anew(l);
        slots_bound(&l->slots, policy->floor, policy->ceiling);
        aimd_bound(&l->aimd, policy);
        limiter_told(l, LIMITER_UNCHANGED);
}

void limiter_reset(struct limiter *l, usec_t now)
{
        const struct limiter old = *l;
        limiter_init(l, &old.policy);
        l->in_flight = old.in_flight;
        l->sends = old.sends;
        l->used = old.used;
        l->spaced = old.spaced;
        l->cut = l->cycle_start = l->marks[0].at = l->marks[1].at = now;
}

/* ---- may it go ---- */

void limiter_reopen(struct limiter *l, usec_t ended, usec_t silence, usec_t now)
{
        double cycle = usec_seconds(usec_max(usec_sub(ended, l->cycle_start), USEC_PER_MSEC));
        /* Closed without a refusal of its own doing, it learned nothing. */
        if (limiter_is_adaptive(l) && l->episode_refusals > 0)
                pace_reopen(&l->pace, (double)l->cycle_accepted / cycle, silence, l->srtt,
                            l->episode_refusals);
        l->episode_refusals = l->refused_epochs = 0;
        l->cycle_start = l->cut = now;
        l->cycle_accepted = 0;
        l->full_hold = false;
        pace_delay(&l->pace, limiter_paced_rate(l, now), now);
}

static bool wait_for(struct limiter *l, enum limiter_why why, usec_t wake, usec_t *ret_wake)
{
        l->why = why;
        *ret_wake = wake;
        return false;
}

void limiter_resume(struct limiter *l, usec_t now)
{
        l->used = l->marks[0].at = l->marks[1].at = now;
        l->marks[0].accepted = l->marks[1].accepted = l->accepted;
        if (limiter_is_adaptive(l) && l->pace.rate > 0)
                pace_resume(&l->pace, limiter_bounded(l, l->policy.start) / usec_seconds(l->srtt),
                            l->srtt);
        else if (l->policy.algorithm == LIMITER_AIMD)
                aimd_resume(&l->aimd, &l->policy);
}

/* A hold is no idleness: requests may have waited for its end. */
static bool was_idle(const struct limiter *l, usec_t now)
{
        usec_t since = l->hold.closed ? usec_max(l->used, l->hold.until) : l->used;
        return l->sends > 0 && l->in_flight == 0 && usec_sub(now, since) >= LIMITER_IDLE;
}

bool limiter_may_go(struct limiter *l, usec_t now, usec_t *ret_wake)
{
        struct hold *h = &l->hold;
        if (was_idle(l, now)) {
                limiter_resume(l, now);
                l->untold = LIMITER_RESUMED;
        }
        if (h->closed && now < h->until)
                return wait_for(l, LIMITER_HOLD, h->until, ret_wake);
        if (h->closed && h->probe_out)
                return wait_for(l, LIMITER_HOLD, USEC_MAX, ret_wake);
        if (h->closed && !h->half_open) {
                limiter_reopen(l, h->until, hold_reopen(h, h->until), now);
                l->untold = LIMITER_REOPENED;
        }
        /* A probe minds the operator's bounds alone: what was learned led into the hold. */
        if (l->in_flight >=
            (h->closed ? limiter_bounded(l, l->policy.ceiling) : limiter_allowed(l)))
                return wait_for(l, LIMITER_SLOT, USEC_MAX, ret_wake);
        if (now < l->spaced && (h->closed || l->spaced >= l->pace.next))
                return wait_for(l, LIMITER_BOUND, l->spaced, ret_wake);
        if (now < l->pace.next && !h->closed)
                return wait_for(l, is_bound_by_quota(l, now) ? LIMITER_QUOTA : LIMITER_PACE,
                                l->pace.next, ret_wake);
        return true;
}

/* The operator's own spacing counts from the send itself: nothing is made up for. */
static usec_t spacing(const struct limiter *l, struct prng *prng)
{
        const struct limiter_policy *p = &l->policy;
        double seconds = p->max_rate > 0 ? 1 / p->max_rate : 0;
        if (p->min_delay)
                seconds = fmax(seconds, usec_seconds(p->min_delay) * (1 + prng_unit(prng)));
        return usec_from_seconds(seconds > 0 ? seconds + 1e-6 : 0);
}

enum limiter_event limiter_go(struct limiter *l, bool limited, usec_t now, struct prng *prng,
                              struct limiter_pass *ret_pass)
{
        if (l->sends++ == 0)
                l->cycle_start = l->marks[0].at = l->marks[1].at = now;
        l->in_flight++;
        bool late = l->why == LIMITER_PACE || l->why == LIMITER_QUOTA;
        *ret_pass = (struct limiter_pass){
            .sent = now,
            .serial = l->sends,
            .in_flight = l->in_flight,
            .recent = pace_go(&l->pace, limiter_paced_rate(l, now), late, now),
            .why = l->why,
            .limited = limited,
            .probe = l->hold.closed,
        };
        if (ret_pass->probe)
                hold_probe_sent(&l->hold);
        l->used = now;
        l->spaced = usec_add(now, spacing(l, prng));
        l->why = LIMITER_NOTHING;
        enum limiter_event event = l->untold;
        l->untold = LIMITER_UNCHANGED;
        return event == LIMITER_UNCHANGED ? event : limiter_told(l, event);
}

void limiter_finish(struct limiter *l, struct limiter_pass *pass)
{
        l->in_flight--;
        if (pass->probe && !pass->answered && l->hold.closed)
                hold_probe_cancelled(&l->hold);
}

/* ---- for people ---- */

static double rate_in_force(const struct limiter *l, usec_t now)
{
        const struct limiter_policy *p = &l->policy;
        double rate = limiter_paced_rate(l, now);
        if (p->max_rate > 0)
                rate = rate > 0 ? fmin(rate, p->max_rate) : p->max_rate;
        if (p->min_delay > 0) {
                double spaced = 1 / (1.5 * usec_seconds(p->min_delay));
                rate = rate > 0 ? fmin(rate, spaced) : spaced;
        }
        return rate;
}

void limiter_look(const struct limiter *l, usec_t now, struct limiter_view *ret_view)
{
        const struct hold *h = &l->hold;
        bool cut = limiter_is_adaptive(l) ? !l->pace.slow_start : l->cut > 0;
        *ret_view = (struct limiter_view){
            .rate = rate_in_force(l, now),
            .refused_rate = limiter_is_adaptive(l) ? l->pace.max : 0,
            .concurrency = limiter_allowed(l),
            .in_flight = l->in_flight,
            .closed_until = h->closed ? h->until : 0,
            .circuit_open = h->circuit_open && now < h->until,
            .settled = cut || l->policy.algorithm == LIMITER_FIXED,
            .used = l->used,
        };
}

const char *limiter_event_name(enum limiter_event event)
{
        switch (event) {
        case LIMITER_UNCHANGED:
                return "unchanged";
        case LIMITER_GREW:
                return "grew";
        case LIMITER_CUT:
                return "cut";
        case LIMITER_CLOSED:
                return "closed";
        case LIMITER_CIRCUIT_OPEN:
                return "circuit_open";
        case LIMITER_REOPENED:
                return "reopened";
        case LIMITER_RESUMED:
                return "resumed";
        case LIMITER_RESTORED:
                return "restored";
        case LIMITER_RESET:
                return "reset";
        }
        return "unknown";
}
