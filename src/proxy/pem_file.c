#include "proxy/pem_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

/* The system's CAs are some 200 KiB. */
#define MAX_FILE_BYTES ((off_t)4 * 1024 * 1024)

int pem_file_read(const char *path, BIO **ret, bool *ret_open)
{
        struct stat st = {0};
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
        if (r == 0 && S_ISDIR(st.st_mode))
                r = -EISDIR;
        else if (r == 0 && !S_ISREG(st.st_mode))
                r = -EINVAL;
        else if (r == 0 && st.st_size > MAX_FILE_BYTES)
                r = -EFBIG;
        BIO *text = r == 0 ? BIO_new(BIO_s_secmem()) : NULL;
        char part[4096];
        ssize_t n = 0;
        while (text && (n = read(fd, part, sizeof part)) > 0)
                BIO_write(text, part, (int)n);
        if (r == 0 && n < 0)
                r = -errno;
        OPENSSL_cleanse(part, sizeof part);
        if (fd >= 0)
                close(fd);
        if (r < 0) {
                BIO_free(text);
                return r;
        }
        *ret = text;
        *ret_open = st.st_mode & S_IROTH;
        return 0;
}

int pem_file_check(const char *path, char **ret_error)
{
        BIO *text = NULL;
        bool open;
        int r = pem_file_read(path, &text, &open);
        if (r < 0) {
                *ret_error = xasprintf("cannot read %s: %s", path, strerrordesc_np(-r));
                return r;
        }
        X509 *cert = PEM_read_bio_X509_AUX(text, NULL, NULL, NULL);
        ERR_clear_error();
        if (!cert) {
                *ret_error = xasprintf("%s holds no certificate in PEM form", path);
                r = -EINVAL;
        }
        X509_free(cert);
        BIO_free(text);
        return r;
}
