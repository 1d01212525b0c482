/* proxy/peek.h - holds the beginning of an answer back while its class depends on what its body
 * says. */
#ifndef WEIR_PROXY_PEEK_H
#define WEIR_PROXY_PEEK_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "base/usec.h"
#include "egress/upstream.h"

/* A body that comes drop by drop is not waited for any longer. */
#define PEEK_TIME (2 * USEC_PER_SEC)

struct evbuffer;
struct peek;

/* Can a body that is coded like this be looked at? Not coded, or gzip or deflate once. */
bool peek_can_read(const struct fields *fields);

/* head     copied; what it points to is borrowed
 * on_late  called from the event loop, once, when PEEK_TIME has passed */
struct peek *peek_new(struct event_base *base, const struct upstream_answer *head,
                      void (*on_late)(void *arg), void *arg);
void peek_free(struct peek *p); /* NULL is fine */

/* Takes a piece of the body, as it came. True when there is enough of it. */
bool peek_take(struct peek *p, const void *data, size_t len);

/* The beginning of the body, at most CLASSIFY_BODY_MAX bytes, gzip and deflate undone as far as
 * they can be. In `p`. */
struct span peek_text(struct peek *p);

const struct upstream_answer *peek_head(const struct peek *p);

/* All that was taken, as it came; the caller may drain it. */
struct evbuffer *peek_body(struct peek *p);

#endif
