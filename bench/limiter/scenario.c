#include "bench/limiter/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* As they stand on a line. */
struct line {
        double kind, rate, period, burst, conc, thrash, k;
        double lat, nf, dist, slowrej, ra, ralong, hdr;
        double w, jobs, onoff, step, t1, t2, dur;
};

/* No bound on the requests in flight but the workers: the host's limit is to be found. */
static const struct limiter_policy policy = {
    .algorithm = LIMITER_ADAPTIVE,
    .start = 4,
    .floor = 1,
    .ceiling = 100000,
    .max_hold = 120 * USEC_PER_SEC,
    .breaker = {.trip = 6, .cooldown = 30 * USEC_PER_SEC},
};

static double *field_of(struct line *l, const char *key, size_t length)
{
        const struct {
                const char *key;
                double *field;
        } fields[] = {
            {"kind", &l->kind},     {"rate", &l->rate},       {"period", &l->period},
            {"burst", &l->burst},   {"conc", &l->conc},       {"k", &l->k},
            {"thrash", &l->thrash}, {"lat", &l->lat},         {"nf", &l->nf},
            {"dist", &l->dist},     {"slowrej", &l->slowrej}, {"ra", &l->ra},
            {"ralong", &l->ralong}, {"hdr", &l->hdr},         {"W", &l->w},
            {"jobs", &l->jobs},     {"onoff", &l->onoff},     {"step", &l->step},
            {"t1", &l->t1},         {"t2", &l->t2},           {"dur", &l->dur},
        };
        for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
                if (strlen(fields[i].key) == length && strncmp(fields[i].key, key, length) == 0)
                        return fields[i].field;
        return NULL;
}

static bool read_field(struct line *l, const char *text)
{
        const char *equals = strchr(text, '=');
        double *field = equals ? field_of(l, text, (size_t)(equals - text)) : NULL;
        char *end = NULL;
        if (!field)
                return false;
        *field = strtod(equals + 1, &end);
        return end != equals + 1 && *end == '\0';
}

static bool is_sane(const struct line *l)
{
        return l->kind >= 0 && l->kind <= ORIGIN_PENALTY_BOX && l->rate > 0 && l->lat > 0 &&
               l->nf >= 0 && l->nf <= 1 && l->w >= 1 && l->w <= 1e6 && l->dur >= 1 &&
               l->dur <= 1e6 && l->dist >= 0 && l->dist <= SIM_LATENCY_BIMODAL && l->ra >= 0 &&
               l->ra <= SIM_WAIT_ONE && l->t2 <= l->dur && l->conc >= 1 && l->period > 0 &&
               (l->kind != ORIGIN_PENALTY_BOX || l->k >= 1);
}

static struct sim_scenario scenario_of(const struct line *l)
{
        struct sim_scenario sc = {
            .origin = {.kind = (enum origin_kind)l->kind,
                       .rate = l->rate,
                       .period = usec_from_seconds(l->period),
                       .burst = l->burst,
                       .servers = l->conc,
                       .thrash = l->thrash,
                       .violations = (unsigned)l->k},
            .latency = usec_from_seconds(l->lat),
            .network_share = l->nf,
            .spread = (enum sim_latency)l->dist,
            .slow_refusals = l->slowrej > 0,
            .retry_after = (enum sim_retry_after)l->ra,
            .long_wait = usec_from_seconds(l->ralong),
            .quota = l->hdr > 0 ? SIM_QUOTA_UP : SIM_QUOTA_NONE,
            .workers = (unsigned)l->w,
            .jobs = (unsigned)l->jobs,
            .on_off = usec_from_seconds(l->onoff),
            .attempts = 4,
            .duration = usec_from_seconds(l->dur),
            .policy = policy,
        };
        if (l->step > 0)
                sc.steps[0] = (struct sim_step){usec_from_seconds(l->t1), l->step > 1 ? 2 : .5};
        if (l->step > 0 && l->step < 2)
                sc.steps[1] = (struct sim_step){usec_from_seconds(l->t2), 1};
        return sc;
}

/* `text` is cut to pieces. */
static bool read_line(char *text, struct scenario *ret)
{
        struct line l = {.period = 1, .burst = 1, .conc = 1, .nf = .2, .w = 1, .dur = 240};
        char *rest = NULL;
        char *group = strtok_r(text, "\t\n", &rest), *name = strtok_r(NULL, "\t\n", &rest);
        if (!group || !name)
                return false;
        for (char *field; (field = strtok_r(NULL, "\t\n", &rest)) != NULL;)
                if (!read_field(&l, field))
                        return false;
        if (!is_sane(&l))
                return false;
        *ret = (struct scenario){xstrdup(name), scenario_of(&l)};
        ret->sim.name = ret->name;
        return true;
}

int scenarios_read(const char *path, struct scenarios *ret)
{
        struct scenarios s = {0};
        char *text = NULL;
        size_t room = 0, number = 0;
        int r = 0;
        FILE *f = fopen(path, "re");
        if (!f)
                return -errno;
        while (r == 0 && getline(&text, &room, f) > 0) {
                number++;
                if (*text == '#' || *text == '\n')
                        continue;
                s.all = xrealloc(s.all, (s.count + 1) * sizeof(*s.all));
                if (read_line(text, &s.all[s.count]))
                        s.count++;
                else
                        r = -EINVAL;
        }
        free(text);
        fclose(f);
        if (r == 0) {
                *ret = s;
                return 0;
        }
        fprintf(stderr, "%s:%zu: not a scenario\n", path, number);
        scenarios_done(&s);
        return r;
}

void scenarios_done(struct scenarios *s)
{
        for (size_t i = 0; i < s->count; i++)
                free(s->all[i].name);
        free(s->all);
}

struct sim_scenario scenario_demo(usec_t duration)
{
        return (struct sim_scenario){
            .name = "demo",
            .origin = {.kind = ORIGIN_FIXED_WINDOW,
                       .rate = 30,
                       .period = USEC_PER_SEC,
                       .from_first = true},
            .latency = 350 * USEC_PER_MSEC,
            .network_share = .01,
            .spread = SIM_LATENCY_LOGNORMAL,
            .retry_after = SIM_WAIT_EXACT,
            .workers = 40,
            .attempts = 4,
            .duration = duration,
            .policy = policy,
        };
}
