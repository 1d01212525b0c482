#include "core/hold.h"

static usec_t stretched(usec_t t, double jitter)
{
        return usec_from_seconds(usec_seconds(t) * jitter);
}

void hold_close(struct hold *h, usec_t wait, bool half_open, usec_t now)
{
        if (!h->closed) {
                h->closed = true;
                h->half_open = h->probe_out = false;
                h->since = now;
                h->until = 0;
        }
        h->half_open |= half_open;
        h->until = usec_max(h->until, usec_add(now, wait));
}

static usec_t back_off_of(usec_t wait)
{
        return usec_min(usec_max(wait, HOLD_BACK_OFF_MIN), HOLD_BACK_OFF_MAX);
}

void hold_named(struct hold *h, usec_t wait, bool half_open, usec_t back_off, usec_t now)
{
        h->back_off = back_off_of(back_off);
        hold_close(h, wait, half_open, now);
}

void hold_back_off(struct hold *h, usec_t wait, double jitter, usec_t now)
{
        h->back_off = back_off_of(wait);
        hold_close(h, stretched(h->back_off, jitter), true, now);
}

void hold_probe_sent(struct hold *h)
{
        h->probe_out = true;
}

void hold_probe_refused(struct hold *h, usec_t wait, double jitter, usec_t now)
{
        h->probe_out = false;
        hold_back_off(h, 2 * h->back_off, jitter, now);
        hold_close(h, stretched(wait, jitter), true, now);
}

void hold_probe_cancelled(struct hold *h)
{
        h->probe_out = false;
}

bool hold_refused(struct hold *h, unsigned trip, usec_t cooldown, double jitter, usec_t now)
{
        h->refusals++;
        if (trip == 0 || h->refusals < trip)
                return false;
        hold_close(h, stretched(cooldown, jitter), true, now);
        h->circuit_open = true;
        return true;
}

void hold_accepted(struct hold *h)
{
        h->refusals = 0;
}

usec_t hold_reopen(struct hold *h, usec_t ended)
{
        h->closed = h->half_open = h->probe_out = h->circuit_open = false;
        return usec_sub(ended, h->since);
}
