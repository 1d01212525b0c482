/* core/hold.h - is a scope closed, until when, is a probe out; the circuit breaker. */
#ifndef WEIR_CORE_HOLD_H
#define WEIR_CORE_HOLD_H

#include <stdbool.h>

#include "base/usec.h"

#define HOLD_BACK_OFF_MIN (250 * USEC_PER_MSEC)
#define HOLD_BACK_OFF_MAX (60 * USEC_PER_SEC)

/*
 * A closed scope sends nothing before `until`. Then it either reopens directly, or is half-open:
 * one request, the probe, may go, and its answer decides. All zeroes: open, nothing known.
 */
struct hold {
        bool closed, half_open, probe_out;
        bool circuit_open; /* tripped, and not reopened since */
        usec_t since, until;
        usec_t back_off;   /* the last one; doubles with each refused or failed probe */
        unsigned refusals; /* in a row: epochs and probes refused with nothing accepted between */
};

/*
 * Closes for at least `wait` from now; a hold is only ever lengthened.
 *
 * half_open  reopening needs a probe; once asked for it stays so until the scope reopens
 */
void hold_close(struct hold *h, usec_t wait, bool half_open, usec_t now);

/* Closes for a wait that the host named; should a probe be refused after it, doubling starts from
 * `back_off` (at least HOLD_BACK_OFF_MIN). */
void hold_named(struct hold *h, usec_t wait, bool half_open, usec_t back_off, usec_t now);

/* Closes, half-open, for a back-off of `wait` (brought into HOLD_BACK_OFF_MIN to _MAX) times
 * `jitter`, which is at least 1. */
void hold_back_off(struct hold *h, usec_t wait, double jitter, usec_t now);

void hold_probe_sent(struct hold *h);

/* The probe was refused or failed: the back-off is twice as long, and at least `wait`, either of
 * them times `jitter`. */
void hold_probe_refused(struct hold *h, usec_t wait, double jitter, usec_t now);

/* The probe ended without an answer through no fault of the host: the next may go at once. */
void hold_probe_cancelled(struct hold *h);

/*
 * Counts one refusal in the row that only an accepted request ends (hold_accepted). From `trip` in
 * a row on (0: never) the circuit is open: closed for at least `cooldown` times `jitter`, half-open
 * after. Returns whether it is.
 */
bool hold_refused(struct hold *h, unsigned trip, usec_t cooldown, double jitter, usec_t now);
void hold_accepted(struct hold *h);

/* Opens; `ended` is the moment at which it does. Returns the time that the scope was closed. */
usec_t hold_reopen(struct hold *h, usec_t ended);

#endif
