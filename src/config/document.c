#include "config/document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <yaml.h>

#include "base/xalloc.h"

struct reader {
        yaml_parser_t parser;
        struct span text;
        struct config_faults *faults;
        size_t nodes;
};

void node_free(struct node *n)
{
        if (!n)
                return;
        for (size_t i = 0; i < n->count; i++)
                node_free(n->children[i]);
        free(n->children);
        free(n->text);
        free(n->key);
        free(n);
}

bool node_is_null(const struct node *n)
{
        return n->kind == NODE_SCALAR && !n->quoted &&
               (strcmp(n->text, "") == 0 || strcmp(n->text, "~") == 0 ||
                strcmp(n->text, "null") == 0);
}

static struct node *entry(const struct node *n, struct span key)
{
        for (size_t i = n && n->kind == NODE_MAP ? n->count : 0; i-- > 0;)
                if (span_equal(span_of(n->children[i]->key), key))
                        return n->children[i];
        return NULL;
}

struct node *node_entry(const struct node *n, const char *key)
{
        return entry(n, span_of(key));
}

struct node *node_at(const struct node *n, const char *path)
{
        struct node *at = NULL;
        struct span rest = span_of(path), key;
        while (span_next(&rest, '.', &key)) {
                at = entry(n, key);
                n = at;
        }
        return at;
}

void node_describe(const struct node *n, char ret[NODE_DESCRIPTION_MAX])
{
        const size_t most = NODE_DESCRIPTION_MAX - sizeof "\"…\"";
        if (n->kind != NODE_SCALAR || node_is_null(n)) {
                snprintf(ret, NODE_DESCRIPTION_MAX, "%s",
                         n->kind == NODE_LIST  ? "a list"
                         : n->kind == NODE_MAP ? "keys"
                                               : "nothing");
                return;
        }
        size_t len = strlen(n->text), cut = len;
        if (len > most)
                for (cut = most; cut > 0 && ((unsigned char)n->text[cut] & 0xc0) == 0x80;)
                        cut--; /* not within a UTF-8 character */
        char *to = ret;
        *to++ = '"';
        for (size_t i = 0; i < cut; i++)
                *to++ = (unsigned char)n->text[i] < ' ' || n->text[i] == 0x7f ? '?' : n->text[i];
        snprintf(to, sizeof "…\"", "%s", cut < len ? "…\"" : "\"");
}

/* Marks count from 0; there is no file of 2^32 lines here. */
static unsigned from_one(size_t n)
{
        return (unsigned)n + 1;
}

static void fault(struct reader *r, yaml_mark_t at, const char *what)
{
        config_faults_add(r->faults, from_one(at.line), from_one(at.column), NULL, "%s", what);
}

/* Where libyaml could not even decode the bytes it gives an offset and no mark. */
static yaml_mark_t mark_of_offset(struct span text, size_t offset)
{
        yaml_mark_t mark = {.index = offset};
        for (size_t i = 0; i < offset && i < text.len; i++) {
                bool newline = text.ptr[i] == '\n';
                mark.line += newline;
                mark.column = newline ? 0 : mark.column + 1;
        }
        return mark;
}

/* The next event, to be deleted; false after the fault that ends it all. */
static bool next_event(struct reader *r, yaml_event_t *ret)
{
        if (yaml_parser_parse(&r->parser, ret))
                return true;
        const yaml_parser_t *p = &r->parser;
        yaml_mark_t at = p->error == YAML_READER_ERROR ? mark_of_offset(r->text, p->problem_offset)
                                                       : p->problem_mark;
        if (p->context)
                config_faults_add(r->faults, from_one(at.line), from_one(at.column), NULL,
                                  "%s %s begun on line %zu", p->problem, p->context,
                                  p->context_mark.line + 1);
        else
                fault(r, at, p->problem ? p->problem : "not readable as YAML");
        return false;
}

static struct node *build(struct reader *r, const yaml_event_t *event, unsigned depth);

static void append(struct node *parent, struct node *child)
{
        if ((parent->count & (parent->count - 1)) == 0) /* 0, 1, 2, 4, 8 …: full */
                parent->children =
                    xrealloc(parent->children,
                             (parent->count ? 2 * parent->count : 1) * sizeof *parent->children);
        parent->children[parent->count++] = child;
}

