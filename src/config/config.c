#include "config/config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "config/check.h"
#include "config/document.h"
#include "config/kind.h"
#include "config/pool.h"
#include "config/setting.h"
#include "config/value.h"

struct config_private {
        atomic_uint references;
        struct pool pool;
};

struct loader {
        struct config *config;
        bool given; /* what is read now is of no file */
        struct config_faults *faults;
};

static atomic_uint last_generation;

struct config *config_ref(struct config *c)
{
        atomic_fetch_add_explicit(&c->private->references, 1, memory_order_relaxed);
        return c;
}

void config_unref(struct config *c)
{
        if (!c || atomic_fetch_sub_explicit(&c->private->references, 1, memory_order_acq_rel) > 1)
                return;
        cidr_set_done(&c->clients.allow);
        cidr_set_done(&c->destinations.deny);
        cidr_set_done(&c->destinations.allow);
        pool_done(&c->private->pool);
        free(c->rules);
        free(c->pools);
        free(c->private);
        free(c);
}

const struct policy *config_policy(const struct config *c, struct span host)
{
        for (size_t i = 0; i < c->rule_count; i++)
                if (policy_matches(&c->rules[i], host))
                        return &c->rules[i];
        return &c->defaults;
}

bool config_opens_https(const struct config *c)
{
        bool opens = c->defaults.https == HTTPS_INTERCEPT;
        for (size_t i = 0; i < c->rule_count; i++)
                opens = opens || c->rules[i].https == HTTPS_INTERCEPT;
        return opens;
}

const struct egress_config *config_pool(const struct config *c, const char *name)
{
        for (size_t i = 0; i < c->pool_count; i++)
                if (strcmp(c->pools[i].name, name) == 0)
                        return &c->pools[i];
        return NULL;
}

bool config_uses_pool(const struct config *c, const struct egress_config *pool)
{
        bool used = c->defaults.pool == pool;
        for (size_t i = 0; i < c->rule_count; i++)
                used = used || c->rules[i].pool == pool;
        return used;
}

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
        kind_read(&r, n);
        struct policy_place place =
            l->given ? (struct policy_place){0} : (struct policy_place){n->line, n->column};
        if (s->place != IN_POOL)
                *setting_place(s, part.policy) = place;
        else
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

/* The named set also holds 0.0.0.0 and ::, on which a listener is reached from everywhere. */
bool config_is_on_loopback(const char *address)
{
        struct sockaddr_storage sa;
        struct cidr_set set = {0};
        struct cidr c;
        if (value_address(span_of(address), &sa) < 0 || sa.ss_family == AF_UNIX)
                return true;
        if (cidr_parse(span_of("127.0.0.0/8"), &c) == 0)
                cidr_set_add(&set, &c);
        if (cidr_parse(span_of("::1"), &c) == 0)
                cidr_set_add(&set, &c);
        bool yes = cidr_set_contains_peer(&set, (const struct sockaddr *)&sa);
        cidr_set_done(&set);
        return yes;
}

/* The whole of the address space of one kind, or half of it. */
static bool is_everywhere(const struct cidr *c)
{
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
        bool v4 = memcmp(c->address, mapped, sizeof mapped) == 0;
        return v4 ? c->prefix <= 97 : c->prefix <= 1;
}

bool config_admits_everybody(const struct config *c)
{
        const struct cidr_set *allow = &c->clients.allow;
        for (size_t i = 0; i < allow->count; i++)
                if (is_everywhere(&allow->list[i]))
                        return c->clients.users[0] == '\0';
        return false;
}

static void settle_policy(const struct config *c, struct policy *p, unsigned generation)
{
        struct limiter_policy *l = &p->lane.limit;
        const char *follows = NULL;
        if (l->start > l->ceiling) {
                l->start = l->ceiling;
                follows = "defaults.limit.ceiling";
        }
        if (l->start < l->floor) {
                l->start = l->floor;
                follows = "defaults.limit.floor";
        }
        if (follows)
                *setting_place(setting_find("defaults.limit.start"), p) =
                    *setting_place(setting_find(follows), p);
        p->lane.retry_share = p->retry.budget;
        p->lane.generation = generation;
        p->pool = config_pool(c, p->egress);
        p->lane.session_order = p->session_order;
        p->lane.by_endpoint = false;
        for (size_t i = 0; i < p->scope_count; i++)
                p->lane.by_endpoint |= p->scope[i].kind == SCOPE_ENDPOINT;
}

static void hold(void *config)
{
        config_ref(config);
}

static void drop(void *config)
{
        config_unref(config);
}

