/* proxy/intercept.h - a tunnel that is opened: what the client sends through it is served here. */
#ifndef WEIR_PROXY_INTERCEPT_H
#define WEIR_PROXY_INTERCEPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

struct bufferevent;
struct client;
struct exchange;
struct intercept;
struct message_inside;

/*
 * Answers a CONNECT and looks at what comes: TLS is opened, HTTP read as it is; anything else goes
 * through unread, as a tunnel. The exchange ends when that is known and, with TLS, agreed on;
 * evhttp reads the requests inside from then on.
 *
 * While TLS is spoken the client's bufferevent has no descriptor. Its input and output are what
 * evhttp works with, and carry the plain text; here it is moved between them and the connection.
 */
void intercept_open(struct exchange *ex);

/* Of a client's connection, which is about to be closed; NULL is fine. */
void intercept_free(struct intercept *i);

/* Where the requests inside go to. */
const struct message_inside *intercept_inside(const struct intercept *i);

/* Is it TLS that carries the requests? Otherwise the connection is used as if it were not there. */
bool intercept_is_tls(const struct intercept *i);

/* Is it still to be found out what the client speaks? */
bool intercept_is_opening(const struct intercept *i);

/* The client waits for no answer any more: more of what it sends may be read. */
void intercept_resume(struct intercept *i);

/* The connection as a bufferevent of its own kind, for what is HTTP no longer; its input may hold
 * bytes. Freeing it (bufferevent_free) is the caller's, while the connection is still there. */
struct bufferevent *intercept_take_over(struct intercept *i);

/* Says to the peer of such a bufferevent that no more will follow. */
void intercept_finish(struct bufferevent *bev);

/* Sends a text past evhttp and says that nothing follows. */
void intercept_say_last(struct intercept *i, struct span text);

#endif
