/* config/config_show.c - prints a configuration as YAML that reads back to the same. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "config/config.h"
#include "config/kind.h"
#include "config/setting.h"

struct showing {
        FILE *to;
        int indent;
        const char *last; /* the path printed before: its groups are open */
};

/* The value as it stands in the file; the caller frees it. */
static char *shown_value(const struct setting *s, const struct config *c, const void *part)
{
        char *text = NULL;
        size_t len;
        FILE *to = open_memstream(&text, &len);
        if (!to)
                abort(); /* out of memory */
        kind_show(s, c, part, to);
        if (fclose(to) != 0)
                abort();
        return text;
}

/* Prints "key: value" below the keys of its groups, but for those that are open already. */
static void show_entry(struct showing *w, const char *path, const char *value)
{
        const char *key = path;
        int indent = w->indent;
        bool open = true;
        for (const char *dot; (dot = strchr(key, '.')); key = dot + 1, indent += 2) {
                open = open && strncmp(path, w->last, (size_t)(dot - path) + 1) == 0;
                if (!open)
                        fprintf(w->to, "%*s%.*s:\n", indent, "", (int)(dot - key), key);
        }
        fprintf(w->to, "%*s%s: %s\n", indent, "", key, value);
        w->last = path;
}

/* What a rule takes over from the defaults is left out. */
static void show_rule(const struct config *c, const struct policy *rule, FILE *to)
{
        struct showing w = {to, 4, ""};
        bool named = strcmp(rule->name, rule->hosts[0]) != 0;
        if (named)
                fprintf(to, "  - name: %s\n", rule->name);
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                if (s->place == IN_POOL)
                        continue;
                char *value = s->place == IN_CONFIG ? NULL : shown_value(s, c, rule);
                char *inherited = s->place == IN_POLICY ? shown_value(s, c, &c->defaults) : NULL;
                if (s->kind == KIND_HOSTS)
                        fprintf(to, "  %s hosts: %s\n", named ? " " : "-", value);
                else if (inherited && strcmp(value, inherited) != 0)
                        show_entry(&w, setting_relative(s), value);
                free(value);
                free(inherited);
        }
}

static void show_pool(const struct config *c, const struct egress_config *pool, FILE *to)
{
        struct showing w = {to, 4, ""};
        fprintf(to, "  \"%s\":\n", pool->name);
        for (size_t i = 0; i < setting_count; i++) {
                if (settings[i].place != IN_POOL)
                        continue;
                char *value = shown_value(&settings[i], c, pool);
                show_entry(&w, setting_relative(&settings[i]), value);
                free(value);
        }
}

void config_show(const struct config *c, FILE *to)
{
        struct showing w = {to, 0, ""};
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                if (s->place == IN_RULE || s->place == IN_POOL)
                        continue;
                char *value = shown_value(s, c, &c->defaults);
                show_entry(&w, s->path, value);
                free(value);
        }
        fputs(c->rule_count ? "rules:\n" : "rules: []\n", to);
        for (size_t i = 0; i < c->rule_count; i++)
                show_rule(c, &c->rules[i], to);
        fputs(c->pool_count ? "pools:\n" : "pools: {}\n", to);
        for (size_t i = 0; i < c->pool_count; i++)
                show_pool(c, &c->pools[i], to);
}

static void explain_pool(const struct config *c, const struct egress_config *pool,
                         void (*each)(void *arg, const char *key, const char *value,
                                      struct policy_place place),
                         void *arg)
{
        for (size_t i = 0; i < setting_count; i++) {
                if (settings[i].place != IN_POOL)
                        continue;
                char *key = xasprintf("pool.%s", setting_relative(&settings[i]));
                char *value = shown_value(&settings[i], c, pool);
                each(arg, key, value, pool->places[i]);
                free(value);
                free(key);
        }
}

void config_explain(const struct config *c, const struct policy *p,
                    void (*each)(void *arg, const char *key, const char *value,
                                 struct policy_place place),
                    void *arg)
{
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                if (s->place == IN_CONFIG || s->place == IN_POOL)
                        continue;
                if (s->place == IN_RULE && p == &c->defaults)
                        continue;
                char *value = shown_value(s, c, p);
                each(arg, setting_relative(s), value, p->places[i]);
                free(value);
        }
        if (p->pool)
                explain_pool(c, p->pool, each, arg);
}

void config_needs_restart(const struct config *before, const struct config *after,
                          void (*each)(void *arg, const char *key), void *arg)
{
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                if (s->applies != APPLIES_RESTART)
                        continue;
                char *was = shown_value(s, before, &before->defaults);
                char *is = shown_value(s, after, &after->defaults);
                if (strcmp(was, is) != 0)
                        each(arg, s->path);
                free(was);
                free(is);
        }
}
