#include "bench/limiter/figures.h"

#include <math.h>

static const double served_share = .9, refused_share = .05; /* it has converged */
static const double window_min = 10, window_requests = 50;  /* seconds; tolerated in it */
static const double starved_min = 30, starved_times = 5;

/* How long a window has to be that tells a rate from chance, in seconds. */
static size_t window_of(const struct sim_scenario *sc, const struct sim_phase *p)
{
        double span = fmax(window_min, usec_seconds(sc->origin.period));
        return (size_t)ceil(fmax(span, window_requests / p->tolerated));
}

/* From the phase's beginning to the first window that served nearly all with few refusals. */
static double converged_after(const struct sim_result *r, const struct sim_phase *p, size_t window)
{
        size_t from = p->from / USEC_PER_SEC, until = p->until / USEC_PER_SEC;
        double served = 0, refused = 0;
        for (size_t t = from; t < until; t++) {
                served += (double)r->served_in[t];
                refused += (double)r->refused_in[t];
                if (t + 1 < from + window)
                        continue;
                if (served >= served_share * p->tolerated * (double)window &&
                    refused <= refused_share * (served + refused))
                        return (double)(t + 1 - window - from);
                served -= (double)r->served_in[t + 1 - window];
                refused -= (double)r->refused_in[t + 1 - window];
        }
        return INFINITY;
}

static void measure_convergence(const struct sim_scenario *sc, const struct sim_result *r,
                                struct figures *f)
{
        for (size_t i = 0; i < PHASE_KINDS; i++)
                f->converged[i] = NAN;
        if (sc->jobs || sc->on_off)
                return;
        for (size_t i = 0; i < r->phase_count; i++) {
                const struct sim_phase *p = &r->phases[i];
                size_t window = window_of(sc, p);
                enum phase_kind kind = PHASE_START;
                if (i > 0 && p->tolerated == r->phases[i - 1].tolerated)
                        continue;
                if (i > 0)
                        kind = p->tolerated < r->phases[i - 1].tolerated ? PHASE_HALVED
                                                                         : PHASE_DOUBLED;
                if (p->until - p->from >= window * USEC_PER_SEC)
                        f->converged[kind] = converged_after(r, p, window);
        }
}

void figures_measure(const struct sim_scenario *sc, struct figures *ret)
{
        struct sim_result r;
        sim_run(sc, &r);
        double ended = (double)(r.waits.count + r.gave_up);
        double share = sc->workers / fmax(r.whole.tolerated / fmax(r.whole.span, 1), 1e-9);
        *ret = (struct figures){
            .settled_goodput = sim_goodput(&r.settled),
            .settled_refused = sim_refused_share(&r.settled),
            .whole_goodput = sim_goodput(&r.whole),
            .whole_refused = sim_refused_share(&r.whole),
            .start_goodput = sim_goodput(&r.start),
            .start_refused = sim_refused_share(&r.start),
            .gave_up = ended > 0 ? (double)r.gave_up / ended : 0,
            .wait_p50 = usec_seconds(histogram_quantile(&r.waits, .5)),
            .wait_p95 = usec_seconds(histogram_quantile(&r.waits, .95)),
            .silence = usec_seconds(r.longest_silence),
            .starved = usec_seconds(r.waits.max) > fmax(starved_min, starved_times * share),
            .parked = r.parked,
        };
        measure_convergence(sc, &r, ret);
        sim_result_done(&r);
}

void figures_mean(const struct figures *runs, size_t count, struct figures *ret)
{
        enum { FIELDS = sizeof(struct figures) / sizeof(double) };
        double sum[FIELDS] = {0};
        for (size_t i = 0; i < count; i++) {
                const double *field = (const double *)&runs[i];
                for (size_t k = 0; k < FIELDS; k++)
                        sum[k] += field[k] / (double)count;
        }
        double *field = (double *)ret;
        for (size_t k = 0; k < FIELDS; k++)
                field[k] = sum[k];
}

bool figures_pass(const struct figures *f)
{
        return f->settled_goodput >= .97 && f->settled_refused < .01;
}
