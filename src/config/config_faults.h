/* config/config_faults.h - what is wrong with a configuration file, each with its place. */
#ifndef WEIR_CONFIG_CONFIG_FAULTS_H
#define WEIR_CONFIG_CONFIG_FAULTS_H

#include <stddef.h>
#include <stdio.h>

/* One fault: printed as FILE:LINE:COLUMN: TEXT, where TEXT is "KEY: what is wrong". */
struct config_fault {
        unsigned line, column; /* from 1; 0 where no line of the file is to blame */
        char *text;            /* owned; one line */
};

struct config_faults {
        struct config_fault *list; /* owned */
        size_t count;
};

void config_faults_done(struct config_faults *faults);

/* One line each. Without a line and column the file alone is named. `path` NULL: the built-in
 * defaults and the command line. */
void config_faults_print(const struct config_faults *faults, const char *path, FILE *to);

/* Adds one; `key` is the dotted path of the setting, or NULL where there is none. */
void config_faults_add(struct config_faults *faults, unsigned line, unsigned column,
                       const char *key, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

void config_faults_sort(struct config_faults *faults); /* by place, then by text */

#endif
