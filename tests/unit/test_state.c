/* NOLINTBEGIN(concurrency-mt-unsafe): there is one thread */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "runtime/clock.h"
#include "runtime/state.h"

#define SEC USEC_PER_SEC

static const struct lane_policy policy = {
    .limit = {.algorithm = LIMITER_ADAPTIVE,
              .start = 4,
              .floor = 1,
              .ceiling = 32,
              .max_hold = 900 * SEC,
              .breaker = {.trip = 6, .cooldown = 30 * SEC}},
    .queue_max = 100,
    .generation = 1,
};

/* ---- a directory to play in ---- */

static char *dir;
static struct gate *g;

static char *in_dir(const char *name)
{
        return xasprintf("%s/%s", dir, name);
}

/* Removes what is in it; returns the number of files whose name begins like this. */
static unsigned clear(const char *path, const char *prefix)
{
        unsigned found = 0;
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));) {
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                char *full = xasprintf("%s/%s", path, e->d_name);
                found += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
                if (unlink(full) < 0 && errno == EISDIR) {
                        clear(full, "");
                        rmdir(full);
                }
                free(full);
        }
        if (d)
                closedir(d);
        return found;
}

static int setup(void **state)
{
        (void)state;
        char template[] = "/tmp/weir-test-state.XXXXXX";
        dir = xstrdup(mkdtemp(template));
        g = gate_new(1, 100, NULL);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        gate_free(g);
        clear(dir, "");
        rmdir(dir);
        free(dir);
        return 0;
}

static void again(void)
{
        gate_free(g);
        g = gate_new(1, 100, NULL);
}

static struct state *open_state(const char *path)
{
        struct state *s = NULL;
        char *error = NULL;
        assert_int_equal(state_open(path, &s, &error), 0);
        assert_null(error);
        return s;
}

static void put(const char *name, const char *text)
{
        char *path = in_dir(name);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        free(path);
}

static bool is_there(const char *name)
{
        char *path = in_dir(name);
        bool yes = access(path, F_OK) == 0;
        free(path);
        return yes;
}

static void one(const char *key, enum answer_class class, usec_t wait)
{
        struct ticket t = {0};
        struct ticket_wish w = {
            .key = span_of(key),
            .client = span_of("a"),
            .policy = &policy,
            .deadline = USEC_MAX - 1,
        };
        assert_int_equal(gate_ask(g, &t, &w), TICKET_GRANTED);
        gate_answer(g, &t, &(struct answer){.class = class, .wait_named = wait > 0, .wait = wait});
        gate_finish(g, &t);
}

static void on_look(void *arg, const struct governor_change *view)
{
        struct governor_change *found = arg;
        if (strcmp(view->key, "a:80") == 0)
                *found = *view;
}

static void on_count(void *arg, const struct governor_change *view)
{
        (void)view;
        ++*(size_t *)arg;
}

static struct governor_change look(void)
{
        struct governor_change found = {.key = NULL};
        gate_look(g, on_look, &found);
        return found;
}

/* ---- cases ---- */

static void over_a_restart(void **state)
{
        (void)state;
        struct state *s = open_state(dir);
        one("a:80", ANSWER_THROTTLED, 60 * SEC);
        double rate = look().view.rate;
        state_save(s, g);
        state_close(s);
        again();
        s = open_state(dir);
        state_restore(s, g);
        struct governor_change after = look();
        assert_true(rate > 0 && after.view.rate > rate * .999 && after.view.rate < rate * 1.001);
        assert_true(after.view.closed_until > after.now + 55 * SEC);
        assert_true(after.view.closed_until <= after.now + 60 * SEC);
        state_close(s);
        assert_int_equal(clear(dir, "learned.json"), 1); /* and no temporary file */
}

