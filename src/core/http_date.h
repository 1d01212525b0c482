/* core/http_date.h - reads dates as HTTP hosts write them (RFC 9110, 5.6.7), and as they should
 * not. */
#ifndef WEIR_CORE_HTTP_DATE_H
#define WEIR_CORE_HTTP_DATE_H

#include <stdbool.h>

#include "base/span.h"
#include "base/usec.h"

struct fields;

/*
 * Reads "Wed, 21 Oct 2026 07:28:00 GMT" (IMF-fixdate), "Wednesday, 21-Oct-26 07:28:00 GMT"
 * (RFC 850) or "Wed Oct 21 07:28:00 2026" (asctime).
 *
 * Beyond the RFC: the day's name may be missing or wrong, names are in any case, the zone may be
 * GMT, UTC, UT, Z, an offset ("+0200", "-02:00", "-0000"), or missing, which means GMT.
 *
 * now_real  settles the century of a year of two digits: the one nearest to now, at most 50 years
 *           ahead
 * ret_real  filled; a date before 1970 gives 0
 *
 * Returns 0, or -EINVAL. Knows no locale and no clock of its own.
 */
int http_date_parse(struct span text, usec_t now_real, usec_t *ret_real);

/* Reads "2026-10-21T07:28:00Z" (ISO 8601, RFC 3339), with a fraction of the second, an offset or no
 * zone (UTC) as well. Returns and fills as above. */
int http_date_parse_iso(struct span text, usec_t *ret_real);

/* Is it the name of a day, short or long? What follows its comma belongs to it then: a list of
 * dates cannot be split at every comma. */
bool http_date_is_weekday(struct span word);

/* Takes the next member off the front of a comma-separated list in which dates may stand: as
 * span_next, but a date keeps the comma after its day. */
bool http_date_next(struct span *rest, struct span *ret_member);

/* The time at which an answer was sent by the sender's own clock: its Date where that can be read,
 * else now_real. Moments in the answer's other fields are counted from it. */
usec_t http_date_clock(const struct fields *fields, usec_t now_real);

#endif
