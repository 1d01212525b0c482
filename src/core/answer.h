/* core/answer.h - what one answer tells the limiter: its class, the wait that it names, and what is
 * left of the host's quotas. */
#ifndef WEIR_CORE_ANSWER_H
#define WEIR_CORE_ANSWER_H

#include <stdbool.h>

#include "base/usec.h"
#include "core/answer_class.h"
#include "core/quota.h"

struct fields;

struct answer {
        enum answer_class class;
        bool wait_named; /* 0 included */
        usec_t wait;     /* 0 where none was named */
        struct quota quota;
};

/*
 * Reads from the fields of an answer all but its class. The wait is that of Retry-After and its
 * kin; where they name none, the time until a quota that is used up is whole again.
 *
 * Returns how many fields, or groups of them, were there and could not be read.
 */
unsigned answer_read(const struct fields *fields, usec_t now_real, struct answer *ret);

#endif
