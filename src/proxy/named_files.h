/* proxy/named_files.h - the files that a configuration names: read, and what is wrong with them
 * told with its place in the configuration. */
#ifndef WEIR_PROXY_NAMED_FILES_H
#define WEIR_PROXY_NAMED_FILES_H

#include "config/config.h"
#include "proxy/intercept_ca.h"
#include "proxy/users.h"

/*
 * Reads what requests would fail for the lack of: the users, whom the caller unrefs, and, only to
 * see that they are there, the CAs of hosts.
 *
 * faults  gets one for each file that cannot be used
 *
 * Returns 0, or -EINVAL where there are faults.
 */
int named_files_read(const struct config *c, struct users **ret_users,
                     struct config_faults *faults);

/*
 * Reads the CA that opens HTTPS: the configured one, or that of the state directory `dir` (NULL:
 * there is none), which is made there when it is missing.
 *
 * ret  NULL where no HTTPS is opened; freed by the caller
 *
 * Returns and tells as above.
 */
int named_files_ca(const struct config *c, const char *dir, struct intercept_ca **ret,
                   struct config_faults *faults);

/* That the file of the setting ("log.access") cannot be written to for the reason r, a -errno. */
void named_files_unwritable(const struct config *c, const char *setting, const char *path, int r,
                            struct config_faults *faults);

/* All that a proxy with this configuration would have to say of files when it starts: those above,
 * the logs, and the state directory. Nothing is made or written. Returns and tells as above. */
int named_files_check(const struct config *c, struct config_faults *faults);

#endif