/* Two processes that share the directory, as commands of one user do. */
static void beside_others(void **state)
{
        (void)state;
        struct state *mine = open_state(dir), *theirs = open_state(dir);
        struct gate *own = g, *other = gate_new(1, 100, NULL);
        state_restore(mine, own);
        state_restore(theirs, other);
        one("a:80", ANSWER_THROTTLED, 60 * SEC);
        one("mine:80", ANSWER_SUCCESS, 0);
        g = other;
        one("theirs:80", ANSWER_SUCCESS, 0);
        one("a:80", ANSWER_THROTTLED, 600 * SEC); /* later */
        state_save(theirs, other);
        state_save(mine, own);
        g = own;
        one("mine:80", ANSWER_SUCCESS, 0);
        state_save(mine, own); /* nobody has saved meanwhile: theirs stays all the same */
        g = other;
        again();
        struct state *s = open_state(dir);
        state_restore(s, g);
        size_t count = 0;
        gate_look(g, on_count, &count);
        assert_int_equal(count, 3);
        assert_true(look().view.closed_until > clock_now() + 500 * SEC);
        /* What was forgotten here stays so where nobody else has saved. */
        gate_reset(g, span_of("mine:80"));
        one("b:80", ANSWER_SUCCESS, 0);
        state_save(s, g);
        again();
        state_restore(s, g);
        count = 0;
        gate_look(g, on_count, &count);
        assert_int_equal(count, 3);
        state_close(s);
        state_close(theirs);
        state_close(mine);
        gate_free(own);
        assert_int_equal(clear(dir, "learned.json"), 1);
}

/* ---- pools ---- */

static const struct endpoint_policy ways[] = {{"first", 1, 1, NULL}, {"second/1", 1, 1, NULL}};
static const struct pool_policy pool = {.name = "res",
                                        .endpoints = ways,
                                        .endpoint_count = COUNT_OF(ways),
                                        .quarantine = {.after = 1, .time = 600 * SEC},
                                        .generation = 1};

/* By which endpoint it went, or NULL. */
static const char *go(enum answer_class class, usec_t wait)
{
        static struct lane_policy by_endpoint;
        struct ticket t = {0};
        by_endpoint = policy;
        by_endpoint.by_endpoint = true;
        struct ticket_wish w = {.key = span_of("a:80 endpoint=res"),
                                .client = span_of("a"),
                                .policy = &by_endpoint,
                                .pool = &pool,
                                .host = span_of("a"),
                                .deadline = USEC_MAX - 1};
        enum ticket_reply reply = gate_ask(g, &t, &w);
        const char *by = reply == TICKET_GRANTED ? t.endpoint->name : NULL;
        if (by)
                gate_answer(g, &t,
                            &(struct answer){.class = class, .wait_named = wait > 0, .wait = wait});
        gate_cancel(g, &t);
        return by;
}

static void tell_pools(void)
{
        const struct pool_policy *const pools[] = {&pool};
        gate_pools(g, pools, 1);
}

static void on_look_at_limiter(void *arg, const struct governor_change *view)
{
        if (strcmp(view->key, "a:80 endpoint=res/second%2F1") == 0)
                *(struct governor_change *)arg = *view;
}

/* The one endpoint is avoided, the other has a hold: after a restart as before. */
static void endpoints_over_a_restart(void **state)
{
        (void)state;
        tell_pools();
        assert_string_equal(go(ANSWER_BLOCKED, 0), "first");
        assert_string_equal(go(ANSWER_THROTTLED, 60 * SEC), "second/1");
        assert_null(go(ANSWER_SUCCESS, 0));
        struct state *s = open_state(dir);
        state_save(s, g);
        again();
        tell_pools();
        state_restore(s, g);
        struct governor_change after = {.key = NULL};
        gate_look(g, on_look_at_limiter, &after);
        assert_non_null(after.key);
        assert_true(after.view.closed_until > after.now + 55 * SEC);
        assert_null(go(ANSWER_SUCCESS, 0));
        assert_true(gate_reset(g, span_of("a:80 endpoint=res/second%2F1")));
        assert_string_equal(go(ANSWER_SUCCESS, 0), "second/1");
        assert_string_equal(go(ANSWER_SUCCESS, 0), "second/1"); /* "first" is still avoided */
        state_close(s);
}

