/* base/list.h - a doubly linked ring whose links live inside the elements. */
#ifndef WEIR_BASE_LIST_H
#define WEIR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A head or a link. A link that is in no list points to itself. */
struct list {
        struct list *next, *prev;
};

#define LIST_ENTRY_OF(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

#define list_foreach(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)

/* The same where the body may remove `it`. */
#define list_foreach_safe(it, head)                                               \
        for (struct list *it = (head)->next, *it##_next = it->next; it != (head); \
             it = it##_next, it##_next = it->next)

static inline void list_init(struct list *l)
{
        l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
        return l->next == l;
}

/* Puts `link` before `at`: at the tail when `at` is the head. */
static inline void list_insert_before(struct list *at, struct list *link)
{
        link->prev = at->prev;
        link->next = at;
        at->prev->next = link;
        at->prev = link;
}

static inline void list_append(struct list *head, struct list *link)
{
        list_insert_before(head, link);
}

/* Takes `link` out of its list; harmless when it is in none. */
static inline void list_remove(struct list *link)
{
        link->prev->next = link->next;
        link->next->prev = link->prev;
        list_init(link);
}

/* Moves all elements of `from` to the tail of `to`. */
static inline void list_splice(struct list *to, struct list *from)
{
        if (list_empty(from))
                return;
        from->next->prev = to->prev;
        to->prev->next = from->next;
        from->prev->next = to;
        to->prev = from->prev;
        list_init(from);
}

#endif
