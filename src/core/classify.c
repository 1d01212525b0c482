#include "core/classify.h"

#include <stddef.h>

#include "base/fields.h"
#include "base/span.h"

/* How firewalls mark the page that they put in the place of an answer. */
static const struct challenge {
        const char *name, *value;
        bool other;      /* any value but this one */
        int only_status; /* 0: any */
} challenges[] = {
    {"cf-mitigated", "challenge", false, 0}, /* Cloudflare */
    {"x-vercel-mitigated", "challenge", false, 0},
    {"x-amzn-waf-action", "challenge", false, 0}, /* AWS WAF, with an empty 202 */
    {"x-amzn-waf-action", "captcha", false, 0},   /* AWS WAF, with a 405 */
    {"x-datadome", "protected", true, 403},       /* "protected" is on every answer of theirs */
};

static bool is_challenged_by(const struct challenge *ch, const struct fields *fields)
{
        struct span value;
        for (size_t i = 0; fields_find(fields, i, span_of(ch->name), &value, &i); i++)
                if (span_equal_nocase(span_trim(value), span_of(ch->value)) != ch->other)
                        return true;
        return false;
}

static bool is_challenge(const struct classify_case *c)
{
        if (!c->fields)
                return false;
        for (size_t i = 0; i < sizeof challenges / sizeof challenges[0]; i++) {
                const struct challenge *ch = &challenges[i];
                if (ch->only_status && ch->only_status != c->status)
                        continue;
                if (is_challenged_by(ch, c->fields))
                        return true;
        }
        return false;
}

enum answer_class classify_status(int status)
{
        switch (status) {
        case 420:
        case 429:
        case 430:
        case 509:
        case 529:
        case 999:
                return ANSWER_THROTTLED;
        case 503:
                return ANSWER_OVERLOADED;
        case 401:
        case 403:
        case 407:
                return ANSWER_BLOCKED;
        case 0:
        case 408:
        case 425:
                return ANSWER_FAILED;
        default:
                return status >= 500 && status <= 599 ? ANSWER_FAILED : ANSWER_SUCCESS;
        }
}

enum answer_class classify_answer(const struct classify_case *c)
{
        if (is_challenge(c))
                return ANSWER_BLOCKED;
        if (c->status == 403 && c->wait_named)
                return ANSWER_THROTTLED;
        return classify_status(c->status);
}
