#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "proxy/intercept_ca.h"
#include "proxy/intercept_cert.h"
#include "runtime/clock.h"

static const char *const names[] = {"ca.pem", "ca.key", "b.pem", "b.key", "both.pem", "empty"};

struct place {
        char dir[sizeof "/tmp/weir-test-ca-XXXXXX"];
};

static int make_place(void **state)
{
        struct place *p = xcalloc(1, sizeof *p);
        strcpy(p->dir, "/tmp/weir-test-ca-XXXXXX");
        *state = p;
        return mkdtemp(p->dir) ? 0 : -1;
}

static char *path_in(const struct place *p, const char *name)
{
        return xasprintf("%s/%s", p->dir, name);
}

static int remove_place(void **state)
{
        struct place *p = *state;
        for (size_t i = 0; i < COUNT_OF(names); i++) {
                char *path = path_in(p, names[i]);
                chmod(path, 0600);
                unlink(path);
                free(path);
        }
        int r = rmdir(p->dir); /* nothing else may be left behind */
        free(p);
        return r;
}

static char *slurp(const struct place *p, const char *name)
{
        char *path = path_in(p, name), text[8192];
        FILE *from = fopen(path, "r");
        free(path);
        assert_non_null(from);
        size_t n = fread(text, 1, sizeof text, from);
        fclose(from);
        return xspandup((struct span){text, n});
}

static void put(const struct place *p, const char *name, const char *text)
{
        char *path = path_in(p, name);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
        free(path);
}

static void make_good(const struct place *p)
{
        char *error = NULL;
        assert_int_equal(intercept_ca_make(p->dir, &error), 0);
        assert_null(error);
}

static int load(const struct place *p, const char *certificate, const char *key,
                struct intercept_ca **ret, char **ret_error)
{
        char *a = path_in(p, certificate), *b = path_in(p, key);
        int r = intercept_ca_load(a, b, ret, ret_error);
        free(a);
        free(b);
        return r;
}

static mode_t mode_of(const struct place *p, const char *name)
{
        struct stat st;
        char *path = path_in(p, name);
        assert_int_equal(stat(path, &st), 0);
        free(path);
        return st.st_mode & 07777;
}

static void makes_one(void **state)
{
        const struct place *p = *state;
        struct intercept_ca *ca;
        struct intercept_ca_facts facts;
        char *error = NULL, date[CLOCK_TEXT_SIZE];
        mode_t before = umask(0);
        make_good(p);
        umask(before);
        assert_int_equal(mode_of(p, "ca.key"), 0600);
        assert_int_equal(mode_of(p, "ca.pem"), 0644);
        assert_int_equal(load(p, "ca.pem", "ca.key", &ca, &error), 0);
        assert_int_equal(EVP_PKEY_get_bits(ca->key), 256);
        assert_true(EVP_PKEY_is_a(ca->key, "EC"));
        assert_int_equal(X509_verify(ca->certificate, ca->key), 1);
        assert_int_equal(X509_get_pathlen(ca->certificate), 0);
        assert_int_equal(X509_get_key_usage(ca->certificate), KU_KEY_CERT_SIGN | KU_CRL_SIGN);

        intercept_ca_describe(ca, &facts);
        assert_int_equal(strlen(facts.fingerprint), 95);
        assert_int_equal(facts.fingerprint[2], ':');
        assert_memory_equal(facts.subject, "CN=weir CA ", strlen("CN=weir CA "));
        usec_t years = (facts.not_after - clock_real()) / USEC_PER_SEC / (365 * 24 * 3600);
        print_message("until %s\n", clock_text(facts.not_after, date));
        assert_in_range(years, 9, 10);
        intercept_ca_facts_done(&facts);

        char *exported = intercept_ca_export(ca), *file = slurp(p, "ca.pem");
        assert_string_equal(exported, file);
        free(exported);
        free(file);
        intercept_ca_free(ca);
}

static void overwrites_nothing(void **state)
{
        const struct place *p = *state;
        static const char *const kept[] = {"ca.pem", "ca.key"};
        for (size_t i = 0; i < COUNT_OF(kept); i++) {
                char *error = NULL;
                put(p, kept[i], "mine");
                assert_int_equal(intercept_ca_make(p->dir, &error), -EEXIST);
                assert_non_null(strstr(error, kept[i]));
                free(error);
                char *text = slurp(p, kept[i]);
                assert_string_equal(text, "mine");
                free(text);
                char *path = path_in(p, kept[i]);
                unlink(path);
                free(path);
        }
}

