#include "proxy/intercept_leaf.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/xalloc.h"
#include "proxy/intercept_cert.h"

#define LEAF_DAYS 30

/* A certificate is made anew when half of that is over. */
#define RENEW_AFTER ((usec_t)15 * 24 * 3600 * USEC_PER_SEC)

#define MAX_NAME 253 /* of a host (RFC 1035, 2.3.4, written out) */
#define MAX_COMMON_NAME 64

struct entry {
        struct intercept_leaf leaf;
        char *host;
        usec_t made; /* wall clock */
        UT_hash_handle hh;
        struct list link; /* the one used last is at the end */
};

struct intercept_leaves {
        const struct intercept_ca *ca;
        EVP_PKEY *key;
        size_t most;
        struct entry *by_host;
        struct list used;
        STACK_OF(X509_EXTENSION) * common; /* the same in all of them */
};

/* ---- making ---- */

static bool add_common(struct intercept_leaves *l)
{
        static const struct {
                int nid;
                const char *value;
        } extensions[] = {
            {NID_basic_constraints, "critical,CA:FALSE"},
            {NID_key_usage, "critical,digitalSignature"},
            {NID_ext_key_usage, "serverAuth"},
        };
        for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
                X509_EXTENSION *e =
                    X509V3_EXT_conf_nid(NULL, NULL, extensions[i].nid, extensions[i].value);
                if (!e || !sk_X509_EXTENSION_push(l->common, e))
                        return false;
        }
        return true;
}

/* Which of the CA's keys signed it, where it tells (RFC 5280, 4.2.1.1). */
static bool add_issuer_key(const struct intercept_leaves *l, X509 *cert)
{
        const ASN1_OCTET_STRING *id = X509_get0_subject_key_id(l->ca->certificate);
        if (!id)
                return true;
        AUTHORITY_KEYID *key = AUTHORITY_KEYID_new();
        if (key)
                key->keyid = ASN1_OCTET_STRING_dup(id);
        bool good = key && key->keyid &&
                    X509_add1_ext_i2d(cert, NID_authority_key_identifier, key, 0, 0) > 0;
        AUTHORITY_KEYID_free(key);
        return good;
}

/* Built of its parts: as a text, a name could say more than itself. */
static GENERAL_NAME *general_name(const char *host)
{
        unsigned char address[sizeof(struct in6_addr)];
        int bytes = inet_pton(AF_INET, host, address) == 1    ? 4
                    : inet_pton(AF_INET6, host, address) == 1 ? 16
                                                              : 0;
        GENERAL_NAME *name = GENERAL_NAME_new();
        ASN1_STRING *value = ASN1_STRING_type_new(bytes ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
        if (!name || !value ||
            !ASN1_STRING_set(value, bytes ? (const void *)address : host, bytes ? bytes : -1)) {
                GENERAL_NAME_free(name);
                ASN1_STRING_free(value);
                return NULL;
        }
        GENERAL_NAME_set0_value(name, bytes ? GEN_IPADD : GEN_DNS, value);
        return name;
}

/* Clients go by the alternative name; the common one is for people, and does not hold long ones. */
static bool add_names(X509 *cert, const char *host)
{
        bool brief = strlen(host) <= MAX_COMMON_NAME;
        if (brief && !X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                                                 (const unsigned char *)host, -1, -1, 0))
                return false;
        GENERAL_NAMES *names = GENERAL_NAMES_new();
        GENERAL_NAME *name = general_name(host);
        bool good = names && name && sk_GENERAL_NAME_push(names, name);
        if (!good)
                GENERAL_NAME_free(name);
        /* critical where there is no subject (RFC 5280, 4.2.1.6) */
        good = good && X509_add1_ext_i2d(cert, NID_subject_alt_name, names, !brief, 0) > 0;
        GENERAL_NAMES_free(names);
        return good;
}

