#include "core/limiter.h"

#include <math.h>

#include "core/limiter_state.h"

static const usec_t overloaded_hold = USEC_PER_SEC;     /* after a 503, at least */
static const usec_t overloaded_calm = 2 * USEC_PER_SEC; /* and no growth for this long */
static const usec_t calm_rtts = 8;                      /* or this many round trips */
static const usec_t first_rtt_min = 50 * USEC_PER_MSEC; /* a refusal may come much faster */
static const usec_t rtt_min = 100;                      /* keeps 1/srtt a sane rate */
static const usec_t short_rtt = 200 * USEC_PER_MSEC;
static const usec_t short_hold_rtts = 5; /* a first hold up to this long needs no probe */
static const uint64_t mark_accepted = 8;
static const double rate_over_ceiling = 2; /* times what it carries: latency varies */
static const double jitter_max = .1;
static const unsigned unmoved_max = 3; /* from there on it is no matter of the rate */
static const double told_step = .02;   /* changes below are no event, */
static const usec_t told_hold_step = 100 * USEC_PER_MSEC;

/* ---- events ---- */

static enum limiter_event told_if_grown(struct limiter *l)
{
        double rate = limiter_learned_rate(l);
        bool same = fabs(rate - l->told.rate) < told_step * l->told.rate || rate <= l->told.rate;
        if (same && limiter_allowed(l) == l->told.allowed)
                return LIMITER_UNCHANGED;
        return limiter_told(l, LIMITER_GREW);
}

static enum limiter_event told_if_closed(struct limiter *l)
{
        if (!l->hold.closed || l->hold.until < usec_add(l->told.until, told_hold_step))
                return LIMITER_UNCHANGED;
        return limiter_told(l, LIMITER_CLOSED);
}

/* ---- accepted ---- */

static void measure(struct limiter *l, usec_t rtt)
{
        usec_t old = l->srtt ? l->srtt : rtt;
        l->srtt = usec_max((7 * old + rtt) / 8, rtt_min);
}

static void count(struct limiter *l, usec_t now)
{
        struct limiter_mark *m = l->marks;
        l->accepted++;
        l->cycle_accepted++;
        if (now - m[1].at < l->srtt || l->accepted - m[1].accepted < mark_accepted)
                return;
        m[0] = m[1];
        m[1] = (struct limiter_mark){now, l->accepted};
}

static double delivered(const struct limiter *l, usec_t now)
{
        usec_t since = usec_max(usec_sub(now, l->marks[0].at), 1);
        return (double)(l->accepted - l->marks[0].accepted) / usec_seconds(since);
}

/* The rate that the operator's ceiling carries (Little's law). */
static double most_sent(const struct limiter *l)
{
        return limiter_bounded(l, l->policy.ceiling) / usec_seconds(l->srtt);
}

/* A rate far above is not what limits: more of it would prove nothing, and would take long to come
 * down from. */
static bool is_usable(const struct limiter *l)
{
        return l->pace.rate < rate_over_ceiling * most_sent(l);
}

static void grow_adaptive(struct limiter *l, const struct limiter_pass *pass)
{
        /* What was not held back says nothing about more; nor what others than the limiter did. */
        if (!pass->limited || pass->why == LIMITER_BOUND || pass->why == LIMITER_QUOTA)
                return;
        if (pass->why == LIMITER_SLOT)
                slots_grow(&l->slots, pass->in_flight, pace_budgeted(&l->pace));
        else if ((!l->hold.closed || l->pace.slow_start) && is_usable(l))
                pace_grow(&l->pace, l->srtt);
}

static void grow(struct limiter *l, const struct limiter_pass *pass, usec_t now)
{
        if (now < l->calm)
                return;
        if (limiter_is_adaptive(l))
                grow_adaptive(l, pass);
        else if (l->policy.algorithm == LIMITER_AIMD && pass->sent >= l->cut && !l->hold.closed)
                aimd_grow(&l->aimd, &l->policy, pass->in_flight);
}

static enum limiter_event accepted(struct limiter *l, const struct limiter_pass *pass, bool served,
                                   usec_t now)
{
        if (served) {
                measure(l, usec_sub(now, pass->sent));
                slots_accepted(&l->slots, pass->in_flight);
        }
        count(l, now);
        hold_accepted(&l->hold);
        l->unmoved = 0;
        if (served && limiter_is_adaptive(l) && l->pace.rate <= 0) {
                pace_start_accepted(&l->pace, limiter_allowed(l), l->srtt);
                l->paced_since = now;
        }
        if (pass->probe && l->hold.closed) {
                limiter_reopen(l, pass->sent, hold_reopen(&l->hold, now), now);
                return limiter_told(l, LIMITER_REOPENED);
        }
        if (pass->sent >= l->cut && !l->hold.closed && l->refused_epochs > 0) {
                pace_lengthen(&l->pace, l->episode_refusals);
                l->refused_epochs = l->episode_refusals = 0;
        }
        if (served)
                grow(l, pass, now);
        return told_if_grown(l);
}

