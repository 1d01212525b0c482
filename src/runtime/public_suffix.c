#include "runtime/public_suffix.h"

#include <libpsl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static const psl_ctx_t *list;

static void load_list(void)
{
        list = psl_latest(NULL);
}

/* An IPv6 address; or a name whose last label is a number, which resolvers take for an IPv4 address
 * in one of its forms: "192.0.2.1", "127.1", "0x7f.1". */
static bool is_address(const char *host)
{
        const char *dot = strrchr(host, '.');
        const char *label = dot ? dot + 1 : host;
        if (strchr(host, ':'))
                return true;
        if (label[0] == '0' && label[1] == 'x')
                return label[2 + strspn(label + 2, "0123456789abcdef")] == '\0';
        return *label && label[strspn(label, "0123456789")] == '\0';
}

char *public_suffix_domain(const char *host)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, load_list);
        char *name = xstrdup(host);
        size_t len = strlen(name);
        if (len > 1 && name[len - 1] == '.')
                name[len - 1] = '\0';
        const char *domain = list && !is_address(name) ? psl_registrable_domain(list, name) : NULL;
        char *result = xstrdup(domain ? domain : name);
        free(name);
        return result;
}
