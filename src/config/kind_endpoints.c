/* config/kind_endpoints.c - the kind of setting that is a list of ways out. */
#include "config/kind.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "config/endpoint_url.h"
#include "config/value.h"

#define MOST 100000 /* in flight, and of a weight */
#define FOR_EACH "an endpoint has url or source, name, max_in_flight and weight"

struct endpoint_reading {
        const struct reading *r; /* its path is that of the endpoint */
        struct egress_endpoint *e;
        bool has_way; /* url or source was given, right or wrong */
};

/* What is wrong with a URL is said without showing it: its credentials go into no log. */
static void read_url(struct endpoint_reading *x, const struct reading *r, const struct node *n)
{
        struct egress_endpoint *e = x->e;
        struct endpoint_url u;
        if (n->kind != NODE_SCALAR || node_is_null(n)) {
                kind_fault(r, n, "expected the URL of a proxy, or direct");
                return;
        }
        if (strcmp(n->text, "direct") == 0) {
                e->kind = EGRESS_DIRECT;
                e->shown = e->name = "direct";
                return;
        }
        char *fault = endpoint_url_read(span_of(n->text), &u);
        if (fault) {
                kind_fault(r, n, "%s", fault);
                free(fault);
                return;
        }
        char *shown = endpoint_url_shown(span_of(n->text));
        e->kind = u.kind;
        e->host = pool_dup(r->pool, span_of(u.host));
        e->port = u.port;
        e->user = u.user ? pool_dup(r->pool, span_of(u.user)) : NULL;
        e->password = u.password ? pool_dup(r->pool, span_of(u.password)) : NULL;
        e->name = u.name ? pool_dup(r->pool, span_of(u.name)) : NULL;
        e->shown = pool_dup(r->pool, span_of(shown));
        free(shown);
        endpoint_url_done(&u);
}

static void read_source(struct endpoint_reading *x, const struct reading *r, const struct node *n)
{
        char text[INET6_ADDRSTRLEN];
        struct in6_addr in6;
        struct in_addr in;
        bool is_v4 = n->kind == NODE_SCALAR && inet_pton(AF_INET, n->text, &in) == 1;
        bool is_v6 = n->kind == NODE_SCALAR && inet_pton(AF_INET6, n->text, &in6) == 1;
        if ((!is_v4 && !is_v6) || (is_v4 && in.s_addr == htonl(INADDR_ANY)) ||
            (is_v6 && IN6_IS_ADDR_UNSPECIFIED(&in6))) {
                kind_fault_expected(r, n, "an IP address of this machine, without a port");
                return;
        }
        inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? (void *)&in : (void *)&in6, text,
                  sizeof text);
        x->e->kind = EGRESS_SOURCE;
        x->e->source = x->e->name = x->e->shown = pool_dup(r->pool, span_of(text));
}

static void read_number(const struct reading *r, const struct node *n, unsigned *ret)
{
        unsigned value;
        if (n->kind != NODE_SCALAR || value_count(span_of(n->text), &value) < 0 || value < 1 ||
            value > MOST)
                kind_fault_expected(r, n, "1 to 100000");
        else
                *ret = value;
}

static void read_entry(struct endpoint_reading *x, const struct node *n)
{
        char path[160];
        struct reading below = *x->r;
        snprintf(path, sizeof path, "%.100s.%.40s", x->r->path, n->key);
        below.path = path;
        bool is_url = strcmp(n->key, "url") == 0, is_source = strcmp(n->key, "source") == 0;
        if ((is_url || is_source) && x->has_way)
                config_faults_add(below.faults, n->key_line, n->key_column, path,
                                  "either url or source: each is a way out by itself");
        x->has_way = x->has_way || is_url || is_source;
        if (n->kind == NODE_BAD)
                return;
        if (is_url)
                read_url(x, &below, n);
        else if (is_source)
                read_source(x, &below, n);
        else if (strcmp(n->key, "max_in_flight") == 0)
                read_number(&below, n, &x->e->max_in_flight);
        else if (strcmp(n->key, "weight") == 0)
                read_number(&below, n, &x->e->weight);
        else if (strcmp(n->key, "name") != 0) /* which is read behind the rest */
                config_faults_add(below.faults, n->key_line, n->key_column, path,
                                  "unknown key; " FOR_EACH);
}

static void read_given_name(struct endpoint_reading *x, const struct node *n)
{
        char path[160];
        struct reading below = *x->r;
        if (!n || n->kind == NODE_BAD)
                return;
        snprintf(path, sizeof path, "%.120s.name", x->r->path);
        below.path = path;
        if (n->kind == NODE_SCALAR && value_is_name(n->text)) {
                x->e->name = pool_dup(below.pool, span_of(n->text));
                x->e->named = true;
        } else {
                kind_fault_expected(&below, n, kind_expected(KIND_NAME));
        }
}

