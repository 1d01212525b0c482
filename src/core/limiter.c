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

/* ---- what is in force ---- */

static bool is_adaptive(const struct limiter *l)
{
        return l->policy.algorithm == LIMITER_ADAPTIVE;
}

/* The learned rate, 0 for none. */
static double learned_rate(const struct limiter *l)
{
        return is_adaptive(l) ? l->pace.rate : 0;
}

static bool is_bound_by_quota(const struct limiter *l, usec_t now)
{
        double bound = quota_bound_rate(&l->quota, now), rate = learned_rate(l);
        return bound > 0 && (rate <= 0 || bound < rate) && l->policy.algorithm != LIMITER_FIXED;
}

/* The rate at which requests are sent, 0 for none. The operator's max_rate is kept by `spaced`,
 * beside it. */
static double paced_rate(const struct limiter *l, usec_t now)
{
        return is_bound_by_quota(l, now) ? l->quota.rate : learned_rate(l);
}

static unsigned bounded(const struct limiter *l, unsigned in_flight)
{
        unsigned n = in_flight > l->policy.floor ? in_flight : l->policy.floor;
        n = n < l->policy.ceiling ? n : l->policy.ceiling;
        return n > 0 ? n : 1;
}

static unsigned allowed(const struct limiter *l)
{
        switch (l->policy.algorithm) {
        case LIMITER_AIMD:
                return (unsigned)l->aimd.window;
        case LIMITER_FIXED:
                return bounded(l, l->policy.start);
        case LIMITER_ADAPTIVE:
                break;
        }
        return l->pace.rate > 0 ? l->slots.limit : bounded(l, l->policy.start);
}

/* ---- events ---- */

static enum limiter_event told(struct limiter *l, enum limiter_event event)
{
        l->told.rate = learned_rate(l);
        l->told.allowed = allowed(l);
        l->told.until = l->hold.closed ? l->hold.until : 0;
        return event;
}

static enum limiter_event told_if_grown(struct limiter *l)
{
        double rate = learned_rate(l);
        bool same = fabs(rate - l->told.rate) < told_step * l->told.rate || rate <= l->told.rate;
        if (same && allowed(l) == l->told.allowed)
                return LIMITER_UNCHANGED;
        return told(l, LIMITER_GREW);
}

static enum limiter_event told_if_closed(struct limiter *l)
{
        if (!l->hold.closed || l->hold.until < usec_add(l->told.until, told_hold_step))
                return LIMITER_UNCHANGED;
        return told(l, LIMITER_CLOSED);
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
        told(l, LIMITER_UNCHANGED);
}

void limiter_configure(struct limiter *l, const struct limiter_policy *policy)
{
        bool same = l->policy.algorithm == policy->algorithm;
        l->policy = *policy;
        if (!same)
                learn_anew(l);
        slots_bound(&l->slots, policy->floor, policy->ceiling);
        aimd_bound(&l->aimd, policy);
        told(l, LIMITER_UNCHANGED);
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

/* A new cycle begins. `ended` is when the hold was over: the probe's departure, or its own end. */
static void reopen(struct limiter *l, usec_t ended, usec_t silence, usec_t now)
{
        double cycle = usec_seconds(usec_max(usec_sub(ended, l->cycle_start), USEC_PER_MSEC));
        /* Closed without a refusal of its own doing, it learned nothing. */
        if (is_adaptive(l) && l->episode_refusals > 0)
                pace_reopen(&l->pace, (double)l->cycle_accepted / cycle, silence, l->srtt,
                            l->episode_refusals);
        l->episode_refusals = l->refused_epochs = 0;
        l->cycle_start = l->cut = now;
        l->cycle_accepted = 0;
        l->full_hold = false;
        pace_delay(&l->pace, paced_rate(l, now), now);
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
        if (is_adaptive(l) && l->pace.rate > 0)
                pace_resume(&l->pace, bounded(l, l->policy.start) / usec_seconds(l->srtt), l->srtt);
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
                reopen(l, h->until, hold_reopen(h, h->until), now);
                l->untold = LIMITER_REOPENED;
        }
        /* A probe minds the operator's bounds alone: what was learned led into the hold. */
        if (l->in_flight >= (h->closed ? bounded(l, l->policy.ceiling) : allowed(l)))
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
            .recent = pace_go(&l->pace, paced_rate(l, now), late, now),
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
        return event == LIMITER_UNCHANGED ? event : told(l, event);
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
        return bounded(l, l->policy.ceiling) / usec_seconds(l->srtt);
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
        if (is_adaptive(l))
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
        if (served && is_adaptive(l) && l->pace.rate <= 0) {
                pace_start_accepted(&l->pace, allowed(l), l->srtt);
                l->paced_since = now;
        }
        if (pass->probe && l->hold.closed) {
                reopen(l, pass->sent, hold_reopen(&l->hold, now), now);
                return told(l, LIMITER_REOPENED);
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
                pace_delay(&l->pace, paced_rate(l, now), now);
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
        pace_delay(&l->pace, paced_rate(l, now), now);
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
        double rate = learned_rate(l);
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
                return told(l, LIMITER_CIRCUIT_OPEN);
        return cut ? told(l, LIMITER_CUT) : told_if_closed(l);
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
        if (is_adaptive(l) && l->pace.rate <= 0) {
                first_refused(l, pass, wait, now);
                return told_refused(l, true, stretch, now);
        }
        l->refused_epochs++;
        bool cut = l->policy.algorithm != LIMITER_FIXED;
        if (is_adaptive(l) && is_first_burst(l, pass))
                cut = false;
        else if (is_adaptive(l))
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
        double rate = paced_rate(l, now);
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
        bool cut = is_adaptive(l) ? !l->pace.slow_start : l->cut > 0;
        *ret_view = (struct limiter_view){
            .rate = rate_in_force(l, now),
            .refused_rate = is_adaptive(l) ? l->pace.max : 0,
            .concurrency = allowed(l),
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
