#include "config/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "config/nearest.h"

struct checking {
        const char *path;
        size_t since;
        struct config_faults *faults;
};

/* Was the value found wrong by itself? */
static bool is_faulty(const struct checking *c, const struct node *n)
{
        for (size_t i = c->since; n && i < c->faults->count; i++)
                if (c->faults->list[i].line == n->line && c->faults->list[i].column == n->column)
                        return true;
        return false;
}

static void unfit(const struct checking *c, const struct node *n, const char *key, unsigned value,
                  const char *relation, const char *other, unsigned bound)
{
        char *full = xasprintf("%s.%s", c->path, key);
        config_faults_add(c->faults, n->line, n->column, full, "%u is %s than %s (%u)", value,
                          relation, other, bound);
        free(full);
}

void check_policy(const struct policy *p, const struct node *n, const char *path, size_t since,
                  struct config_faults *faults)
{
        const struct checking c = {path, since, faults};
        const struct limiter_policy *l = &p->lane.limit;
        const struct node *floor = node_at(n, "limit.floor"), *start = node_at(n, "limit.start"),
                          *ceiling = node_at(n, "limit.ceiling");
        if (is_faulty(&c, floor) || is_faulty(&c, ceiling) || is_faulty(&c, start))
                return;
        if (l->floor > l->ceiling) {
                /* with neither given here, the fault is one of the defaults, and named there */
                if (floor)
                        unfit(&c, floor, "limit.floor", l->floor, "more", "limit.ceiling",
                              l->ceiling);
                else if (ceiling)
                        unfit(&c, ceiling, "limit.ceiling", l->ceiling, "less", "limit.floor",
                              l->floor);
        } else if (start && l->start > l->ceiling) {
                unfit(&c, start, "limit.start", l->start, "more", "limit.ceiling", l->ceiling);
        } else if (start && l->start < l->floor) {
                unfit(&c, start, "limit.start", l->start, "less", "limit.floor", l->floor);
        }
}

/* Where it is not given, the fault is one of the defaults, and named there. */
void check_egress(const struct config *c, const struct policy *p, const struct node *n,
                  const char *path, size_t since, struct config_faults *faults)
{
        const struct checking checking = {path, since, faults};
        const struct node *egress = node_entry(n, "egress");
        struct nearest nearest;
        if (!egress || is_faulty(&checking, egress) || strcmp(p->egress, "direct") == 0 ||
            config_pool(c, p->egress))
                return;
        nearest_init(&nearest, span_of(p->egress));
        nearest_consider(&nearest, span_of("direct"));
        for (size_t i = 0; i < c->pool_count; i++)
                nearest_consider(&nearest, span_of(c->pools[i].name));
        char *full = xasprintf("%s.egress", path);
        if (nearest.best.ptr)
                config_faults_add(faults, egress->line, egress->column, full,
                                  "there is no pool \"%s\"; did you mean \"%.*s\"?", p->egress,
                                  (int)nearest.best.len, nearest.best.ptr);
        else
                config_faults_add(faults, egress->line, egress->column, full,
                                  "there is no pool \"%s\"", p->egress);
        free(full);
}

/* A certificate with a key from elsewhere is never what was meant. */
void check_config(const struct config *c, const struct node *root, size_t since,
                  struct config_faults *faults)
{
        const struct checking checking = {"", since, faults};
        const struct node *certificate = node_at(root, "ca.certificate"),
                          *key = node_at(root, "ca.key");
        if (is_faulty(&checking, certificate) || is_faulty(&checking, key))
                return;
        if (*c->ca.certificate && !*c->ca.key)
                config_faults_add(faults, certificate->line, certificate->column, "ca.certificate",
                                  "ca.key is missing");
        else if (*c->ca.key && !*c->ca.certificate)
                config_faults_add(faults, key->line, key->column, "ca.key",
                                  "ca.certificate is missing");
}

struct named {
        const char *name;
        size_t index;
};

static int by_name(const void *a, const void *b)
{
        const struct named *x = a, *y = b;
        int order = strcmp(x->name, y->name);
        return order ? order : (x->index > y->index) - (x->index < y->index);
}

static void reserved_name(size_t i, const struct node *rule, struct config_faults *faults)
{
        const struct node *name = node_entry(rule, "name");
        const struct node *at = name ? name : rule;
        char *path = xasprintf("rules[%zu].name", i);
        config_faults_add(faults, at->line, at->column, path,
                          "\"default\" is the name of what no rule is for");
        free(path);
}

void check_rule_names(const struct config *c, const struct node *list, struct config_faults *faults)
{
        struct named *names = xcalloc(c->rule_count, sizeof *names);
        size_t count = 0;
        for (size_t i = 0; i < c->rule_count; i++)
                if (c->rules[i].name && strcmp(c->rules[i].name, c->defaults.name) == 0)
                        reserved_name(i, list->children[i], faults);
                else if (c->rules[i].name)
                        names[count++] = (struct named){c->rules[i].name, i};
        qsort(names, count, sizeof *names, by_name);
        for (size_t i = 1, first = 0; i < count; i++) {
                if (strcmp(names[first].name, names[i].name) != 0) {
                        first = i;
                        continue;
                }
                const struct node *rule = list->children[names[i].index];
                const struct node *name = node_entry(rule, "name");
                const struct node *at = name ? name : rule;
                char *path = xasprintf("rules[%zu].name", names[i].index);
                config_faults_add(faults, at->line, at->column, path,
                                  "\"%s\" is the name of rules[%zu], on line %u, already",
                                  names[i].name, names[first].index,
                                  list->children[names[first].index]->line);
                free(path);
        }
        free(names);
}
