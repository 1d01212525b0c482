#include "tests/unit/unit.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "proxy/login_desk.h"
#include "proxy/users.h"

static char path[] = "/tmp/weir-test-users-XXXXXX";
static char *error;

static char *hash_of(const char *password, const char *setting)
{
        struct crypt_data *data = xcalloc(1, sizeof *data);
        char *made = xstrdup(crypt_rn(password, setting, data, sizeof *data));
        free(data);
        return made;
}

static int write_file(const char *format, const char *a, const char *b)
{
        FILE *to = fopen(path, "w");
        assert_non_null(to);
        fprintf(to, format, a, b);
        assert_int_equal(fclose(to), 0);
        return chmod(path, 0600);
}

static int setup(void **state)
{
        (void)state;
        strcpy(path + strlen(path) - 6, "XXXXXX");
        int fd = mkstemp(path);
        error = NULL;
        return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
        (void)state;
        free(error);
        return unlink(path);
}

static struct users *load(void)
{
        struct users *u = NULL;
        assert_int_equal(users_load(path, &u, &error), 0);
        assert_non_null(u);
        return u;
}

static void names_and_passwords(void **state)
{
        (void)state;
        char *x = hash_of("x", "$5$rounds=1000$abcdefgh"), *y = hash_of("y", "$y$j7T$abcdefgh");
        struct crypt_data *data = xcalloc(1, sizeof *data);
        write_file("# some\r\n\n  \nalice:%s\r\nbob:%s", x, y); /* "  " has no colon */
        assert_int_equal(users_load(path, &(struct users *){NULL}, &error), -EINVAL);
        assert_non_null(strstr(error, ":3: expected NAME:HASH"));
        write_file("# some\r\n\nalice:%s\r\nbob:%s", x, y);
        struct users *u = load();
        size_t alice = users_find(u, "alice"), bob = users_find(u, "bob");
        assert_int_equal(users_count(u), 2);
        assert_int_equal(alice, 0);
        assert_int_equal(bob, 1);
        assert_true(users_find(u, "carol") == USERS_NOBODY);
        assert_true(users_find(u, "") == USERS_NOBODY);
        assert_true(users_check(u, alice, "x", data));
        assert_true(users_check(u, bob, "y", data));
        assert_false(users_check(u, alice, "y", data));
        assert_false(users_check(u, alice, "", data));
        assert_false(users_check(u, USERS_NOBODY, "x", data));
        users_unref(u);
        free(data);
        free(x);
        free(y);
}

static void readings_are_told_apart(void **state)
{
        (void)state;
        char *x = hash_of("x", "$5$rounds=1000$abcdefgh");
        write_file("alice:%s\n%s", x, "");
        struct users *a = load(), *b = load(), *none = NULL;
        assert_int_not_equal(users_serial(a), users_serial(b));
        assert_int_not_equal(users_serial(a), 0);
        assert_int_equal(users_load("", &none, &error), 0);
        assert_null(none);
        assert_int_equal(users_serial(NULL), 0);
        assert_int_equal(users_count(NULL), 0);
        users_unref(users_ref(a));
        assert_int_equal(users_find(a, "alice"), 0);
        users_unref(a);
        users_unref(b);
        users_unref(users_ref(NULL));
        free(x);
}

static void nobody_has_no_password(void **state)
{
        (void)state;
        struct crypt_data *data = xcalloc(1, sizeof *data);
        write_file("%s%s", "", "");
        struct users *u = load();
        assert_false(users_check(u, users_find(u, ""), "", data));
        users_unref(u);
        free(data);
}

static void faults_have_their_place(void **state)
{
        (void)state;
        static const struct {
                const char *text, *fault;
        } cases[] = {
            {"x\n", ":1: expected NAME:HASH"},
            {":%s\n", ":1: expected NAME:HASH"},
            {"a:%s\nb:plain\n", ":2: behind the name is no hash"},
            {"a:%s\nb:$9$x$y\n", ":2: behind the name is no hash"},
            {"a:%s\nb:*\n", ":2: behind the name is no hash"},
            {"a:%s\nb:\n", ":2: behind the name is no hash"},
            {"a:%s\nb:$1$ab cd$x\n", ":2: behind the name is no hash"},
            {"a:%s\na:%s\n", ":2: this name is there already"},
            {"a-session-b:%s\n", ":1: \"-session-\" in a name"},
        };
        char *x = hash_of("x", "$5$rounds=1000$abcdefgh");
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct users *u = NULL;
                print_message("%s", cases[i].text);
                write_file(cases[i].text, x, x);
                assert_int_equal(users_load(path, &u, &error), -EINVAL);
                assert_null(u);
                assert_non_null(strstr(error, cases[i].fault));
                assert_non_null(strstr(error, path));
                free(error);
                error = NULL;
        }
        free(x);
        assert_int_equal(users_load("/no/such", &(struct users *){NULL}, &error), -ENOENT);
        assert_non_null(strstr(error, "/no/such"));
}

/* ---- the desk ---- */

