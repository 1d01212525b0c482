/* Reads the keys of a file into a configuration. */
#include "config/config_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/xalloc.h"
#include "config/check.h"
#include "config/document.h"
#include "config/kind.h"
#include "config/setting.h"
#include "config/value.h"

struct loader {
        struct config *config;
        bool given; /* what is read now is of no file */
        struct config_faults *faults;
};

/* The policy or pool whose keys are read; both NULL outside of these. */
struct part {
        struct policy *policy;
        struct egress_config *pool;
};

static struct reading reading_of(const struct loader *l, const struct setting *s, const char *path,
                                 struct part part)
{
        return (struct reading){.setting = s,
                                .path = path,
                                .config = l->config,
                                .policy = part.policy,
                                .part = s->place == IN_POOL ? (void *)part.pool : part.policy,
                                .pool = &l->config->private->pool,
                                .faults = l->faults};
}

static void read_setting(struct loader *l, const struct setting *s, const char *path,
                         const struct node *n, struct part part)
{
        struct reading r = reading_of(l, s, path, part);
        struct policy_place place = {n->line, n->column};
        kind_read(&r, n);
        if (l->given)
                place = (struct policy_place){0, 0};
        if (part.policy)
                *setting_place(s, part.policy) = place;
        else if (part.pool)
                part.pool->places[s - settings] = place;
}

static void unknown_key(struct loader *l, const char *path, const char *row, const struct node *n)
{
        char *nearest = setting_nearest(row);
        if (strchr(n->key, '.') && setting_find(row))
                config_faults_add(l->faults, n->key_line, n->key_column, path,
                                  "unknown key; write its parts as keys one below the other");
        else if (nearest)
                config_faults_add(l->faults, n->key_line, n->key_column, path,
                                  "unknown key; did you mean \"%s\"?", nearest);
        else
                config_faults_add(l->faults, n->key_line, n->key_column, path, "unknown key");
        free(nearest);
}

