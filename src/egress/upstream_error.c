#include "egress/upstream.h"

static const struct {
        const char *type;
        int status;
        enum retry_failure failure;
        enum { OWN, HOST, ENDPOINT, REFUSAL } whose;
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

bool upstream_error_is_endpoints(enum upstream_error e)
{
        return rows[e].whose == ENDPOINT;
}

bool upstream_error_is_refusal(enum upstream_error e)
{
        return rows[e].whose == REFUSAL;
}

enum upstream_error upstream_error_of_host(struct span type)
{
        for (size_t i = 1; i < sizeof rows / sizeof rows[0]; i++)
                if (rows[i].whose == HOST && i != UPSTREAM_DESTINATION_UNAVAILABLE &&
                    span_equal(type, span_of(rows[i].type)))
                        return (enum upstream_error)i;
        return UPSTREAM_OK;
}

bool upstream_error_is_hosts(enum upstream_error e)
{
        return rows[e].whose == HOST;
}
