/* egress/exit_memory.h - which exit address a proxy told for each of the tunnels that stand: it
 * does so once, when it opens one. */
#ifndef WEIR_EGRESS_EXIT_MEMORY_H
#define WEIR_EGRESS_EXIT_MEMORY_H

#include "core/endpoint.h"

struct exit_memory {
        struct exit_entry *entries; /* hash, by connection; the oldest first */
};

/* The connection as its two ends name it: their addresses and ports. What is kept for it is
 * replaced; an empty exit is forgotten. No more than a few thousand connections are remembered. */
void exit_memory_set(struct exit_memory *m, const char *local, int local_port, const char *peer,
                     int peer_port, const char *exit);

/* "" where nothing is known; valid until the next call. */
const char *exit_memory_get(const struct exit_memory *m, const char *local, int local_port,
                            const char *peer, int peer_port);

void exit_memory_done(struct exit_memory *m);

#endif
