/* runtime/learned.h - the text of learned.json: what limiters have learned, and which endpoints
 * hosts avoid, with moments of the wall clock. */
#ifndef WEIR_RUNTIME_LEARNED_H
#define WEIR_RUNTIME_LEARNED_H

#include <stddef.h>

#include "base/span.h"
#include "base/usec.h"
#include "core/limiter_memory.h"

#define LEARNED_VERSION 1
#define LEARNED_MAX_BYTES ((size_t)16 << 20)
#define LEARNED_MAX_KEY 1024 /* bytes; a scope with a longer key is not written */

struct learned_scope {
        char *key; /* owned */
        struct limiter_memory memory;
};

struct learned_quarantine {
        char *pool, *endpoint, *host; /* owned */
        usec_t left;                  /* until the host avoids it no more, from now_real on */
};

struct learned {
        struct learned_scope *scopes; /* owned; used longest ago first */
        size_t count;
        struct learned_quarantine *quarantines; /* owned; those that are over left out */
        size_t quarantine_count;
        size_t unreadable; /* entries left out */
};

/*
 * The entry of one scope as a line of JSON, without its end. The caller frees it; NULL where the
 * scope cannot be written: its key is too long or no UTF-8.
 *
 * now_real  the wall-clock time to which the spans of `m` belong
 */
char *learned_line(const char *key, const struct limiter_memory *m, usec_t now_real);

/* The same for a quarantine; NULL where a name is too long or no UTF-8. */
char *learned_quarantine_line(const struct learned_quarantine *q, usec_t now_real);

/* What stands before the first scope, between two entries, between the last scope and the first
 * quarantine where there are such, and after the last entry. */
extern const char learned_head[], learned_between[], learned_quarantines[], learned_tail[];

/*
 * Reads a whole file. An entry that makes no sense is left out and counted; what is unknown in an
 * entry is ignored. Nothing but the type and an absurd size is refused in a number: limiter_import
 * bounds the rest.
 *
 * ret      filled on success; free with learned_done
 * ret_why  filled on failure: one plain phrase, freed by the caller
 *
 * Returns 0; -EINVAL: damaged; -ENOTSUP: written by a later version.
 */
int learned_parse(struct span text, usec_t now_real, struct learned *ret, char **ret_why);

void learned_done(struct learned *l);

#endif
