/*
 * Runs weir's limiter, and what others use in its place, against modelled hosts in virtual time and
 * prints a summary.
 *
 * limiter [--seeds N] [--processes N] [--only NAME,...] [--out DIRECTORY] SCENARIOS
 *
 * --out  also writes rows.tsv (a row for each scenario and controller), points.tsv and sawtooth.tsv
 * (for the picture), and summary.md
 *
 * The same figures each time: the processes only share the work.
 */
#include <errno.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "bench/limiter/controllers/controllers.h"
#include "bench/limiter/report.h"

static const struct sim_controller *const known[] = {
    &sim_weir,          &controller_recipe,         &controller_semaphore,
    &controller_tcp,    &controller_netflix_aimd,   &controller_gradient2,
    &controller_aws,    &controller_autothrottle_1, &controller_autothrottle_8,
    &controller_oracle,
};
enum { KNOWN = sizeof(known) / sizeof(*known) };
static const uint64_t first_seed = 1000;

struct bench {
        struct scenarios scenarios;
        const struct sim_controller *controllers[KNOWN];
        size_t controller_count, seeds, processes;
        const char *out;
        struct shared {
                _Atomic size_t next; /* run that nobody has taken yet */
                struct figures runs[];
        } * shared;
};

static size_t grid(const struct bench *b)
{
        return b->controller_count * b->scenarios.count * b->seeds;
}

/* The grid, then the demonstration's two lengths for each controller. */
static size_t runs(const struct bench *b)
{
        return grid(b) + 2 * b->controller_count * b->seeds;
}

static void run(const struct bench *b, size_t i)
{
        struct sim_scenario sc;
        size_t at = i < grid(b) ? i : i - grid(b);
        size_t row = at / b->seeds;
        if (i < grid(b)) {
                sc = b->scenarios.all[row % b->scenarios.count].sim;
                sc.controller = b->controllers[row / b->scenarios.count];
        } else {
                sc = scenario_demo((row % 2 ? 240 : 25) * USEC_PER_SEC);
                sc.controller = b->controllers[row / 2];
        }
        sc.seed = first_seed + at % b->seeds;
        figures_measure(&sc, &b->shared->runs[i]);
}

static void work(const struct bench *b)
{
        for (size_t i; (i = atomic_fetch_add(&b->shared->next, 1)) < runs(b);)
                run(b, i);
}

static int run_all(struct bench *b)
{
        size_t size = sizeof(*b->shared) + runs(b) * sizeof(b->shared->runs[0]);
        int failed = 0, status = 0;
        b->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (b->shared == MAP_FAILED)
                return -errno;
        for (size_t i = 1; i < b->processes; i++) {
                pid_t child = fork();
                if (child == 0) {
                        work(b);
                        _exit(0);
                }
        }
        work(b);
        while (wait(&status) > 0)
                failed |= status;
        return failed ? -ECHILD : 0;
}

/* ---- one sawtooth ---- */

static void watch(void *arg, usec_t at, enum limiter_event event, const struct limiter_view *v)
{
        fprintf(arg, "%.3f\t%s\t%.3f\n", usec_seconds(at), limiter_event_name(event), v->rate);
}

static void write_sawtooth(FILE *f)
{
        struct sim_scenario sc = scenario_demo(240 * USEC_PER_SEC);
        struct sim_result r;
        sc.seed = first_seed;
        sc.watch = watch;
        sc.watch_arg = f;
        fputs("seconds\tevent\trate\n", f);
        sim_run(&sc, &r);
        fputs("\n\nseconds\tserved\trefused\n", f);
        for (size_t i = 0; i < 240; i++)
                fprintf(f, "%zu\t%lu\t%lu\n", i, r.served_in[i], r.refused_in[i]);
        sim_result_done(&r);
}

/* ---- files ---- */

static FILE *open_in(const char *directory, const char *name)
{
        char *path = xasprintf("%s/%s", directory, name);
        FILE *f = fopen(path, "we");
        if (!f)
                fprintf(stderr, "%s: %m\n", path);
        free(path);
        return f;
}

static int close_written(FILE *f)
{
        int bad = ferror(f);
        return fclose(f) || bad ? -EIO : 0;
}

static int write_files(const struct bench *b, const struct report *r)
{
        static const char *const names[] = {"rows.tsv", "points.tsv", "summary.md", "sawtooth.tsv"};
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                FILE *f = open_in(b->out, names[i]);
                if (!f)
                        return -EIO;
                if (i == 0)
                        report_rows(r, f);
                else if (i == 1)
                        report_points(r, f);
                else if (i == 2)
                        report_summary(r, f);
                else
                        write_sawtooth(f);
                if (close_written(f) < 0)
                        return -EIO;
        }
        return 0;
}

/* ---- options ---- */

static bool is_listed(const char *list, const char *name)
{
        size_t length = strlen(name);
        for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
                if (strncmp(p, name, length) == 0 && (p[length] == ',' || p[length] == '\0'))
                        return true;
        return false;
}

static bool read_number(const char *text, size_t *ret)
{
        char *end;
        unsigned long n = strtoul(text, &end, 10);
        if (end == text || *end || n < 1 || n > 1000)
                return false;
        *ret = n;
        return true;
}

static int usage(void)
{
        fputs("usage: limiter [--seeds N] [--processes N] [--only NAME,...] [--out DIRECTORY] "
              "SCENARIOS\n",
              stderr);
        return 2;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {{"seeds", required_argument, NULL, 's'},
                                                {"processes", required_argument, NULL, 'p'},
                                                {"only", required_argument, NULL, 'o'},
                                                {"out", required_argument, NULL, 'd'},
                                                {0}};
        struct bench b = {.seeds = 3, .processes = 2};
        const char *only = NULL;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads */
        for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (c == 'o')
                        only = optarg;
                else if (c == 'd')
                        b.out = optarg;
                else if (!read_number(optarg ? optarg : "", c == 's' ? &b.seeds : &b.processes))
                        return usage();
        }
        for (size_t i = 0; i < KNOWN; i++)
                if (!only || is_listed(only, known[i]->name))
                        b.controllers[b.controller_count++] = known[i];
        if (optind + 1 != argc || b.controller_count == 0)
                return usage();
        int r = scenarios_read(argv[optind], &b.scenarios);
        if (r == 0)
                r = run_all(&b);
        if (r < 0) {
                errno = -r;
                fprintf(stderr, "%s: %m\n", argv[optind]);
                return 1;
        }
        struct report report = {
            .scenarios = &b.scenarios,
            .controllers = b.controllers,
            .controller_count = b.controller_count,
            .seeds = b.seeds,
            .runs = b.shared->runs,
            .demo = b.shared->runs + grid(&b),
        };
        report_summary(&report, stdout);
        if (b.out)
                r = write_files(&b, &report);
        scenarios_done(&b.scenarios);
        return r < 0;
}
