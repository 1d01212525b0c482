/* base/fields.h - the header fields of one message, in order, with their spelling and duplicates.
 */
#ifndef WEIR_BASE_FIELDS_H
#define WEIR_BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct field {
        struct span name, value;
};

struct fields {
        char *text; /* all names and values, one after the other; owned */
        size_t text_len, text_room;
        struct fields_place {
                uint32_t name, value, name_len, value_len;
        } * list; /* owned */
        size_t count, room;
};

void fields_init(struct fields *f); /* all zeroes do as well */
void fields_done(struct fields *f);
void fields_clear(struct fields *f); /* empties it, keeps its memory */

void fields_add(struct fields *f, struct span name, struct span value); /* copies */

/* Cuts the value of the i-th field off behind its first `len` bytes; it has as many. */
void fields_cut(struct fields *f, size_t i, size_t len);

/* The i-th field; its spans stay valid until the next fields_add, _clear or _done. */
struct field fields_at(const struct fields *f, size_t i);

/* The first field of that name (any case) from index `from` on; false when there is none.
 * ret_index may be NULL. */
bool fields_find(const struct fields *f, size_t from, struct span name, struct span *ret_value,
                 size_t *ret_index);

#endif
