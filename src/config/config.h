/* config/config.h - one checked, immutable snapshot of weir.yaml, and the faults found in a bad
 * one. */
#ifndef WEIR_CONFIG_CONFIG_H
#define WEIR_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cidr.h"
#include "base/span.h"
#include "base/usec.h"
#include "config/config_faults.h"
#include "config/policy.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct config {
        char **listen; /* "127.0.0.1:8080", "[::1]:8080", "unix:/path"; NULL-terminated */
        unsigned workers;
        usec_t shutdown_grace;
        struct {
                struct cidr_set allow;
                char *users; /* a file; "": nobody is asked for a name */
                usec_t header_timeout, idle_timeout;
                size_t max_header, max_body; /* bytes */
                unsigned max_connections;
        } clients;
        struct {
                struct cidr_set deny, allow;
                unsigned *connect_ports;
                size_t connect_port_count;
        } destinations;
        struct {
                char *certificate, *key; /* "": those in the state directory; both or neither */
        } ca;
        struct {
                char *listen; /* "": off */
                char *token;  /* "": none is asked for */
                unsigned max_scopes;
        } admin;
        struct {
                enum log_level level;
                enum log_format format;
                char *file, *access, *series; /* "" off, "-" stderr or stdout */
        } log;
        struct {
                char *dir; /* "": the service's or the user's */
                usec_t save_every;
        } state;
        bool annotate;
        struct policy defaults;
        struct policy *rules;
        size_t rule_count;
        struct egress_config *pools; /* in the order of the file */
        size_t pool_count;
        struct config_private *private;
};

/*
 * Reads and checks a file whole: every fault is reported, not the first alone.
 *
 * path      NULL: the built-in defaults, which never fail
 * listen    NULL, or one address that takes the place of the key `listen` (from the command line)
 * ret       filled on success; held by one reference
 * faults    filled on failure, sorted by place; free with config_faults_done
 *
 * Returns 0, -EINVAL where there are faults, or -errno of opening or reading the file. Each
 * snapshot carries a greater lane_policy.generation than those before it.
 */
int config_load(const char *path, struct config **ret, struct config_faults *faults);
int config_load_listen(const char *path, const char *listen, struct config **ret,
                       struct config_faults *faults);

/*
 * The same for a command that brings settings along, each as the text of a file or NULL: `below`
 * takes the place of the built-in defaults, `above` wins over the file. What is wrong in them is
 * weir's own fault.
 */
struct config_given {
        const char *below, *above;
};
int config_load_given(const char *path, const struct config_given *given, struct config **ret,
                      struct config_faults *faults);

/* The same for a process that runs since it loaded `started`, on whose addresses it listens still,
 * whatever `listen` says now: what the address guard denies for their sake stays denied. Here
 * `listen` is a NULL-terminated list or NULL, and `started` may be NULL. */
int config_reload(const char *path, const char *const *listen, const struct config *started,
                  struct config **ret, struct config_faults *faults);

/* The same for the text of a file; 0 or -EINVAL. */
int config_parse(struct span text, struct config **ret, struct config_faults *faults);

/* Snapshots are shared by threads: the count is atomic. */
struct config *config_ref(struct config *c);
void config_unref(struct config *c); /* NULL is fine */

/* The policy of the first rule whose hosts match, else the defaults. `host` is lower-case ASCII,
 * without port, without brackets. Borrowed from `c`. */
const struct policy *config_policy(const struct config *c, struct span host);

/* Is there a host whose HTTPS is opened (intercept)? */
bool config_opens_https(const struct config *c);

/* The first that says so: the defaults, or a rule; NULL: none does. */
const struct policy *config_https_opener(const struct config *c);

/* Do clients.allow and clients.users let in whoever comes? */
bool config_admits_everybody(const struct config *c);

/* Can an address of `listen` or admin.listen be reached from this machine alone? Local sockets can,
 * by those whom the file system lets. */
bool config_is_on_loopback(const char *address);

/* The pool of that name; NULL: there is none. Borrowed from `c`. */
const struct egress_config *config_pool(const struct config *c, const char *name);

/* Does any request go by that pool of `c`? */
bool config_uses_pool(const struct config *c, const struct egress_config *pool);

/* Calls `each` with every key that differs and that a reload cannot change. */
void config_needs_restart(const struct config *before, const struct config *after,
                          void (*each)(void *arg, const char *key), void *arg);

/* Calls `each` with every setting of a policy of `c`: its key within the policy ("limit.ceiling"),
 * its value as it is written in the file, and where that came from: what a rule does not set, from
 * the defaults. Then with those of its pool ("pool.choose"), if it has one. All borrowed for
 * the call. */
void config_explain(const struct config *c, const struct policy *p,
                    void (*each)(void *arg, const char *key, const char *value,
                                 struct policy_place place),
                    void *arg);

/* Prints the whole configuration in force as YAML that weir reads back to the same, but for
 * passwords of upstream proxies: "***" stands for them where they were written down rather than
 * named. */
void config_show(const struct config *c, FILE *to);

#endif
