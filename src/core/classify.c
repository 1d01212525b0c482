#include "core/classify.h"

#include "base/fields.h"
#include "core/media_type.h"

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
        for (size_t i = 0; i < sizeof challenges / sizeof challenges[0]; i++) {
                const struct challenge *ch = &challenges[i];
                if (ch->only_status && ch->only_status != c->status)
                        continue;
                if (is_challenged_by(ch, c->fields))
                        return true;
        }
        return false;
}

/* --- rules of the configuration --- */

static bool has_status(const struct classify_rule *rule, int status)
{
        for (size_t i = 0; i < rule->status_count; i++)
                if (rule->status[i] == status)
                        return true;
        return rule->status_count == 0;
}

static bool has_field(const struct classify_rule *rule, const struct fields *fields)
{
        struct span value;
        for (size_t i = 0; fields_find(fields, i, rule->name, &value, &i); i++)
                if (span_contains_nocase(value, rule->value))
                        return true;
        return rule->name.len == 0;
}

/* The first rule that applies, or NULL. ret_unsure  set where that takes a look at the body */
static const struct classify_rule *rule_for(const struct classify_case *c, bool *ret_unsure)
{
        for (size_t i = 0; i < c->rule_count; i++) {
                const struct classify_rule *rule = &c->rules[i];
                if (!has_status(rule, c->status) || !has_field(rule, c->fields))
                        continue;
                if (rule->body.len == 0 || span_contains_nocase(c->body, rule->body))
                        return rule;
                if (!c->has_body) {
                        *ret_unsure = true;
                        return NULL;
                }
        }
        return NULL;
}

/* --- the built-in table --- */

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

static bool speaks_of_rate_limit(const struct classify_case *c)
{
        return media_type_is_text(c->fields) &&
               span_contains_nocase(c->body, span_of("rate limit"));
}

enum answer_class classify_answer(const struct classify_case *c)
{
        bool ignored;
        const struct classify_rule *rule = rule_for(c, &ignored);
        if (rule)
                return rule->as;
        if (is_challenge(c))
                return ANSWER_BLOCKED;
        if (c->status == 403 && (c->wait_named || speaks_of_rate_limit(c)))
                return ANSWER_THROTTLED;
        return classify_status(c->status);
}

static bool may_be_by_address(const struct classify_case *c)
{
        struct span server;
        return c->status == 429 && fields_find(c->fields, 0, span_of("Server"), &server, NULL) &&
               span_equal_nocase(span_trim(server), span_of("cloudflare"));
}

bool classify_is_by_address(const struct classify_case *c)
{
        return may_be_by_address(c) && classify_answer(c) == ANSWER_THROTTLED &&
               span_contains_nocase(c->body, span_of("1015"));
}

bool classify_wants_body(const struct classify_case *c)
{
        bool unsure = false;
        if (c->has_body)
                return false;
        const struct classify_rule *rule = rule_for(c, &unsure);
        if (unsure)
                return true;
        enum answer_class class = classify_answer(c);
        if (class == ANSWER_THROTTLED)
                return may_be_by_address(c);
        return !rule && c->status == 403 && !is_challenge(c) && media_type_is_text(c->fields);
}
