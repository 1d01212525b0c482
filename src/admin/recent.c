#include "admin/recent.h"

void recent_add(struct recent *r, struct report *report)
{
        struct report **place = &r->list[r->count++ % RECENT_MAX];
        report_free(*place);
        *place = report;
}

void recent_done(struct recent *r)
{
        for (size_t i = 0; i < RECENT_MAX; i++)
                report_free(r->list[i]);
        *r = (struct recent){.count = 0};
}

const struct report *recent_get(const struct recent *r, size_t i)
{
        return i < r->count && i < RECENT_MAX ? r->list[(r->count - 1 - i) % RECENT_MAX] : NULL;
}
