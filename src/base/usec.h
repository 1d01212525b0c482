/* base/usec.h - time in whole microseconds, the only unit of time in weir. */
#ifndef WEIR_BASE_USEC_H
#define WEIR_BASE_USEC_H

#include <stdint.h>
#include <sys/time.h>

/* A point in time (`now` is monotonic, `now_real` is wall-clock since 1970) or a span of it. */
typedef uint64_t usec_t;

#define USEC_MAX UINT64_MAX /* never, without end */
#define USEC_PER_MSEC ((usec_t)1000)
#define USEC_PER_SEC ((usec_t)1000000)

/* a + b; USEC_MAX where that does not fit. */
static inline usec_t usec_add(usec_t a, usec_t b)
{
        return a > USEC_MAX - b ? USEC_MAX : a + b;
}

/* a - b; 0 where b is later. */
static inline usec_t usec_sub(usec_t a, usec_t b)
{
        return a > b ? a - b : 0;
}

static inline usec_t usec_min(usec_t a, usec_t b)
{
        return a < b ? a : b;
}

static inline usec_t usec_max(usec_t a, usec_t b)
{
        return a > b ? a : b;
}

static inline double usec_seconds(usec_t t)
{
        return (double)t / (double)USEC_PER_SEC;
}

/* Seconds to microseconds; negative and NaN give 0, what does not fit USEC_MAX. */
static inline usec_t usec_from_seconds(double seconds)
{
        if (!(seconds > 0))
                return 0;
        if (seconds >= (double)(USEC_MAX / USEC_PER_SEC))
                return USEC_MAX;
        return (usec_t)(seconds * (double)USEC_PER_SEC);
}

/* As libevent wants a span of time. */
static inline struct timeval usec_timeval(usec_t t)
{
        return (struct timeval){.tv_sec = (time_t)(t / USEC_PER_SEC),
                                .tv_usec = (suseconds_t)(t % USEC_PER_SEC)};
}

#endif
