/* core/limiter_memory.h - what a limiter has learned, in a form that outlives it: plain numbers,
 * no moments of a clock. */
#ifndef WEIR_CORE_LIMITER_MEMORY_H
#define WEIR_CORE_LIMITER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/limiter.h"
#include "core/pace.h"

/* All times are spans; those named age are counted from the moment of the export back into the
 * past. A zero says that nothing is known. */
struct limiter_memory {
        enum limiter_algorithm algorithm; /* that the pace and slots, or the window, belong to */
        unsigned slots;                   /* adaptive: in flight that were accepted */
        struct pace_memory pace;          /* adaptive */
        double window;                    /* aimd */
        usec_t srtt;
        usec_t idle;                      /* since the last request was sent */
        usec_t closed_age, closed_length; /* the length may reach beyond the moment of the export */
        usec_t back_off;
        usec_t cycle_age; /* since the scope reopened last */
        uint64_t cycle_accepted;
        unsigned refusals, episode_refusals, refused_epochs, unmoved;
        bool slots_confirmed, closed, half_open, circuit_open, full_hold;
};

/* Has the limiter learned anything worth keeping? If so, fills *ret. */
bool limiter_export(const struct limiter *l, usec_t now, struct limiter_memory *ret);

/*
 * Sets up `l` with what a former one knew, inside the bounds of `policy`. Values that no limiter
 * could have learned (a file can hold any) are brought into range. What another algorithm learned
 * is dropped; a hold counts in any case, but for no longer than the policy lets one be. A memory
 * that has been idle for LIMITER_IDLE or longer is used with the same caution as after such a time
 * in between.
 */
void limiter_import(struct limiter *l, const struct limiter_policy *policy,
                    const struct limiter_memory *m, usec_t now);

/* The same memory `elapsed` later. */
void limiter_memory_age(struct limiter_memory *m, usec_t elapsed);

/* What limiter_look would say of it. Moments are counted from `now`. */
void limiter_memory_look(const struct limiter_memory *m, usec_t now, struct limiter_view *ret_view);

#endif
