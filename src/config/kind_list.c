/* config/kind_list.c - the kinds of settings that are lists. */
#include "config/kind.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/cidr.h"
#include "base/xalloc.h"
#include "config/value.h"

bool kind_list_open(const struct reading *r, const struct node *n, const struct node **ret_alone,
                    const struct node *const **ret_items, size_t *ret_count)
{
        *ret_alone = n;
        if (n->kind == NODE_LIST) {
                *ret_items = (const struct node *const *)n->children;
                *ret_count = n->count;
                return true;
        }
        if (n->kind == NODE_SCALAR && !node_is_null(n)) {
                *ret_items = ret_alone;
                *ret_count = 1;
                return true;
        }
        kind_fault_expected(r, n, "a list");
        return false;
}

const char *kind_list_text(const struct reading *r, const struct node *item)
{
        if (item->kind == NODE_SCALAR && !node_is_null(item))
                return item->text;
        if (item->kind != NODE_BAD)
                kind_fault_expected(r, item, kind_expected(r->setting->kind));
        return NULL;
}

static void bad_item(const struct reading *r, const struct node *item)
{
        kind_fault_expected(r, item, kind_expected(r->setting->kind));
}

/* --- listen --- */

void kind_read_addresses(const struct reading *r, const struct node *n)
{
        const struct node *alone, *const *items;
        size_t count, good = 0;
        if (!kind_list_open(r, n, &alone, &items, &count))
                return;
        if (count == 0) {
                kind_fault(r, n, "expected at least one address, got an empty list");
                return;
        }
        char **list = pool_alloc(r->pool, count + 1, sizeof *list);
        for (size_t i = 0; i < count; i++) {
                struct sockaddr_storage ignored;
                const char *text = kind_list_text(r, items[i]);
                if (!text)
                        continue;
                if (value_address(span_of(text), &ignored) < 0) {
                        bad_item(r, items[i]);
                        continue;
                }
                for (size_t k = 0; k < good; k++)
                        if (strcmp(list[k], text) == 0)
                                kind_fault(r, items[i], "%s is listed twice", text);
                list[good++] = pool_dup(r->pool, span_of(text));
        }
        memcpy(setting_field(r->setting, r->config, r->part), &list, sizeof list);
}

/* The items of a NULL-terminated list of texts. */
static void show_texts(char *const *list, FILE *to)
{
        putc('[', to);
        for (size_t i = 0; list[i]; i++) {
                fputs(i ? ", " : "", to);
                kind_show_text(list[i], to);
        }
        putc(']', to);
}

void kind_show_addresses(const struct setting *s, const struct config *c, const void *part,
                         FILE *to)
{
        (void)s;
        (void)part;
        show_texts(c->listen, to);
}

/* --- networks --- */

void kind_read_networks(const struct reading *r, const struct node *n)
{
        const struct node *alone, *const *items;
        size_t count;
        if (!kind_list_open(r, n, &alone, &items, &count))
                return;
        struct cidr_set *set = setting_field(r->setting, r->config, r->part);
        cidr_set_done(set);
        for (size_t i = 0; i < count; i++) {
                struct cidr network;
                const char *text = kind_list_text(r, items[i]);
                if (!text || cidr_set_add_named(set, span_of(text)) == 0)
                        continue;
                if (cidr_parse(span_of(text), &network) < 0)
                        bad_item(r, items[i]);
                else
                        cidr_set_add(set, &network);
        }
}

static bool lists_all(const struct cidr_set *set, const struct cidr_set *others)
{
        for (size_t i = 0; i < others->count; i++)
                if (!cidr_set_lists(set, &others->list[i]))
                        return false;
        return true;
}

/* Named sets that are in it whole are shown by name; what is left, one by one. */
void kind_show_networks(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        const struct cidr_set *set = setting_field(s, (struct config *)c, (void *)part);
        struct cidr_set shown = {0};
        const char *between = "";
        putc('[', to);
        for (const char *const *name = cidr_set_names; *name; name++) {
                struct cidr_set named = {0};
                cidr_set_add_named(&named, span_of(*name));
                if (lists_all(set, &named)) {
                        fprintf(to, "%s%s", between, *name);
                        between = ", ";
                        cidr_set_add_named(&shown, span_of(*name));
                }
                cidr_set_done(&named);
        }
        for (size_t i = 0; i < set->count; i++) {
                char text[CIDR_TEXT_MAX];
                if (cidr_set_lists(&shown, &set->list[i]))
                        continue;
                cidr_text(&set->list[i], text);
                fprintf(to, "%s\"%s\"", between, text);
                between = ", ";
        }
        putc(']', to);
        cidr_set_done(&shown);
}

/* --- ports --- */

void kind_read_ports(const struct reading *r, const struct node *n)
{
        const struct node *alone, *const *items;
        size_t count, good = 0;
        if (!kind_list_open(r, n, &alone, &items, &count))
                return;
        unsigned *list = pool_alloc(r->pool, count, sizeof *list);
        for (size_t i = 0; i < count; i++) {
                unsigned port;
                const char *text = kind_list_text(r, items[i]);
                if (!text)
                        continue;
                if (value_count(span_of(text), &port) < 0 || port < 1 || port > 65535)
                        bad_item(r, items[i]);
                else
                        list[good++] = port;
        }
        r->config->destinations.connect_ports = list;
        r->config->destinations.connect_port_count = good;
}

