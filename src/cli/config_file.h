/* cli/config_file.h - which configuration file a command reads, and the reading of it. */
#ifndef WEIR_CLI_CONFIG_FILE_H
#define WEIR_CLI_CONFIG_FILE_H

#include <stdbool.h>

#include "config/config.h"

/* The file that is read where the command line names none; NULL when it is not there, which means
 * the built-in defaults. */
const char *config_file_default(void);

/*
 * Reads the command line of a command that takes -c FILE and nothing else.
 *
 * ret_path    the file, or the default as above
 * ret_status  what to end with
 *
 * Returns whether to go on; *ret_status is set where not, and the reason told.
 */
bool config_file_option(const char *command, int argc, char **argv, const char **ret_path,
                        int *ret_status);

/*
 * Reads and checks the file; each of its faults is told on standard error.
 *
 * path   NULL: the built-in defaults
 * given  what the command brings along (config_load_given); NULL: nothing
 *
 * Returns the configuration, held by one reference; NULL where there are faults.
 */
struct config *config_file_load(const char *path, const struct config_given *given);

#endif