/* ---- refused ---- */

static double jitter(struct prng *prng)
{
        return 1 + jitter_max * prng_unit(prng);
}

/* The very first answer: one request each round trip, from here on. */
static void first_refused(struct limiter *l, const struct limiter_pass *pass, usec_t wait,
                          usec_t now)
{
        l->srtt = usec_max(usec_sub(now, pass->sent), first_rtt_min);
        pace_start_refused(&l->pace, l->srtt);
        l->cut = l->cycle_start = now;
        hold_back_off(&l->hold, HOLD_BACK_OFF_MIN, 1, now);
        hold_close(&l->hold, wait, true, now);
}

static void cut_adaptive(struct limiter *l, const struct limiter_pass *pass, bool overloaded,
                         usec_t wait, usec_t now)
{
        l->heeded = 0;
        enum slots_refusal slots = slots_refused(&l->slots, pass->in_flight, l->refused_epochs > 1);
        if (slots == SLOTS_TRIAL_REFUSED && !overloaded) {
                pace_spare(&l->pace);
                pace_delay(&l->pace, limiter_paced_rate(l, now), now);
                return;
        }
        pace_cut(&l->pace, &(struct pace_refusal){
                               .first = l->refused_epochs == 1,
                               .overloaded = overloaded,
                               .wait_named = wait > 0,
                               .recent = pass->recent,
                               .most = most_sent(l),
                               .delivered = delivered(l, now),
                           });
        if (slots == SLOTS_FOUND && !overloaded)
                pace_carry(&l->pace, l->slots.known / usec_seconds(l->srtt));
        pace_budget(&l->pace, l->srtt, l->episode_refusals, 0);
        pace_delay(&l->pace, limiter_paced_rate(l, now), now);
}

/* Before there was a rate some went at once: that they were too many together tells nothing about
 * it. */
static bool is_first_burst(const struct limiter *l, const struct limiter_pass *pass)
{
        return l->pace.slow_start && l->refused_epochs == 1 && pass->sent < l->paced_since;
}

static void hold_as_named(struct limiter *l, usec_t wait, bool again, usec_t now)
{
        bool probe = again || wait > short_hold_rtts * usec_max(l->srtt, short_rtt);
        hold_named(&l->hold, wait, probe, l->srtt, now);
}

static void hold_by_guess(struct limiter *l, double stretch, usec_t now)
{
        double rate = limiter_learned_rate(l);
        usec_t spaced = rate > 0 ? usec_from_seconds(1 / rate) : 0;
        hold_back_off(&l->hold, usec_max(l->srtt, spaced), stretch, now);
}

static void hold_after_cut(struct limiter *l, usec_t wait, double stretch, usec_t now)
{
        bool again = l->refused_epochs > 1;
        if (wait > 0)
                hold_as_named(l, wait, again, now);
        else if (again)
                hold_by_guess(l, stretch, now);
}

/* One more refusal in a row: does it open the circuit? */
static enum limiter_event told_refused(struct limiter *l, bool cut, double stretch, usec_t now)
{
        bool was_open = l->hold.circuit_open;
        if (hold_refused(&l->hold, l->policy.breaker.trip, l->policy.breaker.cooldown, stretch,
                         now) &&
            !was_open)
                return limiter_told(l, LIMITER_CIRCUIT_OPEN);
        return cut ? limiter_told(l, LIMITER_CUT) : told_if_closed(l);
}

static enum limiter_event refused(struct limiter *l, const struct limiter_pass *pass,
                                  bool overloaded, usec_t wait, usec_t now, struct prng *prng)
{
        double stretch = jitter(prng);
        wait = usec_min(wait, l->policy.max_hold);
        if (overloaded) {
                wait = usec_max(wait, overloaded_hold);
                l->calm = usec_add(now, usec_max(overloaded_calm, calm_rtts * l->srtt));
        }
        l->episode_refusals++;
        if (pass->probe && l->hold.closed) {
                hold_probe_refused(&l->hold, wait, stretch, now);
                return told_refused(l, false, stretch, now);
        }
        if (pass->sent < l->cut) { /* old news: no second cut */
                if (l->hold.closed && wait > 0)
                        hold_close(&l->hold, wait, false, now);
                return told_if_closed(l);
        }
        if (limiter_is_adaptive(l) && l->pace.rate <= 0) {
                first_refused(l, pass, wait, now);
                return told_refused(l, true, stretch, now);
        }
        l->refused_epochs++;
        bool cut = l->policy.algorithm != LIMITER_FIXED;
        if (limiter_is_adaptive(l) && is_first_burst(l, pass))
                cut = false;
        else if (limiter_is_adaptive(l))
                cut_adaptive(l, pass, overloaded, wait, now);
        else if (l->policy.algorithm == LIMITER_AIMD)
                aimd_cut(&l->aimd, &l->policy);
        l->cut = now;
        hold_after_cut(l, wait, stretch, now);
        return told_refused(l, cut, stretch, now);
}

