#include "core/throttle.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/xalloc.h"

#define DEBT_MOST 4 /* times the burst */

/* All that one failed costs is time: `clear` moves on by `refill` with each failure, and lies no
 * more than (burst - 1) * refill in the future while one is free. */
struct entry {
        UT_hash_handle hh;
        struct list used; /* the one that failed longest ago first */
        usec_t clear;     /* from then on all of the burst is free */
        uint8_t key[THROTTLE_KEY_SIZE];
};

struct throttle {
        struct entry *entries; /* hash */
        struct list used;
        size_t max;
        unsigned burst;
        usec_t refill;
};

struct throttle *throttle_new(size_t max, unsigned burst, usec_t refill)
{
        struct throttle *t = xcalloc(1, sizeof *t);
        list_init(&t->used);
        t->max = max;
        t->burst = burst;
        t->refill = refill;
        return t;
}

void throttle_free(struct throttle *t)
{
        if (!t)
                return;
        HASH_CLEAR(hh, t->entries);
        list_foreach_safe (it, &t->used)
                free(LIST_ENTRY_OF(it, struct entry, used));
        free(t);
}

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
static struct entry *find(const struct throttle *t, const uint8_t key[THROTTLE_KEY_SIZE])
{
        struct entry *e;
        HASH_FIND(hh, t->entries, key, THROTTLE_KEY_SIZE, e);
        return e;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct entry *add(struct throttle *t, const uint8_t key[THROTTLE_KEY_SIZE])
{
        struct entry *e = xcalloc(1, sizeof *e);
        if (HASH_COUNT(t->entries) >= t->max) {
                struct entry *oldest = LIST_ENTRY_OF(t->used.next, struct entry, used);
                HASH_DEL(t->entries, oldest);
                list_remove(&oldest->used);
                free(oldest);
        }
        memcpy(e->key, key, THROTTLE_KEY_SIZE);
        list_init(&e->used);
        HASH_ADD(hh, t->entries, key, THROTTLE_KEY_SIZE, e);
        return e;
}

void throttle_fail(struct throttle *t, const uint8_t key[THROTTLE_KEY_SIZE], usec_t now)
{
        struct entry *e = find(t, key);
        if (!e)
                e = add(t, key);
        e->clear = usec_min(usec_max(e->clear, now) + t->refill,
                            now + (usec_t)DEBT_MOST * t->burst * t->refill);
        list_remove(&e->used);
        list_append(&t->used, &e->used);
}

usec_t throttle_wait(const struct throttle *t, const uint8_t key[THROTTLE_KEY_SIZE], usec_t now)
{
        const struct entry *e = find(t, key);
        return e ? usec_sub(e->clear, now + (t->burst - 1) * t->refill) : 0;
}
