#include "cli/inherited.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "runtime/listener.h"
#include "runtime/sd.h"

static bool lists(const char *const *addresses, const char *address)
{
        for (; *addresses; addresses++)
                if (strcmp(*addresses, address) == 0)
                        return true;
        return false;
}

static int adopt(struct inherited *i, const struct sd_socket *given, char **ret_error)
{
        char text[LISTENER_TEXT_SIZE];
        struct listening_socket *s = &i->sockets[i->count];
        int r = listener_adopt(given->fd, text, &s->port);
        if (r < 0) {
                *ret_error = xasprintf("cannot listen on the socket that systemd passed as %s: %s; "
                                       "its unit needs ListenStream= and Accept=no",
                                       given->name, strerrordesc_np(-r));
                return r;
        }
        if (strcmp(given->name, "admin") == 0) {
                if (i->admin >= 0) {
                        *ret_error = xstrdup("systemd passed two sockets named admin: there can be "
                                             "one");
                        return -EINVAL;
                }
                i->admin = given->fd;
                return 0;
        }
        s->fd = given->fd;
        s->address = xstrdup(text);
        if (!lists(i->addresses, text)) {
                size_t n = 0;
                while (i->addresses[n])
                        n++;
                i->addresses[n] = s->address;
        }
        i->count++;
        return 0;
}

int inherited_take(struct inherited *ret, char **ret_error)
{
        struct sd_socket *given = NULL;
        size_t count = 0;
        int r = sd_sockets_take(&given, &count);
        if (r < 0) {
                *ret_error = xasprintf("cannot use the sockets that LISTEN_FDS names: %s",
                                       strerrordesc_np(-r));
                return r;
        }
        struct inherited i = {.admin = -1};
        if (count) {
                i.sockets = xcalloc(count, sizeof *i.sockets);
                i.addresses = xcalloc(count + 1, sizeof *i.addresses);
        }
        for (size_t k = 0; k < count && r == 0; k++)
                r = adopt(&i, &given[k], ret_error);
        sd_sockets_free(given, count);
        if (r < 0)
                inherited_done(&i);
        else
                *ret = i;
        return r;
}

void inherited_done(struct inherited *i)
{
        for (size_t k = 0; k < i->count; k++)
                free((char *)i->sockets[k].address);
        free(i->sockets);
        free(i->addresses);
        *i = (struct inherited){0};
}
