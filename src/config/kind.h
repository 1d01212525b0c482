/* config/kind.h - the kinds of settings: how each is read from the file and shown. */
#ifndef WEIR_CONFIG_KIND_H
#define WEIR_CONFIG_KIND_H

#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"
#include "config/document.h"
#include "config/pool.h"
#include "config/setting.h"

/* One setting that is being read. */
struct reading {
        const struct setting *setting;
        const char *path; /* as shown in faults: "rules[2].limit.start" */
        struct config *config;
        struct policy *policy; /* NULL where it is a pool's */
        void *part;            /* the policy or pool that the setting is in */
        struct pool *pool;     /* for what the fields point to */
        struct config_faults *faults;
};

/* Reads the value `n` into the setting's field, or adds a fault and leaves the field alone. */
void kind_read(const struct reading *r, const struct node *n);

/* Prints the value of the field as YAML on one line. `part` is the policy or pool it is in. */
void kind_show(const struct setting *s, const struct config *c, const void *part, FILE *to);

/* What is to be written there, for people: "a duration such as …". */
const char *kind_expected(enum setting_kind kind);

/* The rest is shared by kind.c and the other files of this name. */

void kind_fault(const struct reading *r, const struct node *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void kind_fault_expected(const struct reading *r, const struct node *n, const char *expected);
void kind_show_text(const char *text, FILE *to); /* in double quotes */

/* The items of a list; what stands alone is a list of one, and then *ret_alone is where it is kept.
 * False after a fault: there is no list. */
bool kind_list_open(const struct reading *r, const struct node *n, const struct node **ret_alone,
                    const struct node *const **ret_items, size_t *ret_count);

/* The text of an item; NULL after a fault. */
const char *kind_list_text(const struct reading *r, const struct node *item);

void kind_read_addresses(const struct reading *r, const struct node *n);
void kind_read_networks(const struct reading *r, const struct node *n);
void kind_read_ports(const struct reading *r, const struct node *n);
void kind_read_scope(const struct reading *r, const struct node *n);
void kind_read_hosts(const struct reading *r, const struct node *n);
void kind_read_retry_on(const struct reading *r, const struct node *n);
void kind_read_classify(const struct reading *r, const struct node *n);
void kind_read_endpoints(const struct reading *r, const struct node *n);

void kind_show_addresses(const struct setting *s, const struct config *c, const void *part,
                         FILE *to);
void kind_show_networks(const struct setting *s, const struct config *c, const void *part,
                        FILE *to);
void kind_show_ports(const struct setting *s, const struct config *c, const void *part, FILE *to);
void kind_show_scope(const struct setting *s, const struct config *c, const void *part, FILE *to);
void kind_show_hosts(const struct setting *s, const struct config *c, const void *part, FILE *to);
void kind_show_retry_on(const struct setting *s, const struct config *c, const void *part,
                        FILE *to);
void kind_show_classify(const struct setting *s, const struct config *c, const void *part,
                        FILE *to);
void kind_show_endpoints(const struct setting *s, const struct config *c, const void *part,
                         FILE *to);

#endif
