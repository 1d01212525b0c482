#include "tests/unit/unit.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "proxy/intercept_cert.h"
#include "proxy/intercept_leaf.h"
#include "runtime/clock.h"

#define DAY ((usec_t)24 * 3600 * USEC_PER_SEC)

struct maker {
        struct intercept_ca ca;
        EVP_PKEY *key;
};

static X509 *new_ca(EVP_PKEY *key, int days)
{
        X509 *cert = intercept_cert_new(key, days);
        X509_NAME *name = X509_get_subject_name(cert);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"CA", -1, -1,
                                   0);
        X509_set_issuer_name(cert, name);
        intercept_cert_extend(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
        intercept_cert_extend(cert, cert, NID_key_usage, "critical,keyCertSign");
        intercept_cert_extend(cert, cert, NID_subject_key_identifier, "hash");
        assert_true(intercept_cert_sign(cert, key));
        return cert;
}

static int make(void **state)
{
        struct maker *m = xcalloc(1, sizeof *m);
        m->ca.key = intercept_cert_key();
        m->ca.certificate = new_ca(m->ca.key, 365);
        m->key = intercept_cert_key();
        *state = m;
        return 0;
}

static int unmake(void **state)
{
        struct maker *m = *state;
        X509_free(m->ca.certificate);
        EVP_PKEY_free(m->ca.key);
        EVP_PKEY_free(m->key);
        free(m);
        return 0;
}

/* "DNS:host" or "IP Address:…" as OpenSSL prints all alternative names; the caller frees it. */
static char *names_of(X509 *cert)
{
        int at = X509_get_ext_by_NID(cert, NID_subject_alt_name, -1);
        assert_true(at >= 0);
        BIO *text = BIO_new(BIO_s_mem());
        char *data;
        X509V3_EXT_print(text, X509_get_ext(cert, at), 0, 0);
        long n = BIO_get_mem_data(text, &data);
        char *names = xspandup((struct span){data, (size_t)n});
        BIO_free(text);
        return names;
}

static int days_left(X509 *cert)
{
        int days = 0, seconds = 0;
        assert_int_equal(ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)), 1);
        return days;
}

static void names_the_host(void **state)
{
        struct maker *m = *state;
        static const struct {
                const char *host, *names; /* NULL: no certificate */
        } cases[] = {
            {"example.com", "DNS:example.com"},
            {"EXAMPLE.Com", "DNS:example.com"},
            {"example.com.", "DNS:example.com"},
            {"a-b_c.x--y.example", "DNS:a-b_c.x--y.example"},
            {"192.0.2.7", "IP Address:192.0.2.7"},
            {"2001:db8::7", "IP Address:2001:DB8:0:0:0:0:0:7"},
            {"1.2.3", "DNS:1.2.3"},
            {"x", "DNS:x"},
            {"", NULL},
            {".", NULL},
            {"a:b", NULL},
            {"a,DNS:b", NULL},
            {"a b", NULL},
            {"*.example.com", NULL},
            {"a/b", NULL},
            {"\xc3\xa4.example", NULL},
        };
        struct intercept_leaves *l = intercept_leaves_new(&m->ca, m->key, 100);
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                print_message("%s\n", cases[i].host);
                struct intercept_leaf *leaf = intercept_leaf_get(l, cases[i].host, clock_real());
                if (!cases[i].names) {
                        assert_null(leaf);
                        continue;
                }
                char *names = names_of(leaf->certificate);
                assert_string_equal(names, cases[i].names);
                free(names);
        }
        intercept_leaves_free(l);
}

static void long_names(void **state)
{
        struct maker *m = *state;
        static const struct {
                size_t len;
                bool good, subject, critical;
        } cases[] = {
            {64, true, true, false}, {65, true, false, true}, {253, true, false, true},
            {254, false, 0, 0},      {70000, false, 0, 0},
        };
        struct intercept_leaves *l = intercept_leaves_new(&m->ca, m->key, 100);
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char *host = xcalloc(1, cases[i].len + 1);
                memset(host, 'a', cases[i].len);
                struct intercept_leaf *leaf = intercept_leaf_get(l, host, clock_real());
                free(host);
                assert_int_equal(leaf != NULL, cases[i].good);
                if (!leaf)
                        continue;
                X509_NAME *subject = X509_get_subject_name(leaf->certificate);
                assert_int_equal(X509_NAME_entry_count(subject), cases[i].subject);
                int at = X509_get_ext_by_NID(leaf->certificate, NID_subject_alt_name, -1);
                X509_EXTENSION *names = X509_get_ext(leaf->certificate, at);
                assert_int_equal(X509_EXTENSION_get_critical(names), cases[i].critical);
        }
        intercept_leaves_free(l);
}

