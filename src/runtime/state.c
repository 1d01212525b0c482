#include "runtime/state.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "runtime/clock.h"
#include "runtime/learned.h"
#include "runtime/log.h"

#define FILE_NAME STATE_LEARNED

struct state {
        int fd; /* of the directory */
        char *path;
        uint64_t changes;      /* requests and resets, when it was saved last */
        bool settled;          /* and none of them was still under way */
        bool failing;          /* the last save failed, which has been told */
        struct stat seen;      /* the file that was read or written last; of none st_ino is 0 */
        struct learned others; /* what other processes have saved, by key; kept for the next file */
        usec_t others_at;      /* wall-clock time to which its spans belong */
};

/* ---- the directory ---- */

char *state_find(const char *dir)
{
        if (*dir)
                return xstrdup(dir);
        /* NOLINTBEGIN(concurrency-mt-unsafe): read before there are other threads */
        const char *service = getenv("STATE_DIRECTORY"); /* several: separated by ":" */
        const char *user = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        /* NOLINTEND(concurrency-mt-unsafe) */
        if (service && service[0] == '/')
                return xspandup((struct span){service, strcspn(service, ":")});
        if (user && user[0] == '/') /* a relative one is to be ignored */
                return xasprintf("%s/weir", user);
        if (home && home[0] == '/')
                return xasprintf("%s/.local/state/weir", home);
        return NULL;
}

/* With all above it. */
static int make_directory(const char *path)
{
        char *part = xstrdup(path);
        int r = 0;
        for (char *end = part + strspn(part, "/"); r == 0 && *end;) {
                end += strcspn(end, "/");
                char was = *end;
                *end = '\0';
                if (mkdir(part, 0700) < 0 && errno != EEXIST && errno != EISDIR)
                        r = -errno;
                *end = was;
                end += strspn(end, "/");
        }
        free(part);
        return r;
}

#define USE (R_OK | W_OK | X_OK)

