/* core/slots.h - the learned number of requests in flight that a host bears. */
#ifndef WEIR_CORE_SLOTS_H
#define WEIR_CORE_SLOTS_H

#include <stdbool.h>

/*
 * Unknown until the host shows that it counts requests in flight: two refusals above a number, with
 * no more than that accepted between them. A host that limits the rate and answers unevenly refuses
 * at one number and accepts at a higher one. From then on a quarter more is tried now and then.
 */
struct slots {
        unsigned floor, ceiling; /* the operator's bounds */
        unsigned known;          /* C: in flight that were accepted; 0 = unknown */
        unsigned limit;          /* C_limit: C, or the trial above it; `ceiling` while unknown */
        double progress;         /* towards the next trial, 0 to 1 */
        unsigned above;          /* accepted above C during this trial */
        unsigned suspect; /* one less than was refused, and no more accepted since; 0 = none */
        bool confirmed;   /* a refusal has confirmed C: try again only rarely */
};

void slots_init(struct slots *s, unsigned floor, unsigned ceiling);

/* New bounds: at least 1 in flight, floor at most ceiling. What was learned is clamped to them. */
void slots_bound(struct slots *s, unsigned floor, unsigned ceiling);

/* Takes over what was known before, clamped to the bounds; 0: nothing was. */
void slots_import(struct slots *s, unsigned known, bool confirmed);

enum slots_refusal {
        SLOTS_UNTOLD,       /* it may have been the rate */
        SLOTS_FOUND,        /* C is known now, or lower than was thought */
        SLOTS_TRIAL_REFUSED /* it went above C: nothing else is to blame */
};

/*
 * A request was refused that was number `in_flight` when sent.
 *
 * again  nothing was accepted since the last one: whatever that was for, it may last
 */
enum slots_refusal slots_refused(struct slots *s, unsigned in_flight, bool again);

/* A request was accepted that was number `in_flight` when sent. */
void slots_accepted(struct slots *s, unsigned in_flight);

/*
 * A request was accepted that waited for a slot and was number `in_flight` when sent.
 *
 * requests  a confirmed C is not tried again before so many, at least
 */
void slots_grow(struct slots *s, unsigned in_flight, double requests);

#endif
