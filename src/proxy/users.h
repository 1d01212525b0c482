/* proxy/users.h - the file of those who may use the proxy: lines of NAME:HASH, as crypt(3) makes
 * them. */
#ifndef WEIR_PROXY_USERS_H
#define WEIR_PROXY_USERS_H

#include <crypt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One reading of the file; immutable, shared by threads. */
struct users;

/*
 * Reads a file. Empty lines and those that begin with "#" are passed over.
 *
 * path       "": nobody is asked for a name
 * ret        held by one reference; NULL for ""
 * ret_error  one plain line on failure, freed by the caller
 *
 * Returns 0 or -errno; -EINVAL where a line makes no sense.
 */
int users_load(const char *path, struct users **ret, char **ret_error);

struct users *users_ref(struct users *u); /* NULL is fine, in all three */
void users_unref(struct users *u);

/* Tells this reading from all others; 0 for NULL. */
uint64_t users_serial(const struct users *u);

size_t users_count(const struct users *u);

#define USERS_NOBODY SIZE_MAX

/* The user's index, below users_count; or USERS_NOBODY. */
size_t users_find(const struct users *u, const char *name);

/*
 * Is that the password? Takes as long for USERS_NOBODY, so that it does not tell who there is; some
 * milliseconds, or some hundreds, as the hash is made.
 *
 * data  room for crypt_rn, used by one thread at a time
 */
bool users_check(const struct users *u, size_t index, const char *password,
                 struct crypt_data *data);

#endif
