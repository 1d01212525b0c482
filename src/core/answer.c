#include "core/answer.h"

#include <errno.h>

#include "core/classify.h"
#include "core/media_type.h"
#include "core/retry_after.h"

unsigned answer_read(const struct fields *fields, usec_t now_real, struct answer *ret)
{
        usec_t wait = 0;
        int r = retry_after_read(fields, now_real, &wait);
        quota_read(fields, now_real, &ret->quota);
        usec_t hold = quota_hold(&ret->quota);
        ret->wait_named = r == 0 || hold > 0;
        ret->wait = r == 0 ? wait : hold;
        return ret->quota.unreadable + (r == -EINVAL);
}

/* May a wait be found in the body? */
static bool may_name_wait(const struct classify_case *c)
{
        return c->status == 429 && !c->wait_named && media_type_is_json(c->fields);
}

bool answer_wants_body(const struct classify_case *c)
{
        bool wants_wait =
            !c->has_body && may_name_wait(c) && classify_answer(c) == ANSWER_THROTTLED;
        return wants_wait || classify_wants_body(c);
}

void answer_judge(struct answer *a, const struct classify_case *c)
{
        a->class = classify_answer(c);
        a->by_address = classify_is_by_address(c);
        if (may_name_wait(c) && retry_after_in_json(c->body, &a->wait) == 0)
                a->wait_named = true;
}

const char *answer_class_name(enum answer_class class)
{
        static const char *const names[ANSWER_CLASSES] = {
            [ANSWER_SUCCESS] = "success",       [ANSWER_THROTTLED] = "throttled",
            [ANSWER_OVERLOADED] = "overloaded", [ANSWER_BLOCKED] = "blocked",
            [ANSWER_FAILED] = "failed",
        };
        return names[class];
}
