/* runtime/sink.h - a file of JSON lines that any thread may append to and that can be reopened. */
#ifndef WEIR_RUNTIME_SINK_H
#define WEIR_RUNTIME_SINK_H

#include <jansson.h>
#include <stdbool.h>

struct sink;

/* path      "" : off, *ret is NULL; "-" : stdout; else appended to, made with mode 0640
 * Returns 0 or -errno of opening it. */
int sink_open(const char *path, struct sink **ret);
void sink_close(struct sink *s); /* NULL is fine */

/* Opens the path anew after rotation; on failure the old file stays in use. 0 or -errno. */
int sink_reopen(struct sink *s);

/* Appends one line and drops the reference to `record`. Never waits: where the sink is a pipe that
 * nobody empties, lines are lost, and the log says so. NULL sinks swallow it. */
void sink_write(struct sink *s, json_t *record);

#endif
