/* config/kind_classify.c - the kind of setting that is a list of rules by which answers are
 * classified. */
#include "config/kind.h"
#include "config/value.h"
#include "core/answer.h"

#define LONGEST_TEXT 256
#define STATUS_EXPECTED "a status from 200 to 999"

typedef void entry_reader(const struct reading *r, const struct node *n,
                          struct classify_rule *rule);

static void read_status(const struct reading *r, const struct node *n, struct classify_rule *rule)
{
        const struct node *alone, *const *items;
        size_t count, good = 0;
        if (!kind_list_open(r, n, &alone, &items, &count))
                return;
        if (count == 0) {
                kind_fault(r, n, "expected " STATUS_EXPECTED ", got an empty list");
                return;
        }
        int *list = pool_alloc(r->pool, count, sizeof *list);
        for (size_t i = 0; i < count; i++) {
                unsigned status;
                const struct node *item = items[i];
                if (item->kind == NODE_SCALAR && value_count(span_of(item->text), &status) == 0 &&
                    status >= 200 && status <= 999)
                        list[good++] = (int)status;
                else if (item->kind != NODE_BAD)
                        kind_fault_expected(r, item, STATUS_EXPECTED);
        }
        rule->status = list;
        rule->status_count = good;
}

/* A text to be looked for, in the pool; empty after a fault. */
static struct span read_text(const struct reading *r, const struct node *n, const char *expected)
{
        if (n->kind != NODE_SCALAR || node_is_null(n) || n->text[0] == '\0')
                kind_fault_expected(r, n, expected);
        else if (strlen(n->text) > LONGEST_TEXT)
                kind_fault(r, n, "longer than %d bytes", LONGEST_TEXT);
        else
                return span_of(pool_dup(r->pool, span_of(n->text)));
        return span_of("");
}

static void read_header(const struct reading *r, const struct node *n, struct classify_rule *rule)
{
        static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789!#$%&'*+-.^_`|~";
        static const char expected[] = "the name of a header field and a text in its value, as in "
                                       "\"server: cloudflare\"";
        struct span text = read_text(r, n, expected), rest = text, name = {NULL, 0};
        if (text.len == 0)
                return;
        (void)span_next(&rest, ':', &name);
        if (name.len == 0 || strspn(name.ptr, token) < name.len) {
                kind_fault_expected(r, n, expected);
                return;
        }
        rule->name = name;
        rule->value = span_trim(rest);
}

static void read_body(const struct reading *r, const struct node *n, struct classify_rule *rule)
{
        rule->body = read_text(r, n, "a text in the body");
}

static void read_as(const struct reading *r, const struct node *n, struct classify_rule *rule)
{
        for (int i = 0; n->kind == NODE_SCALAR && i < ANSWER_CLASSES; i++)
                if (strcmp(n->text, answer_class_name((enum answer_class)i)) == 0) {
                        rule->as = (enum answer_class)i;
                        return;
                }
        kind_fault_expected(r, n, "throttled, overloaded, blocked, failed or success");
}

static entry_reader *reader_of(const char *key)
{
        static const struct {
                const char *key;
                entry_reader *read;
        } entries[] = {
            {"status", read_status}, {"header", read_header}, {"body", read_body}, {"as", read_as}};
        for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
                if (strcmp(entries[i].key, key) == 0)
                        return entries[i].read;
        return NULL;
}

static void read_entry(const struct reading *r, const struct node *n, struct classify_rule *rule)
{
        char path[128];
        struct reading below = *r;
        entry_reader *read = reader_of(n->key);
        snprintf(path, sizeof path, "%.64s.%.40s", r->path, n->key);
        below.path = path;
        if (!read)
                config_faults_add(r->faults, n->key_line, n->key_column, path,
                                  "unknown key; a rule has status, header, body and as");
        else if (n->kind != NODE_BAD)
                read(&below, n, rule);
}

static void read_rule(const struct reading *r, const struct node *n, struct classify_rule *rule)
{
        if (n->kind == NODE_BAD)
                return;
        if (n->kind != NODE_MAP) {
                kind_fault_expected(r, n, kind_expected(KIND_CLASSIFY));
                return;
        }
        for (size_t i = 0; i < n->count; i++)
                read_entry(r, n->children[i], rule);
        if (!node_entry(n, "as"))
                kind_fault(r, n, "as is missing");
        if (!node_entry(n, "status") && !node_entry(n, "header") && !node_entry(n, "body"))
                kind_fault(r, n, "status, header or body is missing: it would be for every answer");
}

void kind_read_classify(const struct reading *r, const struct node *n)
{
        if (n->kind != NODE_LIST) {
                kind_fault_expected(r, n, "a list");
                return;
        }
        struct classify_rule *list = pool_alloc(r->pool, n->count, sizeof *list);
        for (size_t i = 0; i < n->count; i++) {
                char path[128];
                struct reading below = *r;
                snprintf(path, sizeof path, "%.80s[%zu]", r->path, i);
                below.path = path;
                read_rule(&below, n->children[i], &list[i]);
        }
        r->policy->classify.list = list;
        r->policy->classify.count = n->count;
}

static void show_rule(const struct classify_rule *rule, FILE *to)
{
        putc('{', to);
        for (size_t i = 0; i < rule->status_count; i++)
                fprintf(to, "%s%d%s", i ? ", " : "status: [", rule->status[i],
                        i + 1 == rule->status_count ? "], " : "");
        if (rule->name.len) {
                char text[LONGEST_TEXT + 3];
                snprintf(text, sizeof text, "%.*s: %.*s", (int)rule->name.len, rule->name.ptr,
                         (int)rule->value.len, rule->value.len ? rule->value.ptr : "");
                fputs("header: ", to);
                kind_show_text(text, to);
                fputs(", ", to);
        }
        if (rule->body.len) {
                fputs("body: ", to);
                kind_show_text(rule->body.ptr, to);
                fputs(", ", to);
        }
        fprintf(to, "as: %s}", answer_class_name(rule->as));
}

void kind_show_classify(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        const struct policy *p = part;
        (void)s;
        (void)c;
        putc('[', to);
        for (size_t i = 0; i < p->classify.count; i++) {
                fputs(i ? ", " : "", to);
                show_rule(&p->classify.list[i], to);
        }
        putc(']', to);
}
