#include "core/slots.h"

#include <math.h>

static const double per_trial = 200; /* K: accepted requests before a confirmed C is tried again, */
static const double per_trial_each = 8; /* kr: and this many for each slot */
static const unsigned full_in_a_row = 3;

static unsigned at_least(unsigned value, unsigned low)
{
        return value > low ? value : low;
}

static unsigned at_most(unsigned value, unsigned high)
{
        return value < high ? value : high;
}

static void learn(struct slots *s, unsigned known, bool confirmed)
{
        s->known = s->limit = at_most(at_least(known, s->floor), s->ceiling);
        s->progress = 0;
        s->above = s->full = 0;
        s->confirmed = confirmed;
}

void slots_init(struct slots *s, unsigned floor, unsigned ceiling)
{
        *s = (struct slots){0};
        slots_bound(s, floor, ceiling);
}

void slots_bound(struct slots *s, unsigned floor, unsigned ceiling)
{
        s->ceiling = at_least(ceiling, 1);
        s->floor = at_most(at_least(floor, 1), s->ceiling);
        if (s->known == 0)
                s->limit = s->ceiling;
        else if (s->known < s->floor || s->limit > s->ceiling)
                learn(s, s->known, s->confirmed);
}

void slots_import(struct slots *s, unsigned known, bool confirmed)
{
        if (known > 0)
                learn(s, known, confirmed);
}

void slots_refused(struct slots *s, unsigned in_flight, bool slow_start)
{
        if (slow_start)
                learn(s, at_least(in_flight, 2) - 1, s->confirmed);
        else if (s->known == 0)
                return;
        else if (in_flight > s->known)
                learn(s, s->known, true);
        else if (in_flight < s->known)
                s->full = 0;
        else if (s->known > 1 && ++s->full >= full_in_a_row)
                learn(s, s->known - 1, true);
}

static void begin_trial(struct slots *s)
{
        s->limit = at_most(s->known + at_least(s->known / 4, 1), s->ceiling);
        s->above = 0;
}

void slots_grow(struct slots *s, unsigned in_flight)
{
        if (s->known == 0 || s->known >= s->ceiling)
                return;
        if (s->limit <= s->known) {
                double known = s->known;
                s->progress += 1 / (s->confirmed ? fmax(per_trial, per_trial_each * known) : known);
                if (s->progress >= 1)
                        begin_trial(s);
        } else if (in_flight > s->known && ++s->above >= at_least(2 * (s->limit - s->known), 4)) {
                learn(s, s->limit, false);
        }
}
