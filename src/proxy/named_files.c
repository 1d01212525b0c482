#include "proxy/named_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "proxy/pem_file.h"
#include "runtime/line_out.h"
#include "runtime/log.h"
#include "runtime/state.h"

/* ---- what is read ---- */

static void read_ca_file(const struct policy *p, struct config_faults *faults)
{
        char *error = NULL;
        bool rule = p->hosts[0] != NULL;
        if (!*p->tls.ca_file || pem_file_check(p->tls.ca_file, &error) == 0)
                return;
        policy_fault(p, "defaults.tls.ca_file",
                     xasprintf("tls.ca_file of %s%s: %s; name a file of CAs that weir may read",
                               rule ? "rule " : "", rule ? p->name : "the defaults", error),
                     faults);
        free(error);
}

int named_files_read(const struct config *c, struct users **ret_users, struct config_faults *faults)
{
        char *error = NULL;
        size_t before = faults->count;
        if (users_load(c->clients.users, ret_users, &error) < 0)
                policy_fault(&c->defaults, "clients.users", error, faults);
        read_ca_file(&c->defaults, faults);
        for (size_t i = 0; i < c->rule_count; i++)
                if (strcmp(c->rules[i].tls.ca_file, c->defaults.tls.ca_file) != 0)
                        read_ca_file(&c->rules[i], faults);
        return faults->count > before ? -EINVAL : 0;
}

/* ---- the CA that opens HTTPS ---- */

/* Where the certificate can be read by itself, the fault is the key's. */
static void read_configured_ca(const struct config *c, struct intercept_ca **ret,
                               struct config_faults *faults)
{
        char *error = NULL, *ignored = NULL;
        struct intercept_ca *alone = NULL;
        if (intercept_ca_load(c->ca.certificate, c->ca.key, ret, &error) == 0)
                return;
        bool good = intercept_ca_load(c->ca.certificate, NULL, &alone, &ignored) == 0;
        intercept_ca_free(alone);
        free(ignored);
        policy_fault(&c->defaults, good ? "ca.key" : "ca.certificate", error, faults);
}

static void make_ca(const char *dir, struct intercept_ca **ret, char **ret_error)
{
        bool made = false;
        if (intercept_ca_need(dir, ret, &made, ret_error) == 0 && made)
                log_info("made the CA %s/" INTERCEPT_CA_CERTIFICATE " in whose name HTTPS is "
                         "opened: clients must trust it (weir ca export --dir %s)",
                         dir, dir);
}

static void read_ca(const struct config *c, const char *dir, bool make, struct intercept_ca **ret,
                    struct config_faults *faults)
{
        char *error = NULL;
        const struct policy *opener = config_https_opener(c);
        *ret = NULL;
        if (!opener)
                return;
        if (*c->ca.certificate)
                read_configured_ca(c, ret, faults);
        else if (!dir)
                error = xstrdup("https: intercept wants a place for its CA: name a directory with "
                                "state.dir, or a CA with ca.certificate and ca.key");
        else if (make)
                make_ca(dir, ret, &error);
        else
                intercept_ca_find(dir, ret, &error);
        if (error)
                policy_fault(opener, "defaults.https", error, faults);
}

int named_files_ca(const struct config *c, const char *dir, struct intercept_ca **ret,
                   struct config_faults *faults)
{
        size_t before = faults->count;
        read_ca(c, dir, true, ret, faults);
        return faults->count > before ? -EINVAL : 0;
}

/* ---- what is written ---- */

void named_files_unwritable(const struct config *c, const char *setting, const char *path, int r,
                            struct config_faults *faults)
{
        policy_fault(&c->defaults, setting,
                     xasprintf("cannot write to %s: %s; change %s or its permissions", path,
                               strerrordesc_np(-r), setting),
                     faults);
}

static void look_at_log(const struct config *c, const char *setting, const char *path,
                        struct config_faults *faults)
{
        int r = *path && strcmp(path, "-") != 0 ? line_out_look(path) : 0;
        if (r < 0)
                named_files_unwritable(c, setting, path, r, faults);
}

int named_files_check(const struct config *c, struct config_faults *faults)
{
        struct users *users = NULL;
        struct intercept_ca *ca = NULL;
        char *dir = NULL, *error = NULL;
        size_t before = faults->count;
        named_files_read(c, &users, faults);
        users_unref(users);
        look_at_log(c, "log.file", c->log.file, faults);
        look_at_log(c, "log.access", c->log.access, faults);
        look_at_log(c, "log.series", c->log.series, faults);
        if (state_look(c->state.dir, &dir, &error) < 0)
                policy_fault(&c->defaults, "state.dir", error, faults);
        else
                read_ca(c, dir, false, &ca, faults);
        intercept_ca_free(ca);
        free(dir);
        config_faults_sort(faults);
        return faults->count > before ? -EINVAL : 0;
}
