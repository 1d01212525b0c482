#include "config/config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "config/config_state.h"
#include "config/document.h"
#include "config/setting.h"
#include "config/value.h"

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

const struct policy *config_https_opener(const struct config *c)
{
        if (c->defaults.https == HTTPS_INTERCEPT)
                return &c->defaults;
        for (size_t i = 0; i < c->rule_count; i++)
                if (c->rules[i].https == HTTPS_INTERCEPT)
                        return &c->rules[i];
        return NULL;
}

bool config_opens_https(const struct config *c)
{
        return config_https_opener(c) != NULL;
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
        struct config *c = config_new();
        if (r < 0)
                goto out;
        config_read(c, root, given, listen, &found);
        if (found.count) {
                r = -EINVAL;
                goto out;
        }
        settle(c, started ? started->listen : c->listen);
        *ret = c;
        c = NULL;
out:
        if (r < 0) {
                config_faults_sort(&found);
                *faults = found;
        }
        node_free(root);
        config_unref(c);
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
