#include "bench/limiter/report.h"

#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"

enum { KINDS = 11 };

static const struct figures *runs_of(const struct report *r, size_t controller, size_t scenario)
{
        return &r->runs[(controller * r->scenarios->count + scenario) * r->seeds];
}

static struct figures mean_of(const struct report *r, size_t controller, size_t scenario)
{
        struct figures f;
        figures_mean(runs_of(r, controller, scenario), r->seeds, &f);
        return f;
}

/* ---- rows ---- */

void report_rows(const struct report *r, FILE *f)
{
        fputs("scenario\tcontroller\tpass\tgoodput\trefused\twhole_goodput\twhole_refused\t"
              "first25_goodput\tfirst25_refused\tgave_up\twait_p50\twait_p95\tstall\tstarved\t"
              "parked\tstart\thalved\tdoubled\n",
              f);
        for (size_t s = 0; s < r->scenarios->count; s++)
                for (size_t c = 0; c < r->controller_count; c++) {
                        struct figures m = mean_of(r, c, s);
                        fprintf(f, "%s\t%s\t%d\t%.4f\t%.5f\t%.4f\t%.5f\t%.4f\t%.5f\t%.5f\t%.3f",
                                r->scenarios->all[s].name, r->controllers[c]->name,
                                figures_pass(&m), m.settled_goodput, m.settled_refused,
                                m.whole_goodput, m.whole_refused, m.start_goodput, m.start_refused,
                                m.gave_up, m.wait_p50);
                        fprintf(f, "\t%.3f\t%.1f\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\n", m.wait_p95,
                                m.silence, m.starved, m.parked, m.converged[PHASE_START],
                                m.converged[PHASE_HALVED], m.converged[PHASE_DOUBLED]);
                }
}

/* ---- over all scenarios ---- */

struct spread {
        double p0, p50, p90, p100, mean;
};

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;
        return x < y ? -1 : x > y;
}

/* NANs are left out; the rest is sorted in place. */
static struct spread spread_of(double *values, size_t count)
{
        size_t n = 0;
        double sum = 0;
        for (size_t i = 0; i < count; i++)
                if (!isnan(values[i])) {
                        values[n++] = values[i];
                        sum += values[i];
                }
        if (n == 0)
                return (struct spread){NAN, NAN, NAN, NAN, NAN};
        qsort(values, n, sizeof(*values), compare);
        return (struct spread){values[0], values[n / 2], values[n * 9 / 10], values[n - 1],
                               sum / (double)n};
}

/* Of the double at `offset` in the scenarios' means. */
static struct spread spread_over(const struct report *r, size_t controller, size_t offset)
{
        size_t n = r->scenarios->count;
        double *values = xcalloc(n, sizeof(*values));
        for (size_t s = 0; s < n; s++) {
                struct figures m = mean_of(r, controller, s);
                values[s] = *(const double *)((const char *)&m + offset);
        }
        struct spread result = spread_of(values, n);
        free(values);
        return result;
}

/* Over all runs, not means: one that never converged must not hide the others. */
static struct spread convergence(const struct report *r, size_t controller, enum phase_kind kind)
{
        size_t n = r->scenarios->count * r->seeds;
        double *values = xcalloc(n, sizeof(*values));
        for (size_t i = 0; i < n; i++)
                values[i] = runs_of(r, controller, 0)[i].converged[kind];
        struct spread result = spread_of(values, n);
        free(values);
        return result;
}

static size_t passes(const struct report *r, size_t controller)
{
        size_t n = 0;
        for (size_t s = 0; s < r->scenarios->count; s++) {
                struct figures m = mean_of(r, controller, s);
                n += figures_pass(&m);
        }
        return n;
}

#define SPREAD(r, c, field) spread_over(r, c, offsetof(struct figures, field))

static struct figures demo_of(const struct report *r, size_t controller, bool longer)
{
        struct figures f;
        figures_mean(&r->demo[(2 * controller + longer) * r->seeds], r->seeds, &f);
        return f;
}

void report_points(const struct report *r, FILE *f)
{
        fputs("controller\tgoodput\trefused\tpasses\n", f);
        for (size_t c = 0; c < r->controller_count; c++)
                fprintf(f, "%s\t%.4f\t%.6f\t%zu\n", r->controllers[c]->name,
                        SPREAD(r, c, settled_goodput).mean, SPREAD(r, c, settled_refused).mean,
                        passes(r, c));
}

/* ---- tables ---- */

