/*
 * Plays a corpus through a fuzz target without libFuzzer, so that every compiler can: each file as
 * it is, and each beginning of the short ones.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/fuzz/fuzz.h"

enum { SHORT = 600, LONGEST = 1 << 22 };

/* In memory of just that size, so that a sanitizer sees whatever reads beyond. */
static void run(const char *text, size_t size)
{
        char *exact = xmalloc(size ? size : 1);
        if (size)
                memcpy(exact, text, size);
        LLVMFuzzerTestOneInput((const uint8_t *)exact, size);
        free(exact);
}

static void play(const char *path)
{
        char *text = xmalloc(LONGEST);
        FILE *file = fopen(path, "rb");
        if (!file) {
                perror(path);
                abort();
        }
        size_t size = fread(text, 1, LONGEST, file);
        fclose(file);
        for (size_t n = 0; size <= SHORT && n < size; n++)
                run(text, n);
        run(text, size);
        free(text);
}

static int is_file(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

int main(void)
{
        struct dirent **entries;
        int n = scandir(CORPUS, &entries, is_file, alphasort);
        if (n <= 0) {
                fprintf(stderr, "%s: there is no corpus\n", CORPUS);
                return 1;
        }
        for (int i = 0; i < n; i++) {
                char *path = xasprintf("%s/%s", CORPUS, entries[i]->d_name);
                printf("%s\n", path); /* the last one printed is to blame for a crash */
                fflush(stdout);
                play(path);
                free(path);
                free(entries[i]);
        }
        free(entries);
        return 0;
}
