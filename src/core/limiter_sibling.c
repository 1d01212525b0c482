#include "core/limiter_sibling.h"

#include <math.h>

#include "core/limiter_state.h"

static const double same_rate = .04; /* no further apart than a refusal near the limit cuts, */
static const double same_limit = .1; /* nor than a few of these */
static const unsigned heeds_max = 4; /* or a limit of one's own beyond theirs would not be found */

/* Has it met its limit? */
static bool knows_its_limit(const struct limiter *l)
{
        return limiter_is_adaptive(l) && l->pace.rate > 0 && !l->pace.slow_start;
}

static bool is_close(double a, double b, double share)
{
        return fabs(a / b - 1) <= share;
}

/* As far as it knows. */
static bool has_the_same(const struct limiter *l, const struct limiter *sibling)
{
        return l->pace.guessed || is_close(l->pace.max, sibling->pace.max, same_limit);
}

static void climb_as(struct limiter *l, const struct limiter *sibling, usec_t now)
{
        pace_climb_as(&l->pace, &sibling->pace, l->srtt);
        pace_delay(&l->pace, l->pace.rate, now);
        l->cut = now;
        l->told.rate = l->pace.rate;
}

void limiter_begin_as(struct limiter *l, const struct limiter *sibling, usec_t now)
{
        if (l->sends > 0 || !limiter_is_adaptive(l) || !knows_its_limit(sibling))
                return;
        l->srtt = sibling->srtt;
        slots_import(&l->slots, sibling->slots.known, sibling->slots.confirmed);
        climb_as(l, sibling, now);
        l->heeded = heeds_max;
}

bool limiter_heed(struct limiter *l, const struct limiter *sibling, usec_t now)
{
        if (l->heeded >= heeds_max || !knows_its_limit(l) || !knows_its_limit(sibling) ||
            !has_the_same(l, sibling) || !is_close(l->pace.rate, sibling->pace.max, same_rate))
                return false;
        climb_as(l, sibling, now);
        l->heeded++;
        return true;
}
