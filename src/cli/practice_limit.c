#include "cli/practice_limit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "config/value.h"

/* What nobody can know, when a request that is running will end, a real host guesses as well. */
#define CONCURRENCY_WAIT USEC_PER_SEC

static int parse_count(struct span text, unsigned least, unsigned *ret)
{
        unsigned n;
        if (value_count(text, &n) < 0 || n < least || n > PRACTICE_COUNT_MAX)
                return -EINVAL;
        *ret = n;
        return 0;
}

static int parse_period(struct span text, usec_t *ret)
{
        static const struct {
                const char *name;
                usec_t period;
        } units[] = {
            {"s", USEC_PER_SEC},
            {"m", 60 * USEC_PER_SEC},
            {"min", 60 * USEC_PER_SEC},
            {"h", 3600 * USEC_PER_SEC},
        };
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
                if (span_equal(text, span_of(units[i].name))) {
                        *ret = units[i].period;
                        return 0;
                }
        usec_t period;
        if (value_duration(text, &period) < 0 || period < USEC_PER_MSEC || period == USEC_MAX)
                return -EINVAL;
        *ret = period;
        return 0;
}

/* "30/1s" */
static int parse_rate(struct span text, unsigned least, struct practice_policy *p)
{
        struct span count, rest = text;
        if (!span_next(&rest, '/', &count) || !rest.ptr || parse_count(count, least, &p->count) < 0)
                return -EINVAL;
        return parse_period(rest, &p->window);
}

static int parse_token(struct span text, struct practice_policy *p)
{
        struct span rate, rest = text;
        p->burst = 1;
        if (!span_next(&rest, ':', &rate) || parse_rate(rate, 1, p) < 0)
                return -EINVAL;
        return rest.ptr ? parse_count(rest, 1, &p->burst) : 0;
}

int practice_policy_parse(struct span text, struct practice_policy *ret)
{
        struct span name = {0}, rest = text;
        struct practice_policy p = {0};
        int r = -EINVAL;
        span_next(&rest, ':', &name);
        if (span_equal(name, span_of("none"))) {
                p.kind = PRACTICE_NONE;
                r = rest.ptr ? -EINVAL : 0;
        } else if (!rest.ptr) {
                r = -EINVAL;
        } else if (span_equal(name, span_of("fixed"))) {
                p.kind = PRACTICE_FIXED;
                r = parse_rate(rest, 0, &p);
        } else if (span_equal(name, span_of("sliding"))) {
                p.kind = PRACTICE_SLIDING;
                r = parse_rate(rest, 0, &p);
        } else if (span_equal(name, span_of("token"))) {
                p.kind = PRACTICE_TOKEN;
                r = parse_token(rest, &p);
        } else if (span_equal(name, span_of("concurrency"))) {
                p.kind = PRACTICE_CONCURRENCY;
                r = parse_count(rest, 1, &p.count);
        }
        if (r == 0)
                *ret = p;
        return r;
}

char *practice_policy_describe(const struct practice_policy *p)
{
        char window[VALUE_TEXT_MAX];
        value_duration_text(p->window, window);
        switch (p->kind) {
        case PRACTICE_NONE:
                break;
        case PRACTICE_FIXED:
                return xasprintf("%u requests in each window of %s", p->count, window);
        case PRACTICE_SLIDING:
                return xasprintf("%u requests in any %s", p->count, window);
        case PRACTICE_TOKEN:
                return xasprintf("%u requests in %s, %u at once", p->count, window, p->burst);
        case PRACTICE_CONCURRENCY:
                return xasprintf("%u requests at a time", p->count);
        }
        return xstrdup("any number of requests");
}

double practice_policy_rate(const struct practice_policy *p, usec_t latency)
{
        if (p->kind == PRACTICE_NONE || (p->kind == PRACTICE_CONCURRENCY && latency == 0))
                return HUGE_VAL;
        return p->count / usec_seconds(p->kind == PRACTICE_CONCURRENCY ? latency : p->window);
}

double practice_policy_tolerated(const struct practice_policy *p, usec_t span, usec_t latency)
{
        double rate = practice_policy_rate(p, latency);
        if (rate == HUGE_VAL)
                return HUGE_VAL;
        double n = rate * usec_seconds(span);
        if (p->kind == PRACTICE_TOKEN)
                return n + p->burst;
        if (p->kind == PRACTICE_CONCURRENCY)
                return n;
        return fmax(n, p->count);
}

void practice_limit_init(struct practice_limit *l, const struct practice_policy *policy)
{
        *l = (struct practice_limit){.policy = *policy, .tokens = policy->burst};
        if (policy->kind == PRACTICE_SLIDING && policy->count > 0)
                l->admitted = xcalloc(policy->count, sizeof(*l->admitted));
}

void practice_limit_done(struct practice_limit *l)
{
        free(l->admitted);
        *l = (struct practice_limit){0};
}

static bool admit_fixed(struct practice_limit *l, usec_t now, usec_t *ret_wait)
{
        usec_t end = usec_add(l->since, l->policy.window);
        if (!l->begun || now >= end) {
                l->begun = true;
                l->since = now;
                l->used = 0;
                end = usec_add(now, l->policy.window);
        }
        if (l->used < l->policy.count) {
                l->used++;
                return true;
        }
        *ret_wait = end - now;
        return false;
}

static bool admit_sliding(struct practice_limit *l, usec_t now, usec_t *ret_wait)
{
        unsigned count = l->policy.count;
        if (count == 0) {
                *ret_wait = l->policy.window;
                return false;
        }
        if (l->used == count) {
                usec_t end = usec_add(l->admitted[l->next], l->policy.window);
                if (now < end) {
                        *ret_wait = end - now;
                        return false;
                }
        } else {
                l->used++;
        }
        l->admitted[l->next] = now;
        l->next = (l->next + 1) % count;
        return true;
}

static bool admit_token(struct practice_limit *l, usec_t now, usec_t *ret_wait)
{
        double rate = practice_policy_rate(&l->policy, 0);
        if (l->begun)
                l->tokens =
                    fmin(l->policy.burst, l->tokens + rate * usec_seconds(usec_sub(now, l->since)));
        l->begun = true;
        l->since = now;
        /* A refill adds up fractions: what is one request but for rounding is one request. */
        if (l->tokens >= 1 - 1e-9) {
                l->tokens = fmax(0, l->tokens - 1);
                return true;
        }
        *ret_wait = usec_from_seconds((1 - l->tokens) / rate) + 1;
        return false;
}

bool practice_limit_admit(struct practice_limit *l, usec_t now, usec_t *ret_wait)
{
        switch (l->policy.kind) {
        case PRACTICE_NONE:
                return true;
        case PRACTICE_FIXED:
                return admit_fixed(l, now, ret_wait);
        case PRACTICE_SLIDING:
                return admit_sliding(l, now, ret_wait);
        case PRACTICE_TOKEN:
                return admit_token(l, now, ret_wait);
        case PRACTICE_CONCURRENCY:
                if (l->used < l->policy.count) {
                        l->used++;
                        return true;
                }
                *ret_wait = CONCURRENCY_WAIT;
                return false;
        }
        return true;
}

void practice_limit_release(struct practice_limit *l)
{
        if (l->policy.kind == PRACTICE_CONCURRENCY && l->used > 0)
                l->used--;
}
