/* config/nearest.h - which of some words was meant by a misspelt one. */
#ifndef WEIR_CONFIG_NEAREST_H
#define WEIR_CONFIG_NEAREST_H

#include <stddef.h>

#include "base/span.h"

struct nearest {
        struct span word;
        struct span best; /* the nearest as yet; empty: none is near. Borrowed */
        size_t least;
};

/* Words of more than 64 letters are near to none. */
void nearest_init(struct nearest *n, struct span word);

/* Compares one candidate; of several equally near the first stays. */
void nearest_consider(struct nearest *n, struct span candidate);

#endif
