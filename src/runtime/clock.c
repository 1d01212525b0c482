#include "runtime/clock.h"

#include <stdio.h>
#include <time.h>

static usec_t read_clock(clockid_t id)
{
        struct timespec ts;
        clock_gettime(id, &ts);
        return (usec_t)ts.tv_sec * USEC_PER_SEC + (usec_t)ts.tv_nsec / 1000;
}

usec_t clock_now(void)
{
        return read_clock(CLOCK_MONOTONIC);
}

usec_t clock_real(void)
{
        return read_clock(CLOCK_REALTIME);
}

const char *clock_text(usec_t real, char text[static CLOCK_TEXT_SIZE])
{
        time_t seconds = (time_t)(real / USEC_PER_SEC);
        struct tm tm;
        gmtime_r(&seconds, &tm);
        size_t n = strftime(text, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(text + n, CLOCK_TEXT_SIZE - n, ".%03uZ",
                 (unsigned)(real % USEC_PER_SEC / USEC_PER_MSEC) % 1000u);
        return text;
}
