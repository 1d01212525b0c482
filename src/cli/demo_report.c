#include "cli/demo_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"

static double percent(double part, double whole)
{
        return whole > 0 ? 100 * part / whole : 0;
}

static bool bounded(const struct practice_figures *f)
{
        return f->tolerated > 0 && f->tolerated < HUGE_VAL;
}

/* Of all that reached the origin, those that still wait for their answer included. */
static double refused_percent(const struct practice_figures *f)
{
        return percent((double)f->refused, (double)(f->served + f->refused + f->in_flight));
}

/* what: "" or " tolerated" */
static char *served_text(const struct practice_figures *f, const char *what)
{
        if (!bounded(f))
                return xasprintf("%" PRIu64, f->served);
        return xasprintf("%" PRIu64 " of %.0f%s (%.1f %%)", f->served, f->tolerated, what,
                         percent((double)f->served, f->tolerated));
}

bool demo_tally_worked(const struct demo_tally *t)
{
        return t->clients.ok > 0 && t->clients.failed == 0;
}

char *demo_report_status(const struct demo_tally *t)
{
        char *served = served_text(&t->origin, "");
        char *text = xasprintf("served %s, refused %" PRIu64 " (%.1f %%)", served,
                               t->origin.refused, refused_percent(&t->origin));
        free(served);
        return text;
}

void demo_report_second(FILE *to, unsigned second, const struct demo_sample *sample,
                        const struct demo_tally *t)
{
        char limit[32] = "?";
        if (sample->rate > 0)
                snprintf(limit, sizeof limit, "%.1f", sample->rate);
        char *status = demo_report_status(t);
        fprintf(to, "%4u s  limit %5s/s %s  in flight %2u  +%2u served +%u refused  in all %s\n",
                second, limit, sample->closed ? "held" : "    ", sample->in_flight, sample->served,
                sample->refused, status);
        free(status);
}

static void print_sentence(FILE *to, const struct demo_tally *t)
{
        const struct practice_load_figures *c = &t->clients;
        if (c->ok == 0) {
                fputs("No client was served.\n", to);
                return;
        }
        if (bounded(&t->origin))
                fprintf(to, "weir found the hidden limit by itself and used %.0f %% of it; ",
                        percent((double)t->origin.served, t->origin.tolerated));
        else
                fputs("The host has no limit to be found; ", to);
        uint64_t bad = c->refused + c->other + c->failed;
        if (bad == 0)
                fputs("the clients saw nothing but answers with 200.\n", to);
        else
                fprintf(to,
                        "the clients saw %" PRIu64 " answers with 200 and %" PRIu64
                        " requests that were not served.\n",
                        c->ok, bad);
}

void demo_report_end(FILE *to, const struct demo_tally *t)
{
        const struct practice_load_figures *c = &t->clients;
        char *served = served_text(&t->origin, " tolerated");
        fprintf(to, "served by the origin   %s in %.1f s\n", served, usec_seconds(t->origin.span));
        fprintf(to,
                "refused by the origin  %" PRIu64 " (%.2f %% of the requests that reached it)\n",
                t->origin.refused, refused_percent(&t->origin));
        fprintf(to, "seen by the clients    %" PRIu64 " times 200, %" PRIu64 " refusals", c->ok,
                c->refused);
        if (c->other > 0)
                fprintf(to, ", %" PRIu64 " other answers", c->other);
        if (c->failed > 0)
                fprintf(to, ", %" PRIu64 " without an answer", c->failed);
        fputc('\n', to);
        print_sentence(to, t);
        free(served);
}
