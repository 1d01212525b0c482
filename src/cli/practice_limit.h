/* cli/practice_limit.h - the hidden limit of a practice origin: how it counts, and what it would
 * have let through. */
#ifndef WEIR_CLI_PRACTICE_LIMIT_H
#define WEIR_CLI_PRACTICE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "base/usec.h"

enum practice_kind {
        PRACTICE_NONE,
        PRACTICE_FIXED,       /* a window opens with the first request after the last one ended */
        PRACTICE_SLIDING,     /* never more in any window, wherever it begins */
        PRACTICE_TOKEN,       /* a bucket, full at first */
        PRACTICE_CONCURRENCY, /* at a time */
};

struct practice_policy {
        enum practice_kind kind;
        unsigned count; /* requests in each window; CONCURRENCY: at a time */
        usec_t window;  /* of `count`; not for CONCURRENCY */
        unsigned burst; /* TOKEN: what the bucket holds */
};

#define PRACTICE_COUNT_MAX 1000000u

/* "fixed:30/1s", "sliding:30/1s", "token:30/s:5" (rate, burst; the burst is 1 when left out),
 * "concurrency:10", "none". The period is a duration or a unit alone: s, m or min, h. 0, or
 * -EINVAL.
 */
int practice_policy_parse(struct span text, struct practice_policy *ret);

/* One plain phrase, e.g. "30 requests in each 1s"; the caller frees it. */
char *practice_policy_describe(const struct practice_policy *p);

/* Requests/s that it lets through in the long run; HUGE_VAL where nothing but the client limits it.
 * latency: how long a request stays. */
double practice_policy_rate(const struct practice_policy *p, usec_t latency);

/* Requests that it would have let through within `span` of the first one: rate times time, but at
 * least one whole window, and a bucket's burst on top. HUGE_VAL where there is no limit. */
double practice_policy_tolerated(const struct practice_policy *p, usec_t span, usec_t latency);

struct practice_limit {
        struct practice_policy policy;
        usec_t *admitted; /* SLIDING: when the last `count` were let in, a ring; owned */
        size_t next;      /* in the ring: the oldest */
        usec_t since;     /* FIXED: the window's start; TOKEN: the last refill */
        double tokens;
        unsigned used; /* FIXED: in this window; SLIDING: places of the ring filled; CONCURRENCY: in
                          flight */
        bool begun;
};

void practice_limit_init(struct practice_limit *l, const struct practice_policy *policy);
void practice_limit_done(struct practice_limit *l);

/*
 * May a request come in at `now`? It is counted when it may, and leaves with
 * practice_limit_release; a refused one is not counted at all.
 *
 * ret_wait  filled when refused: after that long one would be let in if none came between. For
 * CONCURRENCY, where nobody can know, 1 s.
 */
bool practice_limit_admit(struct practice_limit *l, usec_t now, usec_t *ret_wait);
void practice_limit_release(struct practice_limit *l);

#endif
