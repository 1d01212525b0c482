#include "cli/client_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "base/xalloc.h"

/* Requests to this machine are no crawl: its own services answer without limits, and through a
 * proxy elsewhere they would reach another machine. */
static const char own_machine[] = "localhost,127.0.0.1,::1";

const struct client_env_row client_env_rows[] = {
#define CLIENT_ENV(name, kind, readers) {name, CLIENT_ENV_##kind},
#include "cli/client_env.def"
#undef CLIENT_ENV
};
const size_t client_env_count = sizeof client_env_rows / sizeof client_env_rows[0];

const char *client_env_own(const char *name)
{
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): read before there are other threads */
        return getenv(name);
}

/* Of the two spellings each is kept; one that is not set is as the other. Set to nothing is a wish
 * as well: no host is left out. */
static const char *no_proxy(const char *name)
{
        const char *own = client_env_own(name);
        if (!own)
                own = client_env_own(strcmp(name, "NO_PROXY") == 0 ? "no_proxy" : "NO_PROXY");
        return own ? own : own_machine;
}

/* One host of NO_PROXY in Java's notation: a name there means all below it as well, here only a
 * pattern does. Networks cannot be said. */
static void put_java_host(FILE *to, struct span host)
{
        if (host.len == 0 || memchr(host.ptr, '/', host.len))
                return;
        const char *between = ftell(to) > 0 ? "|" : "";
        bool bare = memchr(host.ptr, '*', host.len) == NULL;
        if (host.ptr[0] == '.')
                fprintf(to, "%s*%.*s", between, (int)host.len, host.ptr);
        else if (memchr(host.ptr, ':', host.len) && host.ptr[0] != '[')
                fprintf(to, "%s[%.*s]", between, (int)host.len, host.ptr);
        else if (bare && strspn(host.ptr, "0123456789.") < host.len)
                fprintf(to, "%s%.*s|*.%.*s", between, (int)host.len, host.ptr, (int)host.len,
                        host.ptr);
        else
                fprintf(to, "%s%.*s", between, (int)host.len, host.ptr);
}

static char *java_hosts(void)
{
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        if (!to)
                abort();
        struct span rest = span_of(no_proxy("NO_PROXY"));
        for (struct span host; span_next(&rest, ',', &host);)
                put_java_host(to, host);
        fclose(to);
        return text;
}

/* Words are parted by spaces; quotes keep a path with a space in it together. */
static char *java_options(const struct client_env *env)
{
        const char *own = client_env_own("JAVA_TOOL_OPTIONS");
        char *hosts = java_hosts();
        char *store = env->trust_store ? xasprintf(" \"-Djavax.net.ssl.trustStore=%s\""
                                                   " -Djavax.net.ssl.trustStoreType=PKCS12"
                                                   " -Djavax.net.ssl.trustStorePassword=%s",
                                                   env->trust_store, CLIENT_ENV_STORE_PASSWORD)
                                       : xstrdup("");
        char *options = xasprintf("%s%s-Dhttp.proxyHost=%s -Dhttp.proxyPort=%u"
                                  " -Dhttps.proxyHost=%s -Dhttps.proxyPort=%u"
                                  " \"-Dhttp.nonProxyHosts=%s\"%s",
                                  own ? own : "", own && *own ? " " : "", env->host, env->port,
                                  env->host, env->port, hosts, store);
        free(hosts);
        free(store);
        return options;
}

/* NULL: it is left alone. The caller frees it. */
static char *value_of(const struct client_env_row *row, const struct client_env *env)
{
        const char *text = NULL;
        switch (row->kind) {
        case CLIENT_ENV_PROXY:
                return xasprintf(strchr(env->host, ':') ? "http://[%s]:%u" : "http://%s:%u",
                                 env->host, env->port);
        case CLIENT_ENV_NO_PROXY:
                text = no_proxy(row->name);
                break;
        case CLIENT_ENV_SWITCH:
                text = "1";
                break;
        case CLIENT_ENV_BUNDLE:
                text = env->bundle;
                break;
        case CLIENT_ENV_WGETRC:
                text = env->wgetrc;
                break;
        case CLIENT_ENV_JAVA:
                return java_options(env);
        default:
                break;
        }
        return text ? xstrdup(text) : NULL;
}

void client_env_each(const struct client_env *env,
                     void (*each)(void *arg, const char *name, const char *value), void *arg)
{
        for (size_t i = 0; i < client_env_count; i++) {
                char *value = value_of(&client_env_rows[i], env);
                if (value)
                        each(arg, client_env_rows[i].name, value);
                free(value);
        }
}
