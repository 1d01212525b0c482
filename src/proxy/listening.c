#include "proxy/listening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "runtime/listener.h"
#include "runtime/log.h"

struct share {
        int *fds;
        size_t count;
        bool taken;
};

struct listening {
        unsigned workers, port;
        struct share *shares; /* one for each worker */
        size_t local_count;
        struct listener_local *locals; /* to be removed at the end */
};

struct listening *listening_new(unsigned workers)
{
        struct listening *l = xcalloc(1, sizeof *l);
        l->workers = workers;
        l->shares = xcalloc(workers, sizeof *l->shares);
        return l;
}

void listening_free(struct listening *l)
{
        if (!l)
                return;
        for (size_t i = 0; i < l->local_count; i++)
                listener_local_remove(&l->locals[i]);
        free(l->locals);
        for (unsigned w = 0; w < l->workers; w++) {
                struct share *s = &l->shares[w];
                for (size_t i = 0; i < s->count && !s->taken; i++)
                        close(s->fds[i]);
                free(s->fds);
        }
        free(l->shares);
        free(l);
}

static void add(struct listening *l, unsigned worker, int fd)
{
        struct share *s = &l->shares[worker];
        s->fds = xrealloc(s->fds, (s->count + 1) * sizeof *s->fds);
        s->fds[s->count++] = fd;
}

size_t listening_take(struct listening *l, unsigned worker, const int **ret_fds)
{
        struct share *s = &l->shares[worker];
        s->taken = true;
        *ret_fds = s->fds;
        return s->count;
}

unsigned listening_port(const struct listening *l)
{
        return l->port;
}

/* ---- opening ---- */

static int fail(int r, const char *address, char **ret_error)
{
        *ret_error = listener_fault(r, address, "listen: in the configuration or --listen");
        return r;
}

static int open_address(struct listening *l, const char *address,
                        char ret_text[static LISTENER_TEXT_SIZE], char **ret_error)
{
        unsigned port = 0;
        int *fds = xcalloc(l->workers, sizeof *fds);
        int r = listener_bind(address, l->workers, fds, ret_text, &port);
        if (r < 0) {
                fail(r, address, ret_error);
                goto out;
        }
        for (unsigned w = 0; w < l->workers; w++)
                add(l, w, fds[w]);
        if (port == 0)
                listener_local_note(address, &l->locals[l->local_count++]);
        else if (l->port == 0)
                l->port = port;
out:
        free(fds);
        return r;
}

/* Of the address numbered `at`. */
static int let_connect(struct listening *l, size_t at)
{
        int r = 0;
        for (unsigned w = 0; w < l->workers && r == 0; w++)
                r = listener_listen(l->shares[w].fds[at]);
        return r;
}

int listening_open(struct listening *l, char *const *addresses, char **ret_error)
{
        size_t count = 0;
        int r = 0;
        while (addresses[count])
                count++;
        char(*texts)[LISTENER_TEXT_SIZE] = xcalloc(count, sizeof *texts);
        l->locals = xcalloc(count, sizeof *l->locals);
        for (size_t i = 0; i < count && r == 0; i++)
                r = open_address(l, addresses[i], texts[i], ret_error);
        for (size_t i = 0; i < count && r == 0; i++) {
                r = let_connect(l, i);
                if (r < 0)
                        fail(r, addresses[i], ret_error);
                else
                        log_info("listening on %s", texts[i]);
        }
        free(texts);
        return r;
}

/* ---- sockets of others ---- */

/*
 * Does `worker` accept from the socket numbered `at`, of `count` with the same address? The kernel
 * spreads connections over them (ReusePort=), so that each needs a worker, and each worker one of
 * them; one alone is shared by all.
 */
static bool accepts_from(unsigned worker, unsigned workers, size_t at, size_t count)
{
        return count >= workers ? at % workers == worker : worker % count == at;
}

/* Each worker that accepts from it gets a descriptor of its own. */
static int share(struct listening *l, const struct listening_socket *socket, size_t at,
                 size_t count)
{
        bool given = false;
        for (unsigned w = 0; w < l->workers; w++) {
                if (!accepts_from(w, l->workers, at, count))
                        continue;
                int fd = given ? fcntl(socket->fd, F_DUPFD_CLOEXEC, 3) : socket->fd;
                if (fd < 0)
                        return -errno;
                add(l, w, fd);
                given = true;
        }
        if (l->port == 0)
                l->port = socket->port;
        log_info("listening on %s, opened by systemd", socket->address);
        return 0;
}

int listening_share(struct listening *l, const struct listening_socket *sockets, size_t count,
                    char **ret_error)
{
        for (size_t i = 0; i < count; i++) {
                size_t before = 0, same = 0;
                for (size_t k = 0; k < count; k++)
                        if (strcmp(sockets[i].address, sockets[k].address) == 0) {
                                before += k < i;
                                same++;
                        }
                int r = share(l, &sockets[i], before, same);
                if (r < 0)
                        return fail(r, sockets[i].address, ret_error);
        }
        return 0;
}
