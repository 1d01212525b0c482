/* runtime/line_out.h - files of lines, and pipes whose reader may have stopped reading. */
#ifndef WEIR_RUNTIME_LINE_OUT_H
#define WEIR_RUNTIME_LINE_OUT_H

#include <stdbool.h>
#include <stddef.h>

/* Opens a file that lines are appended to, made with mode 0640. Its descriptor, or -errno. */
int line_out_open(const char *path);

/* Could it be opened? Nothing is made or written. 0 or -errno. */
int line_out_look(const char *path);

/*
 * Writes len bytes, at most PIPE_BUF of which are certain to stay together. Does not wait: a pipe
 * or socket that is full, because its reader is slow or stopped, does not take the line, so that a
 * log can never hold up the requests.
 *
 * Returns whether the line was taken.
 */
bool line_out(int fd, const char *line, size_t len);

#endif
