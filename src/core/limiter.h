/* core/limiter.h - the learned limit of one scope: may this request go now, and what does an answer
 * teach. */
#ifndef WEIR_CORE_LIMITER_H
#define WEIR_CORE_LIMITER_H

#include <stdbool.h>

#include "base/prng.h"
#include "base/usec.h"
#include "core/answer_class.h"

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
enum limiter_why { LIMITER_NOTHING, LIMITER_PACE, LIMITER_SLOT, LIMITER_HOLD };

/* What the limiter remembers of a request that it let go; kept by the caller from go to finish. */
struct limiter_pass {
        usec_t sent;
        unsigned in_flight; /* including itself, when sent */
        unsigned recent;    /* sends in the second before, itself included */
        enum limiter_why why;
        bool limited;  /* it waited and others still waited behind it */
        bool probe;    /* the one request that may go while half-open */
        bool answered; /* limiter_answer was called for it */
};

/* A change worth a record in the series. */
enum limiter_event {
        LIMITER_UNCHANGED,
        LIMITER_GREW,
        LIMITER_CUT,
        LIMITER_CLOSED,       /* a hold began or was lengthened */
        LIMITER_CIRCUIT_OPEN, /* breaker.trip refusals in a row */
        LIMITER_REOPENED,
};

/* A snapshot for people: series, API, predictions. */
struct limiter_view {
        double rate;         /* requests/s in force; 0 = not known yet or not used */
        double refused_rate; /* R_max: requests/s that were refused last; 0 = none yet */
        double concurrency;  /* requests in flight allowed now */
        unsigned in_flight;
        usec_t closed_until; /* 0 when open */
        bool circuit_open;
        bool settled; /* past its first refusal: `rate` is a measured limit */
};

struct limiter; /* defined in core/limiter_state.h, embedded by the lane */

void limiter_init(struct limiter *l, const struct limiter_policy *policy);

/* Takes over changed bounds; what was learned stays, clamped to them. */
void limiter_configure(struct limiter *l, const struct limiter_policy *policy);

/*
 * May the next request go now?
 *
 * ret_wake  filled when the answer is no: the moment at which asking again makes sense, USEC_MAX
 * when only an answer or the end of a request can change it
 *
 * A scope whose hold has ended reopens here.
 */
bool limiter_may_go(struct limiter *l, usec_t now, usec_t *ret_wake);

/* Sends one request: takes a slot and the next place in the pace. Only after limiter_may_go said
 * yes. limited   it was queued, and others are queued still */
void limiter_go(struct limiter *l, bool limited, usec_t now, struct prng *prng,
                struct limiter_pass *ret_pass);

/*
 * Learns from the head of an answer. Once for each pass.
 *
 * wait      as named by the host (Retry-After), 0 where it named none or zero
 */
enum limiter_event limiter_answer(struct limiter *l, struct limiter_pass *pass,
                                  enum answer_class class, usec_t wait, usec_t now,
                                  struct prng *prng);

/* The request is over, answered or not: gives its slot back. A probe that ends unanswered leaves
 * the scope half-open for the next one. */
void limiter_finish(struct limiter *l, struct limiter_pass *pass, usec_t now, struct prng *prng);

void limiter_look(const struct limiter *l, usec_t now, struct limiter_view *ret_view);

const char *limiter_event_name(enum limiter_event event);

#endif
