/* cli/exec_figures.h - what came of the requests of one command. */
#ifndef WEIR_CLI_EXEC_FIGURES_H
#define WEIR_CLI_EXEC_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "base/usec.h"
#include "core/histogram.h"
#include "core/outcome.h"

struct exec_status {
        int status;
        uint64_t count;
};

struct exec_scope {
        char *key;          /* owned */
        uint64_t sent;      /* attempts */
        double rate;        /* requests/s that it was found to take; 0: not known */
        double concurrency; /* requests in flight */
        usec_t closed_for;  /* 0: open */
};

struct exec_figures {
        usec_t span;        /* how long the command ran */
        uint64_t requests;  /* that have ended */
        uint64_t succeeded; /* the host's answer was delivered, and was no refusal or failure */
        uint64_t relayed;   /* connections that passed unread; each is a request as well */
        uint64_t outcomes[OUTCOME_COUNT];
        uint64_t retries;
        struct exec_status *answers, *absorbed; /* by status; owned */
        size_t answer_count, absorbed_count;
        struct histogram duration, queued;
        struct exec_scope *scopes; /* those with an attempt; owned, as are their keys */
        size_t scope_count;
};

struct server;

/* Gathers them from a server that has drained or still runs; `span` is the caller's. Free with
 * exec_figures_done. */
void exec_figures_take(struct server *s, struct exec_figures *ret);
void exec_figures_done(struct exec_figures *f);

#endif
