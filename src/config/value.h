/* config/value.h - the small notations of weir.yaml: 30s, 16MiB, 600/min, 20%, 127.0.0.1:8080. */
#ifndef WEIR_CONFIG_VALUE_H
#define WEIR_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/span.h"
#include "base/usec.h"

/* All return 0, -EINVAL where the text is not in the notation, -ERANGE where it does not fit; pure
 * and independent of the locale. */

int value_bool(struct span text, bool *ret);      /* true, false */
int value_count(struct span text, unsigned *ret); /* decimal digits alone */
int value_number(struct span text, double *ret);  /* digits, with a fraction or without: 0.5 */

/* Parts from the largest unit down, each once: 1h30m, 30s, 1.5s, 250ms; a bare 0. */
int value_duration(struct span text, usec_t *ret);

/* A whole number of B, KiB, MiB or GiB, or of bytes without a unit. */
int value_size(struct span text, size_t *ret);

/* 10/s, 600/min, 5000/h to requests per second; "none" gives 0, a rate of nothing is -EINVAL. */
int value_rate(struct span text, double *ret);

int value_share(struct span text, double *ret); /* 20% gives 0.2 */

/* "192.0.2.1:8080", "[::1]:8080" or "unix:/path". */
int value_address(struct span text, struct sockaddr_storage *ret);

/* A word for logs and metrics: from 1 to 64 letters, digits, dots, dashes and underscores. */
bool value_is_name(const char *text);

/* The shortest text that reads back to the same. */
#define VALUE_TEXT_MAX 64
void value_number_text(double number, char ret[VALUE_TEXT_MAX]);
void value_duration_text(usec_t duration, char ret[VALUE_TEXT_MAX]);
void value_size_text(size_t size, char ret[VALUE_TEXT_MAX]);
void value_rate_text(double rate, char ret[VALUE_TEXT_MAX]);
void value_share_text(double share, char ret[VALUE_TEXT_MAX]);

#endif