static void a_reset_is_saved_as_well(void **state)
{
        (void)state;
        struct state *s = open_state(dir);
        one("a:80", ANSWER_THROTTLED, 60 * SEC);
        state_save(s, g);
        assert_true(gate_reset(g, span_of("a:80")));
        state_save(s, g);
        state_close(s);
        again();
        s = open_state(dir);
        state_restore(s, g);
        assert_null(look().key);
        state_close(s);
        assert_int_equal(clear(dir, "learned.json"), 1);
}

static void saves_only_what_is_new(void **state)
{
        (void)state;
        struct state *s = open_state(dir);
        char *path = in_dir("learned.json");
        state_save(s, g);
        assert_false(is_there("learned.json")); /* nothing was sent */
        one("a:80", ANSWER_SUCCESS, 0);
        state_save(s, g);
        assert_true(is_there("learned.json"));
        unlink(path);
        state_save(s, g);
        assert_false(is_there("learned.json")); /* nothing new */
        struct ticket t = {0};
        struct ticket_wish w = {
            .key = span_of("a:80"), .policy = &policy, .deadline = USEC_MAX - 1};
        gate_ask(g, &t, &w);
        state_save(s, g);
        unlink(path);
        gate_answer(g, &t, &(struct answer){.class = ANSWER_SUCCESS});
        gate_finish(g, &t); /* it was under way at the last save */
        state_save(s, g);
        assert_true(is_there("learned.json"));
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        free(path);
        state_close(s);
}

static void damaged_files(void **state)
{
        (void)state;
        static const struct {
                const char *text, *kept_as;
        } cases[] = {
            {"", "learned.json.damaged-"},
            {"{\"version\": 1, \"scopes\": [{\"scope\": \"a", "learned.json.damaged-"},
            {"{\"version\": 1000, \"scopes\": []}", "learned.json.unknown-"},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct state *s = open_state(dir);
                put("learned.json", cases[i].text);
                state_restore(s, g);
                assert_false(is_there("learned.json"));
                one("a:80", ANSWER_SUCCESS, 0);
                state_save(s, g);
                assert_true(is_there("learned.json"));
                state_close(s);
                assert_int_equal(clear(dir, cases[i].kept_as), 1);
        }
}

/* The same of one that another process has left there meanwhile. */
static void damaged_by_others(void **state)
{
        (void)state;
        struct state *s = open_state(dir);
        char *from = in_dir("new"), *to = in_dir("learned.json");
        one("a:80", ANSWER_SUCCESS, 0);
        state_save(s, g);
        put("new", "{\"version\": 1000, \"scopes\": []}");
        assert_int_equal(rename(from, to), 0);
        one("a:80", ANSWER_SUCCESS, 0);
        state_save(s, g);
        assert_true(is_there("learned.json"));
        state_close(s);
        free(from);
        free(to);
        assert_int_equal(clear(dir, "learned.json.unknown-"), 1);
}

static void odd_files(void **state)
{
        (void)state;
        struct state *s = open_state(dir);
        char *path = in_dir("learned.json");
        assert_int_equal(mkfifo(path, 0600), 0);
        state_restore(s, g); /* and does not wait for a writer */
        assert_false(is_there("learned.json"));
        clear(dir, "");
        assert_int_equal(mkdir(path, 0700), 0);
        state_restore(s, g);
        assert_false(is_there("learned.json"));
        clear(dir, "");
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* a hole */
        close(fd);
        state_restore(s, g);
        assert_false(is_there("learned.json"));
        state_restore(s, g); /* none at all is fine */
        free(path);
        state_close(s);
}

/* A directory that has gone is told once; the next save works when there is one again. */
static void failing_saves(void **state)
{
        (void)state;
        char *path = in_dir("learned.json");
        struct state *s = open_state(dir);
        assert_int_equal(mkdir(path, 0700), 0); /* no file can take its place */
        one("a:80", ANSWER_SUCCESS, 0);
        state_save(s, g);
        state_save(s, g);
        assert_int_equal(rmdir(path), 0);
        state_save(s, g); /* nothing new, but it is owed */
        assert_true(is_there("learned.json"));
        state_close(s);
        assert_int_equal(clear(dir, "learned.json"), 1);
        free(path);
}