static int open_directory(const char *path)
{
        int made = access(path, F_OK) == 0 ? 0 : make_directory(path);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return made < 0 ? made : -errno;
        if (faccessat(fd, ".", USE, AT_EACCESS) < 0) {
                int r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

/* Could it be opened? Where it is missing, the first above it that is there has to take it. */
static int look_at_directory(const char *path)
{
        struct stat st;
        char *part = xstrdup(path);
        int r = stat(part, &st) < 0 ? -errno : 0;
        while (r == -ENOENT && strcmp(part, "/") != 0 && strcmp(part, ".") != 0) {
                char *above = xstrdup(dirname(part));
                free(part);
                part = above;
                r = stat(part, &st) < 0 ? -errno : 0;
        }
        if (r == 0 && !S_ISDIR(st.st_mode))
                r = -ENOTDIR;
        if (r == 0 && faccessat(AT_FDCWD, part, USE, AT_EACCESS) < 0)
                r = -errno;
        free(part);
        return r;
}

static char *cannot_use(const char *path, int r)
{
        return xasprintf("cannot use the state directory %s: %s; change state.dir or its "
                         "permissions",
                         path, strerrordesc_np(-r));
}

int state_look(const char *dir, char **ret_path, char **ret_error)
{
        char *path = state_find(dir);
        int r = path ? look_at_directory(path) : -ENOENT;
        if (r == 0) {
                *ret_path = path;
                return 0;
        }
        if (*dir)
                *ret_error = cannot_use(path, r);
        else
                *ret_path = NULL;
        free(path);
        return *dir ? r : 0;
}

int state_open(const char *dir, struct state **ret, char **ret_error)
{
        char *path = state_find(dir);
        int fd = path ? open_directory(path) : -ENOENT;
        if (fd >= 0) {
                struct state *s = xmalloc(sizeof *s);
                *s = (struct state){.fd = fd, .path = path, .settled = true};
                *ret = s;
                return 0;
        }
        if (*dir) {
                *ret_error = cannot_use(path, fd);
        } else {
                log_warn("cannot use the state directory %s: %s; what is learned will not outlive "
                         "this process: name a directory with state.dir",
                         path ? path : "(HOME is not set)", strerrordesc_np(-fd));
                *ret = NULL;
        }
        free(path);
        return *dir ? fd : 0;
}

void state_close(struct state *s)
{
        if (!s)
                return;
        close(s->fd);
        learned_done(&s->others);
        free(s->path);
        free(s);
}

const char *state_path(const struct state *s)
{
        return s ? s->path : NULL;
}

/* ---- restoring ---- */

/* The whole file; the caller frees ret->ptr. */
static int read_all(int fd, struct span *ret)
{
        struct stat st;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        if ((size_t)st.st_size > LEARNED_MAX_BYTES)
                return -EFBIG;
        char *text = xmalloc((size_t)st.st_size + 1);
        size_t n = 0;
        while (n < (size_t)st.st_size) {
                ssize_t more = read(fd, text + n, (size_t)st.st_size - n);
                if (more < 0 && errno != EINTR) {
                        int r = -errno;
                        free(text);
                        return r;
                }
                if (more == 0)
                        break;
                n += more > 0 ? (size_t)more : 0;
        }
        *ret = (struct span){text, n};
        return 0;
}

/* 0; -ENOENT: there is none; else what is wrong, with *ret_why. */
static int load(struct state *s, usec_t now_real, struct learned *ret, char **ret_why)
{
        struct span text = {NULL, 0};
        int fd = openat(s->fd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int r = fd < 0 || fstat(fd, &s->seen) < 0 ? -errno : read_all(fd, &text);
        if (fd >= 0)
                close(fd);
        if (r == -ENOENT)
                return r;
        if (r < 0) {
                *ret_why = xstrdup(strerrordesc_np(-r));
                return r;
        }
        r = learned_parse(text, now_real, ret, ret_why);
        free((char *)text.ptr);
        return r;
}

static void set_aside(const struct state *s, int fault, const char *why)
{
        char now[CLOCK_TEXT_SIZE];
        const char *what = fault == -ENOTSUP ? "unknown" : "damaged";
        char *name = xasprintf(FILE_NAME ".%s-%s", what, clock_text(clock_real(), now));
        if (renameat(s->fd, FILE_NAME, s->fd, name) == 0)
                log_warn("%s/" FILE_NAME " cannot be used (%s): kept as %s; learning anew", s->path,
                         why, name);
        else
                log_warn("%s/" FILE_NAME " cannot be used (%s): learning anew", s->path, why);
        free(name);
}

void state_restore(struct state *s, struct gate *g)
{
        struct learned learned;
        char *why = NULL;
        int r = s ? load(s, clock_real(), &learned, &why) : -ENOENT;
        if (r < 0) {
                if (r != -ENOENT)
                        set_aside(s, r, why);
                free(why);
                return;
        }
        for (size_t i = 0; i < learned.count; i++)
                gate_import(g, span_of(learned.scopes[i].key), &learned.scopes[i].memory);
        for (size_t i = 0; i < learned.quarantine_count; i++) {
                const struct learned_quarantine *q = &learned.quarantines[i];
                gate_import_quarantine(
                    g, &(struct quarantine_view){.pool = q->pool,
                                                 .endpoint = q->endpoint,
                                                 .host = q->host,
                                                 .until = usec_add(clock_now(), q->left)});
        }
        if (learned.unreadable)
                log_warn("%s/" FILE_NAME ": %zu entries make no sense and are learned anew",
                         s->path, learned.unreadable);
        if (learned.count)
                log_info("restored the limits of %zu scopes from %s/" FILE_NAME, learned.count,
                         s->path);
        learned_done(&learned);
}

/* ---- what others have saved ----
 *
 * Several may share the directory: commands of one user (weir exec), and a proxy beside them.
 */

#define KNOWN USEC_MAX /* as idle: it is known here, and nobody used it later */

/* Against those who would save between our reading and writing. Who holds it for longer is stopped:
 * better some scopes lost than all stopped with it. Some file systems know no lock on a directory.
 */
static void lock(const struct state *s)
{
        for (unsigned tries = 100; tries > 0; tries--) {
                if (flock(s->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
                        return;
                usleep(10 * 1000);
        }
}

static int by_key(const void *a, const void *b)
{
        const struct learned_scope *x = a, *y = b;
        return strcmp(x->key, y->key);
}

/* Afterwards s->others is what they know, as far as it is in the file that is there. What this
 * process has read or written itself tells nothing new. */
static void load_others(struct state *s, usec_t now_real)
{
        struct stat st, seen = s->seen;
        struct learned l;
        char *why = NULL;
        if (fstatat(s->fd, FILE_NAME, &st, 0) < 0) {
                learned_done(&s->others);
                return;
        }
        if (!S_ISREG(st.st_mode)) /* that is for the rename to say */
                return;
        if (st.st_ino == seen.st_ino && st.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
            st.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
                return;
        int r = load(s, now_real, &l, &why);
        if (r == 0) {
                qsort(l.scopes, l.count, sizeof *l.scopes, by_key);
                learned_done(&s->others);
                s->others = l;
                s->others_at = now_real;
        } else if (r != -ENOENT) {
                set_aside(s, r, why);
        }
        free(why);
}

/* Have they used the scope later than we? */
static bool know_better(struct state *s, const char *key, const struct limiter_memory *m,
                        usec_t now_real)
{
        struct learned *l = &s->others;
        const struct learned_scope wanted = {.key = (char *)key};
        struct learned_scope *theirs =
            l->count ? bsearch(&wanted, l->scopes, l->count, sizeof wanted, by_key) : NULL;
        if (!theirs || theirs->memory.idle == KNOWN)
                return false;
        if (usec_add(theirs->memory.idle, usec_sub(now_real, s->others_at)) < m->idle)
                return true;
        theirs->memory.idle = KNOWN;
        return false;
}

/* ---- saving ---- */

struct writing {
        FILE *file;
        size_t count, bytes;
        struct state *state;
        usec_t now_real;
};

/* Takes `line` over; NULL: none. */
static void write_entry(struct writing *w, char *line)
{
        size_t more = line ? strlen(line) + strlen(learned_between) : 0;
        if (line && w->bytes + more < LEARNED_MAX_BYTES) {
                fprintf(w->file, "%s%s", w->count ? learned_between : "", line);
                w->count++;
                w->bytes += more;
        }
        free(line);
}

static void on_scope(void *arg, const char *key, const struct limiter_memory *m)
{
        struct writing *w = arg;
        if (!know_better(w->state, key, m, w->now_real))
                write_entry(w, learned_line(key, m, clock_real()));
}

static void write_others(struct writing *w)
{
        const struct state *s = w->state;
        for (size_t i = 0; i < s->others.count; i++) {
                const struct learned_scope *one = &s->others.scopes[i];
                if (one->memory.idle != KNOWN)
                        write_entry(w, learned_line(one->key, &one->memory, s->others_at));
        }
}

static void on_quarantine(void *arg, const struct quarantine_view *view)
{
        struct learned_quarantine q = {(char *)view->pool, (char *)view->endpoint,
                                       (char *)view->host, usec_sub(view->until, clock_now())};
        write_entry(arg, learned_quarantine_line(&q, clock_real()));
}

/* r is what came of writing it: 0 or -errno. */
static int close_file(FILE *file, int r)
{
        return fclose(file) != 0 && r == 0 ? -errno : r;
}

/* Closes the file in any case. */
static int write_all(FILE *file, struct state *s, struct gate *g)
{
        struct writing w = {
            file, 0, strlen(learned_head) + strlen(learned_quarantines) + strlen(learned_tail), s,
            clock_real()};
        load_others(s, w.now_real);
        fputs(learned_head, file);
        gate_export(g, on_scope, &w);
        write_others(&w);
        fputs(learned_quarantines, file);
        w.count = 0;
        gate_look_quarantines(g, on_quarantine, &w);
        fputs(learned_tail, file);
        int r = 0;
        if (fflush(file) != 0 || ferror(file) || fsync(fileno(file)) < 0)
                r = errno ? -errno : -EIO;
        return close_file(file, r);
}

static int write_file(struct state *s, struct gate *g)
{
        char *name = xasprintf(FILE_NAME ".%d", (int)getpid());
        int fd = openat(s->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
        int r = file ? 0 : -errno;
        if (file)
                r = write_all(file, s, g);
        if (!file && fd >= 0)
                close(fd);
        if (r == 0 && renameat(s->fd, name, s->fd, FILE_NAME) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(s->fd, name, 0);
        else if (fstatat(s->fd, FILE_NAME, &s->seen, 0) < 0 ||
                 fsync(s->fd) < 0) /* the new name is on the disk as well */
                r = -errno;
        free(name);
        return r;
}

void state_save(struct state *s, struct gate *g)
{
        struct governor_stats stats;
        if (!s)
                return;
        gate_stats(g, &stats);
        uint64_t changes = stats.sent + stats.resets;
        if (changes == s->changes && s->settled)
                return;
        lock(s);
        int r = write_file(s, g);
        flock(s->fd, LOCK_UN);
        if (r < 0 && !s->failing)
                log_warn("cannot save what was learned to %s/" FILE_NAME ": %s; the proxy goes on, "
                         "and tries again: see to the directory's space and permissions",
                         s->path, strerrordesc_np(-r));
        if (r == 0 && s->failing)
                log_info("what was learned is saved to %s/" FILE_NAME " again", s->path);
        s->failing = r < 0;
        s->settled = r == 0 && stats.in_flight + stats.ready == 0;
        s->changes = changes;
}
