/*
 * generate.c - prints what is made from the tables of weir: of its settings (config/settings.def),
 * of its commands (cli/commands.def), of what clients are told (cli/client_env.def) and of how
 * requests end (core/outcome.def).
 *
 *   generate FILE   a manual page: FILE, in which @COMMANDS@, @CLIENT_VARIABLES@, @OUTCOMES@,
 *                   @CONFIG@, @POLICY@, @RULE@ and @POOL@, each alone on a line, stand for what
 *                   the tables say
 *   generate bash   completion for bash
 *   generate zsh    completion for zsh
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/usage.h"
#include "config/kind.h"
#include "config/setting.h"
#include "core/outcome.h"

/* ---- manual pages ---- */

/* As text of roff, in which these would be commands or typographic signs. */
static void put_text(const char *text)
{
        static const struct {
                char c;
                const char *roff;
        } special[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                       {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
        for (const char *c = text; *c; c++) {
                const char *roff = NULL;
                for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
                        if (special[i].c == *c)
                                roff = special[i].roff;
                if (roff)
                        fputs(roff, stdout);
                else if (*c == '.' && c == text)
                        fputs("\\&.", stdout);
                else
                        putchar(*c);
        }
}

static void put_bold(const char *text)
{
        fputs("\\fB", stdout);
        put_text(text);
        fputs("\\fR", stdout);
}

/* A sentence on a line of its own. */
static void put_sentence(const char *before, const char *text, const char *after)
{
        char first[2] = {(char)toupper((unsigned char)(*before ? before : text)[0]), '\0'};
        put_text(first);
        put_text(*before ? before + 1 : text + 1);
        if (*before)
                put_text(text);
        put_text(after);
        putchar('\n');
}

static bool is_list(enum setting_kind kind)
{
        switch (kind) {
        case KIND_ADDRESSES:
        case KIND_NETWORKS:
        case KIND_PORTS:
        case KIND_SCOPE:
        case KIND_HOSTS:
        case KIND_RETRY_ON:
        case KIND_CLASSIFY:
        case KIND_ENDPOINTS:
                return true;
        default:
                return false;
        }
}

static void put_values(const struct setting *s)
{
        if (s->kind == KIND_CHOICE)
                put_sentence("One of ", s->range, ".");
        else if (is_list(s->kind))
                put_sentence("A list, of which each item is ", kind_expected(s->kind), ".");
        else if (s->kind != KIND_TEXT)
                put_sentence("", kind_expected(s->kind), s->range ? "," : ".");
        if (s->range && s->kind != KIND_CHOICE) {
                put_text("from ");
                put_text(s->range);
                puts(".");
        }
}

static void put_settings(enum setting_place place)
{
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                if (s->place != place)
                        continue;
                puts(".TP");
                put_bold(setting_relative(s));
                if (s->fallback) {
                        fputs(": ", stdout);
                        put_text(s->fallback);
                }
                putchar('\n');
                put_sentence("", s->help, "");
                put_values(s);
                if (s->applies == APPLIES_RESTART)
                        puts("A change takes effect with the next start.");
        }
}

static void put_item(const char *help)
{
        put_text(help);
        putchar('\n');
}

static void put_client_variables(void)
{
        static const struct {
                const char *name, *readers;
        } rows[] = {
#define CLIENT_ENV(name, kind, readers) {name, readers},
#include "cli/client_env.def"
#undef CLIENT_ENV
        };
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                puts(".TP");
                put_bold(rows[i].name);
                putchar('\n');
                put_text(rows[i].readers);
                puts(".");
        }
}

static void put_outcomes(void)
{
        for (enum outcome o = 0; o < OUTCOME_COUNT; o++) {
                puts(".TP");
                put_bold(outcome_name(o));
                putchar('\n');
                put_sentence("", outcome_text(o), ".");
        }
}

static void put_commands(void)
{
        for (size_t i = 0; i < usage_command_count; i++) {
                const struct usage_command *c = &usage_commands[i];
                fputs(".SS \"weir ", stdout);
                put_text(c->name);
                putchar(' ');
                for (const char *a = c->arguments; *a; a++) {
                        char one[2] = {*a, '\0'};
                        put_text(*a == '"' ? "\\(dq" : one);
                }
                puts("\"");
                put_sentence("", *c->about ? c->about : c->help, *c->about ? "" : ".");
                for (size_t k = 0; k < usage_word_count; k++)
                        if (strcmp(usage_words[k].command, c->name) == 0) {
                                puts(".TP");
                                put_bold(usage_words[k].word);
                                putchar('\n');
                                put_item(usage_words[k].help);
                        }
                for (size_t k = 0; k < usage_option_count; k++) {
                        const struct usage_option *o = &usage_options[k];
                        if (strcmp(o->command, c->name) != 0)
                                continue;
                        puts(".TP");
                        if (o->letter)
                                printf("\\fB\\-%c\\fR, ", o->letter);
                        fputs("\\fB\\-\\-", stdout);
                        put_text(o->name);
                        fputs("\\fR", stdout);
                        if (o->argument) {
                                putchar(' ');
                                put_text(o->argument);
                        }
                        putchar('\n');
                        put_item(o->help);
                }
        }
}

