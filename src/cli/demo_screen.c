#include "cli/demo_screen.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void measure(struct demo_screen *s)
{
        struct winsize size;
        unsigned columns = 80, rows = 24;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
                columns = size.ws_col;
                rows = size.ws_row;
        }
        /* The terminal may have broken the old picture's lines anew: leave it alone. */
        if (columns != s->columns || rows != s->rows)
                s->lines = 0;
        s->columns = columns;
        s->rows = rows;
}

static bool big_enough(const struct demo_screen *s)
{
        return s->columns >= DEMO_PICTURE_COLUMNS && s->rows >= DEMO_PICTURE_ROWS;
}

void demo_screen_init(struct demo_screen *s, bool plain)
{
        const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
        *s = (struct demo_screen){0};
        if (plain || !isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0)
                return;
        measure(s);
        setlocale(LC_CTYPE, "");
        s->used = big_enough(s);
        s->colour = !no_colour || !no_colour[0]; /* https://no-color.org */
        s->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void demo_screen_draw(struct demo_screen *s, struct demo_scene *scene)
{
        char *text = NULL;
        size_t size;
        measure(s);
        if (!big_enough(s))
                return;
        scene->columns = s->columns;
        scene->rows = s->rows;
        scene->colour = s->colour;
        scene->utf8 = s->utf8;
        /* In one piece, or it would flicker. */
        FILE *memory = open_memstream(&text, &size);
        if (!memory)
                abort(); /* out of memory, as in xalloc */
        if (s->lines > 0)
                fprintf(memory, "\r\033[%uA", s->lines);
        s->lines = demo_picture_draw(scene, memory);
        if (fclose(memory) != 0)
                abort();
        fwrite(text, 1, size, stdout);
        fflush(stdout);
        free(text);
}
