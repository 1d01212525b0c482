#include "config/setting.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "config/nearest.h"

#define DEFAULTS "defaults."
#define RULES "rules[]."
#define POOLS "pools[]."

#define FIELD(type, field) offsetof(struct type, field), sizeof((struct type *)0)->field

const struct setting settings[] = {
#define CONFIG(path, kind, field, default_, range, applies, help)                   \
        {path,     KIND_##kind, IN_CONFIG, APPLIES_##applies, FIELD(config, field), \
         default_, range,       help},
#define POLICY(path, kind, field, default_, range, applies, help)         \
        {DEFAULTS path,        KIND_##kind, IN_POLICY, APPLIES_##applies, \
         FIELD(policy, field), default_,    range,     help},
#define RULE(path, kind, field, range, help) \
        {RULES path, KIND_##kind, IN_RULE, APPLIES_RELOAD, FIELD(policy, field), NULL, range, help},
#define POOL(path, kind, field, default_, range, help)                                  \
        {POOLS path, KIND_##kind, IN_POOL, APPLIES_RELOAD, FIELD(egress_config, field), \
         default_,   range,       help},
#include "config/settings.def"
};

const size_t setting_count = sizeof settings / sizeof settings[0];

static const char *after(const char *path, const char *prefix)
{
        size_t n = strlen(prefix);
        return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

const char *setting_relative(const struct setting *s)
{
        return s->place == IN_POLICY ? s->path + strlen(DEFAULTS)
               : s->place == IN_RULE ? s->path + strlen(RULES)
               : s->place == IN_POOL ? s->path + strlen(POOLS)
                                     : s->path;
}

/* The part of `path` that is to be compared with a row's relative path; NULL: not in that place. */
static const char *within(const struct setting *s, const char *path)
{
        const char *rule = after(path, RULES);
        if (s->place == IN_CONFIG)
                return path;
        if (s->place == IN_POOL)
                return after(path, POOLS);
        if (s->place == IN_RULE || rule)
                return rule;
        return after(path, DEFAULTS);
}

const struct setting *setting_find(const char *path)
{
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                const char *row = setting_relative(s), *wanted = within(s, path);
                const char *rest = wanted ? after(wanted, row) : NULL;
                if (rest && *rest == '\0')
                        return s;
        }
        return NULL;
}

bool setting_is_group(const char *path)
{
        if (strcmp(path, "defaults") == 0)
                return true;
        for (size_t i = 0; i < setting_count; i++) {
                const char *wanted = within(&settings[i], path);
                const char *rest = wanted ? after(setting_relative(&settings[i]), wanted) : NULL;
                if (rest && *rest == '.')
                        return true;
        }
        return false;
}

static struct span last_key(const char *path)
{
        const char *dot = strrchr(path, '.');
        return span_of(dot ? dot + 1 : path);
}

/* The key that a row has directly below the group `path` is in; false when it is elsewhere. */
static bool sibling(const struct setting *s, const char *path, struct span *ret)
{
        const char *wanted = within(s, path), *row = setting_relative(s);
        if (!wanted)
                return false;
        size_t group = (size_t)(last_key(wanted).ptr - wanted);
        if (strncmp(row, wanted, group) != 0)
                return false;
        *ret = (struct span){row + group, strcspn(row + group, ".")};
        return true;
}

/* A row as it is named to somebody who wrote its last key at `path`. */
static char *found_elsewhere(const struct setting *s, const char *path)
{
        if (s->place == IN_POOL)
                return xasprintf("pools.NAME.%s", setting_relative(s));
        return xstrdup(after(path, RULES) && s->place != IN_CONFIG ? setting_relative(s) : s->path);
}

char *setting_nearest(const char *path)
{
        struct span key = last_key(path), candidate;
        struct nearest nearest;
        nearest_init(&nearest, key);
        if (strchr(path, '.') == NULL) {
                nearest_consider(&nearest, span_of("defaults"));
                nearest_consider(&nearest, span_of("rules"));
                nearest_consider(&nearest, span_of("pools"));
        }
        for (size_t i = 0; i < setting_count; i++)
                if (sibling(&settings[i], path, &candidate))
                        nearest_consider(&nearest, candidate);
        if (nearest.best.ptr)
                return xspandup(nearest.best);
        for (size_t i = 0; i < setting_count; i++)
                if (span_equal(last_key(settings[i].path), key))
                        return found_elsewhere(&settings[i], path);
        return NULL;
}

void *setting_field(const struct setting *s, struct config *c, void *part)
{
        return (char *)(s->place == IN_CONFIG ? (void *)c : part) + s->offset;
}

struct policy_place *setting_place(const struct setting *s, struct policy *p)
{
        return &p->places[s - settings];
}
