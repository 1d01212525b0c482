#include "core/retry.h"

#include "core/classify.h"

void retry_budget_init(struct retry_budget *b)
{
        b->tokens = RETRY_BUDGET_START;
}

void retry_budget_deposit(struct retry_budget *b, double share)
{
        double cap = RETRY_BUDGET_KEEP * share;
        cap = cap > RETRY_BUDGET_CAP ? cap : RETRY_BUDGET_CAP;
        b->tokens += share;
        if (b->tokens > cap)
                b->tokens = cap;
}

bool retry_budget_withdraw(struct retry_budget *b)
{
        /* Five fifths make a whole, whatever the rounding. */
        if (b->tokens < 1 - 1e-9)
                return false;
        b->tokens -= 1;
        return true;
}

static bool is_listed(const struct retry_policy *policy, int status)
{
        for (size_t i = 0; i < policy->on.status_count; i++)
                if (policy->on.status[i] == status)
                        return true;
        return false;
}

/* The status that stands for this one in `on`, where users name the plain kind. */
static int plain_status(const struct retry_case *c)
{
        if (c->class == ANSWER_THROTTLED)
                return 429;
        if (c->class == ANSWER_OVERLOADED)
                return 503;
        if (c->class == ANSWER_FAILED && classify_status(c->status) != ANSWER_FAILED)
                return 500; /* by a rule of classify */
        switch (c->status) {
        case 520:
        case 521:
        case 523:
                return 502;
        case 522:
        case 524:
                return 504;
        default:
                return c->status;
        }
}

static bool is_wanted(const struct retry_case *c)
{
        return is_listed(c->policy, c->status) || is_listed(c->policy, plain_status(c));
}

/* May it be sent twice, as far as its method goes? Methods are case-sensitive. */
static bool is_repeatable(const struct retry_case *c)
{
        static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
        for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++)
                if (span_equal(c->method, span_of(safe[i])))
                        return true;
        return c->policy->methods == RETRY_ALL_METHODS &&
               (span_equal(c->method, span_of("POST")) || span_equal(c->method, span_of("PATCH")));
}

static bool is_wanted_failure(const struct retry_case *c)
{
        switch (c->failure) {
        case RETRY_FAILURE_NONE:
                break;
        case RETRY_FAILURE_CONNECT:
                return c->policy->on.connect;
        case RETRY_FAILURE_TIMEOUT:
                return c->policy->on.timeout && is_repeatable(c);
        case RETRY_FAILURE_RESET:
                return c->policy->on.reset && is_repeatable(c);
        case RETRY_FAILURE_FINAL:
                return false;
        }
        if (c->status == 425)
                return c->attempts == 1;
        if (c->status == 408)
                return c->attempts == 1 && is_repeatable(c);
        return is_wanted(c) && is_repeatable(c);
}

/* A success whose status the user wants repeated all the same. Not one that is a success only
 * because a rule made it one. */
static bool is_wanted_success(const struct retry_case *c)
{
        return classify_status(c->status) == ANSWER_SUCCESS && is_listed(c->policy, c->status) &&
               is_repeatable(c);
}

static enum retry_verdict if_budgeted(const struct retry_case *c, bool wanted)
{
        return wanted && c->policy->budget > 0 ? RETRY_WITH_BUDGET : RETRY_NO;
}

static enum retry_verdict judge(const struct retry_case *c)
{
        if (c->attempts >= c->policy->attempts)
                return RETRY_NO;
        switch (c->class) {
        case ANSWER_THROTTLED:
                return is_wanted(c) ? RETRY_AGAIN : RETRY_NO;
        case ANSWER_OVERLOADED:
                if (c->wait_named)
                        return is_wanted(c) ? RETRY_AGAIN : RETRY_NO;
                return if_budgeted(c, is_wanted(c) && is_repeatable(c));
        case ANSWER_FAILED:
                return if_budgeted(c, is_wanted_failure(c));
        case ANSWER_SUCCESS:
                return if_budgeted(c, is_wanted_success(c));
        case ANSWER_BLOCKED:
                return c->elsewhere && (is_repeatable(c) || c->failure == RETRY_FAILURE_CONNECT)
                           ? RETRY_AGAIN
                           : RETRY_NO;
        }
        return RETRY_NO;
}

/* min(max, base * 2^(attempts - 1)) */
static usec_t own_wait_limit(const struct retry_policy *policy, unsigned attempts)
{
        usec_t limit = policy->base;
        for (unsigned i = 1; i < attempts && limit > 0 && limit < policy->max; i++)
                limit = usec_add(limit, limit);
        return usec_min(limit, policy->max);
}

static usec_t own_wait(const struct retry_case *c, struct prng *prng)
{
        usec_t limit = own_wait_limit(c->policy, c->attempts);
        return RETRY_OWN_WAIT_MIN + prng_usec(prng, usec_sub(limit, RETRY_OWN_WAIT_MIN));
}

static usec_t named_wait(const struct retry_case *c, struct prng *prng)
{
        usec_t jitter = usec_min(c->wait / 10, RETRY_JITTER_MAX);
        jitter = usec_min(jitter, c->time_left - c->wait - 1);
        return c->wait + prng_usec(prng, jitter);
}

enum retry_verdict retry_decide(const struct retry_case *c, struct prng *prng, usec_t *ret_wait)
{
        enum retry_verdict verdict = judge(c);
        usec_t wait;
        if (verdict == RETRY_NO)
                return RETRY_NO;
        if (c->class == ANSWER_BLOCKED) {
                wait = 0;
        } else if (c->wait_named && c->wait > 0) {
                if (c->wait > c->policy->max_wait || c->wait >= c->time_left)
                        return RETRY_NO;
                wait = named_wait(c, prng);
        } else {
                wait = own_wait(c, prng);
                if (wait >= c->time_left)
                        return RETRY_NO;
        }
        *ret_wait = wait;
        return verdict;
}
