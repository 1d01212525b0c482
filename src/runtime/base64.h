/* runtime/base64.h - decodes base64 (RFC 4648, 4). */
#ifndef WEIR_RUNTIME_BASE64_H
#define WEIR_RUNTIME_BASE64_H

#include <stdbool.h>

#include "base/span.h"

/* The bytes that `text` stands for, with a NUL behind them; the caller frees *ret.ptr. False, and
 * *ret untouched, where it is not base64 or not whole. */
bool base64_decode(struct span text, struct span *ret);

#endif
