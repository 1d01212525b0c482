/* admin/scopes.h - how all scopes stand at a moment, the ones that matter most first. */
#ifndef WEIR_ADMIN_SCOPES_H
#define WEIR_ADMIN_SCOPES_H

#include <stddef.h>

#include "core/governor.h"
#include "runtime/gate.h"

struct scopes {
        struct governor_change *list; /* keys included, owned */
        size_t count;
};

/* First those in which something waits or is in flight, then those used last. */
void scopes_look(struct gate *gate, struct scopes *ret);
void scopes_done(struct scopes *s);

#endif