static void settle_pool(struct config *c, struct egress_config *pool, unsigned generation)
{
        struct pool_policy *p = &pool->policy;
        struct endpoint_policy *list =
            pool_alloc(&c->private->pool, pool->endpoints.count, sizeof *list);
        for (size_t i = 0; i < pool->endpoints.count; i++) {
                const struct egress_endpoint *e = &pool->endpoints.list[i];
                list[i] = (struct endpoint_policy){e->name, e->max_in_flight, e->weight, e};
        }
        p->name = pool->name;
        p->endpoints = list;
        p->sticky = pool->sticky != EGRESS_STICKY_NONE;
        p->endpoint_count = pool->endpoints.count;
        p->generation = generation;
        p->owner = c;
        p->hold = hold;
        p->drop = drop;
}

/* What follows from the rest, once that is known to be right; `listens_on` are the addresses that
 * the process serves, which a reload does not change. */
static void settle(struct config *c, char *const *listens_on)
{
        for (char *const *address = listens_on; *address; address++)
                if (!config_is_on_loopback(*address)) {
                        /* who reaches the proxy from outside must not reach the inside through it
                         */
                        cidr_set_add_named(&c->destinations.deny, span_of("loopback"));
                        cidr_set_add_named(&c->destinations.deny, span_of("private"));
                }
        unsigned generation = atomic_fetch_add(&last_generation, 1) + 1;
        settle_policy(c, &c->defaults, generation);
        for (size_t i = 0; i < c->rule_count; i++)
                settle_policy(c, &c->rules[i], generation);
        for (size_t i = 0; i < c->pool_count; i++)
                settle_pool(c, &c->pools[i], generation);
}

static struct config *config_new(void)
{
        static const char *no_hosts[] = {NULL};
        struct config *c = xcalloc(1, sizeof *c);
        c->private = xcalloc(1, sizeof *c->private);
        atomic_init(&c->private->references, 1);
        c->defaults.name = "default";
        c->defaults.places =
            pool_alloc(&c->private->pool, setting_count, sizeof *c->defaults.places);
        c->defaults.hosts = no_hosts;
        return c;
}

/*
 * Builds it of a tree, which is freed.
 *
 * r      what reading the tree gave
 * found  the faults of that; handed over to *faults on failure
 * The rest is as for config_reload and config_load_given; `started` and `listen` may be NULL.
 */
static int build(int r, struct node *root, struct config_faults found,
                 const struct config_given *given, const char *const *listen,
                 const struct config *started, struct config **ret, struct config_faults *faults)
{
        struct loader l = {.config = config_new(), .faults = &found};
        if (r < 0)
                goto out;
        const struct part defaults = {.policy = &l.config->defaults};
        for (size_t i = 0; i < setting_count; i++)
                if (settings[i].fallback && settings[i].place != IN_POOL)
                        read_fallback(&l, &settings[i], defaults);
        read_root(&l, root, given);
        if (listen)
                override_listen(&l, listen);
        if (found.count) {
                r = -EINVAL;
                goto out;
        }
        settle(l.config, started ? started->listen : l.config->listen);
        *ret = l.config;
        l.config = NULL;
out:
        if (r < 0) {
                config_faults_sort(&found);
                *faults = found;
        }
        node_free(root);
        config_unref(l.config);
        return r;
}

static const struct config_given nothing_given = {NULL, NULL};

int config_reload(const char *path, const char *const *listen, const struct config *started,
                  struct config **ret, struct config_faults *faults)
{
        struct config_faults found = {0};
        struct node *root = NULL;
        int r = path ? document_read(path, &root, &found) : 0;
        return build(r, root, found, &nothing_given, listen, started, ret, faults);
}

int config_load_given(const char *path, const struct config_given *given, struct config **ret,
                      struct config_faults *faults)
{
        struct config_faults found = {0};
        struct node *root = NULL;
        int r = path ? document_read(path, &root, &found) : 0;
        return build(r, root, found, given, NULL, NULL, ret, faults);
}

int config_parse(struct span text, struct config **ret, struct config_faults *faults)
{
        struct config_faults found = {0};
        struct node *root = NULL;
        int r = document_parse(text, &root, &found);
        return build(r, root, found, &nothing_given, NULL, NULL, ret, faults);
}

int config_load(const char *path, struct config **ret, struct config_faults *faults)
{
        return config_load_listen(path, NULL, ret, faults);
}

int config_load_listen(const char *path, const char *listen, struct config **ret,
                       struct config_faults *faults)
{
        const char *const list[] = {listen, NULL};
        return config_reload(path, listen ? list : NULL, NULL, ret, faults);
}
