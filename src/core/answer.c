#include "core/answer.h"

#include <errno.h>

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
