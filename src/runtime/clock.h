/* runtime/clock.h - the two clocks of the process. */
#ifndef WEIR_RUNTIME_CLOCK_H
#define WEIR_RUNTIME_CLOCK_H

#include <stddef.h>

#include "base/usec.h"

usec_t clock_now(void);  /* monotonic; for everything that waits or measures */
usec_t clock_real(void); /* wall clock since 1970; for what people and hosts call time */

#define CLOCK_TEXT_SIZE sizeof "2026-11-30T07:54:47.123Z"

/* Writes a wall-clock time as RFC 3339 in UTC with milliseconds; returns `text`. */
const char *clock_text(usec_t real, char text[static CLOCK_TEXT_SIZE]);

#endif
