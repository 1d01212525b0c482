/* core/classify.h - what kind of answer is this? From its status and header fields alone. */
#ifndef WEIR_CORE_CLASSIFY_H
#define WEIR_CORE_CLASSIFY_H

#include <stdbool.h>

#include "core/answer_class.h"

struct fields;

struct classify_case {
        int status;                  /* 0: there was no answer */
        const struct fields *fields; /* NULL: none */
        bool wait_named;             /* retry_after_read found a wait, 0 included */
};

/*
 * The first of these that applies:
 *   1. a challenge of a web application firewall: blocked, whatever the status, 429 included;
 *   2. 403 that names a wait: throttled;
 *   3. the status alone, see classify_status.
 * Rules of the configuration will come before all of them, and what needs a look at the body
 * between 2 and 3; neither is here.
 */
enum answer_class classify_answer(const struct classify_case *c);

/*
 * 429, and 420, 430, 509, 529, 999 as some vendors say it: throttled. 503: overloaded. 401, 403,
 * 407: blocked. 408, 425, every other 5xx and no answer at all (0): failed. The rest: success.
 */
enum answer_class classify_status(int status);

#endif
