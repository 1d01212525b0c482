/* admin/tallies.h - what came of the requests of each scope: counts, and how long they took. */
#ifndef WEIR_ADMIN_TALLIES_H
#define WEIR_ADMIN_TALLIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/usec.h"
#include "core/histogram.h"
#include "runtime/reports.h"

/* Statuses told apart; the rest are counted together. */
#define TALLY_STATUSES 12

/* Of one scope. */
struct tally {
        uint64_t requests, attempts;
        uint64_t successes;         /* served with what is a success */
        uint64_t last_minute;       /* of these, those of the last 60 s */
        uint64_t refusals;          /* answers of 429 */
        uint64_t refusals_absorbed; /* those that no client saw */
        uint64_t bytes_in, bytes_out;
        struct { /* that clients saw, in the order of their first appearance; without 429 */
                int status;
                uint64_t count;
        } statuses[TALLY_STATUSES];
        size_t status_count;
        uint64_t other_statuses;
        struct histogram durations; /* of what was answered in the last five to ten minutes; no
                                       tunnels */
};

struct tallies;

/* max  scopes that are kept; beyond it the one without a request for longest is forgotten */
struct tallies *tallies_new(size_t max);
void tallies_free(struct tallies *t);

/* Reports without a scope are passed over. */
void tallies_add(struct tallies *t, const struct report *report);

/* False where nothing is known of the scope. */
bool tallies_find(struct tallies *t, const char *scope, usec_t now, struct tally *ret);

#endif
