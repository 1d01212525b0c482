#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/demo_picture.h"

#define TOTAL 250

static struct demo_sample samples[TOTAL];

/* A sawtooth below 30/s: refused and held at each tooth. */
static void fill(void)
{
        for (unsigned i = 0; i < TOTAL; i++)
                samples[i] = (struct demo_sample){.rate = i < 5 ? 0 : 26 + i % 50 * 0.08,
                                                  .in_flight = 10,
                                                  .served = 3,
                                                  .refused = i % 50 == 49,
                                                  .closed = i % 50 < 5};
}

/* ret_text: freed by the caller. */
static unsigned draw(struct demo_scene scene, char **ret_text)
{
        size_t size;
        FILE *memory = open_memstream(ret_text, &size);
        scene.samples = samples;
        scene.total = TOTAL;
        scene.ticks_per_second = 10;
        scene.title = "a title that is a good deal longer than the narrowest of terminals is wide";
        scene.status = "served 1 of 2";
        unsigned lines = demo_picture_draw(&scene, memory);
        fclose(memory);
        return lines;
}

/* Columns that a line takes: characters, escape sequences left out. */
static unsigned width_of(const char *line, const char *end)
{
        unsigned width = 0;
        for (; line < end; line++) {
                if (*line == '\033')
                        line = memchr(line, 'm', (size_t)(end - line));
                else if (((unsigned char)*line & 0xc0) != 0x80)
                        width++;
        }
        return width;
}

static void lines_are_as_wide_as_the_terminal(void **state)
{
        (void)state;
        static const unsigned sizes[][2] = {{40, 12}, {80, 24}, {81, 25}, {133, 50}, {300, 13}};
        static const size_t counts[] = {0, 1, 2, 100, TOTAL};
        fill();
        for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(counts) * 8; i++) {
                const unsigned *size = sizes[i / 8 / COUNT_OF(counts)];
                struct demo_scene scene = {.columns = size[0],
                                           .rows = size[1],
                                           .count = counts[i / 8 % COUNT_OF(counts)],
                                           .hidden = i & 4 ? HUGE_VAL : 30,
                                           .colour = i & 1,
                                           .utf8 = i & 2};
                char *text;
                unsigned lines = draw(scene, &text), seen = 0;
                for (const char *at = text, *end; (end = strchr(at, '\n')); at = end + 1, seen++)
                        assert_int_equal(width_of(at, end), scene.columns);
                assert_int_equal(seen, lines);
                assert_true(lines < scene.rows);
                if (!scene.utf8)
                        for (const char *c = text; *c; c++)
                                assert_true((unsigned char)*c < 0x80);
                if (!scene.colour)
                        assert_null(strchr(text, '\033'));
                free(text);
        }
}

/* How many columns of the line that holds `name` show something, its label left out. */
static unsigned marks_in(const char *text, const char *name)
{
        const char *at = strstr(text, name);
        unsigned n = 0;
        assert_non_null(at);
        for (at += 16; *at != '\n'; at++)
                n += *at != ' ';
        return n;
}

static void the_run_fills_the_width_as_it_goes(void **state)
{
        (void)state;
        fill();
        for (unsigned done = 0; done <= 5; done++) {
                struct demo_scene scene = {
                    .columns = 66, .rows = 24, .count = TOTAL / 5 * done, .hidden = 30};
                char *text;
                draw(scene, &text);
                assert_int_equal(marks_in(text, "served/s"), 10 * done);
                assert_int_equal(marks_in(text, "refused/s"), done);
                free(text);
        }
}

/* The sawtooth must be seen: the rows near the limit differ from column to column. */
static void the_teeth_are_visible(void **state)
{
        (void)state;
        fill();
        struct demo_scene scene = {.columns = 80, .rows = 24, .count = TOTAL, .hidden = 30};
        char *text;
        draw(scene, &text);
        const char *row = strstr(text, "hidden");
        assert_non_null(row);
        row = strchr(row, '\n') + 1; /* the row below the limit's */
        unsigned changes = 0;
        for (unsigned x = 17; x < 80; x++)
                changes += row[x] != row[x - 1];
        assert_true(changes >= 5);
        assert_non_null(strstr(text, "30.0"));
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(lines_are_as_wide_as_the_terminal),
            cmocka_unit_test(the_run_fills_the_width_as_it_goes),
            cmocka_unit_test(the_teeth_are_visible),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
