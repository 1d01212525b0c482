/* config/check.h - what is wrong between settings of which each alone is right. */
#ifndef WEIR_CONFIG_CHECK_H
#define WEIR_CONFIG_CHECK_H

#include "config/config.h"
#include "config/config_faults.h"
#include "config/document.h"

/*
 * Checks one policy.
 *
 * n      the map that it was read from; NULL: nothing was given
 * path   of that map: "defaults", "rules[2]"
 * since  how many faults there were before it was read: what is a fault by itself is not compared
 */
void check_policy(const struct policy *p, const struct node *n, const char *path, size_t since,
                  struct config_faults *faults);

/* Checks that the pool of a policy is there; the rest as above. Pools are read by then. */
void check_egress(const struct config *c, const struct policy *p, const struct node *n,
                  const char *path, size_t since, struct config_faults *faults);

/* Checks what is wrong between keys outside of policies. `root` is the file's map, or NULL; `since`
 * as above. */
void check_config(const struct config *c, const struct node *root, size_t since,
                  struct config_faults *faults);

/* Checks that no two rules have one name. `list` is the list that they were read from, of as many
 * items. */
void check_rule_names(const struct config *c, const struct node *list,
                      struct config_faults *faults);

#endif
