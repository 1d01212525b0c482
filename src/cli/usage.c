#include "cli/usage.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define FILES USAGE_FILES
#define DIRECTORIES USAGE_DIRECTORIES

const struct usage_command usage_commands[] = {
#define COMMAND(name, arguments, help, about) {#name, arguments, help, about},
#include "cli/commands.def"
};
const struct usage_word usage_words[] = {
#define WORD(command, word, help) {#command, word, help},
#include "cli/commands.def"
};
const struct usage_option usage_options[] = {
#define OPTION(command, letter, name, argument, offer, help) \
        {#command, letter, name, argument, offer, help},
#include "cli/commands.def"
};

const size_t usage_command_count = sizeof usage_commands / sizeof usage_commands[0];
const size_t usage_word_count = sizeof usage_words / sizeof usage_words[0];
const size_t usage_option_count = sizeof usage_options / sizeof usage_options[0];

const struct usage_command *usage_find(const char *name)
{
        for (size_t i = 0; i < usage_command_count; i++)
                if (strcmp(usage_commands[i].name, name) == 0)
                        return &usage_commands[i];
        return NULL;
}

#define WIDTH 90
#define INDENT 24 /* of what is said about an option */

/* In lines of at most WIDTH; `at` is the column on which the first begins, `indent` that of the
 * others. */
static void print_wrapped(const char *text, size_t at, size_t indent)
{
        while (*text) {
                size_t len = strcspn(text, " ");
                if (at > indent && at + 1 + len > WIDTH) {
                        printf("\n%*s", (int)indent, "");
                        at = indent;
                } else if (at > indent) {
                        putchar(' ');
                        at++;
                }
                printf("%.*s", (int)len, text);
                at += len;
                text += len + (text[len] == ' ');
        }
        putchar('\n');
}

static void print_item(int left, const char *help)
{
        if (left >= INDENT)
                putchar('\n');
        printf("%*s", left >= INDENT ? INDENT : INDENT - left, "");
        print_wrapped(help, INDENT, INDENT);
}

static void print_words(const char *command)
{
        bool any = false;
        for (size_t i = 0; i < usage_word_count; i++)
                if (strcmp(usage_words[i].command, command) == 0) {
                        printf("%s", any ? "" : "\n");
                        print_item(printf("  %s", usage_words[i].word), usage_words[i].help);
                        any = true;
                }
}

static void print_options(const char *command)
{
        putchar('\n');
        for (size_t i = 0; i < usage_option_count; i++) {
                const struct usage_option *o = &usage_options[i];
                if (strcmp(o->command, command) != 0)
                        continue;
                int left = o->letter ? printf("  -%c, ", o->letter) : printf("  ");
                left += printf("--%s%s%s", o->name, o->argument ? " " : "",
                               o->argument ? o->argument : "");
                print_item(left, o->help);
        }
}

int usage_print(const char *command)
{
        const struct usage_command *c = usage_find(command);
        printf("usage: weir %s ", c->name);
        print_wrapped(c->arguments, 0, 0);
        putchar('\n');
        if (*c->about)
                print_wrapped(c->about, 0, 0);
        else
                printf("%c%s.\n", toupper((unsigned char)c->help[0]), c->help + 1);
        print_words(command);
        print_options(command);
        return 0;
}

int usage_refuse(const char *command)
{
        fprintf(stderr, "usage: weir %s %s\n", command, usage_find(command)->arguments);
        return 2;
}