/* A key as part of a path in a fault: no longer than a line, without control characters. */
static char *below(const char *path, const char *key)
{
        char *full = xasprintf("%s%s%.80s", path, *path ? "." : "", key);
        for (char *c = full; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = '?';
        return full;
}

/* Is it a map? A fault where it is neither that nor left out. */
static bool has_keys(struct loader *l, const struct node *n, const char *path)
{
        char got[NODE_DESCRIPTION_MAX];
        if (n->kind == NODE_MAP)
                return true;
        node_describe(n, got);
        if (n->kind != NODE_BAD)
                config_faults_add(l->faults, n->line, n->column, path, "expected keys, got %s",
                                  got);
        return false;
}

/*
 * Reads the keys of a map.
 *
 * path  of the map as shown: "", "defaults", "rules[2].limit", "pools.fast.quarantine"
 * row   the same as in the table: "rules[].limit", "pools[].quarantine"
 */
static void read_map(struct loader *l, const struct node *map, const char *path, const char *row,
                     struct part part)
{
        for (size_t i = 0; i < map->count; i++) {
                const struct node *n = map->children[i];
                char *path_below = below(path, n->key), *row_below = below(row, n->key);
                bool dotted = strchr(n->key, '.') != NULL; /* is no path in a file */
                const struct setting *s = dotted ? NULL : setting_find(row_below);
                if (strcmp(row_below, "rules") == 0 || strcmp(row_below, "pools") == 0)
                        ; /* rules want the defaults first; a pool's keys are below its name */
                else if (s)
                        read_setting(l, s, path_below, n, part);
                else if (dotted || !setting_is_group(row_below))
                        unknown_key(l, path_below, row_below, n);
                else if (!node_is_null(n) && has_keys(l, n, path_below))
                        read_map(l, n, path_below, row_below, part);
                free(path_below);
                free(row_below);
        }
}

/* Where only a value counts and no faults: the table's own texts. */
static void read_fallback(struct loader *l, const struct setting *s, struct part part)
{
        struct node *n;
        size_t before = l->faults->count;
        if (document_parse(span_of(s->fallback), &n, l->faults) < 0 || !n)
                abort(); /* the table is wrong */
        struct reading r = reading_of(l, s, s->path, part);
        kind_read(&r, n);
        if (l->faults->count != before)
                abort();
        node_free(n);
}

/* What a rule has not set it has from the defaults, its places included. */
static void inherit(struct loader *l, struct policy *p)
{
        const struct policy *from = &l->config->defaults;
        *p = *from;
        p->name = NULL;
        p->hosts = NULL;
        p->places = pool_alloc(&l->config->private->pool, setting_count, sizeof *p->places);
        memcpy(p->places, from->places, setting_count * sizeof *p->places);
}

static void read_rule(struct loader *l, const struct node *n, const char *path, struct policy *p)
{
        size_t before = l->faults->count;
        inherit(l, p);
        if (!has_keys(l, n, path))
                return;
        read_map(l, n, path, "rules[]", (struct part){.policy = p});
        if (!node_entry(n, "hosts"))
                config_faults_add(l->faults, n->line, n->column, path, "hosts is missing");
        if (!p->name && p->hosts && !node_entry(n, "name")) {
                p->name = p->hosts[0];
                *setting_place(setting_find("rules[].name"), p) =
                    *setting_place(setting_find("rules[].hosts"), p);
        }
        check_policy(p, n, path, before, l->faults);
        check_egress(l->config, p, n, path, before, l->faults);
}

static void read_rules(struct loader *l, const struct node *list)
{
        struct config *c = l->config;
        if (!list || list->kind == NODE_BAD || node_is_null(list))
                return;
        if (list->kind != NODE_LIST) {
                char got[NODE_DESCRIPTION_MAX];
                node_describe(list, got);
                config_faults_add(l->faults, list->line, list->column, "rules",
                                  "expected a list, got %s", got);
                return;
        }
        c->rules = xcalloc(list->count, sizeof *c->rules);
        c->rule_count = list->count;
        for (size_t i = 0; i < list->count; i++) {
                char *path = xasprintf("rules[%zu]", i);
                read_rule(l, list->children[i], path, &c->rules[i]);
                free(path);
        }
        check_rule_names(c, list, l->faults);
}

/* What a command brings along. */
static void read_given(struct loader *l, const char *text)
{
        struct node *n = NULL;
        size_t before = l->faults->count;
        if (!text)
                return;
        if (document_parse(span_of(text), &n, l->faults) < 0 || !n)
                abort();
        l->given = true;
        read_map(l, n, "", "", (struct part){.policy = &l->config->defaults});
        l->given = false;
        if (l->faults->count != before)
                abort();
        node_free(n);
}

static void read_pool(struct loader *l, const struct node *n, const char *path,
                      struct egress_config *pool)
{
        const struct part part = {.pool = pool};
        for (size_t i = 0; i < setting_count; i++)
                if (settings[i].place == IN_POOL && settings[i].fallback)
                        read_fallback(l, &settings[i], part);
        pool->name = pool_dup(&l->config->private->pool, span_of(n->key));
        pool->places = pool_alloc(&l->config->private->pool, setting_count, sizeof *pool->places);
        if (!value_is_name(n->key))
                config_faults_add(l->faults, n->key_line, n->key_column, path, "expected %s",
                                  kind_expected(KIND_NAME));
        else if (strcmp(n->key, "direct") == 0)
                config_faults_add(l->faults, n->key_line, n->key_column, path,
                                  "\"direct\" is the way out that is no pool");
        if (!has_keys(l, n, path))
                return;
        read_map(l, n, path, "pools[]", part);
        if (!node_entry(n, "endpoints"))
                config_faults_add(l->faults, n->line, n->column, path, "endpoints is missing");
        for (size_t i = 0; i < pool->endpoints.count; i++)
                if (pool->endpoints.list[i].max_in_flight == 0)
                        pool->endpoints.list[i].max_in_flight = pool->max_in_flight;
}

static void read_pools(struct loader *l, const struct node *map)
{
        struct config *c = l->config;
        if (!map || node_is_null(map) || !has_keys(l, map, "pools"))
                return;
        c->pools = xcalloc(map->count, sizeof *c->pools);
        c->pool_count = map->count;
        for (size_t i = 0; i < map->count; i++) {
                char *path = below("pools", map->children[i]->key);
                read_pool(l, map->children[i], path, &c->pools[i]);
                free(path);
        }
}

static void read_root(struct loader *l, const struct node *root, const struct config_given *given)
{
        struct config *c = l->config;
        if (root && root->kind != NODE_MAP) {
                char got[NODE_DESCRIPTION_MAX];
                node_describe(root, got);
                if (root->kind != NODE_BAD)
                        config_faults_add(l->faults, root->line, root->column, NULL,
                                          "expected keys such as \"listen:\", got %s", got);
                return;
        }
        read_given(l, given->below);
        size_t before = l->faults->count;
        if (root)
                read_map(l, root, "", "", (struct part){.policy = &c->defaults});
        read_given(l, given->above);
        read_pools(l, node_entry(root, "pools"));
        const struct node *defaults = node_entry(root, "defaults");
        check_config(c, root, before, l->faults);
        check_policy(&c->defaults, defaults, "defaults", before, l->faults);
        check_egress(c, &c->defaults, defaults, "defaults", before, l->faults);
        read_rules(l, node_entry(root, "rules"));
}

static void override_listen(struct loader *l, const char *const *addresses)
{
        struct pool *pool = &l->config->private->pool;
        size_t count = 0;
        while (addresses[count])
                count++;
        char **list = pool_alloc(pool, count + 1, sizeof *list);
        for (size_t i = 0; i < count; i++) {
                struct sockaddr_storage ignored;
                if (value_address(span_of(addresses[i]), &ignored) < 0)
                        config_faults_add(l->faults, 0, 0, "--listen", "expected %s, got \"%.80s\"",
                                          kind_expected(KIND_ADDRESSES), addresses[i]);
                list[i] = pool_dup(pool, span_of(addresses[i]));
        }
        l->config->listen = list;
        *setting_place(setting_find("listen"), &l->config->defaults) = (struct policy_place){0};
}

void config_read(struct config *c, const struct node *root, const struct config_given *given,
                 const char *const *listen, struct config_faults *faults)
{
        struct loader l = {.config = c, .faults = faults};
        const struct part defaults = {.policy = &c->defaults};
        for (size_t i = 0; i < setting_count; i++)
                if (settings[i].fallback && settings[i].place != IN_POOL)
                        read_fallback(&l, &settings[i], defaults);
        read_root(&l, root, given);
        if (listen)
                override_listen(&l, listen);
}