static void read_endpoint(struct endpoint_reading *x, const struct node *n)
{
        x->e->weight = 1;
        if (n->kind == NODE_SCALAR && !node_is_null(n)) {
                read_url(x, x->r, n);
        } else if (n->kind == NODE_MAP) {
                for (size_t i = 0; i < n->count; i++)
                        read_entry(x, n->children[i]);
                if (!x->has_way)
                        kind_fault(x->r, n, "url or source is missing");
                read_given_name(x, node_entry(n, "name"));
        } else if (n->kind != NODE_BAD) {
                kind_fault_expected(x->r, n, kind_expected(KIND_ENDPOINTS));
        }
}

/* ---- of the list as a whole ---- */

static bool is_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_way(const struct egress_endpoint *a, const struct egress_endpoint *b)
{
        return a->kind == b->kind && a->port == b->port && is_text(a->host, b->host) &&
               is_text(a->user, b->user) && is_text(a->password, b->password) &&
               is_text(a->source, b->source);
}

static bool is_taken(const struct egress_endpoint *list, size_t count, size_t i, const char *name)
{
        for (size_t k = 0; k < count; k++)
                if (k != i && is_text(list[k].name, name) && (k < i || list[k].named))
                        return true;
        return false;
}

/* Names that were not given: "HOST:PORT", and "HOST:PORT#3" where another has that; or "#3", where
 * the environment has host or port. The number is its place in the list. */
static void settle_name(const struct reading *r, struct egress_endpoint *list, size_t count,
                        size_t i)
{
        struct egress_endpoint *e = &list[i];
        if (e->named || (e->name && !is_taken(list, count, i, e->name)))
                return;
        char *name = xasprintf("%s#%zu", e->name ? e->name : "", i + 1);
        e->name = pool_dup(r->pool, span_of(name));
        free(name);
}

/* Two of the same would take one address twice at a time. */
static void check_twins(const struct reading *r, const struct node *const *items,
                        const struct egress_endpoint *list, size_t i)
{
        for (size_t k = 0; k < i; k++) {
                if (list[i].shown && list[k].shown && is_same_way(&list[i], &list[k])) {
                        kind_fault(r, items[i], "the same as the one on line %u", items[k]->line);
                        return;
                }
                if (list[i].named && list[k].named && is_text(list[i].name, list[k].name)) {
                        kind_fault(r, items[i], "\"%s\" is the name of the one on line %u, already",
                                   list[i].name, items[k]->line);
                        return;
                }
        }
}

void kind_read_endpoints(const struct reading *r, const struct node *n)
{
        const struct node *alone, *const *items;
        size_t count;
        if (n->kind == NODE_SCALAR && !node_is_null(n)) {
                alone = n; /* not shown in a fault, as kind_list_open may do */
                items = &alone;
                count = 1;
        } else if (!kind_list_open(r, n, &alone, &items, &count)) {
                return;
        }
        if (count == 0 || count > EGRESS_MAX_ENDPOINTS) {
                kind_fault(r, n, "expected from 1 to %d endpoints, got %zu", EGRESS_MAX_ENDPOINTS,
                           count);
                return;
        }
        struct egress_config *pool = r->part;
        struct egress_endpoint *list = pool_alloc(r->pool, count, sizeof *list);
        for (size_t i = 0; i < count; i++) {
                char path[128];
                struct reading below = *r;
                struct endpoint_reading x = {&below, &list[i], false};
                snprintf(path, sizeof path, "%.100s[%zu]", r->path, i);
                below.path = path;
                read_endpoint(&x, items[i]);
                check_twins(&below, items, list, i);
        }
        for (size_t i = 0; i < count; i++)
                settle_name(r, list, count, i);
        pool->endpoints.list = list;
        pool->endpoints.count = count;
}

static void show_endpoint(const struct egress_config *pool, const struct egress_endpoint *e,
                          FILE *to)
{
        bool alone = !e->named && e->weight == 1 && e->max_in_flight == pool->max_in_flight;
        if (e->kind != EGRESS_SOURCE && alone) {
                kind_show_text(e->shown, to);
                return;
        }
        fputs(e->kind == EGRESS_SOURCE ? "{source: " : "{url: ", to);
        kind_show_text(e->shown, to);
        if (e->named)
                fprintf(to, ", name: \"%s\"", e->name);
        if (e->max_in_flight != pool->max_in_flight)
                fprintf(to, ", max_in_flight: %u", e->max_in_flight);
        if (e->weight != 1)
                fprintf(to, ", weight: %u", e->weight);
        putc('}', to);
}

void kind_show_endpoints(const struct setting *s, const struct config *c, const void *part,
                         FILE *to)
{
        (void)s;
        (void)c;
        const struct egress_config *pool = part;
        putc('[', to);
        for (size_t i = 0; i < pool->endpoints.count; i++) {
                fputs(i ? ", " : "", to);
                show_endpoint(pool, &pool->endpoints.list[i], to);
        }
        putc(']', to);
}
