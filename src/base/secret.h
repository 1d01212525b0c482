/* base/secret.h - comparing secrets so that the time it takes tells nothing of where they differ.
 */
#ifndef WEIR_BASE_SECRET_H
#define WEIR_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/* Are they the same? It takes as long as `given` is, whatever `secret` is. */
static inline bool secret_equal(struct span secret, struct span given)
{
        /* volatile: or the compiler might stop at the first difference after all */
        volatile unsigned char differs = secret.len != given.len;
        for (size_t i = 0; i < given.len; i++) {
                char c = secret.len > 0 ? secret.ptr[i % secret.len] : '\0';
                differs |= (unsigned char)(c ^ given.ptr[i]);
        }
        return differs == 0;
}

#endif
