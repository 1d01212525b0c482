/* The lanes that there are: a bounded number, of which the idle ones go first. */
#include "core/governor_state.h"

/* Limiters of endpoints that are kept, for each lane that is. */
#define LIMITERS_EACH 2

void governor_forget(struct governor *g, struct lane *l)
{
        struct egress_pool *pool = l->egress ? l->egress->pool : NULL;
        if (g->export == l)
                g->export = l->hh.next;
        if (g->look == l)
                g->look = l->hh.next;
        series_done(&l->series, &g->series);
        for (size_t i = 0; pool && i < l->egress->room; i++)
                if (l->egress->slots[i])
                        series_done(&l->egress->slots[i]->series, &g->series);
        if (pool && l->egress->by_endpoint)
                g->limiters -= l->egress->count;
        list_remove(&l->idle);
        list_remove(&l->touched);
        heap_remove(&g->due, &l->due);
        HASH_DEL(g->lanes, l);
        lane_free(l);
        g->pools_rest |= pool && pool->gone;
}

/* Afterwards there are at most max_lanes, or none is idle. */
void governor_settle(struct governor *g, struct lane *l)
{
        usec_t due = lane_due(l);
        if (!l->due.place || l->due.at != due)
                heap_set(&g->due, &l->due, due);
        if (l->tickets == 0) {
                lane_rest(l);
                list_remove(&l->idle);
                list_append(&g->idle, &l->idle);
        }
        while ((HASH_COUNT(g->lanes) > g->config.max_lanes ||
                g->limiters > LIMITERS_EACH * g->config.max_lanes) &&
               !list_empty(&g->idle))
                governor_forget(g, LIST_ENTRY_OF(g->idle.next, struct lane, idle));
}

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
struct lane *governor_find(const struct governor *g, struct span key)
{
        struct lane *l;
        HASH_FIND(hh, g->lanes, key.ptr, key.len, l);
        return l;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
struct lane *governor_add(struct governor *g, struct lane *l, struct span key)
{
        HASH_ADD_KEYPTR(hh, g->lanes, l->key, key.len, l);
        return l;
}
