/* core/limiter_state.h - the inside of struct limiter, for those who embed one. */
#ifndef WEIR_CORE_LIMITER_STATE_H
#define WEIR_CORE_LIMITER_STATE_H

#include "core/aimd.h"
#include "core/hold.h"
#include "core/limiter.h"
#include "core/pace.h"
#include "core/quota_bound.h"
#include "core/slots.h"

/* Two points in time at least one srtt and eight accepted requests apart: the rate delivered of
 * late is counted from the older one. */
struct limiter_mark {
        usec_t at;
        uint64_t accepted;
};

/* Read by the limiter's own files and tests only; all others use core/limiter.h. */
struct limiter {
        struct limiter_policy policy;
        struct hold hold;
        struct pace pace;   /* adaptive */
        struct slots slots; /* adaptive */
        struct aimd aimd;   /* aimd */
        struct quota_bound quota;
        unsigned in_flight;
        usec_t used;   /* something was sent last */
        usec_t spaced; /* nothing before: max_rate and min_delay, counted from the last send */
        enum limiter_why why; /* what held back the next request last */
        uint64_t sends;
        usec_t srtt;        /* smoothed time to the head of an accepted answer; 0 = none yet */
        usec_t cut;         /* t_cut: refusals of requests sent before are old news */
        usec_t paced_since; /* the first answer was accepted */
        usec_t calm;        /* no growth before: the host was overloaded */
        unsigned heeded;    /* refusals of siblings, since its own last */
        unsigned episode_refusals;
        unsigned refused_epochs; /* with nothing accepted between */
        bool full_hold;          /* closed for as long as the host said, or by the circuit */
        unsigned unmoved;        /* refused alone after such a hold, nothing accepted between */
        usec_t cycle_start;      /* the scope reopened last */
        uint64_t cycle_accepted, accepted;
        struct limiter_mark marks[2];
        enum limiter_event untold; /* happened by itself since the last request went */
        struct {                   /* as told with the last event */
                double rate;
                unsigned allowed;
                usec_t until;
        } told;
};

/* After this long without a request, what was learned is used with caution. */
#define LIMITER_IDLE (3600 * USEC_PER_SEC)

/* Makes it so: the rate is found again by slow start up to half of it, the window of aimd is
 * halved. */
void limiter_resume(struct limiter *l, usec_t now);

static inline bool limiter_is_adaptive(const struct limiter *l)
{
        return l->policy.algorithm == LIMITER_ADAPTIVE;
}

/* Requests/s, 0 for none: what was learned; and at what rate they are sent, a quota included. The
 * operator's max_rate is kept by `spaced`, beside it. */
static inline double limiter_learned_rate(const struct limiter *l)
{
        return limiter_is_adaptive(l) ? l->pace.rate : 0;
}
double limiter_paced_rate(const struct limiter *l, usec_t now);

/* Requests in flight: a number inside the operator's bounds; and how many may be. */
unsigned limiter_bounded(const struct limiter *l, unsigned in_flight);
unsigned limiter_allowed(const struct limiter *l);

/* A new cycle begins. `ended` is when the hold was over: the probe's departure, or its own end. */
void limiter_reopen(struct limiter *l, usec_t ended, usec_t silence, usec_t now);

/* `event`, which is about to be told: changes count from here on. */
enum limiter_event limiter_told(struct limiter *l, enum limiter_event event);

#endif
