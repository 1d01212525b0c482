#include "config/config_faults.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void config_faults_done(struct config_faults *faults)
{
        for (size_t i = 0; i < faults->count; i++)
                free(faults->list[i].text);
        free(faults->list);
        *faults = (struct config_faults){0};
}

void config_faults_print(const struct config_faults *faults, const char *path, FILE *to)
{
        for (size_t i = 0; i < faults->count; i++) {
                const struct config_fault *f = &faults->list[i];
                if (path)
                        fprintf(to, "%s:", path);
                if (path && f->line)
                        fprintf(to, "%u:%u:", f->line, f->column);
                fprintf(to, "%s%s\n", path ? " " : "", f->text);
        }
}

void config_faults_add(struct config_faults *faults, unsigned line, unsigned column,
                       const char *key, const char *format, ...)
{
        va_list ap;
        va_start(ap, format);
        char *what = xvasprintf(format, ap);
        va_end(ap);
        if ((faults->count & (faults->count - 1)) == 0) /* 0, 1, 2, 4, 8 …: full */
                faults->list = xrealloc(faults->list, (faults->count ? 2 * faults->count : 1) *
                                                          sizeof *faults->list);
        char *text = key ? xasprintf("%s: %s", key, what) : xstrdup(what);
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = '?'; /* a key may hold anything */
        faults->list[faults->count++] = (struct config_fault){line, column, text};
        free(what);
}

static int by_place(const void *a, const void *b)
{
        const struct config_fault *x = a, *y = b;
        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        if (x->column != y->column)
                return x->column < y->column ? -1 : 1;
        return strcmp(x->text, y->text);
}

void config_faults_sort(struct config_faults *faults)
{
        if (faults->count)
                qsort(faults->list, faults->count, sizeof *faults->list, by_place);
}
