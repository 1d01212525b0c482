#include "admin/tallies.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/xalloc.h"

/* The last minute, in steps of five seconds. */
#define STEP (5 * USEC_PER_SEC)
#define STEPS 12

/* Durations are kept for this and the former half of the window. */
#define HALF (300 * USEC_PER_SEC)

struct minute {
        uint64_t newest; /* step */
        uint32_t counts[STEPS];
};

struct window {
        uint64_t newest; /* half; it is in halves[newest % 2] */
        uint32_t halves[2][HISTOGRAM_BUCKETS];
};

struct entry {
        UT_hash_handle hh;
        struct list used; /* those longest without a request first */
        struct tally tally;
        struct minute successes;
        struct window durations;
        char scope[];
};

struct tallies {
        struct entry *entries; /* hash */
        struct list used;
        size_t max;
};

struct tallies *tallies_new(size_t max)
{
        struct tallies *t = xcalloc(1, sizeof *t);
        list_init(&t->used);
        t->max = max;
        return t;
}

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
static void forget(struct tallies *t, struct entry *e)
{
        HASH_DEL(t->entries, e);
        list_remove(&e->used);
        free(e);
}

void tallies_free(struct tallies *t)
{
        if (!t)
                return;
        HASH_CLEAR(hh, t->entries);
        list_foreach_safe (it, &t->used)
                free(LIST_ENTRY_OF(it, struct entry, used));
        free(t);
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct entry *find(const struct tallies *t, const char *scope)
{
        struct entry *e;
        HASH_FIND_STR(t->entries, scope, e);
        return e;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct entry *find_or_make(struct tallies *t, const char *scope)
{
        struct entry *e = find(t, scope);
        size_t len = strlen(scope);
        if (e) {
                list_remove(&e->used);
        } else {
                if (HASH_COUNT(t->entries) >= t->max)
                        forget(t, LIST_ENTRY_OF(t->used.next, struct entry, used));
                e = xcalloc(1, sizeof *e + len + 1);
                memcpy(e->scope, scope, len);
                HASH_ADD_STR(t->entries, scope, e);
        }
        list_append(&t->used, &e->used);
        return e;
}

/* ---- windows that move on ---- */

static void minute_advance(struct minute *m, usec_t at)
{
        uint64_t step = at / STEP;
        for (unsigned i = 0; i < STEPS && m->newest < step; i++)
                m->counts[++m->newest % STEPS] = 0;
        if (m->newest < step)
                m->newest = step;
}

static void minute_add(struct minute *m, usec_t at)
{
        minute_advance(m, at);
        if (at / STEP + STEPS > m->newest)
                m->counts[at / STEP % STEPS]++;
}

static uint64_t minute_total(struct minute *m, usec_t now)
{
        uint64_t sum = 0;
        minute_advance(m, now);
        for (unsigned i = 0; i < STEPS; i++)
                sum += m->counts[i];
        return sum;
}

static void window_advance(struct window *w, usec_t at)
{
        uint64_t half = at / HALF;
        for (unsigned i = 0; i < 2 && w->newest < half; i++) {
                w->newest++;
                memset(w->halves[w->newest % 2], 0, sizeof w->halves[0]);
        }
        if (w->newest < half) { /* both are empty: which is which makes no difference */
                w->newest = half;
        }
}

static void window_add(struct window *w, usec_t at, usec_t value)
{
        window_advance(w, at);
        if (at / HALF + 2 > w->newest)
                w->halves[at / HALF % 2][histogram_bucket(value)]++;
}

static void window_read(struct window *w, usec_t now, struct histogram *ret)
{
        window_advance(w, now);
        histogram_init(ret);
        for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
                uint64_t n = (uint64_t)w->halves[0][b] + w->halves[1][b];
                if (n == 0)
                        continue;
                /* As close as the buckets tell. */
                if (ret->count == 0)
                        ret->min = histogram_lower(b);
                ret->max = histogram_upper(b);
                ret->buckets[b] = n;
                ret->count += n;
        }
}

/* ---- counting ---- */

static void count_status(struct tally *t, int status)
{
        size_t i = 0;
        while (i < t->status_count && t->statuses[i].status != status)
                i++;
        if (i == TALLY_STATUSES) {
                t->other_statuses++;
                return;
        }
        t->statuses[i].status = status;
        t->statuses[i].count++;
        if (i == t->status_count)
                t->status_count++;
}

void tallies_add(struct tallies *t, const struct report *r)
{
        if (!r->scope || t->max == 0)
                return;
        struct entry *e = find_or_make(t, r->scope);
        struct tally *y = &e->tally;
        bool served = r->outcome == OUTCOME_SERVED;
        y->requests++;
        y->attempts += r->attempts;
        y->bytes_in += r->bytes_in;
        y->bytes_out += r->bytes_out;
        y->refusals += r->refusals;
        y->refusals_absorbed += r->refusals - (r->status == 429 && r->refusals > 0);
        if (r->status && r->status != 429)
                count_status(y, r->status);
        if (served && r->class == ANSWER_SUCCESS) {
                y->successes++;
                minute_add(&e->successes, r->ended);
        }
        if ((served || r->outcome == OUTCOME_GAVE_UP) && !r->relayed)
                window_add(&e->durations, r->ended, r->duration);
}

bool tallies_find(struct tallies *t, const char *scope, usec_t now, struct tally *ret)
{
        struct entry *e = find(t, scope);
        if (!e)
                return false;
        *ret = e->tally;
        ret->last_minute = minute_total(&e->successes, now);
        window_read(&e->durations, now, &ret->durations);
        return true;
}
