#include "admin/endpoints.h"

#include <stdlib.h>
#include <string.h>

#include "admin/text_format.h"
#include "base/xalloc.h"

static int compare(const struct endpoint_view *a, const struct endpoint_view *b)
{
        int order = strcmp(a->pool, b->pool);
        return order ? order : strcmp(a->name, b->name);
}

static int by_name(const void *a, const void *b)
{
        const struct endpoints_row *x = a, *y = b;
        return compare(&x->view, &y->view);
}

static void on_endpoint(void *arg, const struct endpoint_view *view)
{
        struct endpoints *e = arg;
        if ((e->count & (e->count - 1)) == 0) /* 0, 1, 2, 4, 8 …: full */
                e->list = xrealloc(e->list, (e->count ? 2 * e->count : 1) * sizeof *e->list);
        struct endpoints_row *row = &e->list[e->count++];
        *row = (struct endpoints_row){.view = *view};
        row->view.pool = xstrdup(view->pool);
        row->view.name = xstrdup(view->name);
        char *pool = text_format_label("pool", view->pool);
        char *name = text_format_label("endpoint", view->name);
        row->labels = xasprintf("%s,%s", pool, name);
        free(pool);
        free(name);
}

static void on_quarantine(void *arg, const struct quarantine_view *view)
{
        struct endpoints_row *row = endpoints_find(arg, view->pool, view->endpoint);
        if (row)
                row->quarantines++;
}

void endpoints_look(struct gate *gate, struct endpoints *ret)
{
        *ret = (struct endpoints){.list = NULL};
        gate_look_endpoints(gate, on_endpoint, ret);
        if (ret->count > 0)
                qsort(ret->list, ret->count, sizeof *ret->list, by_name);
        gate_look_quarantines(gate, on_quarantine, ret);
}

struct endpoints_row *endpoints_find(const struct endpoints *e, const char *pool, const char *name)
{
        struct endpoints_row wanted = {.view = {.pool = pool, .name = name}};
        return e->count ? bsearch(&wanted, e->list, e->count, sizeof *e->list, by_name) : NULL;
}

void endpoints_done(struct endpoints *e)
{
        for (size_t i = 0; i < e->count; i++) {
                free((char *)e->list[i].view.pool);
                free((char *)e->list[i].view.name);
                free(e->list[i].labels);
        }
        free(e->list);
        *e = (struct endpoints){.list = NULL};
}