static void is_good_for_clients(void **state)
{
        struct maker *m = *state;
        struct intercept_leaves *l = intercept_leaves_new(&m->ca, m->key, 100);
        X509 *cert = intercept_leaf_get(l, "example.com", clock_real())->certificate;
        X509_STORE *store = X509_STORE_new();
        X509_STORE_CTX *ctx = X509_STORE_CTX_new();
        X509_STORE_add_cert(store, m->ca.certificate);
        X509_STORE_CTX_init(ctx, store, cert, NULL);
        X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
        X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT);
        X509_verify_cert(ctx);
        assert_string_equal(X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)), "ok");
        assert_int_equal(X509_check_host(cert, "example.com", 0, 0, NULL), 1);
        assert_int_equal(X509_check_private_key(cert, m->key), 1);
        assert_int_equal(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE);
        assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_SERVER);
        assert_in_range(days_left(cert), 29, 30);
        assert_true(X509_cmp_current_time(X509_get0_notBefore(cert)) < 0);
        BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
        assert_false(BN_is_negative(serial));
        assert_in_range(BN_num_bits(serial), 100, 159);
        BN_free(serial);
        X509_STORE_CTX_free(ctx);
        X509_STORE_free(store);
        intercept_leaves_free(l);
}

static void ends_with_its_ca(void **state)
{
        struct maker *m = *state;
        X509_free(m->ca.certificate);
        m->ca.certificate = new_ca(m->ca.key, 3);
        struct intercept_leaves *l = intercept_leaves_new(&m->ca, m->key, 100);
        X509 *cert = intercept_leaf_get(l, "example.com", clock_real())->certificate;
        assert_in_range(days_left(cert), 2, 3);
        intercept_leaves_free(l);
}

static void keeps_those_used_last(void **state)
{
        struct maker *m = *state;
        struct intercept_leaves *l = intercept_leaves_new(&m->ca, m->key, 3);
        usec_t now = clock_real();
        const char *hosts[] = {"a", "b", "c"};
        X509 *certs[3];
        for (size_t i = 0; i < 3; i++) {
                certs[i] = intercept_leaf_get(l, hosts[i], now)->certificate;
                X509_up_ref(certs[i]); /* else the next one may be at the same place */
        }
        assert_ptr_equal(intercept_leaf_get(l, "A", now)->certificate, certs[0]);
        intercept_leaf_get(l, "d", now); /* in the place of b */
        assert_ptr_equal(intercept_leaf_get(l, "c", now)->certificate, certs[2]);
        assert_ptr_equal(intercept_leaf_get(l, "a", now)->certificate, certs[0]);
        assert_ptr_not_equal(intercept_leaf_get(l, "b", now)->certificate, certs[1]);
        for (size_t i = 0; i < 3; i++)
                X509_free(certs[i]);
        intercept_leaves_free(l);
}

static void makes_them_anew_in_time(void **state)
{
        struct maker *m = *state;
        static const struct {
                int days; /* later */
                bool kept;
        } cases[] = {{0, true}, {15, true}, {16, false}, {100, false}, {-1, false}};
        struct intercept_leaves *l = intercept_leaves_new(&m->ca, m->key, 3);
        usec_t now = clock_real();
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                X509 *before = intercept_leaf_get(l, "a", now)->certificate;
                X509_up_ref(before);
                usec_t then = now + (usec_t)((int64_t)DAY * cases[i].days);
                X509 *after = intercept_leaf_get(l, "a", then)->certificate;
                assert_int_equal(after == before, cases[i].kept);
                X509_free(before);
                intercept_leaf_get(l, "a", now);
        }
        intercept_leaves_free(l);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)
        const struct CMUnitTest tests[] = {
            TEST(names_the_host),        TEST(long_names),
            TEST(is_good_for_clients),   TEST(ends_with_its_ca),
            TEST(keeps_those_used_last), TEST(makes_them_anew_in_time),
        };
#undef TEST
        return cmocka_run_group_tests(tests, NULL, NULL);
}
