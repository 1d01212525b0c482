#include "cli/explain.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/http_text.h"
#include "base/xalloc.h"
#include "cli/config_file.h"
#include "cli/usage.h"
#include "config/config.h"
#include "proxy/request_scope.h"
#include "proxy/steering.h"
#include "proxy/target.h"
#include "proxy/upgrade.h"

/* Stands for the address of whoever asks. */
#define CLIENT "127.0.0.1"

#define WIDEST 72

struct explain {
        const char *path; /* NULL: the built-in defaults */
        struct fields fields;
        struct steering steering;
        struct target target;
        const struct policy *policy; /* the one that applies */
        struct row {
                char *key, *value, *place; /* owned */
        } * rows;
        size_t count;
};

static int wrong(const char *what, const char *which)
{
        fprintf(stderr, "weir explain: %s: %s\n", which, what);
        return 2;
}

/* ---- the request ---- */

static int add_header(struct explain *x, const char *text)
{
        struct span name = {text, strcspn(text, ":")}, value;
        const char *fault = NULL;
        if (!http_text_is_token(name) || text[name.len] != ':')
                return wrong("expected a header field such as 'Authorization: Bearer x'", text);
        value = span_trim(span_of(text + name.len + 1));
        if (!steering_take(&x->steering, name, value, &fault))
                fields_add(&x->fields, name, value);
        return fault ? wrong(fault, text) : 0;
}

static int set_session(struct explain *x, const char *session)
{
        const char *fault = NULL;
        steering_take(&x->steering, span_of("Weir-Session"), span_of(session), &fault);
        return fault ? wrong(fault, session) : 0;
}

static int read_url(struct explain *x, const char *url)
{
        const char *fault = target_read(&x->target, url);
        if (fault)
                return wrong(fault, url);
        bool https = span_equal_nocase(x->target.scheme, span_of("https"));
        if (!https && !span_equal_nocase(x->target.scheme, span_of("http")))
                return wrong("only http and https URLs can be fetched", url);
        if (!x->target.port)
                x->target.port = https ? 443 : 80;
        return 0;
}

/* ---- the answer ---- */

static void add_row(struct explain *x, const char *key, const char *value, char *place)
{
        x->rows = xrealloc(x->rows, (x->count + 1) * sizeof *x->rows);
        x->rows[x->count++] = (struct row){xstrdup(key), xstrdup(value), place};
}

/* That shows where it goes to, and nothing of what is asked there. */
static bool is_tunnel(const struct explain *x)
{
        return x->policy->https != HTTPS_INTERCEPT &&
               span_equal_nocase(x->target.scheme, span_of("https"));
}

static char *scope_key(const struct explain *x)
{
        static const struct fields unseen = {0};
        bool tunnel = is_tunnel(x);
        bool upgrade = x->policy->https == HTTPS_UPGRADE &&
                       span_equal_nocase(x->target.scheme, span_of("http"));
        return request_scope_key(&(struct request_scope){
            .policy = x->policy,
            .host = x->target.host,
            .port = upgrade ? upgrade_port(x->target.port) : x->target.port,
            .target = tunnel ? span_of("") : span_of(x->target.path),
            .fields = tunnel ? &unseen : &x->fields,
            .client = span_of(CLIENT),
            .session = x->steering.session,
        });
}

static bool counts_clients(const struct policy *policy)
{
        for (size_t i = 0; i < policy->scope_count; i++)
                if (policy->scope[i].kind == SCOPE_CLIENT)
                        return true;
        return false;
}

/* The parts of the scope that a tunnel hides. */
static void add_unseen(struct explain *x)
{
        char *parts = xstrdup("");
        for (size_t i = 0; i < x->policy->scope_count && is_tunnel(x); i++) {
                const struct scope_part *part = &x->policy->scope[i];
                char *before = parts;
                if (part->kind == SCOPE_HEADER)
                        parts = xasprintf("%s%sheader:%.*s", before, *before ? ", " : "",
                                          (int)part->name.len, part->name.ptr);
                else if (part->kind == SCOPE_PATH)
                        parts =
                            xasprintf("%s%spath:%u", before, *before ? ", " : "", part->segments);
                else
                        continue;
                free(before);
        }
        if (*parts) {
                char *text = xasprintf("%s: nobody sees that in a tunnel, so it is empty in the "
                                       "key; https: intercept opens it",
                                       parts);
                add_row(x, "not seen", text, xstrdup(""));
                free(text);
        }
        free(parts);
}

