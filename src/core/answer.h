/* core/answer.h - what one answer tells the limiter: its class, the wait that it names, and what is
 * left of the host's quotas. */
#ifndef WEIR_CORE_ANSWER_H
#define WEIR_CORE_ANSWER_H

#include <stdbool.h>

#include "base/usec.h"
#include "core/answer_class.h"
#include "core/quota.h"

struct classify_case;
struct fields;

struct answer {
        enum answer_class class;
        bool wait_named;  /* 0 included */
        usec_t wait;      /* 0 where none was named */
        bool by_address;  /* refused because of the address that asked, not of the scope alone */
        bool by_endpoint; /* it is the endpoint's own: nothing has reached the host */
        struct quota quota;
};

/*
 * Reads from the fields of an answer all but its class, the first of the two steps. The wait is
 * that of Retry-After and its kin; where they name none, the time until a quota that is used up is
 * whole again.
 *
 * Returns how many fields, or groups of them, were there and could not be read.
 */
unsigned answer_read(const struct fields *fields, usec_t now_real, struct answer *ret);

/* Does the second step need to know the body? c->wait_named is to be that of the first. */
bool answer_wants_body(const struct classify_case *c);

/*
 * The second step: the class, as classify_answer says it. A 429 that named no wait may do so in a
 * body of JSON (retry_after_in_json).
 */
void answer_judge(struct answer *a, const struct classify_case *c);

const char *answer_class_name(enum answer_class class); /* "throttled" … */

#endif
