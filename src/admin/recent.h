/* admin/recent.h - the last requests that have ended. */
#ifndef WEIR_ADMIN_RECENT_H
#define WEIR_ADMIN_RECENT_H

#include <stddef.h>

#include "runtime/reports.h"

#define RECENT_MAX 200

struct recent {
        struct report *list[RECENT_MAX];
        size_t count; /* ever added; the newest is list[(count - 1) % RECENT_MAX] */
};

void recent_add(struct recent *r, struct report *report); /* takes it over */
void recent_done(struct recent *r);

/* The i-th newest, from 0 on, as they were added; NULL: there are no more. Borrowed. */
const struct report *recent_get(const struct recent *r, size_t i);

#endif