static void says_why_it_cannot_make_one(void **state)
{
        const struct place *p = *state;
        char *error = NULL, *missing = path_in(p, "missing");
        assert_int_equal(intercept_ca_make(missing, &error), -ENOENT);
        assert_non_null(strstr(error, missing));
        free(error);
        free(missing);
}

/* The subject as one certificate of a test. */
struct making {
        const char *constraints, *usage;
        int days; /* until it ends */
};

static void put_made(const struct place *p, const struct making *m)
{
        EVP_PKEY *key = intercept_cert_key();
        X509 *cert = intercept_cert_new(key, m->days);
        X509_NAME *name = X509_get_subject_name(cert);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"x", -1, -1, 0);
        X509_set_issuer_name(cert, name);
        if (m->constraints)
                intercept_cert_extend(cert, cert, NID_basic_constraints, m->constraints);
        if (m->usage)
                intercept_cert_extend(cert, cert, NID_key_usage, m->usage);
        if (m->days > 1000)
                X509_gmtime_adj(X509_getm_notBefore(cert), 2 * INTERCEPT_CERT_DAY);
        if (m->days < 0)
                X509_gmtime_adj(X509_getm_notBefore(cert), -9 * INTERCEPT_CERT_DAY);
        assert_true(intercept_cert_sign(cert, key));
        char *cert_path = path_in(p, "b.pem"), *key_path = path_in(p, "b.key");
        FILE *to = fopen(cert_path, "w");
        assert_true(PEM_write_X509(to, cert));
        fclose(to);
        to = fopen(key_path, "w");
        assert_true(PEM_write_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL));
        fclose(to);
        free(cert_path);
        free(key_path);
        X509_free(cert);
        EVP_PKEY_free(key);
}

static void checks_what_it_is(void **state)
{
        const struct place *p = *state;
        static const struct {
                struct making making;
                const char *error; /* NULL: it is good */
        } cases[] = {
            {{"critical,CA:TRUE", "critical,keyCertSign", 5}, NULL},
            {{"CA:TRUE", NULL, 5}, NULL},
            {{"critical,CA:FALSE", NULL, 5}, "is not that of a CA"},
            {{NULL, NULL, 5}, "is not that of a CA"},
            {{"critical,CA:TRUE", "digitalSignature", 5}, "is not that of a CA"},
            {{"critical,CA:TRUE", NULL, -2}, "has expired on 20"},
            {{"critical,CA:TRUE", NULL, 2000}, "is not valid before 20"},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct intercept_ca *ca = NULL;
                char *error = NULL;
                put_made(p, &cases[i].making);
                int r = load(p, "b.pem", "b.key", &ca, &error);
                print_message("%zu: %s\n", i, error ? error : "good");
                assert_int_equal(r, cases[i].error ? -EINVAL : 0);
                assert_int_equal(error != NULL, cases[i].error != NULL);
                if (cases[i].error && error) {
                        assert_non_null(strstr(error, cases[i].error));
                        assert_non_null(strstr(error, "b.pem"));
                }
                intercept_ca_free(ca);
                free(error);
        }
}

static void checks_the_files(void **state)
{
        const struct place *p = *state;
        static const struct {
                const char *certificate, *key;
                int r;
                const char *error, *names; /* what it says, and of which file */
        } cases[] = {
            {"missing", "ca.key", -ENOENT, "No such file", "missing"},
            {"ca.pem", "missing", -ENOENT, "No such file", "missing"},
            {".", "ca.key", -EISDIR, "Is a directory", "certificate"},
            {"empty", "ca.key", -EINVAL, "holds no certificate", "empty"},
            {"ca.key", "ca.key", -EINVAL, "holds no certificate", "ca.key"},
            {"ca.pem", "empty", -EINVAL, "holds no private key", "empty"},
            {"ca.pem", "ca.pem", -EINVAL, "holds no private key", "ca.pem"},
            {"ca.pem", "b.key", -EINVAL, "is not the one of the certificate", "b.key"},
            {"b.pem", "ca.key", -EINVAL, "is not the one of the certificate", "b.pem"},
        };
        make_good(p);
        put(p, "empty", "");
        put_made(p, &(struct making){"critical,CA:TRUE", NULL, 5});
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct intercept_ca *ca = NULL;
                char *error = NULL;
                assert_int_equal(load(p, cases[i].certificate, cases[i].key, &ca, &error),
                                 cases[i].r);
                print_message("%s\n", error);
                assert_non_null(strstr(error, cases[i].error));
                assert_non_null(strstr(error, cases[i].names));
                assert_null(strchr(error, '\n'));
                assert_null(ca);
                free(error);
        }
}

