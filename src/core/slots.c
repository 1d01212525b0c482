#include "core/slots.h"

#include <math.h>

static const double per_trial = 200; /* K: accepted requests before a confirmed C is tried again, */
static const double per_trial_each = 8; /* kr: and this many for each slot */

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
        s->above = s->suspect = 0;
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

enum slots_refusal slots_refused(struct slots *s, unsigned in_flight, bool again)
{
        if (s->known > 0 && in_flight > s->known) {
                learn(s, s->known, true);
                return SLOTS_TRIAL_REFUSED;
        }
        if (s->suspect > 0 && in_flight > s->suspect) {
                if (again)
                        return SLOTS_UNTOLD;
                learn(s, s->suspect, true);
                return SLOTS_FOUND;
        }
        s->suspect = in_flight - 1; /* none for a request that went alone */
        return SLOTS_UNTOLD;
}

void slots_accepted(struct slots *s, unsigned in_flight)
{
        if (in_flight > s->suspect)
                s->suspect = 0;
}

static void begin_trial(struct slots *s)
{
        s->limit = at_most(s->known + at_least(s->known / 4, 1), s->ceiling);
        s->above = 0;
}

void slots_grow(struct slots *s, unsigned in_flight, double requests)
{
        if (s->known == 0 || s->known >= s->ceiling)
                return;
        if (s->limit <= s->known) {
                double known = s->known, rarely = fmax(per_trial, per_trial_each * known);
                s->progress += 1 / (s->confirmed ? fmax(rarely, requests) : known);
                if (s->progress >= 1)
                        begin_trial(s);
        } else if (in_flight > s->known && ++s->above >= at_least(2 * (s->limit - s->known), 4)) {
                learn(s, s->limit, false);
        }
}
