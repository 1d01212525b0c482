/* runtime/reports.h - a few words on each request that has ended, handed by the workers to the one
 * who watches, without a lock. */
#ifndef WEIR_RUNTIME_REPORTS_H
#define WEIR_RUNTIME_REPORTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/usec.h"
#include "core/answer_class.h"
#include "core/endpoint.h"
#include "core/outcome.h"

/* Of a longer URL only the beginning is kept. */
#define REPORT_MAX_URL 512

struct report {
        usec_t ended;        /* clock_now */
        usec_t arrived_real; /* wall clock */
        usec_t queued, duration, first_byte;
        char *scope; /* owned; NULL: none was found */
        char *url;   /* owned, see report_url; to be shown through safe_url */
        char method[16];
        char client[INET6_ADDRSTRLEN];
        char address[64]; /* of the last attempt's peer; "" none */
        char *endpoint;   /* owned: "POOL/NAME"; NULL: directly, or not at all */
        char exit_address[ENDPOINT_EXIT_MAX]; /* that the host saw; "" not known */
        bool answered;                        /* `class` is that of the last answer or failure */
        enum answer_class class;
        enum outcome outcome;
        bool relayed; /* a tunnel: its duration is up to the client */
        int status;   /* as the client saw it; 0: it saw none */
        unsigned attempts;
        unsigned refusals; /* answers of 429 on the way, the last one included */
        size_t bytes_in, bytes_out;
};

/* A copy of at most REPORT_MAX_URL bytes, of which none betrays a secret that safe_url would hide
 * in the whole. */
char *report_url(const char *url);
void report_free(struct report *r); /* NULL is fine */

struct reports;

struct reports *reports_new(unsigned writers);
void reports_free(struct reports *r); /* no writer may be left; NULL is fine */

/* From now on somebody reads; until then, and after false, nothing is kept. */
void reports_watch(struct reports *r, bool watch);
bool reports_are_watched(const struct reports *r);

/* Takes `report` over. By the writer's one thread. False: the reader has fallen behind by
 * thousands, and it was dropped. */
bool reports_put(struct reports *r, unsigned writer, struct report *report);

/* An eventfd, readable now and then while reports pile up. */
int reports_bell(const struct reports *r);

/* Calls `each` with all that there are, those of one writer in order; it takes them over. By one
 * thread at a time. Resets the bell. */
void reports_take(struct reports *r, void (*each)(void *arg, struct report *report), void *arg);

#endif
