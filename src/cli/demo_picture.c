#include "cli/demo_picture.h"

#include <math.h>
#include <string.h>

#define MARGIN 16    /* columns left of the chart */
#define OTHER_ROWS 7 /* title, blank, three lines of bars, legend, status */
#define CHART_ROWS_MAX 14

enum colour { PLAIN, GREEN, YELLOW, RED, BLUE, DIM };

static const char *const colour_codes[] = {"\033[0m",  "\033[32m", "\033[33m",
                                           "\033[31m", "\033[34m", "\033[2m"};

/* From nothing to a full cell, in eighths. */
static const char *const eighths_utf8[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const eighths_ascii[] = {" ", "_", "_", ".", ".", ":", ":", "|", "#"};

struct pen {
        const struct demo_scene *scene;
        FILE *to;
        enum colour colour;
};

/* One column of the picture: the samples that fall into it. */
struct column {
        double rate, in_flight; /* the last, the largest */
        double served, refused; /* each second */
        bool known, was_closed, was_refused;
};

static void put(struct pen *p, enum colour colour, const char *glyph)
{
        if (p->scene->colour && colour != p->colour)
                fputs(colour_codes[colour], p->to);
        p->colour = colour;
        fputs(glyph, p->to);
}

static void end_line(struct pen *p)
{
        put(p, PLAIN, "\n");
}

static unsigned chart_width(const struct demo_scene *s)
{
        return s->columns - MARGIN;
}

static struct column column_at(const struct demo_scene *s, unsigned x)
{
        struct column c = {0};
        size_t width = chart_width(s), from = x * s->total / width, to = (x + 1) * s->total / width;
        if (to <= from)
                to = from + 1;
        if (to > s->count)
                to = s->count;
        if (from >= to)
                return c;
        c.known = true;
        for (size_t i = from; i < to; i++) {
                const struct demo_sample *sample = &s->samples[i];
                c.rate = sample->rate;
                c.in_flight = fmax(c.in_flight, sample->in_flight);
                c.served += sample->served;
                c.refused += sample->refused;
                c.was_closed |= sample->closed;
                c.was_refused |= sample->refused > 0;
        }
        double seconds = (double)(to - from) / s->ticks_per_second;
        c.served /= seconds;
        c.refused /= seconds;
        return c;
}

struct range {
        double bottom, top;
};

/* Where the hidden limit is known the chart shows its surroundings alone: a tooth is but a few
 * percent high. */
static struct range chart_range(const struct demo_scene *s)
{
        struct range r = {0, 1};
        if (s->hidden < HUGE_VAL && s->hidden > 0)
                return (struct range){0.5 * s->hidden, 1.25 * s->hidden};
        for (size_t i = 0; i < s->count; i++)
                r.top = fmax(r.top, s->samples[i].rate);
        return r;
}

/* The height of `value` in a chart of `rows`, in rows. */
static double height(double value, struct range r, unsigned rows)
{
        return (value - r.bottom) / (r.top - r.bottom) * rows;
}

/* The part of a bar that lies in row `row` (from the bottom), in eighths; what there is at all
 * shows at the bottom. */
static unsigned eighths(double value, struct range r, unsigned row, unsigned rows)
{
        double part = (height(value, r, rows) - row) * 8;
        if (part >= 8)
                return 8;
        if (part >= 0.5)
                return (unsigned)lround(part);
        return row == 0 && value > 0;
}

static const char *glyph(const struct demo_scene *s, unsigned level)
{
        return s->utf8 ? eighths_utf8[level] : eighths_ascii[level];
}

static void draw_label(struct pen *p, const char *name, double value, bool known)
{
        put(p, PLAIN, "");
        if (known)
                fprintf(p->to, "%-9s %5.*f ", name, value < 99.95 ? 1 : 0, value);
        else
                fprintf(p->to, "%-15s ", name);
}

static enum colour colour_of(const struct column *c)
{
        return c->was_refused ? RED : c->was_closed ? YELLOW : GREEN;
}

static void draw_chart_row(struct pen *p, unsigned row, unsigned rows, struct range r)
{
        const struct demo_scene *s = p->scene;
        double limit = height(s->hidden, r, rows);
        bool marked = limit >= row && limit < row + 1;
        if (row == rows - 1)
                draw_label(p, "limit/s", r.top, true);
        else if (row == 0)
                draw_label(p, "", r.bottom, true);
        else
                draw_label(p, marked ? "hidden" : "", s->hidden, marked);
        for (unsigned x = 0; x < chart_width(s); x++) {
                struct column c = column_at(s, x);
                unsigned level = eighths(c.rate, r, row, rows);
                if (level > 0)
                        put(p, colour_of(&c), glyph(s, level));
                else if (marked)
                        put(p, DIM, s->utf8 ? "┄" : "-");
                else
                        put(p, PLAIN, " ");
        }
        end_line(p);
}

enum quantity { SERVED, REFUSED, IN_FLIGHT };

static double quantity_of(const struct column *c, enum quantity q)
{
        return q == SERVED ? c->served : q == REFUSED ? c->refused : c->in_flight;
}

static void draw_bars(struct pen *p, const char *name, enum quantity q, enum colour colour)
{
        struct range r = {0, q == REFUSED ? 1 : 5};
        double latest = 0;
        for (unsigned x = 0; x < chart_width(p->scene); x++) {
                struct column c = column_at(p->scene, x);
                r.top = fmax(r.top, quantity_of(&c, q));
                if (c.known)
                        latest = quantity_of(&c, q);
        }
        draw_label(p, name, latest, true);
        for (unsigned x = 0; x < chart_width(p->scene); x++) {
                struct column c = column_at(p->scene, x);
                put(p, colour, glyph(p->scene, eighths(quantity_of(&c, q), r, 0, 1)));
        }
        end_line(p);
}

static void draw_text(struct pen *p, enum colour colour, const char *text)
{
        put(p, colour, "");
        int width = (int)p->scene->columns; /* in full, over what stood there before */
        fprintf(p->to, "%-*.*s", width, width, text);
        end_line(p);
}

unsigned demo_picture_draw(const struct demo_scene *s, FILE *to)
{
        struct pen p = {.scene = s, .to = to};
        unsigned rows = s->rows - 1 - OTHER_ROWS;
        struct range r = chart_range(s);
        if (rows > CHART_ROWS_MAX)
                rows = CHART_ROWS_MAX;
        draw_text(&p, PLAIN, s->title);
        draw_text(&p, PLAIN, "");
        for (unsigned row = rows; row-- > 0;)
                draw_chart_row(&p, row, rows, r);
        draw_bars(&p, "served/s", SERVED, GREEN);
        draw_bars(&p, "refused/s", REFUSED, RED);
        draw_bars(&p, "in flight", IN_FLIGHT, BLUE);
        draw_text(&p, DIM,
                  s->colour ? "red: the host refused one; yellow: weir holds all back for a while"
                            : "");
        draw_text(&p, PLAIN, s->status);
        return rows + OTHER_ROWS;
}
