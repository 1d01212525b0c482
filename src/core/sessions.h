/* core/sessions.h - which endpoint each session goes by, and who of it goes now where its requests
 * go in order. */
#ifndef WEIR_CORE_SESSIONS_H
#define WEIR_CORE_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/span.h"
#include "base/usec.h"

/* Beyond so many, those forgotten first are the ones used longest ago that no ticket is of. */
#define SESSIONS_MAX ((size_t)1 << 16)

struct endpoint;
struct ticket;

struct session {
        UT_hash_handle hh; /* by key */
        struct sessions *of;
        struct list by_use; /* among those that no ticket is of, the one used longest ago first */
        struct endpoint *endpoint; /* NULL: none as yet, or it has lost the one that it had */
        bool pinned; /* to the one that it was asked for: it is forgotten with its last ticket */
        bool lost;   /* the next endpoint is another than its requests had before */
        usec_t used;
        size_t tickets;       /* that it is kept for */
        struct ticket *owner; /* in order: the one that is under way; NULL: none */
        struct list held; /* in order: those that have to wait for the owner to end, by arrival */
        char key[];
};

struct sessions {
        struct session *table;
        struct list by_use;
};

void sessions_init(struct sessions *s);
void sessions_done(struct sessions *s); /* no ticket may be of any */

/* The session of that key, a new one where there is none. It stays until session_leave has been
 * called as often. An endpoint that it had is forgotten `ttl` after its last use. */
struct session *sessions_enter(struct sessions *s, struct span key, usec_t ttl, usec_t now);

/* Without an endpoint it is forgotten with its last ticket. */
void session_leave(struct session *one, usec_t now);

/* Gives it that endpoint instead of the one that it had; NULL: none. */
void session_bind(struct session *one, struct endpoint *e);

/* It has none any more, and the next that it gets is another one. */
void session_lose(struct session *one);

/* Every session of that endpoint loses it. */
void sessions_lose_endpoint(struct sessions *s, const struct endpoint *e);

#endif
