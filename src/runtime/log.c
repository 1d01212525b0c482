#include "runtime/log.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "runtime/clock.h"
#include "runtime/line_out.h"

static atomic_int shown_level = LOG_LEVEL_INFO;
static atomic_int line_format = LOG_FORMAT_TEXT;
static atomic_int output = STDERR_FILENO;
static atomic_bool for_journal;

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

/* As in syslog(3). */
static const int priorities[] = {
    [LOG_LEVEL_ERROR] = 3,
    [LOG_LEVEL_WARN] = 4,
    [LOG_LEVEL_INFO] = 6,
    [LOG_LEVEL_DEBUG] = 7,
};

void log_set(enum log_level level, enum log_format format)
{
        atomic_store(&shown_level, (int)level);
        atomic_store(&line_format, (int)format);
}

void log_to(int fd)
{
        atomic_store(&output, fd);
}

void log_set_journal(bool journal)
{
        atomic_store(&for_journal, journal);
}

static void escape_controls(char *s)
{
        for (; *s; s++)
                if ((unsigned char)*s < 0x20 || *s == 0x7f)
                        *s = '?';
}

static char *json_line(enum log_level level, const char *time, const char *message)
{
        json_t *o = json_pack("{s:s, s:s, s:s*}", "time", time, "level", level_names[level],
                              "message", message);
        char *line = json_dumps(o, JSON_COMPACT);
        json_decref(o);
        char *whole = xasprintf("%s\n", line ? line : "{}");
        free(line);
        return whole;
}

/* journald keeps the time itself, and takes the level from a prefix: see sd-daemon(3). */
static char *compose(enum log_level level, const char *time, const char *message)
{
        bool json = atomic_load(&line_format) == LOG_FORMAT_JSON;
        if (!atomic_load(&for_journal))
                return json ? json_line(level, time, message)
                            : xasprintf("%s %-5s %s\n", time, level_names[level], message);
        char *line = json ? json_line(level, time, message) : xasprintf("%s\n", message);
        char *whole = xasprintf("<%d>%s", priorities[level], line);
        free(line);
        return whole;
}

__attribute__((format(printf, 2, 0))) static void write_line(enum log_level level,
                                                             const char *format, va_list ap)
{
        if ((int)level > atomic_load(&shown_level))
                return;
        char time[CLOCK_TEXT_SIZE];
        clock_text(clock_real(), time);
        char *message = xvasprintf(format, ap);
        escape_controls(message);
        char *line = compose(level, time, message);
        /* Nothing useful can be done where even the log cannot be written. */
        line_out(atomic_load(&output), line, strlen(line));
        free(line);
        free(message);
}

#define DEFINE_LOG(name, level)                \
        void name(const char *format, ...)     \
        {                                      \
                va_list ap;                    \
                va_start(ap, format);          \
                write_line(level, format, ap); \
                va_end(ap);                    \
        }

DEFINE_LOG(log_error, LOG_LEVEL_ERROR)
DEFINE_LOG(log_warn, LOG_LEVEL_WARN)
DEFINE_LOG(log_info, LOG_LEVEL_INFO)
DEFINE_LOG(log_debug, LOG_LEVEL_DEBUG)