struct ringing {
        struct event_base *base;
        unsigned rings;
};

static void on_ring(void *arg)
{
        struct ringing *r = arg;
        r->rings++;
        event_base_loopbreak(r->base);
}

static struct login_check *check_of(struct users *u, const char *name, const char *password,
                                    uint8_t source)
{
        struct login_check *c = xcalloc(1, sizeof *c);
        c->users = users_ref(u);
        c->user = users_find(u, name);
        c->password = xstrdup(password);
        c->source[15] = source;
        list_init(&c->link);
        return c;
}

static struct login_check *wait_for(struct login_desk *d, struct ringing *r)
{
        struct login_check *c = login_desk_next(d, 0);
        while (!c) {
                event_base_loop(r->base, EVLOOP_ONCE);
                c = login_desk_next(d, 0);
        }
        return c;
}

static void the_desk_checks_in_order(void **state)
{
        (void)state;
        char *x = hash_of("x", "$5$rounds=1000$abcdefgh");
        struct ringing r = {.base = event_base_new()};
        struct mailbox mailbox;
        struct login_desk *d = login_desk_new(1);
        write_file("alice:%s\n%s", x, "");
        struct users *u = load();
        assert_int_equal(mailbox_init(&mailbox, r.base, on_ring, &r), 0);
        login_desk_attach(d, 0, &mailbox);
        assert_null(login_desk_next(d, 0));
        const char *const passwords[] = {"x", "wrong", "x"};
        for (size_t i = 0; i < COUNT_OF(passwords); i++)
                assert_true(login_desk_ask(d, check_of(u, "alice", passwords[i], 1)));
        for (size_t i = 0; i < COUNT_OF(passwords); i++) {
                struct login_check *c = wait_for(d, &r);
                assert_string_equal(c->password, passwords[i]);
                assert_int_equal(c->good, strcmp(passwords[i], "x") == 0);
                login_check_free(c);
        }
        assert_true(r.rings >= 1);
        login_desk_free(d);
        mailbox_done(&mailbox);
        event_base_free(r.base);
        users_unref(u);
        free(x);
}

static void the_desk_keeps_guessers_away(void **state)
{
        (void)state;
        char *x = hash_of("x", "$5$rounds=1000$abcdefgh");
        struct ringing r = {.base = event_base_new()};
        struct mailbox mailbox;
        struct login_desk *d = login_desk_new(1);
        const uint8_t one[THROTTLE_KEY_SIZE] = {[15] = 1}, two[THROTTLE_KEY_SIZE] = {[15] = 2};
        write_file("alice:%s\n%s", x, "");
        struct users *u = load();
        assert_int_equal(mailbox_init(&mailbox, r.base, on_ring, &r), 0);
        login_desk_attach(d, 0, &mailbox);
        for (int i = 0; i < 10; i++) {
                assert_int_equal(login_desk_wait(d, one), 0);
                assert_true(login_desk_ask(d, check_of(u, "alice", "guess", 1)));
                login_check_free(wait_for(d, &r));
        }
        assert_in_range(login_desk_wait(d, one), 1, 6 * USEC_PER_SEC);
        assert_int_equal(login_desk_wait(d, two), 0);
        login_desk_free(d);
        mailbox_done(&mailbox);
        event_base_free(r.base);
        users_unref(u);
        free(x);
}

/* More than the thread is through with at once; what is left is freed. */
static void the_desk_is_bounded(void **state)
{
        (void)state;
        char *slow = hash_of("x", "$5$rounds=300000$abcdefgh");
        struct ringing r = {.base = event_base_new()};
        struct mailbox mailbox;
        struct login_desk *d = login_desk_new(1);
        write_file("alice:%s\n%s", slow, "");
        struct users *u = load();
        assert_int_equal(mailbox_init(&mailbox, r.base, on_ring, &r), 0);
        login_desk_attach(d, 0, &mailbox);
        unsigned taken = 0;
        struct login_check *c = check_of(u, "alice", "x", 1);
        while (login_desk_ask(d, c)) {
                assert_true(++taken < 100);
                c = check_of(u, "alice", "x", 1);
        }
        login_check_free(c);
        assert_true(taken >= 64);
        assert_true(login_desk_ask(d, check_of(u, "alice", "x", 2))); /* another one's turn */
        login_desk_free(d);
        mailbox_done(&mailbox);
        event_base_free(r.base);
        users_unref(u);
        free(slow);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(names_and_passwords, setup, teardown),
            cmocka_unit_test_setup_teardown(readings_are_told_apart, setup, teardown),
            cmocka_unit_test_setup_teardown(nobody_has_no_password, setup, teardown),
            cmocka_unit_test_setup_teardown(faults_have_their_place, setup, teardown),
            cmocka_unit_test_setup_teardown(the_desk_checks_in_order, setup, teardown),
            cmocka_unit_test_setup_teardown(the_desk_keeps_guessers_away, setup, teardown),
            cmocka_unit_test_setup_teardown(the_desk_is_bounded, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
