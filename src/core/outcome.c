#include "core/outcome.h"

static const struct {
        const char *name, *text;
} outcomes[OUTCOME_COUNT] = {
#define OUTCOME(name, log_name, text) [OUTCOME_##name] = {log_name, text},
#include "core/outcome.def"
#undef OUTCOME
};

const char *outcome_name(enum outcome o)
{
        return outcomes[o].name;
}

const char *outcome_text(enum outcome o)
{
        return outcomes[o].text;
}
