/* egress/upstream.h - one attempt at a request, made over libcurl and streamed back. */
#ifndef WEIR_EGRESS_UPSTREAM_H
#define WEIR_EGRESS_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cidr.h"
#include "base/fields.h"
#include "base/span.h"
#include "base/usec.h"
#include "config/policy.h"
#include "config/egress_config.h"
#include "core/retry.h"
#include "egress/exit_memory.h"

struct event_base;
struct evbuffer;
struct bufferevent;

struct upstream; /* the connection pool of one worker; used by its thread alone */
struct attempt;  /* one request on its way, or one connection that is being opened */

/* Borrowed for the call of upstream_start, which copies; but `body`, `deny`, `allow` and
 * `exit_header` until the attempt has ended, was cancelled or discarded. */
struct upstream_request {
        bool dial; /* only open the connection: of all that follows, host, port, deny, allow, the
                    * way out and the timeouts until there is a connection are of use */
        bool tls;
        struct upstream_tls {
                bool verify;
                const char *ca_file; /* PEM, in the place of the system's CAs; "" or NULL: these.
                                      * Where it holds CRLs, no certificate of theirs is taken */
                enum tls_version min_version;
                bool http2; /* where it is offered: one connection carries many requests then */
        } with;             /* where `tls` is set */
        struct span host;   /* name or address, without brackets */
        unsigned port;
        struct span method;
        struct span target; /* path and query, byte for byte as the client sent them */
        /* To be sent in this order, with these spellings, Host included; nothing is added but
         * Content-Length where there is a body (an empty one too) and no such field. No
         * Transfer-Encoding may be among them: how the body is framed is decided here. */
        const struct fields *fields;
        struct evbuffer *body; /* NULL: none; read, never drained, so that it can go again */
        bool may_switch; /* the fields ask for another protocol, and the answer may be a 101; only
                          * where there is no body */
        /* May go out twice: when a reused connection turns out to be dead, it is sent once more on
         * a new one. Otherwise that ends in CONNECTION_TERMINATED. */
        bool replayable;
        /* Destinations by address; allow wins; may be NULL. With an upstream proxy, which is told
         * names, those that are written as addresses. */
        const struct cidr_set *deny, *allow;
        const struct egress_endpoint *egress; /* the way out; NULL: directly */
        const char *exit_header; /* the field in which its proxy tells the exit address; "" or NULL:
                                  * none */
        struct {
                usec_t connect;    /* name lookup and TLS included */
                usec_t first_byte; /* since the last bytes of the request were handed over */
                usec_t read;       /* between bytes of the answer; not while paused */
                usec_t head;       /* since the start, until the head of the answer is whole */
        } timeouts;                /* 0: none; the total is the caller's */
};

struct upstream_answer {
        int status; /* the final one: 1xx are left out, but for the 101 that was asked for */
        struct span reason;          /* may be empty: HTTP/2 has none */
        const struct fields *fields; /* all of the final head, hop-by-hop fields included; without
                                      * Content-Length where Transfer-Encoding overrides it */
};

/* What went wrong, one row each in upstream_error.def: its RFC 9209 error type, the status that a
 * client gets (502, 504, 403 …), the kind of failure for the retry policy, and whose doing it is.
 */
enum upstream_error {
        UPSTREAM_OK,
#define ERROR(name, proxy_status_type, status, failure, whose) UPSTREAM_##name,
#include "egress/upstream_error.def"
#undef ERROR
};

const char *upstream_error_type(enum upstream_error e); /* "connection_refused" … */
int upstream_error_status(enum upstream_error e);
enum retry_failure upstream_error_failure(enum upstream_error e);

/* Is it the host's doing, or that of the way there? Our own faults teach nothing about the host. */
bool upstream_error_is_hosts(enum upstream_error e);

/* Is it the doing of the endpoint? Another one may do better. */
bool upstream_error_is_endpoints(enum upstream_error e);

/* Does the endpoint not let anything through to that host, whatever it does for others? To the host
 * that is as if it was blocked there. */
bool upstream_error_is_refusal(enum upstream_error e);

/* The host's fault of a type of RFC 9209, as the next proxy tells it; UPSTREAM_OK: it is none. Not
 * destination_unavailable, which says as much of the proxy as of the host. */
enum upstream_error upstream_error_of_host(struct span type);

struct upstream_end {
        enum upstream_error error;
        const char *detail; /* one plain phrase for people, "" when OK; valid during the call */
        usec_t name_lookup, connect, tls, first_byte,
            total;        /* since the start; 0: did not happen */
        bool reused;      /* an open connection was used */
        char address[64]; /* "127.0.0.1:80" of the host; "" when there was none, and with an
                           * upstream proxy, who alone knows it */
        char exit[ENDPOINT_EXIT_MAX]; /* the address that the host sees, as far as it is known here:
                                       * our own, or what the proxy told; "" */
        /* What was dialled, when OK: the caller's from now on. Nothing is enabled in it. */
        struct bufferevent *dialled;
};

enum upstream_flow { UPSTREAM_MORE, UPSTREAM_PAUSE };

/* All are called on the worker's thread, never from within upstream_start. Each may call
 * attempt_cancel or attempt_discard; after that no other is called. */
struct upstream_handlers {
        /* What the answer points to stays until the attempt has ended, on_end included, or was
         * cancelled or discarded. */
        void (*on_head)(void *arg, const struct upstream_answer *answer);
        /* Body bytes, decoded from chunks but not from content codings. PAUSE: they were not taken,
         * and are offered again after attempt_resume. */
        enum upstream_flow (*on_body)(void *arg, const void *data, size_t len);
        /* Once, at the end; the attempt is gone when this returns. Without a head before it when
         * error is not OK, and for a dial; with one when the body was cut short. */
        void (*on_end)(void *arg, const struct upstream_end *end);
};

/* NULL when libcurl cannot be set up. */
struct upstream *upstream_new(struct event_base *base);
void upstream_free(
    struct upstream *u); /* no attempt may be left; what is being drained is dropped */

/* Attempts that have not ended, those that are being drained included. */
size_t upstream_active(const struct upstream *u);

/* Never NULL: a request that cannot be made ends with an error in the loop's next round. */
struct attempt *upstream_start(struct upstream *u, const struct upstream_request *request,
                               const struct upstream_handlers *handlers, void *arg);

void attempt_resume(struct attempt *a); /* after PAUSE; may call on_body before it returns */

/*
 * To be called in on_head with a 101, or after it: what the connection carries from now on, both
 * ways. on_body is not called any more. Ends there are passed on: that of the caller's side to the
 * host (over TLS, which cannot end one way alone through libcurl, it ends all), and when the host
 * has ended, or the connection broke, the bufferevent tells (EOF with both READING and WRITING: it
 * takes nothing any more), and on_end is called.
 *
 * The bufferevent is the caller's; nothing is enabled in it. The attempt is to be cancelled as
 * ever where it has not ended, of which the bufferevent does not tell.
 */
struct bufferevent *attempt_stream(struct attempt *a);

/* Ends it at once and closes its connection. No handler is called any more. */
void attempt_cancel(struct attempt *a);

/* The caller wants no more of it: the rest of the body is read and dropped so that the connection
 * can be used again, up to 64 KiB and 2 s, else the connection is closed. No handler is called any
 * more. */
void attempt_discard(struct attempt *a);

#endif