static void add_scope_key(struct explain *x)
{
        char *key = scope_key(x);
        add_row(x, "scope key", key, xstrdup(""));
        add_unseen(x);
        if (counts_clients(x->policy))
                add_row(x, "client", CLIENT, xstrdup("assumed"));
        free(key);
}

static void on_setting(void *arg, const char *key, const char *value, struct policy_place place)
{
        struct explain *x = arg;
        bool is_name = strcmp(key, "name") == 0;
        char *from = place.line ? xasprintf("%s:%u:%u", x->path, place.line, place.column)
                                : xstrdup("built in");
        add_row(x, is_name ? "rule" : key, is_name ? x->policy->name : value, from);
        if (strcmp(key, "scope") == 0)
                add_scope_key(x);
}

static void collect(struct explain *x, const struct config *config)
{
        x->policy = config_policy(config, span_of(x->target.host));
        if (x->policy == &config->defaults)
                add_row(x, "rule", x->policy->name, xstrdup("built in"));
        config_explain(config, x->policy, on_setting, x);
}

/* What is longer than any column should be is left to stand out of it. */
static int width(const char *text, int least)
{
        int len = (int)strlen(text);
        return len > least && len <= WIDEST ? len : least;
}

static void print(const struct explain *x)
{
        int keys = 0, values = 0;
        for (size_t i = 0; i < x->count; i++) {
                keys = width(x->rows[i].key, keys);
                if (*x->rows[i].place)
                        values = width(x->rows[i].value, values);
        }
        for (size_t i = 0; i < x->count; i++) {
                const struct row *row = &x->rows[i];
                if (*row->place)
                        printf("%-*s  %-*s  %s\n", keys, row->key, values, row->value, row->place);
                else
                        printf("%-*s  %s\n", keys, row->key, row->value);
        }
}

static int explain(struct explain *x)
{
        struct config *config = config_file_load(x->path, NULL);
        if (!config)
                return 1;
        collect(x, config);
        print(x);
        config_unref(config);
        return 0;
}

static void done(struct explain *x)
{
        for (size_t i = 0; i < x->count; i++) {
                free(x->rows[i].key);
                free(x->rows[i].value);
                free(x->rows[i].place);
        }
        free(x->rows);
        fields_done(&x->fields);
        target_done(&x->target);
}

/* Returns 0, or the exit status with *ret_end set. */
static int read_arguments(struct explain *x, int argc, char **argv, bool *ret_end)
{
        static const struct option options[] = {
            {"config", required_argument, NULL, 'c'},
            {"header", required_argument, NULL, 'H'},
            {"session", required_argument, NULL, 's'},
            {"help", no_argument, NULL, 'h'},
            {NULL, 0, NULL, 0},
        };
        int status = 0;
        *ret_end = true;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
        for (int option; (option = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
                if (option == 'c')
                        x->path = optarg;
                else if (option == 'H')
                        status = add_header(x, optarg);
                else if (option == 's')
                        status = set_session(x, optarg);
                else
                        return option == 'h' ? usage_print("explain") : usage_refuse("explain");
                if (status)
                        return status;
        }
        if (optind + 1 != argc)
                return usage_refuse("explain");
        status = read_url(x, argv[optind]);
        *ret_end = status != 0;
        return status;
}

int explain_main(int argc, char **argv)
{
        struct explain x = {.path = config_file_default()};
        bool end;
        steering_init(&x.steering);
        int status = read_arguments(&x, argc, argv, &end);
        if (!end)
                status = explain(&x);
        done(&x);
        return status;
}