static int put_page(const char *template)
{
        FILE *from = fopen(template, "r");
        char *line = NULL;
        size_t size = 0;
        if (!from) {
                perror(template);
                return 1;
        }
        while (getline(&line, &size, from) > 0) {
                char *version = strstr(line, "@VERSION@");
                if (strcmp(line, "@COMMANDS@\n") == 0)
                        put_commands();
                else if (strcmp(line, "@CLIENT_VARIABLES@\n") == 0)
                        put_client_variables();
                else if (strcmp(line, "@OUTCOMES@\n") == 0)
                        put_outcomes();
                else if (strcmp(line, "@CONFIG@\n") == 0)
                        put_settings(IN_CONFIG);
                else if (strcmp(line, "@POLICY@\n") == 0)
                        put_settings(IN_POLICY);
                else if (strcmp(line, "@RULE@\n") == 0)
                        put_settings(IN_RULE);
                else if (strcmp(line, "@POOL@\n") == 0)
                        put_settings(IN_POOL);
                else if (version)
                        printf("%.*s" PACKAGE_VERSION "%s", (int)(version - line), line,
                               version + strlen("@VERSION@"));
                else
                        fputs(line, stdout);
        }
        free(line);
        fclose(from);
        return 0;
}

/* ---- completion for shells ---- */

static void put_command_names(void)
{
        for (size_t i = 0; i < usage_command_count; i++)
                printf("%s ", usage_commands[i].name);
        fputs("version help", stdout);
}

/* What bash takes for `compgen`. */
static const char *bash_action(const char *offer)
{
        return strcmp(offer, USAGE_FILES) == 0         ? "-f"
               : strcmp(offer, USAGE_DIRECTORIES) == 0 ? "-d"
                                                       : NULL;
}

static void put_bash_argument(const struct usage_option *o)
{
        printf("        %s,--%s", o->command, o->name);
        if (o->letter)
                printf(" | %s,-%c", o->command, o->letter);
        const char *action = o->offer ? bash_action(o->offer) : NULL;
        if (action)
                printf(")\n                compopt -o filenames 2>/dev/null\n"
                       "                mapfile -t COMPREPLY < <(compgen %s -- \"$word\")\n",
                       action);
        else if (o->offer)
                printf(
                    ")\n                mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\")\n",
                    o->offer);
        else
                puts(")");
        puts("                return\n"
             "                ;;");
}

static void put_bash_options(const struct usage_command *c)
{
        printf("        %s) options='", c->name);
        for (size_t k = 0; k < usage_word_count; k++)
                if (strcmp(usage_words[k].command, c->name) == 0)
                        printf("%s ", usage_words[k].word);
        for (size_t k = 0; k < usage_option_count; k++)
                if (strcmp(usage_options[k].command, c->name) == 0) {
                        if (usage_options[k].letter)
                                printf("-%c ", usage_options[k].letter);
                        printf("--%s ", usage_options[k].name);
                }
        puts("--help' ;;");
}

static int put_bash(void)
{
        fputs("# Completion of weir for bash.\n"
              "# shellcheck shell=bash\n"
              "_weir() {\n"
              "        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
              "        local command=${COMP_WORDS[1]} options='' i\n"
              "        COMPREPLY=()\n"
              "        if ((COMP_CWORD == 1)); then\n"
              "                command=any options='",
              stdout);
        put_command_names();
        fputs(" --help --version'\n"
              "        elif [ \"$command\" = help ]; then\n"
              "                options='",
              stdout);
        put_command_names();
        puts(
            "'\n"
            "        elif [ \"$command\" = exec ]; then\n"
            "                # What follows \"--\" is a command with a completion of its own.\n"
            "                for ((i = 2; i < COMP_CWORD; i++)); do\n"
            "                        [ \"${COMP_WORDS[i]}\" = -- ] || continue\n"
            "                        if declare -F _command_offset >/dev/null; then\n"
            "                                _command_offset $((i + 1))\n"
            "                        else\n"
            "                                mapfile -t COMPREPLY < <(compgen -c -f -- \"$word\")\n"
            "                        fi\n"
            "                        return\n"
            "                done\n"
            "        fi\n"
            "        case $command,$before in");
        for (size_t i = 0; i < usage_option_count; i++)
                if (usage_options[i].argument)
                        put_bash_argument(&usage_options[i]);
        puts("        esac\n"
             "        case $command in");
        for (size_t i = 0; i < usage_command_count; i++)
                put_bash_options(&usage_commands[i]);
        puts("        esac\n"
             "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
             "}\n"
             "complete -F _weir weir");
        return 0;
}

