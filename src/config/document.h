/* config/document.h - a YAML file as a tree that knows the line and column of all that is in it. */
#ifndef WEIR_CONFIG_DOCUMENT_H
#define WEIR_CONFIG_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "config/config_faults.h"

#define DOCUMENT_MAX_BYTES ((size_t)1 << 20)
#define DOCUMENT_MAX_DEPTH 16
#define DOCUMENT_MAX_NODES 65536 /* values and keys, so that a file cannot ask for much memory */

enum node_kind {
        NODE_SCALAR,
        NODE_LIST,
        NODE_MAP,
        NODE_BAD, /* what stands here is a fault already and is not looked at again */
};

struct node {
        enum node_kind kind;
        unsigned line, column; /* of the value, from 1 */
        char *text;            /* of a scalar; owned */
        bool quoted;           /* a scalar written with quotes or as a block */
        char *key;             /* of an entry of a map, else NULL; owned */
        unsigned key_line, key_column;
        struct node **children; /* of a list or map, in the order of the file; owned */
        size_t count;
};

/*
 * Reads a file, or a text, of at most DOCUMENT_MAX_BYTES.
 *
 * ret_root  filled on success; NULL for a file without content
 * faults    whatever is wrong is added: syntax, a key given twice, anchors, aliases, tags, more
 * than one document, a limit above exceeded
 *
 * Returns 0 also where there are faults, if there is a tree to look at; -EINVAL where there is
 * none; document_read also -errno of opening or reading, with a fault that says so.
 */
int document_read(const char *path, struct node **ret_root, struct config_faults *faults);
int document_parse(struct span text, struct node **ret_root, struct config_faults *faults);

void node_free(struct node *n); /* with all below; NULL is fine */

/* A value left out: "key:", "~" or "null". */
bool node_is_null(const struct node *n);

/* The entry of a map, the last one if it is there twice; NULL when there is none or `n` is no map
 * (or NULL). */
struct node *node_entry(const struct node *n, const char *key);

/* The entry at the end of a dotted path ("limit.floor"); NULL when there is none. */
struct node *node_at(const struct node *n, const char *path);

/* Enough for node_describe. */
#define NODE_DESCRIPTION_MAX 80

/* For "expected …, got …": the text in quotes, shortened, without control characters; or "a list",
 * "keys", "nothing". */
void node_describe(const struct node *n, char ret[NODE_DESCRIPTION_MAX]);

#endif