static void directories(void **state)
{
        (void)state;
        char *deep = in_dir("x/y//z/"), *file = in_dir("file"), *below = in_dir("file/below");
        struct stat st;
        struct state *s = open_state(deep);
        assert_int_equal(stat(deep, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        state_close(s);
        put("file", "");
        const char *bad[] = {file, below, "/proc/nothing/here"};
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
                char *error = NULL;
                s = NULL;
                assert_true(state_open(bad[i], &s, &error) < 0);
                assert_null(s);
                assert_non_null(strstr(error, bad[i]));
                assert_null(strchr(error, '\n'));
                free(error);
        }
        for (size_t i = 0; i < 2; i++) { /* in /proc nothing but an attempt shows it */
                char *error = NULL, *found = NULL;
                assert_int_equal(state_look(bad[i], &found, &error), -ENOTDIR);
                assert_null(found);
                assert_non_null(strstr(error, bad[i]));
                free(error);
        }
        char *not_yet = in_dir("not/yet"), *found = NULL, *error = NULL;
        assert_int_equal(state_look(not_yet, &found, &error), 0);
        assert_string_equal(found, not_yet);
        assert_int_equal(access(not_yet, F_OK), -1);
        free(found);
        free(not_yet);
        free(deep);
        free(file);
        free(below);
}

static void default_directories(void **state)
{
        (void)state;
        char *service = in_dir("service"), *user = in_dir("user"), *home = in_dir("home");
        char *two = xasprintf("%s:/other", service);
        const struct {
                const char *service, *user, *home, *want;
        } cases[] = {
            {service, user, home, "service"},
            {two, user, home, "service"},
            {"relative", user, home, "user/weir"},
            {NULL, user, home, "user/weir"},
            {NULL, "relative", home, "home/.local/state/weir"},
            {NULL, NULL, home, "home/.local/state/weir"},
            {NULL, NULL, NULL, NULL},
            {NULL, "/proc/nothing", NULL, NULL}, /* cannot be made: a warning, and nothing */
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                unsetenv("STATE_DIRECTORY");
                unsetenv("XDG_STATE_HOME");
                unsetenv("HOME");
                if (cases[i].service)
                        setenv("STATE_DIRECTORY", cases[i].service, 1);
                if (cases[i].user)
                        setenv("XDG_STATE_HOME", cases[i].user, 1);
                if (cases[i].home)
                        setenv("HOME", cases[i].home, 1);
                struct state *s = open_state("");
                assert_int_equal(s != NULL, cases[i].want != NULL);
                if (s)
                        assert_true(is_there(cases[i].want));
                state_restore(s, g);
                state_save(s, g);
                state_close(s);
                clear(dir, "");
        }
        free(two);
        free(service);
        free(user);
        free(home);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(over_a_restart, setup, teardown),
            cmocka_unit_test_setup_teardown(beside_others, setup, teardown),
            cmocka_unit_test_setup_teardown(endpoints_over_a_restart, setup, teardown),
            cmocka_unit_test_setup_teardown(a_reset_is_saved_as_well, setup, teardown),
            cmocka_unit_test_setup_teardown(saves_only_what_is_new, setup, teardown),
            cmocka_unit_test_setup_teardown(damaged_files, setup, teardown),
            cmocka_unit_test_setup_teardown(damaged_by_others, setup, teardown),
            cmocka_unit_test_setup_teardown(odd_files, setup, teardown),
            cmocka_unit_test_setup_teardown(failing_saves, setup, teardown),
            cmocka_unit_test_setup_teardown(directories, setup, teardown),
            cmocka_unit_test_setup_teardown(default_directories, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
/* NOLINTEND(concurrency-mt-unsafe) */
