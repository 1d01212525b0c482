#include "core/quota_bound.h"

#include <math.h>

static const uint64_t limit_min = 10;
static const usec_t reset_min = 3 * USEC_PER_SEC;
static const usec_t fresh = 4 * USEC_PER_SEC;

/* Requests/s that the window bears; 0 where it is passed over. */
static double rate_of(const struct quota_window *w, uint64_t sent, usec_t rtt)
{
        uint64_t limit = w->limit ? w->limit : w->remaining;
        usec_t span = w->reset != USEC_MAX ? w->reset : w->length;
        if (limit < limit_min || span < reset_min)
                return 0;
        if (w->reset == USEC_MAX)
                return (double)w->limit / usec_seconds(w->length);
        uint64_t left = w->remaining > sent ? w->remaining - sent : 1;
        return (double)left / usec_seconds(usec_max(usec_sub(span, rtt), USEC_PER_SEC));
}

void quota_bound_read(struct quota_bound *b, const struct quota *quota, uint64_t sent, usec_t rtt,
                      usec_t now)
{
        double lowest = 0;
        usec_t reset = 0; /* of the window that it comes from */
        for (size_t i = 0; i < quota->count; i++) {
                const struct quota_window *w = &quota->windows[i];
                double rate = rate_of(w, sent, rtt);
                if (rate <= 0 || (lowest > 0 && rate >= lowest))
                        continue;
                lowest = rate;
                reset = w->reset;
        }
        if (lowest <= 0)
                return;
        usec_t two = usec_min(usec_from_seconds(2 / lowest), reset);
        *b = (struct quota_bound){lowest, usec_add(now, usec_max(fresh, two))};
}

double quota_bound_rate(const struct quota_bound *b, usec_t now)
{
        return now < b->until ? b->rate : 0;
}
