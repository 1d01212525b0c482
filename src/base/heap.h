/* base/heap.h - a binary heap of moments: what comes next, and take this one out again. */
#ifndef WEIR_BASE_HEAP_H
#define WEIR_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/usec.h"

/* Lives inside its owner. `at` is changed by heap_set only. */
struct heap_node {
        usec_t at;
        size_t place; /* 1 + index in the heap; 0 when it is in none */
};

struct heap {
        struct heap_node **nodes; /* owned array of borrowed nodes */
        size_t count, room;
};

void heap_init(struct heap *h);
void heap_done(struct heap *h); /* frees the array, not the nodes */

/* Puts `n` at the moment `at`, or moves it there; USEC_MAX takes it out. O(log n). */
void heap_set(struct heap *h, struct heap_node *n, usec_t at);
void heap_remove(struct heap *h, struct heap_node *n); /* harmless when it is not in */

/* The earliest node, or NULL. */
static inline struct heap_node *heap_first(const struct heap *h)
{
        return h->count ? h->nodes[0] : NULL;
}

#endif
