#include "core/sessions.h"

#include <string.h>

#include "core/egress_pool.h"

void sessions_init(struct sessions *s)
{
        s->table = NULL;
        list_init(&s->by_use);
}

/* Takes it out of table and list as well, which clang's analyzer does not see. */
static void forget(struct sessions *s, struct session *one)
{
        session_bind(one, NULL);
        list_remove(&one->by_use);
        HASH_DEL(s->table, one); /* NOLINT(clang-analyzer-core.NullDereference) */
        free(one);
}

void sessions_done(struct sessions *s)
{
        while (s->table)
                forget(s, s->table); /* NOLINT(clang-analyzer-unix.Malloc): as above */
}

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
static struct session *find(const struct sessions *s, struct span key)
{
        struct session *one;
        HASH_FIND(hh, s->table, key.ptr, key.len, one);
        return one;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static struct session *add(struct sessions *s, struct span key)
{
        struct session *one = xmalloc(sizeof *one + key.len + 1);
        *one = (struct session){.of = s};
        list_init(&one->by_use);
        list_init(&one->held);
        memcpy(one->key, key.ptr, key.len);
        one->key[key.len] = '\0';
        HASH_ADD_KEYPTR(hh, s->table, one->key, key.len, one);
        return one;
}

static bool is_over(const struct session *one, usec_t ttl, usec_t now)
{
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): see forget */
        return usec_add(one->used, ttl) <= now;
}

/* Those that are over, and as many more as there are too many. */
static void make_room(struct sessions *s, usec_t ttl, usec_t now)
{
        while (!list_empty(&s->by_use)) {
                struct session *oldest = LIST_ENTRY_OF(s->by_use.next, struct session, by_use);
                if (!is_over(oldest, ttl, now) && HASH_COUNT(s->table) < SESSIONS_MAX)
                        return;
                forget(s, oldest);
        }
}

struct session *sessions_enter(struct sessions *s, struct span key, usec_t ttl, usec_t now)
{
        struct session *one = find(s, key);
        if (one && one->tickets == 0 && is_over(one, ttl, now)) {
                forget(s, one);
                one = NULL;
        }
        if (!one) {
                make_room(s, ttl, now);
                one = add(s, key);
        }
        list_remove(&one->by_use);
        one->tickets++;
        one->used = now;
        return one;
}

void session_leave(struct session *one, usec_t now)
{
        one->used = now;
        if (--one->tickets > 0)
                return;
        if (!one->pinned && (one->endpoint || one->lost))
                list_append(&one->of->by_use, &one->by_use);
        else
                forget(one->of, one);
}

void session_bind(struct session *one, struct endpoint *e)
{
        if (one->endpoint)
                one->endpoint->sessions--;
        if (e)
                e->sessions++;
        one->endpoint = e;
        one->lost = false;
}

void session_lose(struct session *one)
{
        session_bind(one, NULL);
        one->lost = true;
}

void sessions_lose_endpoint(struct sessions *s, const struct endpoint *e)
{
        for (struct session *one = s->table; one; one = one->hh.next)
                if (one->endpoint == e)
                        session_lose(one);
}
