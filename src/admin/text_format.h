/* admin/text_format.h - the text format of Prometheus, version 0.0.4: what a scrape reads. */
#ifndef WEIR_ADMIN_TEXT_FORMAT_H
#define WEIR_ADMIN_TEXT_FORMAT_H

#include <stdint.h>

#include "core/histogram.h"
#include "runtime/metrics.h"

struct evbuffer;

#define TEXT_FORMAT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The lines HELP and TYPE, before the samples of a metric. */
void text_format_head(struct evbuffer *to, const struct metrics_info *info);

/* One sample. `labels` as they are written, "" for none: class="success",outcome="served". */
void text_format_count(struct evbuffer *to, const char *name, const char *labels, uint64_t value);
void text_format_real(struct evbuffer *to, const char *name, const char *labels, double value);

/* All samples of a histogram: buckets at every doubling from a millisecond to some minutes. */
void text_format_histogram(struct evbuffer *to, const char *name, const struct histogram *h);

/* NAME="VALUE" with what must be escaped in a value; control characters are shown as \xNN. The
 * caller frees it. */
char *text_format_label(const char *name, const char *value);

#endif
