/* core/limiter.h - the learned limit of one scope: may this request go now, and what does an answer
 * teach. */
#ifndef WEIR_CORE_LIMITER_H
#define WEIR_CORE_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "base/usec.h"
#include "core/answer.h"

enum limiter_algorithm { LIMITER_ADAPTIVE, LIMITER_AIMD, LIMITER_FIXED };
enum aimd_per { AIMD_PER_SUCCESS, AIMD_PER_ROUND_TRIP };

/* The operator's bounds; they always hold, whatever has been learned. */
struct limiter_policy {
        enum limiter_algorithm algorithm;
        unsigned start, floor, ceiling; /* requests in flight */
        double max_rate;                /* requests/s; 0 = no bound */
        usec_t min_delay;               /* spacing, jittered over [1,2) times this; 0 = none */
        usec_t max_hold;                /* the longest wait named by a host that is believed */
        struct {
                double increase; /* requests in flight, for each success or round trip */
                enum aimd_per per;
                double decrease; /* factor, 0 < decrease < 1 */
        } aimd;
        struct {
                unsigned trip;   /* refusals in a row that open the circuit */
                usec_t cooldown; /* closed at least this long then */
        } breaker;
};

/* What held a request back. */
enum limiter_why {
        LIMITER_NOTHING,
        LIMITER_PACE,  /* the learned rate */
        LIMITER_BOUND, /* max_rate or min_delay: nothing can be learned about the host */
        LIMITER_QUOTA, /* the rate that the host's own quota bears; nor here */
        LIMITER_SLOT,
        LIMITER_HOLD
};

/* What the limiter remembers of a request that it let go; kept by the caller from go to finish. */
struct limiter_pass {
        usec_t sent;
        uint64_t serial;    /* counts what the limiter let go, from 1 */
        unsigned in_flight; /* including itself, when sent */
        unsigned recent;    /* sends in the second before, itself included */
        enum limiter_why why;
        bool limited;  /* it waited and others still waited behind it */
        bool probe;    /* the one request that may go while half-open */
        bool answered; /* limiter_answer was called for it */
        bool blocked;  /* by its answer: see there */
};

/* A change worth a record in the series. */
enum limiter_event {
        LIMITER_UNCHANGED,
        LIMITER_GREW,
        LIMITER_CUT,    /* the rate or the concurrency; closed_until tells of a hold with it */
        LIMITER_CLOSED, /* a hold began, or was lengthened by 100 ms or more */
        LIMITER_CIRCUIT_OPEN, /* breaker.trip refusals in a row */
        LIMITER_REOPENED,
        LIMITER_RESUMED,  /* the first request after an hour of idleness: slower, at first */
        LIMITER_RESTORED, /* it began with what a former limiter had learned */
        LIMITER_RESET,    /* somebody told it to begin anew */
};

/* A snapshot for people: series, API, predictions. */
struct limiter_view {
        double
            rate; /* requests/s in force, the operator's bounds included; 0 = not known or used */
        double refused_rate; /* R_max: requests/s that were refused last; 0 = none yet */
        double concurrency;  /* requests in flight allowed now */
        unsigned in_flight;
        usec_t closed_until; /* 0 when open */
        bool circuit_open;   /* and not half-open yet: nobody may go before closed_until */
        bool settled;        /* past its first refusal: `rate` is a measured limit */
        usec_t used;         /* the last request was sent; 0: none was as yet */
};

struct limiter; /* defined in core/limiter_state.h, embedded by the lane */

void limiter_init(struct limiter *l, const struct limiter_policy *policy);

/* Takes over changed bounds; what was learned stays, clamped to them. A change of the algorithm
 * starts it anew; requests in flight and a hold stay. */
void limiter_configure(struct limiter *l, const struct limiter_policy *policy);

/* Begins anew: nothing is known, and it is open. What is in flight keeps its slots; refusals of it
 * are old news. The operator's spacing goes on. */
void limiter_reset(struct limiter *l, usec_t now);

/*
 * May the next request go now?
 *
 * ret_wake  filled when the answer is no: the moment at which asking again makes sense (an answer
 * or the end of a request may bring it forward: ask again after each), USEC_MAX when only one of
 * these can change it
 */
bool limiter_may_go(struct limiter *l, usec_t now, usec_t *ret_wake);

/*
 * Sends one request: takes a slot and the next place in the pace. Only after limiter_may_go said
 * yes.
 *
 * limited   it was queued, and others are queued still
 *
 * Returns LIMITER_REOPENED when a hold had ended by itself, LIMITER_RESUMED after a long
 * idleness, else LIMITER_UNCHANGED.
 */
enum limiter_event limiter_go(struct limiter *l, bool limited, usec_t now, struct prng *prng,
                              struct limiter_pass *ret_pass);

/*
 * Learns from an answer. Once for each pass, at most. No wait longer than max_hold is believed.
 *
 * Success and blocked are accepted: they reopen a half-open scope and end a row of refusals. But
 * nothing grows from a blocked one, which was not served. A failed one teaches nothing about the
 * limit; as the probe of a half-open scope it doubles the back-off. A refusal for what others did
 * (quota.shared) closes the scope and cuts nothing.
 *
 * Refused again, for the third time in a row, when it went alone after the whole of a wait that the
 * host had named, or of an open circuit: that is no matter of the rate, and pass->blocked says so.
 * The scope is held all the same, since letting more go would only bring more of that.
 *
 * What remains of a quota is an upper bound on the rate (quota_bound.h), save for LIMITER_FIXED; a
 * quota that is used up closes the scope until it is whole again. The quota of a blocked answer,
 * and one that was read before the scope reopened last, are passed over.
 *
 * Returns what is worth a record: LIMITER_GREW only for a change of the rate of 2 % or more since
 * the last record, or of the concurrency.
 */
enum limiter_event limiter_answer(struct limiter *l, struct limiter_pass *pass,
                                  const struct answer *answer, usec_t now, struct prng *prng);

/* The request is over, answered or not: gives its slot back. After a probe that ends without
 * limiter_answer (its client went away) the next may go at once. */
void limiter_finish(struct limiter *l, struct limiter_pass *pass);

void limiter_look(const struct limiter *l, usec_t now, struct limiter_view *ret_view);

const char *limiter_event_name(enum limiter_event event);

#endif
