#include "core/series.h"

#include <assert.h>
#include <stdlib.h>

#include "base/xalloc.h"

struct entry {
        struct list link_all, link_own;
        struct series *owner;
        struct series_record record;
};

static struct entry *oldest_own(const struct series *s)
{
        return LIST_ENTRY_OF(s->records.next, struct entry, link_own);
}

static struct entry *oldest_of_all(const struct series_pool *p)
{
        return LIST_ENTRY_OF(p->records.next, struct entry, link_all);
}

/* Takes the entry out of both lists; it is the caller's then. */
static struct entry *take(struct series_pool *p, struct entry *e)
{
        list_remove(&e->link_all);
        list_remove(&e->link_own);
        e->owner->count--;
        p->count--;
        return e;
}

void series_pool_init(struct series_pool *p, size_t max, size_t max_each)
{
        *p = (struct series_pool){.max = max, .max_each = max_each};
        list_init(&p->records);
}

void series_pool_done(struct series_pool *p)
{
        assert(p->count == 0);
        (void)p;
}

void series_init(struct series *s)
{
        s->count = 0;
        list_init(&s->records);
}

void series_done(struct series *s, struct series_pool *p)
{
        list_foreach_safe (it, &s->records)
                free(take(p, LIST_ENTRY_OF(it, struct entry, link_own)));
}

void series_add(struct series *s, struct series_pool *p, const struct series_record *record)
{
        struct entry *e = s->count > 0 && s->count >= p->max_each ? take(p, oldest_own(s))
                          : p->count > 0 && p->count >= p->max    ? take(p, oldest_of_all(p))
                                                                  : xmalloc(sizeof *e);
        *e = (struct entry){.owner = s, .record = *record};
        list_append(&p->records, &e->link_all);
        list_append(&s->records, &e->link_own);
        s->count++;
        p->count++;
}

void series_read(const struct series *s, usec_t since,
                 void (*each)(void *arg, const struct series_record *record), void *arg)
{
        list_foreach (it, &s->records) {
                const struct entry *e = LIST_ENTRY_OF(it, struct entry, link_own);
                if (e->record.at > since)
                        each(arg, &e->record);
        }
}
