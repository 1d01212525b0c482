/* cli/practice_origin.h - an HTTP origin with a hidden limit, on a thread of its own. */
#ifndef WEIR_CLI_PRACTICE_ORIGIN_H
#define WEIR_CLI_PRACTICE_ORIGIN_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/span.h"
#include "base/usec.h"
#include "cli/practice_limit.h"

/* What a refusal says of the wait. */
enum practice_hint {
        PRACTICE_HINT_NONE,    /* no Retry-After */
        PRACTICE_HINT_SECONDS, /* a fixed number */
        PRACTICE_HINT_EXACT,   /* until one would be let in, in seconds with three decimals */
        PRACTICE_HINT_DATE,    /* the same as a date, to the next whole second */
};

struct practice_settings {
        struct practice_policy policy;
        usec_t latency; /* before an answer; a refusal is sent at once */
        enum practice_hint hint;
        unsigned hint_seconds; /* for PRACTICE_HINT_SECONDS */
};

/* 30 requests in each second, answered at once, and `Retry-After: 1`. */
#define PRACTICE_SETTINGS_DEFAULT                                                        \
        {                                                                                \
                .policy = {.kind = PRACTICE_FIXED, .count = 30, .window = USEC_PER_SEC}, \
                .hint = PRACTICE_HINT_SECONDS, .hint_seconds = 1                         \
        }

/* "none", "exact", "date", or whole seconds ("0", "1"); fills hint and hint_seconds. 0 or -EINVAL.
 */
int practice_hint_parse(struct span text, struct practice_settings *s);

/* Sums since the start. */
struct practice_figures {
        uint64_t served;  /* answered with 200 */
        uint64_t refused; /* answered with 429 */
        unsigned in_flight, peak;
        usec_t span;      /* since the first request; 0: there was none */
        double tolerated; /* what the limit would have let through in that time; HUGE_VAL: all */
};

struct practice_origin;

/*
 * address    where it listens, IPv4 or IPv6; port 0: any free one
 * ret_error  one plain line on failure, freed by the caller
 *
 * 0 or -errno.
 */
int practice_origin_start(const struct practice_settings *settings,
                          const struct sockaddr_storage *address, struct practice_origin **ret,
                          char **ret_error);

unsigned practice_origin_port(const struct practice_origin *o);

/* From any thread. */
void practice_origin_look(const struct practice_origin *o, struct practice_figures *ret);

/* Ends it; requests that wait for their answer lose their connection. NULL is fine. */
void practice_origin_free(struct practice_origin *o);

#endif
