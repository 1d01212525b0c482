/* proxy/pem_file.h - reads files of certificates and keys. */
#ifndef WEIR_PROXY_PEM_FILE_H
#define WEIR_PROXY_PEM_FILE_H

#include <openssl/bio.h>
#include <stdbool.h>

/*
 * Reads a file whole.
 *
 * ret       to be freed with BIO_free; its memory is wiped then
 * ret_open  anyone on this machine may read the file
 *
 * Returns 0, or -errno: also where it is no file, or larger than any of certificates and keys.
 */
int pem_file_read(const char *path, BIO **ret, bool *ret_open);

/* Does it hold a certificate, as a file of CAs must? 0, -errno, or -EINVAL; `*ret_error` is one
 * plain line then, freed by the caller. */
int pem_file_check(const char *path, char **ret_error);

#endif
