#include "cli/client_trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "cli/client_env.h"
#include "proxy/intercept_bundle.h"
#include "runtime/log.h"

#define MAX_WGETRC ((size_t)1 << 20)

/* ---- files ---- */

/* At most `max` bytes of a file; the caller frees ret->ptr. 0 or -errno. */
static int read_file(const char *path, size_t max, struct span *ret)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return -errno;
        char *text = xmalloc(max);
        size_t len = 0;
        ssize_t n = 0;
        while (len < max && (n = read(fd, text + len, max - len)) > 0)
                len += (size_t)n;
        int r = n < 0 ? -errno : 0;
        close(fd);
        if (r == 0)
                *ret = (struct span){text, len};
        else
                free(text);
        return r;
}

static bool is_same(const char *path, struct span content)
{
        struct span there = {NULL, 0};
        if (read_file(path, content.len + 1, &there) < 0)
                return false;
        bool same = span_equal(there, content);
        free((char *)there.ptr);
        return same;
}

static int write_whole(int fd, struct span content)
{
        while (content.len > 0) {
                ssize_t n = write(fd, content.ptr, content.len);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0) {
                        content.ptr += n;
                        content.len -= (size_t)n;
                }
        }
        return 0;
}

/* The path of the file, owned by the caller; NULL after a failure, with its line in *ret_error. */
static char *put_file(const char *dir, const char *name, mode_t mode, struct span content,
                      int *ret_r, char **ret_error)
{
        char *path = xasprintf("%s/%s", dir, name);
        if (is_same(path, content))
                return path;
        char *other = xasprintf("%s.%d", path, (int)getpid());
        int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
        int r = fd < 0 ? -errno : write_whole(fd, content);
        if (fd >= 0 && close(fd) < 0 && r == 0)
                r = -errno;
        if (r == 0 && rename(other, path) < 0)
                r = -errno;
        if (r < 0) {
                if (fd >= 0)
                        unlink(other);
                *ret_error = xasprintf("cannot write %s: %s", path, strerrordesc_np(-r));
                *ret_r = r;
                free(path);
                path = NULL;
        }
        free(other);
        return path;
}

/* ---- whom to trust ---- */

/* A client that is told of ours forgets the file that it was told of before. */
static void add_users_own(struct intercept_bundle *b, const char *dir)
{
        char *ours = xasprintf("%s/" CLIENT_TRUST_BUNDLE, dir);
        for (size_t i = 0; i < client_env_count; i++) {
                const struct client_env_row *row = &client_env_rows[i];
                const char *own = row->kind == CLIENT_ENV_BUNDLE ? client_env_own(row->name) : NULL;
                if (!own || !*own || strcmp(own, ours) == 0)
                        continue;
                int r = intercept_bundle_add_file(b, own);
                if (r < 0)
                        log_warn("%s=%s: no certificates can be had from there: %s", row->name, own,
                                 r == -EINVAL ? "it is no PEM file" : strerrordesc_np(-r));
        }
        free(ours);
}

int client_trust_write(const char *dir, struct span ca, struct client_trust *ret, char **ret_error)
{
        struct intercept_bundle *b = intercept_bundle_new();
        struct client_trust t = {NULL, NULL};
        struct span pem, store;
        int r = 0;
        if (!intercept_bundle_add_system(b))
                log_warn("this system's file of CAs is in none of the usual places: clients will "
                         "trust hosts behind this proxy alone");
        add_users_own(b, dir);
        intercept_bundle_add(b, ca);
        intercept_bundle_pem(b, &pem);
        t.bundle = put_file(dir, CLIENT_TRUST_BUNDLE, 0644, pem, &r, ret_error);
        free((char *)pem.ptr);
        if (t.bundle && intercept_bundle_store(b, CLIENT_ENV_STORE_PASSWORD, &store) == 0) {
                t.store = put_file(dir, CLIENT_TRUST_STORE, 0644, store, &r, ret_error);
                free((char *)store.ptr);
        }
        intercept_bundle_free(b);
        if (r == 0)
                *ret = t;
        else
                client_trust_done(&t);
        return r;
}

/* The user's file; NULL where there cannot be one. */
static char *users_wgetrc(void)
{
        const char *named = client_env_own("WGETRC"), *home = client_env_own("HOME");
        if (named)
                return xstrdup(named);
        return home ? xasprintf("%s/.wgetrc", home) : NULL;
}

int client_trust_write_wgetrc(const char *dir, const char *bundle, char **ret, char **ret_error)
{
        char *own = users_wgetrc(), *path = NULL, *text = NULL;
        struct span theirs = {NULL, 0};
        int r = 0;
        if (own)
                read_file(own, MAX_WGETRC, &theirs); /* most users have none */
        text = xasprintf("%.*s\nca_certificate = %s\n", (int)theirs.len,
                         theirs.len ? theirs.ptr : "", bundle);
        path = put_file(dir, CLIENT_TRUST_WGETRC, 0600, span_of(text), &r, ret_error);
        free(text);
        free((char *)theirs.ptr);
        free(own);
        if (r == 0)
                *ret = path;
        return r;
}

void client_trust_done(struct client_trust *t)
{
        free(t->bundle);
        free(t->store);
}
