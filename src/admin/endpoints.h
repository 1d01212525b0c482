/* admin/endpoints.h - how the endpoints of all pools stand at a moment. */
#ifndef WEIR_ADMIN_ENDPOINTS_H
#define WEIR_ADMIN_ENDPOINTS_H

#include <stddef.h>

#include "core/governor.h"
#include "runtime/gate.h"

struct endpoints_row {
        struct endpoint_view view; /* its names owned */
        size_t quarantines;        /* hosts that avoid it */
        char *labels;              /* as Prometheus writes them */
};

struct endpoints {
        struct endpoints_row *list; /* by pool and name */
        size_t count;
};

void endpoints_look(struct gate *gate, struct endpoints *ret);
void endpoints_done(struct endpoints *e);

/* The row of that endpoint, or NULL. */
struct endpoints_row *endpoints_find(const struct endpoints *e, const char *pool, const char *name);

#endif
