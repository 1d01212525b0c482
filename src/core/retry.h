/* core/retry.h - may a request that was refused or failed go again, and after which wait? */
#ifndef WEIR_CORE_RETRY_H
#define WEIR_CORE_RETRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/prng.h"
#include "base/span.h"
#include "base/usec.h"
#include "core/answer_class.h"

enum retry_methods { RETRY_SAFE_METHODS, RETRY_ALL_METHODS };

/* How an attempt ended that brought no usable answer. */
enum retry_failure {
        RETRY_FAILURE_NONE, /* there was an answer */
        RETRY_FAILURE_CONNECT,
        RETRY_FAILURE_TIMEOUT,
        RETRY_FAILURE_RESET,
        RETRY_FAILURE_FINAL, /* would only happen again: bad certificate, denied address, protocol
                                error */
};

#define RETRY_MAX_STATUSES 16

struct retry_policy {
        unsigned attempts; /* in all, the first included */
        struct {
                int status[RETRY_MAX_STATUSES];
                size_t status_count;
                bool connect, timeout, reset;
        } on;
        enum retry_methods methods;
        usec_t base, max; /* of the own wait: full jitter, U(0, min(max, base * 2^attempt)) */
        usec_t max_wait;  /* a longer named wait is not slept */
        double budget;    /* retries of failures as a share of requests, 0 to 1 */
};

/* Retries of failures that a scope may still make: a token bucket filled by requests. */
struct retry_budget {
        double tokens;
};

void retry_budget_init(struct retry_budget *b);
void retry_budget_deposit(struct retry_budget *b, double share); /* one new request */
bool retry_budget_withdraw(struct retry_budget *b);              /* false: the budget is spent */

struct retry_case {
        const struct retry_policy *policy;
        enum answer_class class;
        int status; /* 0 where there was no answer */
        enum retry_failure failure;
        struct span method;
        unsigned attempts; /* made so far, at least 1 */
        bool wait_named;   /* the answer named a wait: Retry-After and its kin */
        usec_t wait;       /* that wait */
        usec_t time_left;  /* until the total deadline */
};

enum retry_verdict {
        RETRY_NO,
        RETRY_AGAIN,       /* not counted against the budget: it was refused, not processed */
        RETRY_WITH_BUDGET, /* only if retry_budget_withdraw agrees */
};

/* Decides, and names the wait before the next attempt in *ret_wait (untouched on RETRY_NO). A named
 * wait is never shortened; jitter is only ever added to it. Pure but for the prng. */
enum retry_verdict retry_decide(const struct retry_case *c, struct prng *prng, usec_t *ret_wait);

#endif
