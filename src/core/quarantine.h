/* core/quarantine.h - which endpoints of a pool a host has blocked, and until when it avoids them.
 */
#ifndef WEIR_CORE_QUARANTINE_H
#define WEIR_CORE_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/span.h"
#include "base/usec.h"

/* Marks kept at most, of all hosts together: one for each endpoint and host that has blocked one.
 */
#define QUARANTINE_MAX_MARKS ((size_t)1 << 20)

/* Blocks in a row of one endpoint by one host. They are forgotten at `until`, all of them. */
struct quarantine_mark {
        usec_t until;
        unsigned blocks;
        bool on; /* there were enough of them: the host avoids the endpoint until then */
};

struct quarantine_host {
        UT_hash_handle hh; /* by name */
        struct quarantine *of;
        struct list by_block; /* among those with marks, the one that blocked longest ago first */
        size_t tickets;       /* that it is kept for */
        struct quarantine_mark *marks; /* by the id of the endpoint; NULL: there are none */
        size_t room;
        usec_t last; /* no mark says anything from then on */
        char name[];
};

struct quarantine {
        struct quarantine_host *hosts;
        struct list by_block;
        size_t marks; /* room for, in all */
};

void quarantine_init(struct quarantine *q);
void quarantine_done(struct quarantine *q); /* no ticket may be for any host of it */

/* The host of that name, a new one where there is none. It stays until quarantine_leave has been
 * called as often. */
struct quarantine_host *quarantine_enter(struct quarantine *q, struct span name);
void quarantine_leave(struct quarantine_host *h, usec_t now);

/* One more block in a row. Returns whether that is the one with which the host begins to avoid the
 * endpoint. */
bool quarantine_blocked(struct quarantine_host *h, size_t id, unsigned after, usec_t time,
                        usec_t now);

/* An answer that is no block ends the row. What is avoided already stays so: that answer was to a
 * request sent before. */
void quarantine_accepted(struct quarantine_host *h, size_t id, usec_t now);

/* Avoids it until then, whatever was there before: a memory. */
void quarantine_set(struct quarantine_host *h, size_t id, usec_t until);

/* The endpoint of that id is no more. */
void quarantine_forget(struct quarantine *q, size_t id);

/* Does the host avoid any endpoint, as far as can be told at once? */
static inline bool quarantine_is_on(const struct quarantine_host *h, usec_t now)
{
        return h && h->marks && h->last > now;
}

/* Until when the host avoids that endpoint; `now` or earlier: it does not. */
static inline usec_t quarantine_until(const struct quarantine_host *h, size_t id)
{
        return h && id < h->room && h->marks[id].on ? h->marks[id].until : 0;
}

#endif
