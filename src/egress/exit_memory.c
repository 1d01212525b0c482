#include "egress/exit_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/xalloc.h"

#define MOST 4096

/* "127.0.0.1 65535 127.0.0.1 65535" */
#define KEY_MAX 128

struct exit_entry {
        UT_hash_handle hh;
        char exit[ENDPOINT_EXIT_MAX];
        char key[KEY_MAX];
};

static struct exit_entry *find(const struct exit_memory *m, const char *key)
{
        struct exit_entry *e;
        HASH_FIND_STR(m->entries, key, e);
        return e;
}

static void forget(struct exit_memory *m, struct exit_entry *e)
{
        HASH_DEL(m->entries, e);
        free(e);
}

static void write_key(char key[KEY_MAX], const char *local, int local_port, const char *peer,
                      int peer_port)
{
        snprintf(key, KEY_MAX, "%.46s %d %.46s %d", local, local_port, peer, peer_port);
}

void exit_memory_set(struct exit_memory *m, const char *local, int local_port, const char *peer,
                     int peer_port, const char *exit)
{
        char key[KEY_MAX];
        write_key(key, local, local_port, peer, peer_port);
        struct exit_entry *e = find(m, key);
        if (e)
                forget(m, e);
        if (!*exit)
                return;
        if (HASH_COUNT(m->entries) == MOST)
                forget(m, m->entries); /* the oldest */
        e = xcalloc(1, sizeof *e);
        memcpy(e->key, key, sizeof key);
        snprintf(e->exit, sizeof e->exit, "%s", exit);
        HASH_ADD_STR(m->entries, key, e);
}

const char *exit_memory_get(const struct exit_memory *m, const char *local, int local_port,
                            const char *peer, int peer_port)
{
        char key[KEY_MAX];
        write_key(key, local, local_port, peer, peer_port);
        const struct exit_entry *e = find(m, key);
        return e ? e->exit : "";
}

void exit_memory_done(struct exit_memory *m)
{
        while (m->entries)
                /* It does not see that the table's head moves on. */
                forget(m, m->entries); /* NOLINT(clang-analyzer-unix.Malloc) */
}