/* Reads a value that begins with the next event, under `key` (owned; NULL in a list). False at the
 * end of the collection, or after a fault that ends it all (*ret_ok false). */
static bool build_child(struct reader *r, struct node *parent, unsigned depth, bool *ret_ok)
{
        yaml_event_t event;
        struct node *child = NULL;
        char *key = NULL;
        yaml_mark_t key_mark = {0};
        *ret_ok = false;
        if (!next_event(r, &event))
                return false;
        if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
                *ret_ok = true;
                goto out;
        }
        if (parent->kind == NODE_MAP) {
                key_mark = event.start_mark;
                if (event.type != YAML_SCALAR_EVENT || event.data.scalar.anchor ||
                    memchr(event.data.scalar.value, '\0', event.data.scalar.length)) {
                        fault(r, key_mark, "expected a plain key");
                        goto out;
                }
                key = xstrdup((const char *)event.data.scalar.value);
                yaml_event_delete(&event);
                if (!next_event(r, &event)) {
                        free(key);
                        return false;
                }
        }
        child = build(r, &event, depth + 1);
        if (!child)
                goto out;
        child->key = key;
        child->key_line = from_one(key_mark.line);
        child->key_column = from_one(key_mark.column);
        key = NULL;
        append(parent, child);
        *ret_ok = true;
out:
        free(key);
        yaml_event_delete(&event);
        return child != NULL;
}

static void build_scalar(struct reader *r, const yaml_event_t *event, struct node *n)
{
        const char *text = (const char *)event->data.scalar.value;
        if (memchr(text, '\0', event->data.scalar.length)) {
                fault(r, event->start_mark, "a NUL character cannot be part of a value");
                n->kind = NODE_BAD;
                return;
        }
        n->text = xstrdup(text);
        n->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
}

/* Anchors could make a small file large, and tags have no meaning here. */
static void refuse_extras(struct reader *r, const yaml_event_t *event)
{
        const yaml_char_t *anchor = NULL, *tag = NULL;
        if (event->type == YAML_SCALAR_EVENT) {
                anchor = event->data.scalar.anchor;
                tag = event->data.scalar.tag;
        } else if (event->type == YAML_SEQUENCE_START_EVENT) {
                anchor = event->data.sequence_start.anchor;
                tag = event->data.sequence_start.tag;
        } else if (event->type == YAML_MAPPING_START_EVENT) {
                anchor = event->data.mapping_start.anchor;
                tag = event->data.mapping_start.tag;
        }
        if (anchor)
                fault(r, event->start_mark, "anchors (&name) are not supported");
        if (tag)
                fault(r, event->start_mark, "tags (!name) are not supported");
}

/* The value that begins with `event`; NULL after a fault that ends it all. */
static struct node *build(struct reader *r, const yaml_event_t *event, unsigned depth)
{
        if (depth > DOCUMENT_MAX_DEPTH) {
                fault(r, event->start_mark, "nested too deeply");
                return NULL;
        }
        if (++r->nodes > DOCUMENT_MAX_NODES) {
                fault(r, event->start_mark, "too many values in one file");
                return NULL;
        }
        struct node *n = xcalloc(1, sizeof *n);
        n->line = from_one(event->start_mark.line);
        n->column = from_one(event->start_mark.column);
        refuse_extras(r, event);
        if (event->type == YAML_SCALAR_EVENT) {
                build_scalar(r, event, n);
        } else if (event->type == YAML_ALIAS_EVENT) {
                fault(r, event->start_mark, "aliases (*name) are not supported");
                n->kind = NODE_BAD;
        } else {
                bool ok;
                n->kind = event->type == YAML_MAPPING_START_EVENT ? NODE_MAP : NODE_LIST;
                while (build_child(r, n, depth, &ok))
                        ;
                if (!ok) {
                        node_free(n);
                        return NULL;
                }
        }
        return n;
}

static int by_key(const void *a, const void *b)
{
        const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
        int order = strcmp(x->key, y->key);
        if (order == 0)
                order = x->key_line != y->key_line
                            ? (x->key_line > y->key_line ? 1 : -1)
                            : (x->key_column > y->key_column) - (x->key_column < y->key_column);
        return order;
}

