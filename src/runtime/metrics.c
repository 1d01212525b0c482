#include "runtime/metrics.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "core/answer.h"

#define CACHE_LINE 64

/* Statuses 100 to 599, and one cell for all others. */
#define STATUS_LOW 100
#define STATUS_HIGH 599
#define STATUS_CELLS (STATUS_HIGH - STATUS_LOW + 2)

#define CELLS_NONE 1
#define CELLS_CLASS ANSWER_CLASSES
#define CELLS_CLASS_OUTCOME ((ANSWER_CLASSES + 1) * OUTCOME_COUNT)
#define CELLS_STATUS STATUS_CELLS
#define CELLS_FAILURE (RETRY_FAILURE_FINAL + 1)
#define CELLS_RETRY METRICS_RETRIES
#define CELLS_RESULT 2

#define IS_CELL_COUNTER 1
#define IS_CELL_GAUGE 1
#define IS_CELL_HISTOGRAM 0

/* Where the cells of each begin: `last_` is one before the first of the next. */
enum {
#define KEPT(id, type, name, unit, labels, help) \
        first_##id, last_##id = first_##id + IS_CELL_##type * CELLS_##labels - 1,
#define ASKED(id, type, name, unit, labels, help)
#include "runtime/metrics.def"
        CELLS
};

/* The same for histograms. */
enum {
#define KEPT(id, type, name, unit, labels, help) \
        time_##id, last_time_##id = time_##id - IS_CELL_##type,
#define ASKED(id, type, name, unit, labels, help)
#include "runtime/metrics.def"
        TIMES
};

