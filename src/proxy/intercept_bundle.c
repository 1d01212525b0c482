#include "proxy/intercept_bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

/* No system trusts as many. */
#define MAX_FILE_BYTES ((off_t)16 << 20)

/* Oracle's trustedKeyUsage, and any purpose (RFC 5280, 4.2.1.12). */
#define TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"

struct file {
        dev_t device;
        ino_t inode;
};

struct intercept_bundle {
        STACK_OF(X509) * certificates;
        struct file *files; /* read already: most variables of an environment name the same one */
        size_t file_count;
};

struct intercept_bundle *intercept_bundle_new(void)
{
        struct intercept_bundle *b = xcalloc(1, sizeof *b);
        b->certificates = sk_X509_new_null();
        if (!b->certificates)
                abort(); /* out of memory */
        return b;
}

void intercept_bundle_free(struct intercept_bundle *b)
{
        if (!b)
                return;
        sk_X509_pop_free(b->certificates, X509_free);
        free(b->files);
        free(b);
}

static bool has(const struct intercept_bundle *b, const X509 *certificate)
{
        for (int i = 0; i < sk_X509_num(b->certificates); i++)
                if (X509_cmp(sk_X509_value(b->certificates, i), certificate) == 0)
                        return true;
        return false;
}

size_t intercept_bundle_add(struct intercept_bundle *b, struct span pem)
{
        BIO *text = BIO_new_mem_buf(pem.ptr, (int)(pem.len > INT_MAX ? INT_MAX : pem.len));
        size_t count = 0;
        if (!text)
                abort(); /* out of memory */
        for (X509 *one; (one = PEM_read_bio_X509_AUX(text, NULL, NULL, NULL)); count++)
                if (has(b, one) || !sk_X509_push(b->certificates, one))
                        X509_free(one);
        ERR_clear_error(); /* the end is one */
        BIO_free(text);
        return count;
}

static bool has_file(const struct intercept_bundle *b, const struct stat *st)
{
        for (size_t i = 0; i < b->file_count; i++)
                if (b->files[i].device == st->st_dev && b->files[i].inode == st->st_ino)
                        return true;
        return false;
}

/* 0; -EINVAL: no certificate is in it; -errno. */
static int add_open_file(struct intercept_bundle *b, int fd, const struct stat *st)
{
        if (has_file(b, st))
                return 0;
        char *text = xmalloc((size_t)st->st_size + 1);
        ssize_t n = read(fd, text, (size_t)st->st_size);
        int r = n < 0 ? -errno : 0;
        if (r == 0 && intercept_bundle_add(b, (struct span){text, (size_t)n}) == 0)
                r = -EINVAL;
        free(text);
        if (r == 0) {
                b->files = xrealloc(b->files, (b->file_count + 1) * sizeof *b->files);
                b->files[b->file_count++] = (struct file){st->st_dev, st->st_ino};
        }
        return r;
}

int intercept_bundle_add_file(struct intercept_bundle *b, const char *path)
{
        struct stat st = {0};
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
        if (r == 0 && (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE_BYTES))
                r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        if (r == 0)
                r = add_open_file(b, fd, &st);
        if (fd >= 0)
                close(fd);
        return r;
}

bool intercept_bundle_add_system(struct intercept_bundle *b)
{
        static const char *const paths[] = {
            "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Arch, Gentoo */
            "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
            "/etc/ssl/ca-bundle.pem",                            /* SUSE */
            "/etc/ssl/cert.pem",                                 /* Alpine, BSD */
        };
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
                if (intercept_bundle_add_file(b, paths[i]) == 0)
                        return true;
        return false;
}

/* Hands over what was written into `from`, which is freed. */
static void take(BIO *from, struct span *ret)
{
        char *data = NULL;
        long len = BIO_get_mem_data(from, &data);
        *ret = (struct span){xspandup((struct span){data, (size_t)len}), (size_t)len};
        BIO_free(from);
}

void intercept_bundle_pem(const struct intercept_bundle *b, struct span *ret)
{
        BIO *text = BIO_new(BIO_s_mem());
        for (int i = 0; i < sk_X509_num(b->certificates); i++)
                if (!text || !PEM_write_bio_X509(text, sk_X509_value(b->certificates, i)))
                        abort(); /* out of memory */
        take(text, ret);
}

/* Each by a name of its own: Java overwrites one with the next otherwise. */
static bool put_into(STACK_OF(PKCS12_SAFEBAG) * bags, X509 *certificate, int number)
{
        char name[32];
        PKCS12_SAFEBAG *bag = PKCS12_SAFEBAG_create_cert(certificate);
        ASN1_OBJECT *any = OBJ_nid2obj(NID_anyExtendedKeyUsage);
        snprintf(name, sizeof name, "ca%d", number);
        if (bag && PKCS12_add_friendlyname_asc(bag, name, -1) &&
            PKCS12_add1_attr_by_txt(bag, TRUSTED_KEY_USAGE, V_ASN1_OBJECT,
                                    (const unsigned char *)any, -1) &&
            sk_PKCS12_SAFEBAG_push(bags, bag))
                return true;
        PKCS12_SAFEBAG_free(bag);
        return false;
}

static PKCS12 *store_of(STACK_OF(PKCS12_SAFEBAG) * bags, const char *password)
{
        /* Not random, so that the same CAs give the same file: nothing is kept secret by it. */
        static unsigned char salt[] = "of every store";
        STACK_OF(PKCS7) *safes = NULL;
        PKCS12 *store = NULL;
        if (PKCS12_add_safe(&safes, bags, -1, 0, NULL))
                store = PKCS12_add_safes(safes, 0);
        if (store && !PKCS12_set_mac(store, password, -1, salt, sizeof salt, 2048, EVP_sha256())) {
                PKCS12_free(store);
                store = NULL;
        }
        sk_PKCS7_pop_free(safes, PKCS7_free);
        return store;
}

int intercept_bundle_store(const struct intercept_bundle *b, const char *password, struct span *ret)
{
        STACK_OF(PKCS12_SAFEBAG) *bags = sk_PKCS12_SAFEBAG_new_null();
        bool good = bags != NULL;
        for (int i = 0; good && i < sk_X509_num(b->certificates); i++)
                good = put_into(bags, sk_X509_value(b->certificates, i), i);
        PKCS12 *store = good ? store_of(bags, password) : NULL;
        BIO *to = store ? BIO_new(BIO_s_mem()) : NULL;
        good = to && i2d_PKCS12_bio(to, store) == 1;
        if (good)
                take(to, ret);
        else
                BIO_free(to);
        PKCS12_free(store);
        sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
        ERR_clear_error();
        return good ? 0 : -EIO;
}