static void find_twins(const struct node *map, const char *path, struct config_faults *faults)
{
        struct node **sorted = xcalloc(map->count, sizeof *sorted);
        for (size_t i = 0; i < map->count; i++)
                sorted[i] = map->children[i];
        qsort(sorted, map->count, sizeof *sorted, by_key);
        for (size_t i = 1, first = 0; i < map->count; i++) {
                if (strcmp(sorted[first]->key, sorted[i]->key) != 0) {
                        first = i;
                        continue;
                }
                char *full = xasprintf("%s%s%.80s", path, *path ? "." : "", sorted[i]->key);
                config_faults_add(faults, sorted[i]->key_line, sorted[i]->key_column, full,
                                  "given twice, first on line %u", sorted[first]->key_line);
                free(full);
        }
        free(sorted);
}

static void find_all_twins(const struct node *n, const char *path, struct config_faults *faults)
{
        if (n->kind == NODE_MAP)
                find_twins(n, path, faults);
        for (size_t i = 0; i < n->count; i++) {
                const struct node *child = n->children[i];
                if (child->kind != NODE_MAP && child->kind != NODE_LIST)
                        continue;
                char *below = child->key
                                  ? xasprintf("%s%s%.80s", path, *path ? "." : "", child->key)
                                  : xasprintf("%s[%zu]", path, i);
                find_all_twins(child, below, faults);
                free(below);
        }
}

/* The root and what must follow it; NULL with *ret_ok where the file is empty. */
static struct node *build_document(struct reader *r, bool *ret_ok)
{
        struct node *root = NULL;
        *ret_ok = false;
        for (;;) {
                yaml_event_t event;
                if (!next_event(r, &event))
                        break;
                yaml_event_type_t type = event.type;
                bool begins = type == YAML_SCALAR_EVENT || type == YAML_ALIAS_EVENT ||
                              type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
                bool again = begins && root;
                if (again)
                        fault(r, event.start_mark, "a second document begins here: one is enough");
                else if (begins)
                        root = build(r, &event, 0);
                yaml_event_delete(&event);
                if (type == YAML_STREAM_END_EVENT) {
                        *ret_ok = true;
                        return root;
                }
                if (again || (begins && !root))
                        break;
        }
        node_free(root);
        return NULL;
}

int document_parse(struct span text, struct node **ret_root, struct config_faults *faults)
{
        struct reader r = {.text = text, .faults = faults};
        if (text.len > DOCUMENT_MAX_BYTES) {
                config_faults_add(faults, 0, 0, NULL, "larger than 1 MiB");
                return -EINVAL;
        }
        if (!yaml_parser_initialize(&r.parser))
                abort(); /* out of memory */
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.ptr ? text.ptr : ""),
                                     text.len);
        bool ok;
        struct node *root = build_document(&r, &ok);
        yaml_parser_delete(&r.parser);
        if (!ok)
                return -EINVAL;
        if (root && node_is_null(root)) {
                node_free(root);
                root = NULL;
        }
        if (root)
                find_all_twins(root, "", faults);
        *ret_root = root;
        return 0;
}

static ssize_t read_whole(int fd, char *to, size_t room)
{
        size_t len = 0;
        while (len < room) {
                ssize_t n = read(fd, to + len, room - len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                len += (size_t)n;
        }
        return (ssize_t)len;
}

int document_read(const char *path, struct node **ret_root, struct config_faults *faults)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
                int error = errno;
                config_faults_add(faults, 0, 0, NULL, "cannot be opened: %s",
                                  strerrordesc_np(error));
                return -error;
        }
        const size_t room = DOCUMENT_MAX_BYTES + 1;
        char *text = xmalloc(room);
        ssize_t len = read_whole(fd, text, room);
        int r = (int)len;
        close(fd);
        if (len < 0)
                config_faults_add(faults, 0, 0, NULL, "cannot be read: %s",
                                  strerrordesc_np((int)-len));
        else
                r = document_parse((struct span){text, (size_t)len}, ret_root, faults);
        free(text);
        return r;
}