static const struct row {
        struct metrics_info info;
        bool kept;
        unsigned first, cells;
        unsigned time;
} rows[METRICS_COUNT] = {
#define KEPT(id, type, name, unit, labels, help)                                        \
        [METRIC_##id] = {{name, help, METRICS_##type, METRICS_##unit, LABELS_##labels}, \
                         true,                                                          \
                         first_##id,                                                    \
                         IS_CELL_##type * CELLS_##labels,                               \
                         time_##id},
#define ASKED(id, type, name, unit, labels, help) \
        [METRIC_##                                \
            id] = {{name, help, METRICS_##type, METRICS_##unit, LABELS_##labels}, false, 0, 0, 0},
#include "runtime/metrics.def"
};

/* Each is written by one thread alone: a plain load and store will do, nothing is ever locked. */
struct tally {
        _Atomic uint64_t buckets[HISTOGRAM_BUCKETS];
        _Atomic uint64_t sum, min, max;
};

struct metrics_writer {
        char before[CACHE_LINE]; /* what others write is never in the same line */
        _Atomic uint64_t cells[CELLS];
        struct tally times[TIMES];
        char behind[CACHE_LINE];
};

struct metrics {
        unsigned count;
        struct metrics_writer *writers[];
};

const struct metrics_info *metrics_info(enum metric m)
{
        return &rows[m].info;
}

/* ---- cells ---- */

size_t metrics_status(int status)
{
        return status >= STATUS_LOW && status <= STATUS_HIGH ? (size_t)(status - STATUS_LOW)
                                                             : STATUS_CELLS - 1;
}

size_t metrics_ending(enum answer_class class, enum outcome outcome)
{
        return (size_t) class * OUTCOME_COUNT + outcome;
}

size_t metrics_ending_unsent(enum outcome outcome)
{
        return (size_t)ANSWER_CLASSES * OUTCOME_COUNT + outcome;
}

enum metrics_retry metrics_retry(enum answer_class class, enum retry_failure failure)
{
        switch (failure) {
        case RETRY_FAILURE_CONNECT:
                return METRICS_RETRY_CONNECT;
        case RETRY_FAILURE_TIMEOUT:
                return METRICS_RETRY_TIMEOUT;
        case RETRY_FAILURE_RESET:
                return METRICS_RETRY_RESET;
        case RETRY_FAILURE_NONE:
        case RETRY_FAILURE_FINAL:
        default:
                return class == ANSWER_THROTTLED    ? METRICS_RETRY_THROTTLED
                       : class == ANSWER_OVERLOADED ? METRICS_RETRY_OVERLOADED
                       : class == ANSWER_BLOCKED    ? METRICS_RETRY_BLOCKED
                                                    : METRICS_RETRY_STATUS;
        }
}

size_t metrics_cells(enum metric m)
{
        return rows[m].cells;
}

static const char *class_name(size_t class)
{
        return class < ANSWER_CLASSES ? answer_class_name((enum answer_class) class) : "none";
}

const char *metrics_label(enum metric m, size_t cell, char text[static METRICS_LABEL_SIZE])
{
        static const char *const failures[] = {"none", "connect", "timeout", "reset", "final"};
        static const char *const retries[] = {"throttled", "overloaded", "blocked", "status",
                                              "connect",   "timeout",    "reset"};
        static const char *const results[] = {"failed", "done"};
        switch (rows[m].info.labels) {
        case LABELS_CLASS:
                snprintf(text, METRICS_LABEL_SIZE, "class=\"%s\"", class_name(cell));
                break;
        case LABELS_CLASS_OUTCOME:
                snprintf(text, METRICS_LABEL_SIZE, "class=\"%s\",outcome=\"%s\"",
                         class_name(cell / OUTCOME_COUNT),
                         outcome_name((enum outcome)(cell % OUTCOME_COUNT)));
                break;
        case LABELS_STATUS:
                if (cell == STATUS_CELLS - 1)
                        snprintf(text, METRICS_LABEL_SIZE, "status=\"other\"");
                else
                        snprintf(text, METRICS_LABEL_SIZE, "status=\"%zu\"", cell + STATUS_LOW);
                break;
        case LABELS_FAILURE:
                snprintf(text, METRICS_LABEL_SIZE, "reason=\"%s\"", failures[cell]);
                break;
        case LABELS_RETRY:
                snprintf(text, METRICS_LABEL_SIZE, "reason=\"%s\"", retries[cell]);
                break;
        case LABELS_RESULT:
                snprintf(text, METRICS_LABEL_SIZE, "result=\"%s\"", results[cell]);
                break;
        case LABELS_NONE:
        case LABELS_SCOPE:
        case LABELS_ENDPOINT:
        case LABELS_BUILD:
                text[0] = '\0';
                break;
        }
        return text;
}

bool metrics_shows_zero(enum metric m, size_t cell)
{
        switch (rows[m].info.labels) {
        case LABELS_STATUS:
                return cell == metrics_status(200) || cell == metrics_status(429) ||
                       cell == metrics_status(503);
        case LABELS_CLASS_OUTCOME:
                return cell == metrics_ending(ANSWER_SUCCESS, OUTCOME_SERVED) ||
                       cell == metrics_ending(ANSWER_THROTTLED, OUTCOME_GAVE_UP);
        case LABELS_FAILURE:
                return cell != RETRY_FAILURE_NONE;
        case LABELS_NONE:
        case LABELS_CLASS:
        case LABELS_RETRY:
        case LABELS_RESULT:
        case LABELS_SCOPE:
        case LABELS_ENDPOINT:
        case LABELS_BUILD:
        default:
                return true;
        }
}

/* ---- counting ---- */

struct metrics *metrics_new(unsigned writers)
{
        struct metrics *m = xcalloc(1, sizeof *m + writers * sizeof(struct metrics_writer *));
        m->count = writers;
        for (unsigned i = 0; i < writers; i++)
                m->writers[i] = xcalloc(1, sizeof(struct metrics_writer));
        return m;
}

void metrics_free(struct metrics *m)
{
        if (!m)
                return;
        for (unsigned i = 0; i < m->count; i++)
                free(m->writers[i]);
        free(m);
}

struct metrics_writer *metrics_writer(struct metrics *m, unsigned index)
{
        assert(index < m->count);
        return m->writers[index];
}

static uint64_t get(const _Atomic uint64_t *cell)
{
        return atomic_load_explicit(cell, memory_order_relaxed);
}

static void set(_Atomic uint64_t *cell, uint64_t value)
{
        atomic_store_explicit(cell, value, memory_order_relaxed);
}

void metrics_add(struct metrics_writer *w, enum metric m, size_t cell, uint64_t n)
{
        assert(cell < rows[m].cells);
        _Atomic uint64_t *c = &w->cells[rows[m].first + cell];
        set(c, get(c) + n);
}

void metrics_time(struct metrics_writer *w, enum metric m, usec_t value)
{
        assert(rows[m].kept && rows[m].info.type == METRICS_HISTOGRAM);
        struct tally *t = &w->times[rows[m].time];
        _Atomic uint64_t *bucket = &t->buckets[histogram_bucket(value)];
        /* The least is kept as its complement: all zeroes is an empty tally. */
        set(&t->min, usec_max(get(&t->min), ~value));
        set(&t->max, usec_max(get(&t->max), value));
        set(&t->sum, usec_add(get(&t->sum), value));
        /* Last: who reads the bucket finds the rest as well. */
        atomic_store_explicit(bucket, get(bucket) + 1, memory_order_release);
}

/* ---- reading ---- */

uint64_t metrics_get(const struct metrics *m, enum metric which, size_t cell)
{
        uint64_t sum = 0;
        assert(cell < rows[which].cells);
        for (unsigned i = 0; i < m->count; i++)
                sum += get(&m->writers[i]->cells[rows[which].first + cell]);
        return sum;
}

uint64_t metrics_total(const struct metrics *m, enum metric which)
{
        uint64_t sum = 0;
        for (size_t cell = 0; cell < rows[which].cells; cell++)
                sum += metrics_get(m, which, cell);
        return sum;
}

void metrics_histogram(const struct metrics *m, enum metric which, struct histogram *ret)
{
        assert(rows[which].kept && rows[which].info.type == METRICS_HISTOGRAM);
        histogram_init(ret);
        for (unsigned i = 0; i < m->count; i++) {
                const struct tally *t = &m->writers[i]->times[rows[which].time];
                struct histogram one = {0};
                for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++)
                        one.count += one.buckets[b] =
                            atomic_load_explicit(&t->buckets[b], memory_order_acquire);
                one.sum = get(&t->sum);
                one.min = ~get(&t->min);
                one.max = get(&t->max);
                histogram_merge(ret, &one);
        }
}
