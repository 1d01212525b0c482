/* core/quota.h - reads the header fields in which hosts tell how much of a limit is left. */
#ifndef WEIR_CORE_QUOTA_H
#define WEIR_CORE_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/usec.h"

struct fields;

#define QUOTA_MAX_WINDOWS 8
#define QUOTA_RESET_MAX (86400 * USEC_PER_SEC) /* a reset further away is not believed */
#define QUOTA_HOLD_MIN (250 * USEC_PER_MSEC)   /* never a spin on "0 remaining, reset in 0 s" */

/* One limit that a host counts. */
struct quota_window {
        uint64_t limit;     /* requests in all; 0: not told */
        uint64_t remaining; /* requests left */
        usec_t reset;       /* from now until it is whole again; USEC_MAX: not told */
        usec_t length;      /* of the period that is counted; 0: not told */
};

struct quota {
        struct quota_window windows[QUOTA_MAX_WINDOWS];
        size_t count;
        bool shared;         /* a refusal is not this client's doing: hold, and cut nothing */
        unsigned unreadable; /* groups of fields that were there and made no sense */
};

/*
 * Reads every family of quota fields that an answer carries:
 *   - X-RateLimit-, X-Rate-Limit-, RateLimit-, anthropic-ratelimit-requests- with Limit, Remaining,
 *     Reset (and Reset-After, which is preferred), and
 * x-ratelimit-{limit,remaining,reset}-requests;
 *   - RateLimit with RateLimit-Policy, the drafts of draft-ietf-httpapi-ratelimit-headers:
 *     `limit=100, remaining=50, reset=30` and `"default";r=50;t=30`;
 *   - X-App-Rate-Limit with X-App-Rate-Limit-Count (`20:1,100:120`: so many in so many seconds);
 *   - X-Shopify-Shop-Api-Call-Limit (`32/40`: used, limit).
 * X-RateLimit-Scope: shared and X-Rate-Limit-Type: service set `shared`.
 *
 * A reset is a number of seconds below 1e9; a moment as epoch seconds from there on, milliseconds
 * from 1e11, microseconds from 1e14, nanoseconds from 1e17; a length of time ("6m0s"); an HTTP
 * date; or ISO 8601. Moments are counted from the answer's own Date where it has one, else from
 * now_real; those in the past give 0. Of merged values the smallest count and the longest reset are
 * taken.
 *
 * A family makes a window only where it tells what remains. It is left out, and counted as
 * unreadable, where a part of it cannot be read, more remains than the limit, or the reset is
 * further away than QUOTA_RESET_MAX; left out without being counted where its limit is a pair
 * (`1/40`), which speaks of another limit than the fields beside it.
 *
 * ret_quota  filled whatever the fields say
 */
void quota_read(const struct fields *fields, usec_t now_real, struct quota *ret_quota);

/* How long nothing may be sent: the longest time until an exhausted window is whole again, at least
 * QUOTA_HOLD_MIN; the window's length where no reset is told. 0 where none is exhausted. */
usec_t quota_hold(const struct quota *quota);

#endif
