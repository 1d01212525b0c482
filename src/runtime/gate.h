/* runtime/gate.h - the governor behind its one mutex, shared by all workers. */
#ifndef WEIR_RUNTIME_GATE_H
#define WEIR_RUNTIME_GATE_H

#include "core/governor.h"
#include "runtime/mailbox.h"
#include "runtime/sink.h"

struct gate;

/* series    where each change of a limiter is written; NULL: nowhere. Borrowed. */
struct gate *gate_new(unsigned workers, size_t max_lanes, struct sink *series);
void gate_free(struct gate *g);

/* Before the workers run. */
void gate_attach(struct gate *g, unsigned worker, struct mailbox *mailbox);

/* The timer of everything that becomes possible by itself; a descriptor to be read by worker 0,
 * which calls gate_tick when it is readable. */
int gate_timer(const struct gate *g);
void gate_tick(struct gate *g);

/* See core/governor.h; each may be called by the worker that owns the ticket. */
enum ticket_reply gate_ask(struct gate *g, struct ticket *t, const struct ticket_wish *wish);
enum answer_class gate_answer(struct gate *g, struct ticket *t, const struct answer *answer);
bool gate_requeue(struct gate *g, struct ticket *t, const struct ticket_wish *wish);
void gate_finish(struct gate *g, struct ticket *t);
void gate_cancel(struct gate *g, struct ticket *t);
void gate_keep(struct gate *g, struct ticket *t);
bool gate_endpoint_failed(struct gate *g, struct ticket *t, usec_t *ret_wait);
void gate_exit(struct gate *g, const struct ticket *t, char exit[ENDPOINT_EXIT_MAX]);

/* The pools of a configuration, before any worker asks under it. */
void gate_pools(struct gate *g, const struct pool_policy *const *pools, size_t count);

/* The worker's next decided ticket with its reply, or NULL. */
struct ticket *gate_next(struct gate *g, unsigned worker, enum ticket_reply *ret_reply);

void gate_close(struct gate *g);
void gate_stats(struct gate *g, struct governor_stats *ret_stats);

/* What was learned, for the next start. `each` is called outside of the mutex, which is taken for a
 * few lanes at a time. By one thread at a time. */
void gate_export(struct gate *g,
                 void (*each)(void *arg, const char *key, const struct limiter_memory *m),
                 void *arg);
void gate_import(struct gate *g, struct span key, const struct limiter_memory *m);

/* How each scope stands, as gate_export goes about it: `each` is called outside of the mutex. By
 * one thread at a time. */
void gate_look(struct gate *g, void (*each)(void *arg, const struct governor_change *view),
               void *arg);

/* The changes of one scope later than `since`, the oldest first; the caller frees *ret. False:
 * there is no such scope. */
bool gate_series(struct gate *g, struct span key, usec_t since, struct series_record **ret,
                 size_t *ret_count);

bool gate_reset(struct gate *g, struct span key); /* governor_reset */

/* How the endpoints of pools stand; which hosts avoid which of them; and the `most` sessions that
 * have been known longest. `each` is called outside of the mutex. */
void gate_look_endpoints(struct gate *g, void (*each)(void *arg, const struct endpoint_view *view),
                         void *arg);
void gate_look_quarantines(struct gate *g,
                           void (*each)(void *arg, const struct quarantine_view *view), void *arg);
void gate_look_sessions(struct gate *g, size_t most,
                        void (*each)(void *arg, const struct session_view *view), void *arg);

void gate_import_quarantine(struct gate *g, const struct quarantine_view *q);

#endif
