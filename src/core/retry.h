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
        RETRY_FAILURE_NONE,    /* there was an answer */
        RETRY_FAILURE_CONNECT, /* nothing was sent: no connection came about */
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
        double budget;    /* retries of failures as a share of requests, 0 to 1; 0: none */
};

/* Bounds of the waits that retry_decide names. */
#define RETRY_OWN_WAIT_MIN (50 * USEC_PER_MSEC) /* never an immediate resend */
#define RETRY_JITTER_MAX (5 * USEC_PER_SEC)     /* added to a named wait, beside its tenth */

/* Retries of failures that a scope may still make: a token bucket filled by requests, not by time.
 * A host that is down gets `share` more requests than its clients make, and no storm. */
struct retry_budget {
        double tokens;
};

#define RETRY_BUDGET_START 3.0  /* tokens: what a scope may retry before it has earned any */
#define RETRY_BUDGET_CAP 10.0   /* tokens kept at the most, or … */
#define RETRY_BUDGET_KEEP 200.0 /* … what so many requests deposit, whichever is more */

void retry_budget_init(struct retry_budget *b);

/* One new request (its first attempt, not a retry) was made: `share` tokens more, up to the cap. */
void retry_budget_deposit(struct retry_budget *b, double share);

/* Takes a token for one retry; false: the budget is spent, and the retry must not be made. */
bool retry_budget_withdraw(struct retry_budget *b);

struct retry_case {
        const struct retry_policy *policy;
        enum answer_class class;
        int status; /* 0 where there was no answer */
        enum retry_failure failure;
        struct span method;
        unsigned attempts; /* made so far, at least 1 */
        bool wait_named;   /* the answer named a wait, 0 included: Retry-After and its kin */
        usec_t wait;       /* that wait */
        usec_t time_left;  /* until the total deadline */
        bool elsewhere;    /* there are other addresses to come from, which are not blocked */
};

enum retry_verdict {
        RETRY_NO,
        RETRY_AGAIN,       /* not counted against the budget: it was refused, not processed */
        RETRY_WITH_BUDGET, /* only if retry_budget_withdraw agrees */
};

/*
 * Decides, and names the wait before the next attempt in *ret_wait (untouched on RETRY_NO).
 *
 * Refusals (RETRY_AGAIN, any method: the host did not process the request):
 *   - a throttled answer, where `on` has its status or 429;
 *   - an overloaded answer that names a wait, where `on` has its status or 503.
 * Failures (RETRY_WITH_BUDGET, and only GET HEAD OPTIONS TRACE PUT DELETE; POST and PATCH as well
 * where `methods` says all; no other method ever):
 *   - an overloaded answer that names no wait, under the same entries of `on`;
 *   - a failed answer, where `on` has its status; Cloudflare's 520, 521, 523 go by 502 as well, its
 *     522 and 524 by 504, and what only a rule made a failure by 500;
 *   - 408 and 425 whatever `on` says, but only as the answer to the first attempt; 425 with any
 *     method, since it means "not processed";
 *   - an answer that is a success by itself (404, 423 …) but whose status `on` has;
 *   - no answer: connect, timeout, reset as `on` says; connect with any method, since nothing was
 *     sent.
 * Elsewhere (RETRY_AGAIN, and the methods of failures): a blocked answer; with
 * RETRY_FAILURE_CONNECT any method, since that is not the host's answer.
 *
 * Never: any other blocked answer, RETRY_FAILURE_FINAL, any other success; when all attempts are
 * made; a failure where the budget is 0.
 *
 * The wait:
 *   - none for a blocked answer, since whoever comes next is another;
 *   - named by the answer and above 0: it, and up to a tenth of it more (RETRY_JITTER_MAX at the
 *     most), never less. RETRY_NO where it is longer than max_wait;
 *   - else the own one: evenly from RETRY_OWN_WAIT_MIN to min(max, base * 2^(attempts - 1)), or
 *     just RETRY_OWN_WAIT_MIN where that is more. A named wait of 0 counts as none here.
 * RETRY_NO where the wait would not end before time_left has passed; added jitter never makes the
 * difference.
 *
 * Pure but for the prng.
 */
enum retry_verdict retry_decide(const struct retry_case *c, struct prng *prng, usec_t *ret_wait);

#endif
