/* config/setting.h - the table of settings (settings.def) and how keys are looked up in it. */
#ifndef WEIR_CONFIG_SETTING_H
#define WEIR_CONFIG_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* How a setting is written and where it is kept; kind.c has a row for each. */
enum setting_kind {
        KIND_NONE,
        KIND_BOOL,     /* bool */
        KIND_COUNT,    /* unsigned */
        KIND_WORKERS,  /* unsigned; or auto */
        KIND_NUMBER,   /* double */
        KIND_DURATION, /* usec_t */
        KIND_SIZE,     /* size_t */
        KIND_RATE,     /* double, requests/s; none is 0 */
        KIND_SHARE,    /* double, 0 to 1 */
        KIND_CHOICE,   /* an enum, or bool */
        KIND_TEXT,     /* char * */
        KIND_NAME,     /* const char *: a short word for logs and metrics */
        KIND_ADDRESS,  /* char *: an address and port, or "" */
        KIND_ADDRESSES,
        KIND_NETWORKS, /* struct cidr_set */
        KIND_PORTS,
        KIND_SCOPE,
        KIND_HOSTS,
        KIND_RETRY_ON,
        KIND_CLASSIFY,
        KIND_FIELD_NAME, /* const char *: the name of a header field, or "" */
        KIND_URL,        /* const char *: of http or https, or "" */
        KIND_ENDPOINTS,
};

enum setting_place {
        IN_CONFIG, /* a field of struct config */
        IN_POLICY, /* of struct policy: "defaults.PATH" and in a rule */
        IN_RULE,   /* of struct policy, "rules[].PATH" alone */
        IN_POOL,   /* of struct egress_config: "pools[].PATH", where the file has the pool's name */
};

enum setting_applies { APPLIES_RELOAD, APPLIES_RESTART };

struct setting {
        const char
            *path; /* dotted; begins with "defaults.", "rules[]." or "pools[]." but for IN_CONFIG */
        enum setting_kind kind;
        enum setting_place place;
        enum setting_applies applies;
        size_t offset, size;  /* of the field */
        const char *fallback; /* the default, as YAML; NULL where there is none */
        const char *range;    /* NULL: none; see settings.def */
        const char *help;
};

extern const struct setting settings[];
extern const size_t setting_count;

/* In all of these a path below "rules[]" is also one of a policy: "rules[].limit.start". */

/* The row of a dotted path; NULL: there is none. */
const struct setting *setting_find(const char *path);

/* Are there rows below this path? */
bool setting_is_group(const char *path);

/* The known key most like the last one of an unknown path: a sibling by its own name ("ceiling"),
 * else a key of the same name elsewhere, by its whole path. NULL: nothing is near. The caller frees
 * it. */
char *setting_nearest(const char *path);

/* Where the setting's value in a policy is from; of IN_CONFIG in the defaults. Not for IN_POOL. */
struct policy_place *setting_place(const struct setting *s, struct policy *p);

/* The field of a setting in a configuration, or in the part of it that the setting is in: one of
 * its policies, or pools. */
void *setting_field(const struct setting *s, struct config *c, void *part);

/* The setting's path relative to its policy or pool, or whole. */
const char *setting_relative(const struct setting *s);

#endif
