/* cli/demo_screen.h - the terminal, where a demo's picture is drawn over and over. */
#ifndef WEIR_CLI_DEMO_SCREEN_H
#define WEIR_CLI_DEMO_SCREEN_H

#include <stdbool.h>

#include "cli/demo_picture.h"

/* It changes no mode of the terminal, so that nothing has to be put back, however weir ends. */
struct demo_screen {
        bool used; /* stdout is a terminal that is good enough */
        bool colour, utf8;
        unsigned columns, rows;
        unsigned lines; /* of the picture above the cursor */
};

/* plain: the user wants no picture. */
void demo_screen_init(struct demo_screen *s, bool plain);

/* Draws in the place of the picture before, in the terminal's present size (filled into `scene`
 * with the rest of what the terminal can do). While it is too small nothing is drawn. */
void demo_screen_draw(struct demo_screen *s, struct demo_scene *scene);

#endif
