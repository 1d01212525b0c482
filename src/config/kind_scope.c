/* config/kind_scope.c - the kind of setting that is a scope: host, path:2, header:authorization. */
#include <ctype.h>
#include <errno.h>

#include "config/kind.h"

/* What is never sent to the host cannot be what it counts by: hop-by-hop fields, and weir's own. */
static bool is_sent(struct span name)
{
        static const char *const kept[] = {
            "Connection", "Keep-Alive",        "Proxy-Connection", "Proxy-Authorization",
            "TE",         "Transfer-Encoding", "Upgrade",          "Trailer",
            "Expect"};
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
                if (span_equal_nocase(name, span_of(kept[i])))
                        return false;
        return name.len < 5 || strncasecmp(name.ptr, "weir-", 5) != 0;
}

/* Says what is wrong with a text that is no part. */
static void bad_part(const struct reading *r, const struct node *item)
{
        if (strncmp(item->text, "path:", 5) == 0 || strcmp(item->text, "path") == 0)
                kind_fault_expected(r, item,
                                    "path:N with a number of segments from 1 to 16, as in path:2");
        else if (strncmp(item->text, "header:", 7) == 0 || strcmp(item->text, "header") == 0)
                kind_fault_expected(
                    r, item, "header:NAME with the name of a field, as in header:authorization");
        else
                kind_fault_expected(r, item, kind_expected(KIND_SCOPE));
}

/* "header: authorization", with a space, is a key and its value to YAML. */
static bool is_spaced_part(const struct node *item)
{
        return item->kind == NODE_MAP && item->count == 1 &&
               (strcmp(item->children[0]->key, "header") == 0 ||
                strcmp(item->children[0]->key, "path") == 0);
}

static bool is_same(const struct scope_part *a, const struct scope_part *b)
{
        return a->kind == b->kind && a->segments == b->segments && span_equal(a->name, b->name);
}

/* False after a fault. */
static bool read_part(const struct reading *r, const struct node *item, struct scope_part *ret)
{
        if (is_spaced_part(item)) {
                kind_fault(r, item, "there is no space in %s:%.64s", item->children[0]->key,
                           item->children[0]->kind == NODE_SCALAR ? item->children[0]->text : "");
                return false;
        }
        const char *text = kind_list_text(r, item);
        if (!text)
                return false;
        char *copy = pool_dup(r->pool, span_of(text));
        if (strncmp(copy, "header:", 7) == 0)
                for (char *c = copy; *c; c++)
                        *c = (char)tolower((unsigned char)*c);
        if (scope_part_parse(span_of(copy), ret) < 0)
                bad_part(r, item);
        else if (ret->kind == SCOPE_HEADER && !is_sent(ret->name))
                kind_fault(r, item, "%.64s is never sent to the host", copy + strlen("header:"));
        else
                return true;
        return false;
}

void kind_read_scope(const struct reading *r, const struct node *n)
{
        const struct node *alone, *const *items;
        size_t count, good = 0;
        if (!kind_list_open(r, n, &alone, &items, &count))
                return;
        if (count == 0 || count > SCOPE_MAX_PARTS) {
                kind_fault(r, n, "expected from 1 to %d parts, got %zu", SCOPE_MAX_PARTS, count);
                return;
        }
        struct scope_part *list = pool_alloc(r->pool, count, sizeof *list);
        for (size_t i = 0; i < count; i++) {
                if (!read_part(r, items[i], &list[good]))
                        continue;
                size_t k = 0;
                while (k < good && !is_same(&list[k], &list[good]))
                        k++;
                if (k < good)
                        kind_fault(r, items[i], "%.64s is listed twice", items[i]->text);
                else
                        good++;
        }
        r->policy->scope = list;
        r->policy->scope_count = good;
}

void kind_show_scope(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        const struct policy *p = part;
        (void)s;
        (void)c;
        putc('[', to);
        for (size_t i = 0; i < p->scope_count; i++) {
                const struct scope_part *item = &p->scope[i];
                fputs(i ? ", " : "", to);
                if (item->kind == SCOPE_HEADER)
                        fprintf(to, "\"header:%.*s\"", (int)item->name.len, item->name.ptr);
                else if (item->kind == SCOPE_PATH)
                        fprintf(to, "\"path:%u\"", item->segments);
                else
                        fputs(scope_part_name(item->kind), to);
        }
        putc(']', to);
}
