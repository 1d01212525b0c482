/* config/config_state.h - the inside of a configuration, for the files that make it up. */
#ifndef WEIR_CONFIG_CONFIG_STATE_H
#define WEIR_CONFIG_CONFIG_STATE_H

#include <stdatomic.h>

#include "config/config.h"
#include "config/document.h"
#include "config/pool.h"

struct config_private {
        atomic_uint references;
        struct pool pool; /* of all texts and lists */
};

/*
 * Sets a new configuration to the built-in values, and then to what the keys of a file say
 * (config_read.c). What is wrong is added to *faults.
 *
 * root    the file's tree; NULL: it is empty
 * listen  NULL, or what takes the place of that key
 */
void config_read(struct config *c, const struct node *root, const struct config_given *given,
                 const char *const *listen, struct config_faults *faults);

#endif