/* Refused for what others did: nothing is learned from it, but nothing is to be had either. */
static enum limiter_event spared(struct limiter *l, const struct limiter_pass *pass, usec_t wait,
                                 usec_t now, struct prng *prng)
{
        struct hold *h = &l->hold;
        wait = usec_min(wait, l->policy.max_hold);
        if (pass->probe && h->closed)
                hold_probe_refused(h, wait, jitter(prng), now);
        else if (pass->sent < l->cycle_start)
                ; /* of the time before a hold that is over */
        else if (wait > 0)
                hold_as_named(l, wait, false, now);
        else
                hold_by_guess(l, jitter(prng), now);
        return told_if_closed(l);
}

/* A refusal that the host is right to expect no more of: nothing went but this request, and that as
 * late as it had been told. How often in a row? */
static void count_unmoved(struct limiter *l, struct limiter_pass *pass)
{
        if (!pass->probe || !l->hold.closed)
                return;
        if (l->full_hold && pass->in_flight == 1)
                l->unmoved++;
        pass->blocked = l->unmoved >= unmoved_max;
        l->full_hold = false;
}

static enum limiter_event throttled(struct limiter *l, struct limiter_pass *pass,
                                    const struct answer *answer, usec_t now, struct prng *prng)
{
        usec_t wait = answer->wait;
        if (answer->quota.shared)
                return spared(l, pass, wait, now, prng);
        count_unmoved(l, pass);
        enum limiter_event event = refused(l, pass, false, wait, now, prng);
        bool as_told = wait > 0 && wait <= l->policy.max_hold;
        l->full_hold |= l->hold.closed && (as_told || l->hold.circuit_open);
        return event;
}

/* ---- answers ---- */

static enum limiter_event failed(struct limiter *l, const struct limiter_pass *pass, usec_t now,
                                 struct prng *prng)
{
        if (!pass->probe || !l->hold.closed)
                return LIMITER_UNCHANGED;
        hold_probe_refused(&l->hold, 0, jitter(prng), now);
        return told_if_closed(l);
}

static enum limiter_event learn(struct limiter *l, struct limiter_pass *pass,
                                const struct answer *answer, usec_t now, struct prng *prng)
{
        switch (answer->class) {
        case ANSWER_SUCCESS:
                return accepted(l, pass, true, now);
        case ANSWER_BLOCKED:
                return accepted(l, pass, false, now);
        case ANSWER_THROTTLED:
                return throttled(l, pass, answer, now, prng);
        case ANSWER_OVERLOADED:
                return refused(l, pass, true, answer->wait, now, prng);
        case ANSWER_FAILED:
                break;
        }
        return failed(l, pass, now, prng);
}

/* Does the answer tell of a quota that is used up? Then the scope is closed until it is whole. */
static enum limiter_event close_for_quota(struct limiter *l, const struct quota *quota,
                                          enum limiter_event event, usec_t now)
{
        usec_t wait = quota_hold(quota);
        if (wait == 0)
                return event;
        hold_close(&l->hold, usec_min(wait, l->policy.max_hold), wait > l->policy.max_hold, now);
        bool closed = told_if_closed(l) == LIMITER_CLOSED;
        bool says_less =
            event == LIMITER_UNCHANGED || event == LIMITER_GREW || event == LIMITER_REOPENED;
        return closed && says_less ? LIMITER_CLOSED : event;
}

enum limiter_event limiter_answer(struct limiter *l, struct limiter_pass *pass,
                                  const struct answer *answer, usec_t now, struct prng *prng)
{
        bool is_told = answer->class != ANSWER_BLOCKED && pass->sent >= l->cycle_start;
        pass->answered = true;
        if (is_told)
                quota_bound_read(&l->quota, &answer->quota, l->sends - pass->serial,
                                 usec_sub(now, pass->sent), now);
        enum limiter_event event = learn(l, pass, answer, now, prng);
        return is_told ? close_for_quota(l, &answer->quota, event, now) : event;
}