static X509 *make(const struct intercept_leaves *l, const char *host)
{
        X509 *cert = intercept_cert_new(l->key, LEAF_DAYS), *issuer = l->ca->certificate;
        const ASN1_TIME *end = X509_get0_notAfter(issuer);
        bool good = cert && X509_set_issuer_name(cert, X509_get_subject_name(issuer));
        if (good && ASN1_TIME_compare(X509_get0_notAfter(cert), end) > 0)
                good = X509_set1_notAfter(cert, end);
        for (int i = 0; good && i < sk_X509_EXTENSION_num(l->common); i++)
                good = X509_add_ext(cert, sk_X509_EXTENSION_value(l->common, i), -1);
        if (good && add_issuer_key(l, cert) && add_names(cert, host) &&
            intercept_cert_sign(cert, l->ca->key))
                return cert;
        X509_free(cert);
        return NULL;
}

/* ---- keeping ---- */

/* What is in the list is in the table as well, which clang's analyzer does not know. */
static void drop(struct intercept_leaves *l, struct entry *e)
{
        HASH_DEL(l->by_host, e); /* NOLINT(clang-analyzer-core.NullDereference) */
        list_remove(&e->link);
        X509_free(e->leaf.certificate);
        free(e->host);
        free(e);
}

struct intercept_leaves *intercept_leaves_new(const struct intercept_ca *ca, EVP_PKEY *key,
                                              size_t most)
{
        struct intercept_leaves *l = xcalloc(1, sizeof *l);
        l->ca = ca;
        l->key = key;
        l->most = most;
        list_init(&l->used);
        l->common = sk_X509_EXTENSION_new_null();
        if (!l->common || !add_common(l))
                abort(); /* out of memory */
        return l;
}

void intercept_leaves_free(struct intercept_leaves *l)
{
        if (!l)
                return;
        list_foreach_safe (it, &l->used)
                drop(l, LIST_ENTRY_OF(it, struct entry, link));
        sk_X509_EXTENSION_pop_free(l->common, X509_EXTENSION_free);
        free(l);
}

/* Lower-case, without the dot at the end; false: no name and no address. */
static bool read_host(const char *host, char ret[static MAX_NAME + 1])
{
        size_t len = strlen(host);
        if (len > 0 && host[len - 1] == '.')
                len--;
        if (len == 0 || len > MAX_NAME)
                return false;
        for (size_t i = 0; i < len; i++) {
                if (!isalnum((unsigned char)host[i]) && !strchr("-._~:", host[i]))
                        return false;
                ret[i] = (char)tolower((unsigned char)host[i]);
        }
        ret[len] = '\0';
        struct in6_addr ignored;
        return !strchr(ret, ':') || inet_pton(AF_INET6, ret, &ignored) == 1;
}

static struct entry *add(struct intercept_leaves *l, const char *host, usec_t now_real)
{
        X509 *cert = make(l, host);
        if (!cert)
                return NULL;
        if (HASH_COUNT(l->by_host) >= l->most)
                drop(l, LIST_ENTRY_OF(l->used.next, struct entry, link));
        struct entry *e = xcalloc(1, sizeof *e);
        e->leaf.certificate = cert;
        e->host = xstrdup(host);
        e->made = now_real;
        list_init(&e->link);
        HASH_ADD_KEYPTR(hh, l->by_host, e->host, strlen(e->host), e);
        return e;
}

struct intercept_leaf *intercept_leaf_get(struct intercept_leaves *l, const char *host,
                                          usec_t now_real)
{
        char name[MAX_NAME + 1] = "";
        struct entry *e;
        if (!read_host(host, name))
                return NULL;
        HASH_FIND_STR(l->by_host, name, e);
        /* also where the clock was set back: it may not be valid yet */
        if (e && (now_real - e->made > RENEW_AFTER || now_real < e->made)) {
                drop(l, e);
                e = NULL;
        }
        if (!e)
                e = add(l, name, now_real);
        if (!e)
                return NULL;
        list_remove(&e->link);
        list_append(&l->used, &e->link);
        return &e->leaf;
}
