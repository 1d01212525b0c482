#include "cli/env.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cli/client_env.h"
#include "cli/client_trust.h"
#include "cli/config_file.h"
#include "config/config.h"
#include "config/value.h"
#include "proxy/intercept_ca.h"
#include "runtime/state.h"

#define COMMAND "weir env"

/* ---- where the proxy is ---- */

/* Who listens on all addresses is reached on this machine by loopback. */
static bool read_address(const char *text, char host[static INET6_ADDRSTRLEN], unsigned *ret_port)
{
        struct sockaddr_storage sa;
        if (value_address(span_of(text), &sa) < 0 || sa.ss_family == AF_UNIX)
                return false;
        if (sa.ss_family == AF_INET) {
                struct sockaddr_in *in = (struct sockaddr_in *)(void *)&sa;
                if (in->sin_addr.s_addr == htonl(INADDR_ANY))
                        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
                inet_ntop(AF_INET, &in->sin_addr, host, INET6_ADDRSTRLEN);
                *ret_port = ntohs(in->sin_port);
        } else {
                struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&sa;
                if (IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
                        in6->sin6_addr = in6addr_loopback;
                inet_ntop(AF_INET6, &in6->sin6_addr, host, INET6_ADDRSTRLEN);
                *ret_port = ntohs(in6->sin6_port);
        }
        return *ret_port != 0;
}

static int find_address(const struct config *c, char host[static INET6_ADDRSTRLEN],
                        unsigned *ret_port, char **ret_error)
{
        for (char **address = c->listen; *address; address++)
                if (read_address(*address, host, ret_port))
                        return 0;
        *ret_error =
            xstrdup("listen has no address of TCP with a port of its own, and clients know "
                    "no other: add one");
        return -EINVAL;
}

/* ---- whom to trust ---- */

/* The CA's certificate, as PEM. */
static int read_ca(const struct config *c, char **ret_pem, char **ret_error)
{
        char *dir = state_find(c->state.dir), *path = NULL;
        struct intercept_ca *ca = NULL;
        int r = -ENOENT;
        if (*c->ca.certificate)
                path = xstrdup(c->ca.certificate);
        else if (dir)
                path = xasprintf("%s/" INTERCEPT_CA_CERTIFICATE, dir);
        else
                *ret_error = xstrdup("HOME is not set: name the CA's directory with state.dir");
        if (path)
                r = intercept_ca_load(path, NULL, &ca, ret_error);
        if (r == -ENOENT && path && !*c->ca.certificate) {
                free(*ret_error);
                *ret_error =
                    xasprintf("there is no CA in %s as yet: start weir run with this file, "
                              "or have one made with weir ca init --dir %s",
                              dir, dir);
        }
        if (r == 0)
                *ret_pem = intercept_ca_export(ca);
        intercept_ca_free(ca);
        free(path);
        free(dir);
        return r;
}

/* Into a state directory, which is made where it is missing. */
static int write_below(const char *dir, struct span ca, struct client_trust *ret, char **ret_error)
{
        struct state *state = NULL;
        int r = state_open(dir, &state, ret_error);
        if (r == 0 && state)
                r = client_trust_write(state_path(state), ca, ret, ret_error);
        else if (r == 0) {
                r = -ENOENT;
                *ret_error = xstrdup("there is no directory to write the bundle of CAs to");
        }
        state_close(state);
        return r;
}

/* In the proxy's directory all users find the one bundle; who may not write there has one of his
 * own. */
static int write_trust(const struct config *c, struct client_trust *ret, char **ret_error)
{
        char *pem = NULL, *error = NULL;
        int r = read_ca(c, &pem, ret_error);
        if (r < 0)
                return r;
        r = write_below(c->state.dir, span_of(pem), ret, &error);
        if (r < 0 && *c->state.dir) {
                free(error);
                error = NULL;
                r = write_below("", span_of(pem), ret, &error);
        }
        *ret_error = error;
        free(pem);
        return r;
}

/* ---- output ---- */

/* In single quotes nothing means anything to a shell but their end. */
static void print_export(void *arg, const char *name, const char *value)
{
        (void)arg;
        printf("export %s='", name);
        for (; *value; value++)
                if (*value == '\'')
                        fputs("'\\''", stdout);
                else
                        putchar(*value);
        fputs("'\n", stdout);
}

static int print(const struct config *c, char **ret_error)
{
        char host[INET6_ADDRSTRLEN];
        struct client_trust trust = {NULL, NULL};
        struct client_env told = {.host = host};
        int r = find_address(c, host, &told.port, ret_error);
        if (r == 0 && config_opens_https(c))
                r = write_trust(c, &trust, ret_error);
        if (r < 0)
                return r;
        told.bundle = trust.bundle;
        told.trust_store = trust.store;
        client_env_each(&told, print_export, NULL);
        client_trust_done(&trust);
        if (fflush(stdout) == 0)
                return 0;
        r = -errno;
        *ret_error = xasprintf("cannot write: %s", strerrordesc_np(-r));
        return r;
}

int env_main(int argc, char **argv)
{
        const char *path;
        int status;
        if (!config_file_option("env", argc, argv, &path, &status))
                return status;
        struct config *config = config_file_load(path, NULL);
        if (!config)
                return 1;
        char *error = NULL;
        int r = print(config, &error);
        if (r < 0)
                fprintf(stderr, COMMAND ": %s\n", error);
        free(error);
        config_unref(config);
        return r < 0 ? 1 : 0;
}