static void wants_no_passphrase(void **state)
{
        const struct place *p = *state;
        struct intercept_ca *ca = NULL;
        char *error = NULL, *path = path_in(p, "b.key");
        make_good(p);
        EVP_PKEY *key = intercept_cert_key();
        FILE *to = fopen(path, "w");
        assert_true(PEM_write_PrivateKey(to, key, EVP_aes_128_cbc(),
                                         (const unsigned char *)"secret", 6, NULL, NULL));
        fclose(to);
        EVP_PKEY_free(key);
        assert_int_equal(load(p, "ca.pem", "b.key", &ca, &error), -EINVAL);
        assert_non_null(strstr(error, "passphrase"));
        free(error);
        free(path);
}

/* A CA below another one: clients that trust the upper one want to see both. */
static void keeps_those_above(void **state)
{
        const struct place *p = *state;
        struct intercept_ca *ca;
        char *error = NULL;
        make_good(p);
        put_made(p, &(struct making){"critical,CA:TRUE", NULL, 5});
        char *upper = slurp(p, "b.pem"), *lower = slurp(p, "ca.pem");
        char *text = xasprintf("a line that is no PEM\n%s%s", lower, upper);
        char *both = xasprintf("%s%s", lower, upper);
        put(p, "both.pem", text);
        assert_int_equal(load(p, "both.pem", "ca.key", &ca, &error), 0);
        assert_int_equal(sk_X509_num(ca->above), 1);
        char *exported = intercept_ca_export(ca);
        assert_string_equal(exported, both);
        free(exported);
        free(text);
        free(both);
        free(upper);
        free(lower);
        intercept_ca_free(ca);
}

static void needs_one_or_both(void **state)
{
        const struct place *p = *state;
        struct intercept_ca *first, *again;
        char *error = NULL, *path = path_in(p, "ca.pem");
        bool made = false;
        assert_int_equal(intercept_ca_need(p->dir, &first, &made, &error), 0);
        assert_true(made);
        assert_int_equal(intercept_ca_need(p->dir, &again, &made, &error), 0);
        assert_false(made);
        assert_int_equal(X509_cmp(first->certificate, again->certificate), 0);
        intercept_ca_free(first);
        intercept_ca_free(again);

        unlink(path);
        assert_int_equal(intercept_ca_need(p->dir, &first, &made, &error), -ENOENT);
        assert_non_null(strstr(error, "put it back"));
        free(error);
        free(path);
}

struct racer {
        const struct place *place;
        pthread_t thread;
        struct intercept_ca *ca;
        bool made;
        int r;
};

static void *race(void *arg)
{
        struct racer *r = arg;
        char *error = NULL;
        r->r = intercept_ca_need(r->place->dir, &r->ca, &r->made, &error);
        free(error);
        return NULL;
}

static void agrees_on_one(void **state)
{
        struct racer racers[8] = {0};
        size_t made = 0;
        for (size_t i = 0; i < COUNT_OF(racers); i++) {
                racers[i].place = *state;
                assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
        }
        for (size_t i = 0; i < COUNT_OF(racers); i++)
                pthread_join(racers[i].thread, NULL);
        for (size_t i = 0; i < COUNT_OF(racers); i++) {
                assert_int_equal(racers[i].r, 0);
                assert_int_equal(X509_cmp(racers[i].ca->certificate, racers[0].ca->certificate), 0);
                made += racers[i].made;
        }
        for (size_t i = 0; i < COUNT_OF(racers); i++)
                intercept_ca_free(racers[i].ca);
        assert_int_equal(made, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
        const struct CMUnitTest tests[] = {
            TEST(makes_one),         TEST(overwrites_nothing), TEST(says_why_it_cannot_make_one),
            TEST(checks_what_it_is), TEST(checks_the_files),   TEST(wants_no_passphrase),
            TEST(keeps_those_above), TEST(needs_one_or_both),  TEST(agrees_on_one),
        };
#undef TEST
        return cmocka_run_group_tests(tests, NULL, NULL);
}
