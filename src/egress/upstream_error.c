#include "egress/upstream.h"

static const struct {
        const char *type;
        int status;
        enum retry_failure failure;
        enum { OWN, HOST } whose;
} rows[] = {
    [UPSTREAM_OK] = {"", 0, RETRY_FAILURE_NONE, HOST},
#define ERROR(name, type, status, failure, whose) \
        [UPSTREAM_##name] = {type, status, RETRY_FAILURE_##failure, whose},
#include "egress/upstream_error.def"
#undef ERROR
};

const char *upstream_error_type(enum upstream_error e)
{
        return rows[e].type;
}

int upstream_error_status(enum upstream_error e)
{
        return rows[e].status;
}

enum retry_failure upstream_error_failure(enum upstream_error e)
{
        return rows[e].failure;
}

bool upstream_error_is_hosts(enum upstream_error e)
{
        return rows[e].whose == HOST;
}
