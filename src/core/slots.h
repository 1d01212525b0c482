/* core/slots.h - the learned number of requests in flight that a host bears. */
#ifndef WEIR_CORE_SLOTS_H
#define WEIR_CORE_SLOTS_H

#include <stdbool.h>

/*
 * Unknown until a refusal ends slow start; moved by evidence about concurrency only: refusals above
 * the known number, or three in a row exactly at it, against trials a quarter above it.
 */
struct slots {
        unsigned floor, ceiling; /* the operator's bounds */
        unsigned known;          /* C: in flight that were accepted; 0 = unknown */
        unsigned limit;          /* C_limit: C, or the trial above it; `ceiling` while unknown */
        double progress;         /* towards the next trial, 0 to 1 */
        unsigned above;          /* accepted above C during this trial */
        unsigned full;           /* refused exactly at C, in a row */
        bool confirmed;          /* a refusal has confirmed C: try again only rarely */
};

void slots_init(struct slots *s, unsigned floor, unsigned ceiling);

/* New bounds: at least 1 in flight, floor at most ceiling. What was learned is clamped to them. */
void slots_bound(struct slots *s, unsigned floor, unsigned ceiling);

/* Takes over what was known before, clamped to the bounds; 0: nothing was. */
void slots_import(struct slots *s, unsigned known, bool confirmed);

/* A request was refused that was number `in_flight` when sent. */
void slots_refused(struct slots *s, unsigned in_flight, bool slow_start);

/* A request was accepted that waited for a slot and was number `in_flight` when sent. */
void slots_grow(struct slots *s, unsigned in_flight);

#endif
