/* runtime/metrics.h - what is counted while requests pass: by each worker for itself, without a
 * lock, and read by any thread. */
#ifndef WEIR_RUNTIME_METRICS_H
#define WEIR_RUNTIME_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/usec.h"
#include "core/answer_class.h"
#include "core/histogram.h"
#include "core/outcome.h"
#include "core/retry.h"

/* One row each in metrics.def. */
enum metric {
#define KEPT(id, type, name, unit, labels, help) METRIC_##id,
#define ASKED(id, type, name, unit, labels, help) METRIC_##id,
#include "runtime/metrics.def"
        METRICS_COUNT /* not one of them */
};

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };
enum metrics_unit { METRICS_NONE, METRICS_SECONDS, METRICS_BYTES };

/* The labels of a metric, and with them the number of its cells, which are counted from 0. */
enum metrics_labels {
        LABELS_NONE,          /* one cell */
        LABELS_CLASS,         /* enum answer_class */
        LABELS_CLASS_OUTCOME, /* metrics_ending */
        LABELS_STATUS,        /* metrics_status */
        LABELS_FAILURE,       /* enum retry_failure */
        LABELS_RETRY,         /* enum metrics_retry */
        LABELS_RESULT,        /* 0 or 1: whether it went well */
        LABELS_SCOPE,         /* asked for, not kept */
        LABELS_ENDPOINT,      /* the same */
        LABELS_BUILD,         /* the same */
};

/* Why a request went again. */
enum metrics_retry {
        METRICS_RETRY_THROTTLED,
        METRICS_RETRY_OVERLOADED,
        METRICS_RETRY_BLOCKED, /* by another endpoint */
        METRICS_RETRY_STATUS,  /* any other status that retry.on has */
        METRICS_RETRY_CONNECT,
        METRICS_RETRY_TIMEOUT,
        METRICS_RETRY_RESET,
        METRICS_RETRIES /* not one of them */
};

/* What is the same at all times. */
struct metrics_info {
        const char *name;
        const char *help; /* one line, without backslashes */
        enum metrics_type type;
        enum metrics_unit unit;
        enum metrics_labels labels;
};
const struct metrics_info *metrics_info(enum metric m);

/* ---- cells ---- */

size_t metrics_status(int status); /* all below 100 and above 599 share one cell */
size_t metrics_ending(enum answer_class class, enum outcome outcome);
size_t metrics_ending_unsent(enum outcome outcome); /* no attempt was answered or failed */
enum metrics_retry metrics_retry(enum answer_class class, enum retry_failure failure);

size_t metrics_cells(enum metric m); /* 0 where it is asked for, and for a histogram */

#define METRICS_LABEL_SIZE 64

/* The labels of a cell as Prometheus writes them: class="success",outcome="served". "" for none. */
const char *metrics_label(enum metric m, size_t cell, char text[static METRICS_LABEL_SIZE]);

/* Is a cell shown while it is 0? Those of statuses are not, but for the most telling ones. */
bool metrics_shows_zero(enum metric m, size_t cell);

/* ---- counting ---- */

struct metrics;
struct metrics_writer; /* the cells that one thread writes, in cache lines of their own */

struct metrics *metrics_new(unsigned writers);
void metrics_free(struct metrics *m); /* NULL is fine */
struct metrics_writer *metrics_writer(struct metrics *m, unsigned index);

/* By the writer's one thread; a gauge takes (uint64_t)-1 as well. */
void metrics_add(struct metrics_writer *w, enum metric m, size_t cell, uint64_t n);
void metrics_time(struct metrics_writer *w, enum metric m, usec_t value);

/* ---- reading, by any thread ---- */

uint64_t metrics_get(const struct metrics *m, enum metric which, size_t cell);
uint64_t metrics_total(const struct metrics *m, enum metric which); /* of all its cells */

/* Its count is that of its buckets; the sum may be a request or two ahead of it. */
void metrics_histogram(const struct metrics *m, enum metric which, struct histogram *ret);

#endif
