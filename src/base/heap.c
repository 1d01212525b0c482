#include "base/heap.h"

#include <stdlib.h>

#include "base/xalloc.h"

void heap_init(struct heap *h)
{
        *h = (struct heap){0};
}

void heap_done(struct heap *h)
{
        free(h->nodes);
        heap_init(h);
}

static void put(struct heap *h, size_t i, struct heap_node *n)
{
        h->nodes[i] = n;
        n->place = i + 1;
}

static void sift_up(struct heap *h, size_t i, struct heap_node *n)
{
        while (i > 0 && h->nodes[(i - 1) / 2]->at > n->at) {
                put(h, i, h->nodes[(i - 1) / 2]);
                i = (i - 1) / 2;
        }
        put(h, i, n);
}

static void sift_down(struct heap *h, size_t i, struct heap_node *n)
{
        for (;;) {
                size_t child = 2 * i + 1;
                if (child >= h->count)
                        break;
                if (child + 1 < h->count && h->nodes[child + 1]->at < h->nodes[child]->at)
                        child++;
                if (h->nodes[child]->at >= n->at)
                        break;
                put(h, i, h->nodes[child]);
                i = child;
        }
        put(h, i, n);
}

static void settle(struct heap *h, size_t i, struct heap_node *n)
{
        if (i > 0 && h->nodes[(i - 1) / 2]->at > n->at)
                sift_up(h, i, n);
        else
                sift_down(h, i, n);
}

void heap_set(struct heap *h, struct heap_node *n, usec_t at)
{
        if (at == USEC_MAX) {
                heap_remove(h, n);
                return;
        }
        n->at = at;
        if (n->place) {
                settle(h, n->place - 1, n);
                return;
        }
        if (h->count == h->room) {
                h->room = h->room ? 2 * h->room : 16;
                h->nodes = xrealloc(h->nodes, h->room * sizeof *h->nodes);
        }
        sift_up(h, h->count++, n);
}

void heap_remove(struct heap *h, struct heap_node *n)
{
        if (!n->place)
                return;
        size_t i = n->place - 1;
        struct heap_node *last = h->nodes[--h->count];
        n->place = 0;
        if (last != n)
                settle(h, i, last);
}
