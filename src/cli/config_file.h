/* cli/config_file.h - which configuration file a command reads, and the reading of it. */
#ifndef WEIR_CLI_CONFIG_FILE_H
#define WEIR_CLI_CONFIG_FILE_H

#include "config/config.h"

/* The file that is read where the command line names none; NULL when it is not there, which means
 * the built-in defaults. */
const char *config_file_default(void);

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