void kind_show_ports(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        (void)s;
        (void)part;
        putc('[', to);
        for (size_t i = 0; i < c->destinations.connect_port_count; i++)
                fprintf(to, "%s%u", i ? ", " : "", c->destinations.connect_ports[i]);
        putc(']', to);
}

/* --- hosts --- */

/* A pattern as it is compared: lower case, addresses in their one form; NULL where it is none. */
static char *canonical_host(struct pool *pool, struct span text)
{
        char address[INET6_ADDRSTRLEN];
        struct in6_addr in6;
        if (text.len > 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']')
                text = (struct span){text.ptr + 1, text.len - 2};
        char *host = pool_dup(pool, text);
        if (inet_pton(AF_INET6, host, &in6) == 1) {
                inet_ntop(AF_INET6, &in6, address, sizeof address);
                return pool_dup(pool, span_of(address));
        }
        if (strcmp(host, "*") == 0)
                return host;
        char *rest = strncmp(host, "*.", 2) == 0 ? host + 2 : host;
        size_t len = strlen(rest);
        if (len > 1 && rest[len - 1] == '.') /* the root: config_policy ignores it as well */
                rest[--len] = '\0';
        if (len == 0 || len > 253 || rest[0] == '.' || strstr(rest, ".."))
                return NULL;
        for (char *c = rest; *c; c++) {
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
                if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && !strchr("._-", *c))
                        return NULL;
        }
        return host;
}

void kind_read_hosts(const struct reading *r, const struct node *n)
{
        const struct node *alone, *const *items;
        size_t count, good = 0;
        if (!kind_list_open(r, n, &alone, &items, &count))
                return;
        if (count == 0) {
                kind_fault(r, n, "expected at least one host, got an empty list");
                return;
        }
        const char **list = pool_alloc(r->pool, count + 1, sizeof *list);
        for (size_t i = 0; i < count; i++) {
                const char *text = kind_list_text(r, items[i]);
                const char *host = text ? canonical_host(r->pool, span_of(text)) : NULL;
                if (host)
                        list[good++] = host;
                else if (text)
                        bad_item(r, items[i]);
        }
        r->policy->hosts = list;
}

void kind_show_hosts(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        const struct policy *p = part;
        (void)s;
        (void)c;
        show_texts((char *const *)p->hosts, to);
}

/* --- retry.on --- */

static const struct {
        const char *name;
        size_t offset;
} failures[] = {
    {"connect", offsetof(struct retry_policy, on.connect)},
    {"timeout", offsetof(struct retry_policy, on.timeout)},
    {"reset", offsetof(struct retry_policy, on.reset)},
};
#define FAILURES (sizeof failures / sizeof failures[0])

static bool *failure_flag(struct retry_policy *policy, size_t i)
{
        return (bool *)((char *)policy + failures[i].offset);
}

static bool add_failure(struct retry_policy *policy, const char *text)
{
        for (size_t i = 0; i < FAILURES; i++)
                if (strcmp(failures[i].name, text) == 0)
                        return *failure_flag(policy, i) = true;
        return false;
}

static bool has_status(const struct retry_policy *policy, unsigned status)
{
        for (size_t i = 0; i < policy->on.status_count; i++)
                if (policy->on.status[i] == (int)status)
                        return true;
        return false;
}

void kind_read_retry_on(const struct reading *r, const struct node *n)
{
        const struct node *alone, *const *items;
        size_t count;
        struct retry_policy on = {0};
        if (!kind_list_open(r, n, &alone, &items, &count))
                return;
        for (size_t i = 0; i < count; i++) {
                unsigned status;
                const char *text = kind_list_text(r, items[i]);
                if (!text || add_failure(&on, text))
                        continue;
                if (value_count(span_of(text), &status) < 0 || status < 400 || status > 599)
                        bad_item(r, items[i]);
                else if (has_status(&on, status))
                        continue;
                else if (on.on.status_count == RETRY_MAX_STATUSES)
                        kind_fault(r, items[i], "more than %d statuses", RETRY_MAX_STATUSES);
                else
                        on.on.status[on.on.status_count++] = (int)status;
        }
        r->policy->retry.on = on.on;
}

void kind_show_retry_on(const struct setting *s, const struct config *c, const void *part, FILE *to)
{
        const struct policy *p = part;
        (void)s;
        (void)c;
        struct retry_policy policy = p->retry;
        const char *between = "";
        putc('[', to);
        for (size_t i = 0; i < policy.on.status_count; i++, between = ", ")
                fprintf(to, "%s%d", between, policy.on.status[i]);
        for (size_t i = 0; i < FAILURES; i++)
                if (*failure_flag(&policy, i)) {
                        fprintf(to, "%s%s", between, failures[i].name);
                        between = ", ";
                }
        putc(']', to);
}