/* Inside of single quotes, in a description of _arguments, in which [ ] and : have a meaning. */
static void put_zsh_text(const char *text)
{
        for (; *text; text++) {
                if (*text == '\'')
                        fputs("'\\'", stdout);
                else if (strchr("[]:\\", *text))
                        putchar('\\');
                putchar(*text);
        }
}

static void put_zsh_option(const struct usage_option *o)
{
        bool files = o->offer && strcmp(o->offer, USAGE_FILES) == 0;
        bool directories = o->offer && strcmp(o->offer, USAGE_DIRECTORIES) == 0;
        int forms = o->letter ? 2 : 1;
        for (int short_form = 0; short_form < forms; short_form++) {
                fputs("                        '", stdout);
                if (short_form)
                        printf("-%c", o->letter);
                else
                        printf("--%s", o->name);
                putchar('[');
                put_zsh_text(o->help);
                putchar(']');
                if (o->argument) {
                        putchar(':');
                        put_zsh_text(o->argument);
                        putchar(':');
                }
                if (files)
                        fputs("_files", stdout);
                else if (directories)
                        fputs("_files -/", stdout);
                else if (o->offer)
                        printf("(%s)", o->offer);
                puts("' \\");
        }
}

static void put_zsh_command(const struct usage_command *c)
{
        bool words = false;
        printf("        %s)\n"
               "                _arguments \\\n",
               c->name);
        for (size_t k = 0; k < usage_option_count; k++)
                if (strcmp(usage_options[k].command, c->name) == 0)
                        put_zsh_option(&usage_options[k]);
        fputs("                        '--help[prints what it takes]'", stdout);
        for (size_t k = 0; k < usage_word_count; k++)
                if (strcmp(usage_words[k].command, c->name) == 0) {
                        printf(words ? " %s" : " \\\n                        ':word:(%s",
                               usage_words[k].word);
                        words = true;
                }
        if (words)
                fputs(")'", stdout);
        if (strcmp(c->name, "exec") == 0)
                fputs(" \\\n                        '(-)1:command:_command_names -e'"
                      " \\\n                        '*::argument:_normal'",
                      stdout);
        puts("\n                ;;");
}

static int put_zsh(void)
{
        puts("#compdef weir\n"
             "# Completion of weir for zsh.\n"
             "_weir() {\n"
             "        local -a commands=(");
        for (size_t i = 0; i < usage_command_count; i++) {
                printf("                '%s:", usage_commands[i].name);
                put_zsh_text(usage_commands[i].help);
                puts("'");
        }
        puts("                'version:prints the version'\n"
             "                'help:prints the options of a command'\n"
             "        )\n"
             "        if ((CURRENT == 2)) || [[ ${words[2]} == help ]]; then\n"
             "                _describe command commands\n"
             "                return\n"
             "        fi\n"
             "        shift words\n"
             "        ((CURRENT--))\n"
             "        # What follows \"--\" is a command with a completion of its own.\n"
             "        local -i end=${words[(i)--]}\n"
             "        if [[ ${words[1]} == exec ]] && ((end < CURRENT)); then\n"
             "                shift $end words\n"
             "                ((CURRENT -= end))\n"
             "                _normal\n"
             "                return\n"
             "        fi\n"
             "        case ${words[1]} in");
        for (size_t i = 0; i < usage_command_count; i++)
                put_zsh_command(&usage_commands[i]);
        puts("        esac\n"
             "}\n"
             "_weir \"$@\"");
        return 0;
}

int main(int argc, char **argv)
{
        if (argc != 2) {
                fputs("usage: generate FILE|bash|zsh\n", stderr);
                return 2;
        }
        int r = strcmp(argv[1], "bash") == 0  ? put_bash()
                : strcmp(argv[1], "zsh") == 0 ? put_zsh()
                                              : put_page(argv[1]);
        return r == 0 && fflush(stdout) == 0 ? 0 : 1;
}