static void table_quality(const struct report *r, FILE *f)
{
        fputs("| controller | pass | goodput median / mean / worst | whole run | first 25 s | "
              "429s median / p90 / worst % | whole run mean % | given up mean / worst % |\n"
              "|---|---|---|---|---|---|---|---|\n",
              f);
        for (size_t c = 0; c < r->controller_count; c++) {
                struct spread good = SPREAD(r, c, settled_goodput);
                struct spread refused = SPREAD(r, c, settled_refused);
                struct spread gave_up = SPREAD(r, c, gave_up);
                fprintf(f, "| %s | %zu | %.3f / %.3f / %.2f | %.3f | %.3f ",
                        r->controllers[c]->name, passes(r, c), good.p50, good.mean, good.p0,
                        SPREAD(r, c, whole_goodput).p50, SPREAD(r, c, start_goodput).p50);
                fprintf(f, "| %.2f / %.2f / %.1f | %.2f | %.2f / %.1f |\n", 100 * refused.p50,
                        100 * refused.p90, 100 * refused.p100,
                        100 * SPREAD(r, c, whole_refused).mean, 100 * gave_up.mean,
                        100 * gave_up.p100);
        }
}

static void put_seconds(FILE *f, const char *before, double seconds)
{
        if (isnan(seconds))
                fprintf(f, "%s–", before);
        else if (isinf(seconds))
                fprintf(f, "%snever", before);
        else
                fprintf(f, "%s%.*f", before, seconds < 10 ? 1 : 0, seconds);
}

static void table_time(const struct report *r, FILE *f)
{
        fputs(
            "| controller | wait p50 / p95, s | start p50 / p90, s | halving | doubling | longest "
            "stall p50 / worst, s | starved % | parked % |\n|---|---|---|---|---|---|---|---|\n",
            f);
        for (size_t c = 0; c < r->controller_count; c++) {
                fprintf(f, "| %s ", r->controllers[c]->name);
                put_seconds(f, "| ", SPREAD(r, c, wait_p50).p50);
                put_seconds(f, " / ", SPREAD(r, c, wait_p95).p50);
                for (enum phase_kind kind = 0; kind < PHASE_KINDS; kind++) {
                        struct spread s = convergence(r, c, kind);
                        put_seconds(f, " | ", s.p50);
                        put_seconds(f, " / ", s.p90);
                }
                struct spread silence = SPREAD(r, c, silence);
                put_seconds(f, " | ", silence.p50);
                put_seconds(f, " / ", silence.p100);
                fprintf(f, " | %.1f | %.1f |\n", 100 * SPREAD(r, c, starved).mean,
                        100 * SPREAD(r, c, parked).mean);
        }
}

static void table_demo(const struct report *r, FILE *f)
{
        fputs("| controller | 25 s: served of 750, 429s % | 240 s: goodput, 429s % |\n"
              "|---|---|---|\n",
              f);
        for (size_t c = 0; c < r->controller_count; c++) {
                struct figures brief = demo_of(r, c, false), longer = demo_of(r, c, true);
                fprintf(f, "| %s | %.0f, %.2f | %.3f, %.2f |\n", r->controllers[c]->name,
                        750 * brief.whole_goodput, 100 * brief.whole_refused, longer.whole_goodput,
                        100 * longer.whole_refused);
        }
}

static const char *const kind_names[KINDS] = {
    "window, 1 s", "sliding",    "token bucket",         "GCRA",
    "concurrency", "overloaded", "window + concurrency", "penalty box",
    "short jobs",  "on and off", "window, longer"};

static size_t kind_of(const struct sim_scenario *sc)
{
        if (sc->jobs)
                return 8;
        if (sc->on_off)
                return 9;
        if (sc->origin.kind == ORIGIN_FIXED_WINDOW && sc->origin.period > USEC_PER_SEC)
                return 10;
        return sc->origin.kind;
}

/* The first controller, by kind of host. */
static void table_kinds(const struct report *r, FILE *f)
{
        struct {
                unsigned count, passes;
                double goodput, whole, refused;
        } kinds[KINDS] = {0};
        for (size_t s = 0; s < r->scenarios->count; s++) {
                size_t k = kind_of(&r->scenarios->all[s].sim);
                struct figures m = mean_of(r, 0, s);
                kinds[k].count++;
                kinds[k].passes += figures_pass(&m);
                kinds[k].goodput += m.settled_goodput;
                kinds[k].whole += m.whole_goodput;
                kinds[k].refused += m.settled_refused;
        }
        fputs("| host | pass | goodput mean | whole run | 429s mean % |\n|---|---|---|---|---|\n",
              f);
        for (size_t k = 0; k < KINDS; k++)
                if (kinds[k].count)
                        fprintf(f, "| %s | %u of %u | %.3f | %.3f | %.2f |\n", kind_names[k],
                                kinds[k].passes, kinds[k].count, kinds[k].goodput / kinds[k].count,
                                kinds[k].whole / kinds[k].count,
                                100 * kinds[k].refused / kinds[k].count);
}

void report_summary(const struct report *r, FILE *f)
{
        fprintf(f, "%zu hosts, %zu runs of each.\n\n", r->scenarios->count, r->seeds);
        table_quality(r, f);
        fputc('\n', f);
        table_time(r, f);
        fprintf(f, "\nThe demonstration: 30 requests in each second, Retry-After: 1, 350 ms, 40 "
                   "workers.\n\n");
        table_demo(r, f);
        fprintf(f, "\n%s by kind of host:\n\n", r->controllers[0]->name);
        table_kinds(r, f);
}
