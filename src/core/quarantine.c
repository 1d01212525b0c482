#include "core/quarantine.h"

#include <string.h>

void quarantine_init(struct quarantine *q)
{
        *q = (struct quarantine){.hosts = NULL};
        list_init(&q->by_block);
}

static void forget_marks(struct quarantine_host *h)
{
        list_remove(&h->by_block);
        free(h->marks);
        h->marks = NULL;
        h->of->marks -= h->room;
        h->room = 0;
        h->last = 0;
}

/* Takes it out of table and list as well, which clang's analyzer does not see. */
static void forget(struct quarantine *q, struct quarantine_host *h)
{
        forget_marks(h);
        HASH_DEL(q->hosts, h);
        free(h);
}

void quarantine_done(struct quarantine *q)
{
        while (q->hosts)
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): see forget */
                forget(q, q->hosts);
}

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
static struct quarantine_host *find(const struct quarantine *q, struct span name)
{
        struct quarantine_host *h;
        HASH_FIND(hh, q->hosts, name.ptr, name.len, h);
        return h;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct quarantine_host *add(struct quarantine *q, struct span name)
{
        struct quarantine_host *h = xmalloc(sizeof *h + name.len + 1);
        *h = (struct quarantine_host){.of = q};
        list_init(&h->by_block);
        if (name.len > 0)
                memcpy(h->name, name.ptr, name.len);
        h->name[name.len] = '\0';
        HASH_ADD_KEYPTR(hh, q->hosts, h->name, name.len, h);
        return h;
}

struct quarantine_host *quarantine_enter(struct quarantine *q, struct span name)
{
        struct quarantine_host *h = find(q, name);
        if (!h)
                h = add(q, name);
        h->tickets++;
        return h;
}

void quarantine_leave(struct quarantine_host *h, usec_t now)
{
        h->tickets--;
        if (h->marks && h->last <= now)
                forget_marks(h);
        if (h->tickets == 0 && !h->marks)
                forget(h->of, h);
}

static void make_room(struct quarantine_host *h, size_t id)
{
        size_t room = h->room ? h->room : 8;
        while (room <= id)
                room *= 2;
        if (room == h->room)
                return;
        h->marks = xrealloc(h->marks, room * sizeof *h->marks);
        memset(h->marks + h->room, 0, (room - h->room) * sizeof *h->marks);
        h->of->marks += room - h->room;
        h->room = room;
}

/* The mark of that endpoint. Others' may be forgotten for it. */
static struct quarantine_mark *mark_for(struct quarantine_host *h, size_t id)
{
        struct quarantine *q = h->of;
        make_room(h, id);
        list_remove(&h->by_block);
        list_append(&q->by_block, &h->by_block);
        while (q->marks > QUARANTINE_MAX_MARKS && q->by_block.next != &h->by_block) {
                struct quarantine_host *oldest =
                    LIST_ENTRY_OF(q->by_block.next, struct quarantine_host, by_block);
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): see forget */
                if (oldest->tickets > 0)
                        forget_marks(oldest);
                else
                        forget(q, oldest);
        }
        return &h->marks[id];
}

bool quarantine_blocked(struct quarantine_host *h, size_t id, unsigned after, usec_t time,
                        usec_t now)
{
        struct quarantine_mark *m = mark_for(h, id);
        if (m->until <= now)
                *m = (struct quarantine_mark){0};
        bool was_on = m->on;
        m->blocks++;
        m->until = usec_add(now, time);
        m->on = m->blocks >= after;
        h->last = usec_max(h->last, m->until);
        return m->on && !was_on;
}

void quarantine_accepted(struct quarantine_host *h, size_t id, usec_t now)
{
        if (h && id < h->room && quarantine_until(h, id) <= now)
                h->marks[id] = (struct quarantine_mark){0};
}

void quarantine_set(struct quarantine_host *h, size_t id, usec_t until)
{
        *mark_for(h, id) = (struct quarantine_mark){.until = until, .blocks = 1, .on = true};
        h->last = usec_max(h->last, until);
}

void quarantine_forget(struct quarantine *q, size_t id)
{
        for (struct quarantine_host *h = q->hosts; h; h = h->hh.next)
                if (id < h->room)
                        h->marks[id] = (struct quarantine_mark){0};
}
