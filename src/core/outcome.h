/* core/outcome.h - how an exchange ended; the only list of it. */
#ifndef WEIR_CORE_OUTCOME_H
#define WEIR_CORE_OUTCOME_H

/* One row each in outcome.def. */
enum outcome {
#define OUTCOME(name, log_name, text) OUTCOME_##name,
#include "core/outcome.def"
#undef OUTCOME
        OUTCOME_COUNT /* not one of them */
};

const char *outcome_name(enum outcome o); /* "served": for logs and metrics */
const char *outcome_text(enum outcome o); /* one phrase for people */

#endif
