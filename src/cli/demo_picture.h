/* cli/demo_picture.h - the course of a demo run as a picture of text lines. */
#ifndef WEIR_CLI_DEMO_PICTURE_H
#define WEIR_CLI_DEMO_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What happened within one tick. */
struct demo_sample {
        double rate; /* requests/s that weir has learned; 0: nothing yet */
        unsigned in_flight, served, refused;
        bool closed; /* weir holds the host's requests back for a time */
};

struct demo_scene {
        const struct demo_sample *samples; /* borrowed */
        size_t count;                      /* of them so far */
        size_t total;                      /* when the run is over: the picture's whole width */
        double ticks_per_second;
        double hidden;          /* requests/s that the host takes; HUGE_VAL: any */
        unsigned columns, rows; /* of the terminal; at least DEMO_PICTURE_COLUMNS and _ROWS */
        bool colour, utf8;
        const char *title, *status; /* one line each, ASCII; cut to the width */
};

#define DEMO_PICTURE_COLUMNS 40
#define DEMO_PICTURE_ROWS 12

/* Writes the picture, lines that end with "\n" and are exactly as wide as the terminal. Returns
 * their number, always less than `rows` and the same for the same `rows`. */
unsigned demo_picture_draw(const struct demo_scene *s, FILE *to);

#endif
