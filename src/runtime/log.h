/* runtime/log.h - what weir tells people: one plain line for each thing that happened. */
#ifndef WEIR_RUNTIME_LOG_H
#define WEIR_RUNTIME_LOG_H

#include <stdbool.h>

#include "config/config.h"

/* May be called by any thread; a line is one write, so lines never mix. Text is escaped so that a
 * peer cannot forge a line. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What is told from now on, by all threads: lines of `level` and graver ones. Before the first call
 * it is info and above, as text. */
void log_set(enum log_level level, enum log_format format);

/* Where it is told, by all threads: a descriptor, standard error before the first call. Borrowed.
 */
void log_to(int fd);

/* Lines begin with their priority, "<3>", and as text have neither time nor level otherwise: where
 * standard error is read by journald. */
void log_set_journal(bool journal);

#endif
