#include "core/pace.h"

#include <math.h>

/* A smaller `drop` finds a limit more slowly, a larger one loses more below it (a fourth of it, on
 * average); refusals are one in `per_refusal`, silence one part in `cost`, at most. */
static const double drop = .04;        /* d: cut after a refusal near the known limit */
static const double per_refusal = 200; /* K: accepted requests for each refusal */
static const double curve = 6;         /* c: how fast the cubic leaves R_max */
static const double cut_fast = .30;    /* beta: cut while the rate was accelerating */
static const double cut_free = .10;    /* cut below R_max where a refusal costs no hold */
static const double cut_held = .15;    /* the same where each costs a named wait */
static const double trust = .80;       /* of the last second's sends, after slow start */
static const double known_again = .25; /* progress from which a refusal tells of R_max anew */
static const double over_slots = 1.5;  /* times what the slots carry: they limit, not the rate */
static const double heard = 1.5;       /* a climb after a sibling's refusal, times its own */
static const double quota_below = .80; /* a cycle that carried less than this share of R */
static const usec_t climb_min = 2 * USEC_PER_SEC;
static const usec_t climb_rtts = 8;
static const usec_t cost = 60; /* time of climb for each unit of silence: at a known limit, */
static const usec_t cost_unsettled = 20; /* on the way to it, */
static const usec_t cost_quota = 2;      /* after a quota was adopted */
static const usec_t late_max = 4 * USEC_PER_MSEC;
static const double rate_min = 1. / 60; /* as rare as the longest back-off, never "never" */
static const double rate_max = 1e6;     /* one for each microsecond, the grain of time */
static const double resume_share = .5;  /* of the known rate, after a long idleness */
static const double progress_max = 10;  /* no climb gets this far: it would be 1e6 times `max` */
static const usec_t climb_max = 24 * 3600 * USEC_PER_SEC; /* of a budget read from a file */

static double clamp(double value, double low, double high)
{
        return fmin(fmax(value, low), high);
}

static void set_rate(struct pace *p, double rate)
{
        p->rate = clamp(rate, rate_min, rate_max);
}

static double cube(double v)
{
        return v * v * v;
}

void pace_init(struct pace *p)
{
        *p = (struct pace){
            .slow_start = true,
            .requests = per_refusal,
            .time = climb_min,
        };
}

void pace_start_accepted(struct pace *p, unsigned in_flight, usec_t srtt)
{
        set_rate(p, in_flight / usec_seconds(srtt));
}

void pace_start_refused(struct pace *p, usec_t srtt)
{
        set_rate(p, 1 / usec_seconds(srtt));
        p->max = p->low = p->rate;
}

static usec_t spacing(double rate)
{
        return rate > 0 ? usec_from_seconds(1 / rate + .5e-6) : 0;
}

static void forget_old(struct pace *p, uint64_t tenth)
{
        if (p->tenth + PACE_TENTHS < tenth)
                p->tenth = tenth - PACE_TENTHS;
        while (p->tenth < tenth)
                p->sent[++p->tenth % PACE_TENTHS] = 0;
}

unsigned pace_go(struct pace *p, double rate, bool late, usec_t now)
{
        unsigned sum = 0;
        forget_old(p, now / (USEC_PER_SEC / 10));
        p->sent[p->tenth % PACE_TENTHS]++;
        for (unsigned i = 0; i < PACE_TENTHS; i++)
                sum += p->sent[i];
        if (late)
                p->late_at = now;
        usec_t from = p->late_at == now ? usec_sub(now, late_max) : now;
        p->next = usec_add(usec_max(p->next, from), spacing(rate));
        return sum;
}

void pace_delay(struct pace *p, double rate, usec_t now)
{
        p->next = usec_max(p->next, usec_add(now, spacing(rate)));
}

/* Slow start up to a rate that once was known to be far from the limit. */
static void grow_resuming(struct pace *p, usec_t srtt)
{
        set_rate(p, fmin(p->rate + 1 / usec_seconds(srtt), p->resume));
        p->low = p->rate;
        if (p->rate >= p->resume)
                p->resume = 0;
}

double pace_budgeted(const struct pace *p)
{
        return p->rate * usec_seconds(p->time);
}

void pace_grow(struct pace *p, usec_t srtt)
{
        if (p->resume > 0) {
                grow_resuming(p, srtt);
                return;
        }
        if (p->slow_start) {
                set_rate(p, p->rate + 1 / usec_seconds(srtt));
                return;
        }
        /* Far below R_max few requests pass: there each counts for as many as would at R_max. */
        double requests = p->requests * fmin(1, p->rate / p->max);
        p->x += 1 / fmax(requests, pace_budgeted(p));
        set_rate(p, p->x < 1 ? p->max - (p->max - p->low) * cube(1 - p->x)
                             : p->max * (1 + drop * cube(curve * (p->x - 1))));
}

