/* cli/practice_load.h - clients that ask again and again through a proxy, as scrapers do. */
#ifndef WEIR_CLI_PRACTICE_LOAD_H
#define WEIR_CLI_PRACTICE_LOAD_H

#include <stdint.h>

struct practice_load_settings {
        unsigned workers;    /* each with one connection and one request at a time */
        unsigned proxy_port; /* on 127.0.0.1 */
        const char *url;     /* absolute, http; copied */
        const char *host;    /* of the Host field; copied */
};

/* What the clients saw, in sums since the start. */
struct practice_load_figures {
        uint64_t ok;      /* 200 */
        uint64_t refused; /* 429 and 503 */
        uint64_t other;   /* any other status */
        uint64_t failed;  /* no answer at all */
};

struct practice_load;

/* All workers start at once. ret_error: one plain line, freed by the caller. 0 or -errno. */
int practice_load_start(const struct practice_load_settings *settings, struct practice_load **ret,
                        char **ret_error);

/* From any thread. */
void practice_load_look(const struct practice_load *l, struct practice_load_figures *ret);

/* The workers leave at once, whatever they wait for; the figures stay. Harmless when done before.
 */
void practice_load_stop(struct practice_load *l);
void practice_load_free(struct practice_load *l); /* stops it first; NULL is fine */

#endif
