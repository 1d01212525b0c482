/* core/pace.h - the learned rate of a scope: how far apart requests go, how the rate grows and is
 * cut. */
#ifndef WEIR_CORE_PACE_H
#define WEIR_CORE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/usec.h"

#define PACE_TENTHS 10

/*
 * After a cut the rate follows a cubic in accepted requests: back to the rate that was refused
 * (`max`) within a budget of requests and time, slowly around it, then faster and faster beyond.
 * Before the first cut (slow start) it doubles with each round trip.
 */
struct pace {
        double rate;     /* R, requests/s; 0 until the first answer */
        double max;      /* R_max: refused last; 0 = never yet */
        double low;      /* R_low: where the climb began */
        double x;        /* progress of the climb: 1 = back at `max` */
        double requests; /* N: the climb to `max` takes as long as this many do at `max`, */
        usec_t time;     /* T: and at least this long */
        usec_t next;     /* no request before */
        usec_t late_at;  /* when one went last that had waited for its place */
        bool slow_start;
        bool guessed;   /* `max` was never refused: it is what slow start's end made of it */
        bool steady;    /* the last cut was near a known limit, not on the way to an unknown one */
        double resume;  /* after a long idleness: slow start up to this rate; 0 = no such thing */
        uint64_t tenth; /* the latest tenth of a second counted */
        unsigned sent[PACE_TENTHS];
};

void pace_init(struct pace *p);

/* The first answer was accepted after `srtt`, or refused. */
void pace_start_accepted(struct pace *p, unsigned in_flight, usec_t srtt);
void pace_start_refused(struct pace *p, usec_t srtt);

/*
 * Takes the next place.
 *
 * rate  in force, requests/s; 0 = none, then nothing is spaced
 * late  the request waited for its place: lateness of the timer, up to 4 ms, is not lost, neither
 * to it nor to others that go at the same moment
 *
 * Returns the requests sent in the second before, this one included.
 */
unsigned pace_go(struct pace *p, double rate, bool late, usec_t now);

/* The next request not before one spacing at `rate` from now. */
void pace_delay(struct pace *p, double rate, usec_t now);

/* One request was accepted that the limiter had held back. */
void pace_grow(struct pace *p, usec_t srtt);

struct pace_refusal {
        bool first;       /* of the episode */
        bool overloaded;  /* cut by one half, whatever the state */
        bool wait_named;  /* the refusal costs a hold */
        unsigned recent;  /* sends in the second before the refused request, itself included */
        double most;      /* requests/s that can have been sent, whatever the rate */
        double delivered; /* accepted requests/s of late */
};

/* Cuts the rate. The budget of the next climb is a separate step. */
void pace_cut(struct pace *p, const struct pace_refusal *r);

/*
 * A limit that is taken to be the same as that of `other`, which has just been refused: a new climb
 * from where that one begins. It takes half as long again where `max` was known before, so that one
 * goes ahead and the others learn from it.
 */
void pace_climb_as(struct pace *p, const struct pace *other, usec_t srtt);

/* The refused request went above the known number in flight, and that alone is to blame. Should it
 * have cost a hold, then near a known limit. */
void pace_spare(struct pace *p);

/* The number in flight that a host bears has been found, and carries `rate` requests/s: the
 * refusals on the way were not for the rate, which starts from there and leaves the limit to the
 * slots. */
void pace_carry(struct pace *p, double rate);

/* A new climb from the present rate: 200 accepted requests for each of `refusals`, and time in
 * proportion to the `silence` that they cost. */
void pace_budget(struct pace *p, usec_t srtt, unsigned refusals, usec_t silence);

/* The accepted requests that the time of the budget amounts to. */
double pace_budgeted(const struct pace *p);

/* The refusals were isolated ones: the climb under way takes as many requests as they ask for. */
void pace_lengthen(struct pace *p, unsigned refusals);

/*
 * After a closed time of `silence` in a cycle that carried `cycle_rate` requests/s: a quota, where
 * the limit was still unknown and the cycle carried much less than the rate. Then the rate becomes
 * what the cycle carried. Starts the next climb in either case.
 */
void pace_reopen(struct pace *p, double cycle_rate, usec_t silence, usec_t srtt, unsigned refusals);

/*
 * After a time so long that the known rate may be wrong: starts from `start` requests/s at most,
 * doubles with each round trip up to half of what was known, and climbs from there as after a cut.
 */
void pace_resume(struct pace *p, double start, usec_t srtt);

/* What is worth keeping, in requests/s and as spans of time. */
struct pace_memory {
        double rate, max, low, resume;
        double x, requests;
        usec_t time;
        bool slow_start, guessed, steady;
};

void pace_export(const struct pace *p, struct pace_memory *ret);

/* Takes over a memory with a rate; whatever its numbers are, they are brought into range. */
void pace_import(struct pace *p, const struct pace_memory *m);

#endif