/* The end of slow start: the last second's sends are an estimate from below, the present rate, as
 * far as it was made use of, is one from above. Restart at the one, look for the limit between
 * them. */
static void cut_slow_start(struct pace *p, const struct pace_refusal *r)
{
        double old = fmin(p->rate, r->most);
        double rate = clamp(trust * r->recent, old / 4, (1 - cut_fast) * old);
        set_rate(p, r->overloaded ? fmin(rate, old / 2) : rate);
        p->max = sqrt(p->rate * old);
        p->guessed = true;
        p->slow_start = false;
}

void pace_cut(struct pace *p, const struct pace_refusal *r)
{
        double old = p->rate;
        bool accelerating = p->slow_start || old > p->max * (1 + drop);
        bool probing = accelerating || p->x >= known_again;
        p->resume = 0;
        if (r->first)
                p->steady = probing && !accelerating;
        if (p->slow_start) {
                cut_slow_start(p, r);
                return;
        }
        p->max = probing ? old : fmin(p->max, old);
        p->guessed = false;
        if (r->overloaded) {
                set_rate(p, old / 2);
        } else if (probing && !accelerating) {
                set_rate(p, (1 - drop) * old);
        } else {
                double cut = accelerating ? cut_fast : r->wait_named ? cut_held : cut_free;
                set_rate(p, clamp((1 - drop) * r->delivered, old / 2, (1 - cut) * old));
        }
}

void pace_climb_as(struct pace *p, const struct pace *other, usec_t srtt)
{
        bool known = !p->slow_start && !p->guessed;
        p->rate = other->rate;
        p->max = other->max;
        p->guessed = other->guessed;
        p->steady = other->steady;
        p->slow_start = false;
        p->resume = 0;
        pace_budget(p, srtt, 1, 0);
        if (known)
                p->requests *= heard;
}

void pace_spare(struct pace *p)
{
        p->steady = true;
}

void pace_carry(struct pace *p, double rate)
{
        set_rate(p, fmax(p->rate, rate));
        p->max = fmax(p->max, over_slots * rate);
}

void pace_budget(struct pace *p, usec_t srtt, unsigned refusals, usec_t silence)
{
        usec_t paid = (p->steady ? cost : cost_unsettled) * silence;
        pace_lengthen(p, refusals);
        p->time = usec_max(usec_max(climb_rtts * srtt, climb_min), paid);
        p->x = 0;
        p->low = p->rate;
}

void pace_lengthen(struct pace *p, unsigned refusals)
{
        p->requests = per_refusal * (refusals > 1 ? refusals : 1);
}

void pace_reopen(struct pace *p, double cycle_rate, usec_t silence, usec_t srtt, unsigned refusals)
{
        bool quota = !p->steady && silence > usec_max(2 * USEC_PER_SEC, 5 * srtt) &&
                     cycle_rate < quota_below * p->rate;
        if (!quota) {
                pace_budget(p, srtt, refusals, silence);
                return;
        }
        set_rate(p, clamp((1 - drop) * cycle_rate, p->rate / 4, p->rate));
        pace_budget(p, srtt, refusals, 0);
        p->time = usec_max(p->time, cost_quota * silence);
}

void pace_resume(struct pace *p, double start, usec_t srtt)
{
        double half = resume_share * p->rate;
        set_rate(p, fmin(start, half));
        if (!p->slow_start) /* else that goes on, with no end of its own */
                p->resume = p->rate < half ? half : 0;
        pace_budget(p, srtt, 0, 0);
}

void pace_export(const struct pace *p, struct pace_memory *ret)
{
        *ret = (struct pace_memory){
            .rate = p->rate,
            .max = p->max,
            .low = p->low,
            .resume = p->resume,
            .x = p->x,
            .requests = p->requests,
            .time = p->time,
            .slow_start = p->slow_start,
            .guessed = p->guessed,
            .steady = p->steady,
        };
}

void pace_import(struct pace *p, const struct pace_memory *m)
{
        pace_init(p);
        set_rate(p, m->rate);
        p->slow_start = m->slow_start || !(m->max > 0); /* a climb needs to know where to */
        p->guessed = m->guessed;
        p->steady = m->steady;
        if (m->max > 0)
                p->max = clamp(m->max, rate_min, rate_max);
        if (p->slow_start)
                return;
        p->low = clamp(m->low, rate_min, p->rate);
        p->resume = clamp(m->resume, 0, p->max);
        p->x = clamp(m->x, 0, progress_max);
        p->requests = clamp(m->requests, per_refusal, 1e6 * per_refusal);
        p->time = usec_min(usec_max(m->time, climb_min), climb_max);
}
