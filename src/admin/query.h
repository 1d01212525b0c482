/* admin/query.h - the parameters behind the "?" of a request. */
#ifndef WEIR_ADMIN_QUERY_H
#define WEIR_ADMIN_QUERY_H

#include <event2/http.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/usec.h"

/* The value of the first of that name, decoded; NULL: there is none. The caller frees it. */
char *query_text(const struct evhttp_request *req, const char *name);

/* A whole number from 1 to `most`; `fallback` where there is none. False: it makes no sense. */
bool query_count(const struct evhttp_request *req, const char *name, size_t fallback, size_t most,
                 size_t *ret);

/* Wall-clock time: seconds since 1970 with a fraction ("1732951200.123456"), or as in the logs
 * ("2026-11-30T07:54:47.123Z"). False: it is neither. */
bool query_parse_time(const char *text, usec_t *ret);

#endif
