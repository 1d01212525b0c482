#include "admin/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct collecting {
        struct scopes scopes;
        size_t room;
};

static void on_scope(void *arg, const struct governor_change *view)
{
        struct collecting *c = arg;
        struct scopes *s = &c->scopes;
        if (s->count == c->room) {
                c->room = c->room ? 2 * c->room : 64;
                s->list = xrealloc(s->list, c->room * sizeof *s->list);
        }
        s->list[s->count] = *view;
        s->list[s->count++].key = xstrdup(view->key);
}

static bool is_busy(const struct governor_change *s)
{
        return s->view.in_flight > 0 || s->queued > 0 || s->sleeping > 0;
}

static int by_weight(const void *a, const void *b)
{
        const struct governor_change *x = a, *y = b;
        if (is_busy(x) != is_busy(y))
                return is_busy(x) ? -1 : 1;
        if (x->view.used != y->view.used)
                return x->view.used > y->view.used ? -1 : 1;
        return strcmp(x->key, y->key);
}

static int by_key(const void *a, const void *b)
{
        return strcmp(((const struct governor_change *)a)->key,
                      ((const struct governor_change *)b)->key);
}

/* One that is forgotten and comes back while others are looked at is seen twice. */
static void drop_twins(struct scopes *s)
{
        size_t kept = 0;
        qsort(s->list, s->count, sizeof *s->list, by_key);
        for (size_t i = 0; i < s->count; i++)
                if (kept > 0 && strcmp(s->list[kept - 1].key, s->list[i].key) == 0)
                        free((char *)s->list[i].key);
                else
                        s->list[kept++] = s->list[i];
        s->count = kept;
}

void scopes_look(struct gate *gate, struct scopes *ret)
{
        struct collecting c = {.room = 0};
        gate_look(gate, on_scope, &c);
        if (c.scopes.count > 0) {
                drop_twins(&c.scopes);
                qsort(c.scopes.list, c.scopes.count, sizeof *c.scopes.list, by_weight);
        }
        *ret = c.scopes;
}

void scopes_done(struct scopes *s)
{
        for (size_t i = 0; i < s->count; i++)
                free((char *)s->list[i].key);
        free(s->list);
}
