#include "proxy/users.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/secret.h"
#include "base/xalloc.h"
#include "proxy/credentials.h"
#include "runtime/log.h"

struct user {
        UT_hash_handle hh;
        size_t index;
        char *name, *hash;
};

struct users {
        atomic_size_t references;
        uint64_t serial;
        struct user *by_name; /* hash; its elements are those of the list */
        struct user **list;
        size_t count;
};

struct users *users_ref(struct users *u)
{
        if (u)
                atomic_fetch_add(&u->references, 1);
        return u;
}

void users_unref(struct users *u)
{
        if (!u || atomic_fetch_sub(&u->references, 1) > 1)
                return;
        HASH_CLEAR(hh, u->by_name);
        for (size_t i = 0; i < u->count; i++) {
                free(u->list[i]->name);
                free(u->list[i]->hash);
                free(u->list[i]);
        }
        free(u->list);
        free(u);
}

uint64_t users_serial(const struct users *u)
{
        return u ? u->serial : 0;
}

size_t users_count(const struct users *u)
{
        return u ? u->count : 0;
}

/* NOLINTNEXTLINE(readability-function-size): that is one macro */
size_t users_find(const struct users *u, const char *name)
{
        struct user *user;
        HASH_FIND_STR(u->by_name, name, user);
        return user ? user->index : USERS_NOBODY;
}

/* NOLINTNEXTLINE(readability-function-size): as above */
static void add(struct users *u, char *name, char *hash)
{
        struct user *user = xmalloc(sizeof *user);
        *user = (struct user){.index = u->count, .name = name, .hash = hash};
        u->list = xrealloc(u->list, (u->count + 1) * sizeof *u->list);
        u->list[u->count++] = user;
        HASH_ADD_KEYPTR(hh, u->by_name, user->name, strlen(user->name), user);
}

/* ---- reading ---- */

/* What is wrong with the line; NULL: nothing. */
static const char *read_line(struct users *u, char *line)
{
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
                return NULL;
        char *colon = strchr(line, ':');
        if (!colon || colon == line)
                return "expected NAME:HASH";
        *colon = '\0';
        if (strstr(line, CREDENTIALS_SESSION))
                return "\"" CREDENTIALS_SESSION "\" in a name is where a session would begin";
        if (users_find(u, line) != USERS_NOBODY)
                return "this name is there already";
        /* Without a "$" it would be DES of eight characters, or a password that somebody forgot to
         * hash and that passes for that. */
        int kind = crypt_checksalt(colon + 1);
        if (colon[1] != '$' || kind == CRYPT_SALT_INVALID || kind == CRYPT_SALT_METHOD_DISABLED)
                return "behind the name is no hash of crypt(3) that this system knows; mkpasswd "
                       "makes one";
        add(u, xstrdup(line), xstrdup(colon + 1));
        return NULL;
}

static char *cannot_read(const char *path, int r)
{
        return xasprintf("clients.users: cannot read %s: %s; see to its permissions, or name "
                         "another file",
                         path, strerrordesc_np(-r));
}

static int read_all(struct users *u, FILE *from, const char *path, char **ret_error)
{
        char *line = NULL;
        size_t room = 0;
        const char *fault = NULL;
        unsigned number = 0;
        while (!fault && getline(&line, &room, from) >= 0) {
                number++;
                fault = read_line(u, line);
        }
        int r = fault ? -EINVAL : ferror(from) ? -errno : 0;
        free(line);
        if (fault)
                *ret_error = xasprintf("clients.users: %s:%u: %s", path, number, fault);
        else if (r < 0)
                *ret_error = cannot_read(path, r);
        return r;
}

static void warn_of_openness(FILE *file, const char *path)
{
        struct stat st;
        if (fstat(fileno(file), &st) == 0 && (st.st_mode & S_IROTH))
                log_warn("%s can be read by everybody on this machine: chmod o-r it", path);
}

int users_load(const char *path, struct users **ret, char **ret_error)
{
        static atomic_uint_fast64_t serials;
        *ret = NULL;
        if (path[0] == '\0')
                return 0;
        FILE *from = fopen(path, "re");
        if (!from) {
                int r = -errno;
                *ret_error = cannot_read(path, r);
                return r;
        }
        struct users *u = xcalloc(1, sizeof *u);
        atomic_init(&u->references, 1);
        u->serial = atomic_fetch_add(&serials, 1) + 1;
        int r = read_all(u, from, path, ret_error);
        if (r == 0)
                warn_of_openness(from, path);
        fclose(from);
        if (r < 0) {
                users_unref(u);
                return r;
        }
        if (u->count == 0)
                log_warn("%s names nobody: nobody may use the proxy", path);
        *ret = u;
        return 0;
}

/* ---- checking ---- */

bool users_check(const struct users *u, size_t index, const char *password, struct crypt_data *data)
{
        if (u->count == 0)
                return false;
        const char *hash = u->list[index == USERS_NOBODY ? 0 : index]->hash;
        const char *made = crypt_rn(password, hash, data, sizeof *data);
        bool same = made && secret_equal(span_of(hash), span_of(made));
        explicit_bzero(data, sizeof *data);
        return same && index != USERS_NOBODY;
}
