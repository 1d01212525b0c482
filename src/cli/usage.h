/* cli/usage.h - what each command takes (commands.def), for --help, the manual and the shells. */
#ifndef WEIR_CLI_USAGE_H
#define WEIR_CLI_USAGE_H

#include <stddef.h>
#include <stdio.h>

struct usage_command {
        const char *name, *arguments, *help, *about;
};

struct usage_word {
        const char *command, *word, *help;
};

struct usage_option {
        const char *command;
        char letter; /* 0: it has none */
        const char *name;
        const char *argument; /* NULL: it takes none */
        const char *offer;    /* USAGE_FILES, USAGE_DIRECTORIES, words, or NULL */
        const char *help;
};

#define USAGE_FILES "<files>"
#define USAGE_DIRECTORIES "<directories>"

extern const struct usage_command usage_commands[];
extern const struct usage_word usage_words[];
extern const struct usage_option usage_options[];
extern const size_t usage_command_count, usage_word_count, usage_option_count;

/* The row of a command; NULL: there is none of that name. */
const struct usage_command *usage_find(const char *name);

/* Prints all that --help says of the command, and returns 0. */
int usage_print(const char *command);

/* Prints how the command is to be written to standard error, below the fault where one was told
 * already, and returns 2: the exit status of a command line that is wrong. */
int usage_refuse(const char *command);

#endif
