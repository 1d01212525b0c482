#include "proxy/intercept_ca.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "proxy/intercept_cert.h"
#include "proxy/pem_file.h"
#include "runtime/clock.h"
#include "runtime/log.h"

/* For how long one is made. Clients take far more, but who remembers by then where it is trusted?
 */
#define CA_DAYS 3650

void intercept_ca_free(struct intercept_ca *ca)
{
        if (!ca)
                return;
        X509_free(ca->certificate);
        sk_X509_pop_free(ca->above, X509_free);
        EVP_PKEY_free(ca->key);
        free(ca->path);
        free(ca);
}

/* ---- making ---- */

/* Two of the same name but with different keys would confuse those who trust both. */
static bool set_name(X509 *cert)
{
        unsigned char random[4];
        char name[sizeof "weir CA 01234567"];
        X509_NAME *subject = X509_get_subject_name(cert);
        if (RAND_bytes(random, sizeof random) != 1)
                return false;
        snprintf(name, sizeof name, "weir CA %02x%02x%02x%02x", random[0], random[1], random[2],
                 random[3]);
        return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (unsigned char *)name, -1,
                                          -1, 0) &&
               X509_set_issuer_name(cert, subject);
}

static X509 *new_certificate(EVP_PKEY *key)
{
        static const struct {
                int nid;
                const char *value;
        } extensions[] = {
            {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
            {NID_key_usage, "critical,keyCertSign,cRLSign"},
            {NID_subject_key_identifier, "hash"},
        };
        X509 *cert = intercept_cert_new(key, CA_DAYS);
        bool good = cert && set_name(cert);
        for (size_t i = 0; good && i < sizeof extensions / sizeof extensions[0]; i++)
                good = intercept_cert_extend(cert, cert, extensions[i].nid, extensions[i].value);
        if (good && intercept_cert_sign(cert, key))
                return cert;
        X509_free(cert);
        return NULL;
}

/*
 * Puts a file into the directory under its name, whole: it is written under another one first. A
 * link, unlike a renaming, never takes the place of what is there.
 */
static int put_file(int dir, const char *name, mode_t mode, BIO *text)
{
        char *data;
        long len = BIO_get_mem_data(text, &data);
        char *other = xasprintf("%s.%d", name, (int)getpid());
        unlinkat(dir, other, 0); /* of a process of this number that came to a bad end */
        int fd = openat(dir, other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        int r = fd < 0 ? -errno : 0;
        errno = 0;
        if (r == 0 && write(fd, data, (size_t)len) != len)
                r = errno ? -errno : -ENOSPC;
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        if (fd >= 0 && close(fd) < 0 && r == 0)
                r = -errno;
        if (r == 0 && linkat(dir, other, dir, name, 0) < 0)
                r = -errno;
        if (fd >= 0)
                unlinkat(dir, other, 0);
        free(other);
        return r;
}

static int put_both(int dir, X509 *cert, EVP_PKEY *key)
{
        BIO *cert_text = BIO_new(BIO_s_mem()), *key_text = BIO_new(BIO_s_secmem());
        int r = -EIO;
        if (cert_text && key_text && PEM_write_bio_X509(cert_text, cert) &&
            PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL)) {
                r = put_file(dir, INTERCEPT_CA_KEY, 0600, key_text);
                if (r == 0)
                        r = put_file(dir, INTERCEPT_CA_CERTIFICATE, 0644, cert_text);
                if (r == 0 && fsync(dir) < 0)
                        r = -errno;
        }
        BIO_free(cert_text);
        BIO_free(key_text);
        return r;
}

static bool is_there(int dir, const char *name)
{
        return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Holds the lock of the directory. */
static int make(int dir, const char *path, char **ret_error)
{
        static const char *const names[] = {INTERCEPT_CA_CERTIFICATE, INTERCEPT_CA_KEY};
        for (size_t i = 0; i < 2; i++)
                if (is_there(dir, names[i])) {
                        *ret_error = xasprintf("%s/%s is there already: a CA is never overwritten",
                                               path, names[i]);
                        return -EEXIST;
                }
        EVP_PKEY *key = intercept_cert_key();
        X509 *cert = key ? new_certificate(key) : NULL;
        int r = cert ? put_both(dir, cert, key) : -EIO;
        if (r == -EIO)
                *ret_error =
                    xasprintf("cannot make a CA: OpenSSL says: %s", intercept_cert_error());
        else if (r < 0)
                *ret_error =
                    xasprintf("cannot write the CA's files to %s: %s", path, strerrordesc_np(-r));
        X509_free(cert);
        EVP_PKEY_free(key);
        return r;
}

/* The directory, locked until it is closed: of two who would make a CA one waits. -errno */
static int lock_directory(const char *path, char **ret_error)
{
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : 0;
        while (r == 0 && flock(fd, LOCK_EX) < 0)
                r = errno == EINTR ? 0 : -errno;
        if (r == 0)
                return fd;
        if (fd >= 0)
                close(fd);
        *ret_error =
            xasprintf("cannot keep a CA in the directory %s: %s", path, strerrordesc_np(-r));
        return r;
}

int intercept_ca_make(const char *path, char **ret_error)
{
        int dir = lock_directory(path, ret_error);
        if (dir < 0)
                return dir;
        int r = make(dir, path, ret_error);
        close(dir);
        return r;
}

/* ---- loading ---- */

/* No passphrase: there is nobody to type it. */
static int on_passphrase(char *to, int room, int writing, void *asked)
{
        (void)to, (void)room, (void)writing;
        *(bool *)asked = true;
        return -1;
}

/* What says to `weir ca init` to make one where this certificate is, as a piece of it. */
static struct span where_to_make(const char *certificate, const char **ret_option)
{
        const char *slash = strrchr(certificate, '/');
        bool possible = slash && strcmp(slash + 1, INTERCEPT_CA_CERTIFICATE) == 0;
        *ret_option = possible ? " --dir " : "";
        return (struct span){certificate, possible ? (size_t)(slash - certificate) : 0};
}

static char *read_certificates(BIO *text, const char *path, struct intercept_ca *ca)
{
        const char *option;
        struct span dir = where_to_make(path, &option);
        ca->certificate = PEM_read_bio_X509(text, NULL, NULL, NULL);
        if (!ca->certificate)
                return xasprintf("%s holds no certificate in PEM form: put the CA's certificate "
                                 "there, or have one made with weir ca init%s%.*s",
                                 path, option, (int)dir.len, dir.ptr);
        for (X509 *more; (more = PEM_read_bio_X509(text, NULL, NULL, NULL));)
                sk_X509_push(ca->above, more);
        ERR_clear_error(); /* the end of the file is one */
        return NULL;
}

static char *read_key(BIO *text, const char *path, struct intercept_ca *ca)
{
        bool asked = false;
        ca->key = PEM_read_bio_PrivateKey(text, NULL, on_passphrase, &asked);
        ERR_clear_error();
        if (ca->key)
                return NULL;
        if (asked)
                return xasprintf("the key in %s is locked with a passphrase: store it without one",
                                 path);
        return xasprintf("%s holds no private key in PEM form: put the CA's key there", path);
}

static usec_t time_of(const ASN1_TIME *t)
{
        struct tm tm;
        if (ASN1_TIME_to_tm(t, &tm) != 1)
                return 0;
        time_t s = timegm(&tm);
        return s < 0 ? 0 : (usec_t)s * USEC_PER_SEC;
}

static char *check(const struct intercept_ca *ca, const char *certificate, const char *key)
{
        char date[CLOCK_TEXT_SIZE];
        const char *option;
        struct span dir = where_to_make(certificate, &option);
        usec_t from = time_of(X509_get0_notBefore(ca->certificate)),
               until = time_of(X509_get0_notAfter(ca->certificate)), now = clock_real();
        if (X509_check_ca(ca->certificate) != 1)
                return xasprintf("the certificate in %s is not that of a CA (its basic constraints "
                                 "do not allow it to sign others): use one that is, or have one "
                                 "made with weir ca init%s%.*s",
                                 certificate, option, (int)dir.len, dir.ptr);
        if (key && X509_check_private_key(ca->certificate, ca->key) != 1) {
                ERR_clear_error();
                return xasprintf("the key in %s is not the one of the certificate in %s: use two "
                                 "that belong together",
                                 key, certificate);
        }
        if (now > until)
                return xasprintf("the CA in %s has expired on %.10s: put it and its key away and "
                                 "have a new one made, with weir ca init%s%.*s",
                                 certificate, clock_text(until, date), option, (int)dir.len,
                                 dir.ptr);
        if (now < from)
                return xasprintf("the CA in %s is not valid before %.16s: see to the clock, or use "
                                 "another one",
                                 certificate, clock_text(from, date));
        return NULL;
}

int intercept_ca_load(const char *certificate, const char *key, struct intercept_ca **ret,
                      char **ret_error)
{
        struct intercept_ca *ca = xcalloc(1, sizeof *ca);
        const char *paths[] = {certificate, key};
        BIO *texts[2] = {NULL, NULL};
        char *error = NULL;
        int r = 0;
        bool open_to_all[2] = {false, false};
        ca->path = xstrdup(certificate);
        ca->above = sk_X509_new_null();
        if (!ca->above)
                abort(); /* out of memory */
        for (size_t i = 0; i < (key ? 2 : 1) && r == 0; i++) {
                r = pem_file_read(paths[i], &texts[i], &open_to_all[i]);
                if (r < 0)
                        error = xasprintf("cannot read the CA's %s %s: %s; see to its "
                                          "permissions, or name another one",
                                          i ? "key" : "certificate", paths[i], strerrordesc_np(-r));
        }
        if (!error)
                error = read_certificates(texts[0], certificate, ca);
        if (!error && key)
                error = read_key(texts[1], key, ca);
        if (!error)
                error = check(ca, certificate, key);
        BIO_free(texts[0]);
        BIO_free(texts[1]);
        if (error) {
                intercept_ca_free(ca);
                *ret_error = error;
                return r < 0 ? r : -EINVAL;
        }
        if (open_to_all[1])
                log_warn("anyone on this machine may read the CA's key: chmod 600 %s", key);
        *ret = ca;
        return 0;
}

/* One without the other: a removal, or a making, was broken off. */
static void add_remedy(const char *path, char **error)
{
        char *longer =
            xasprintf("%s; put it back, or take the other one of " INTERCEPT_CA_CERTIFICATE
                      " and " INTERCEPT_CA_KEY " out of %s to have both made anew",
                      *error, path);
        free(*error);
        *error = longer;
}

static int load_from(const char *path, struct intercept_ca **ret, char **ret_error)
{
        char *certificate = xasprintf("%s/%s", path, INTERCEPT_CA_CERTIFICATE),
             *key = xasprintf("%s/%s", path, INTERCEPT_CA_KEY);
        int r = intercept_ca_load(certificate, key, ret, ret_error);
        if (r == -ENOENT)
                add_remedy(path, ret_error);
        free(certificate);
        free(key);
        return r;
}

static bool is_empty(int dir)
{
        return !is_there(dir, INTERCEPT_CA_CERTIFICATE) && !is_there(dir, INTERCEPT_CA_KEY);
}

int intercept_ca_need(const char *path, struct intercept_ca **ret, bool *ret_made, char **ret_error)
{
        int dir = lock_directory(path, ret_error);
        if (dir < 0)
                return dir;
        bool none = is_empty(dir);
        int r = none ? make(dir, path, ret_error) : 0;
        close(dir);
        if (r == 0)
                r = load_from(path, ret, ret_error);
        if (r == 0)
                *ret_made = none;
        return r;
}

int intercept_ca_find(const char *path, struct intercept_ca **ret, char **ret_error)
{
        int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        bool none = dir < 0 || is_empty(dir);
        if (dir >= 0)
                close(dir);
        *ret = NULL;
        return none ? 0 : load_from(path, ret, ret_error);
}

/* ---- telling ---- */

void intercept_ca_describe(const struct intercept_ca *ca, struct intercept_ca_facts *ret)
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned len = 0;
        X509_digest(ca->certificate, EVP_sha256(), digest, &len);
        ret->fingerprint[0] = '\0';
        for (size_t i = 0; i < len && 3 * i + 3 <= sizeof ret->fingerprint; i++)
                snprintf(ret->fingerprint + 3 * i, sizeof ret->fingerprint - 3 * i, "%02X%s",
                         digest[i], i + 1 < len ? ":" : "");
        BIO *text = BIO_new(BIO_s_mem());
        char *data = NULL;
        if (!text ||
            X509_NAME_print_ex(text, X509_get_subject_name(ca->certificate), 0,
                               XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB & ~XN_FLAG_SPC_EQ) < 0)
                abort(); /* out of memory */
        long n = BIO_get_mem_data(text, &data);
        ret->subject = xspandup((struct span){data, (size_t)n});
        BIO_free(text);
        ret->not_after = time_of(X509_get0_notAfter(ca->certificate));
}

void intercept_ca_facts_done(struct intercept_ca_facts *facts)
{
        free(facts->subject);
        facts->subject = NULL;
}

char *intercept_ca_export(const struct intercept_ca *ca)
{
        BIO *text = BIO_new(BIO_s_mem());
        bool good = text && PEM_write_bio_X509(text, ca->certificate);
        for (int i = 0; good && i < sk_X509_num(ca->above); i++)
                good = PEM_write_bio_X509(text, sk_X509_value(ca->above, i));
        if (!good)
                abort(); /* out of memory */
        char *data = NULL;
        long n = BIO_get_mem_data(text, &data);
        char *pem = xspandup((struct span){data, (size_t)n});
        BIO_free(text);
        return pem;
}
