/* egress/attempt.h - an attempt as the two halves of egress see it; private to them. */
#ifndef WEIR_EGRESS_ATTEMPT_H
#define WEIR_EGRESS_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>

#include <curl/curl.h>
#include <event2/buffer.h>
#include <event2/event.h>

#include "base/list.h"
#include "base/usec.h"
#include "egress/answer_head.h"
#include "egress/bridge.h"
#include "egress/request_lines.h"
#include "egress/upstream.h"

/* What is read to its end after a discard, so that the connection can be used again. */
#define ATTEMPT_DRAIN_BYTES ((size_t)64 * 1024)

enum attempt_state {
        ATTEMPT_IDLE,      /* put aside, to be used again */
        ATTEMPT_RUNNING,   /* its handlers are called */
        ATTEMPT_DRAINING,  /* discarded: the rest of the body is dropped */
        ATTEMPT_CANCELLED, /* to be removed as soon as libcurl allows it */
        ATTEMPT_ENDING,    /* on_end is being called */
        ATTEMPT_BRIDGED,   /* what it dialled goes on through libcurl */
};

enum attempt_phase {
        ATTEMPT_CONNECTING, /* libcurl keeps the time, but for that of the head */
        ATTEMPT_WAITING,    /* being sent, or sent; no byte of the answer yet */
        ATTEMPT_READING,
};

/* What libcurl was told for a former request: only what differs is set again. */
struct attempt_settings {
        char *host, *method, *target; /* owned; NULL: never set */
        unsigned port;
        bool tls;
        bool no_verify;
        char *ca_file; /* owned; NULL: the system's */
        long ssl_version, http_version;
        bool alone; /* on a new connection */
        long connect_ms;
        bool upload, no_body, dial;
        enum egress_kind egress;
        char *proxy, *user, *password, *device; /* owned; NULL: none */
        bool tunnel;                            /* also for what the proxy would read otherwise */
        bool apart;                             /* from the connections of others */
        curl_off_t body_len;
        bool small_buffers;
};

struct attempt {
        struct list link; /* among the active or the idle ones of its upstream */
        struct list todo; /* in the upstream's deferred list */
        struct upstream *upstream;
        CURL *easy;
        bool added; /* to the multi handle */
        struct attempt_settings set;

        struct event *clock; /* one timer, moved as seldom as possible */
        usec_t clock_at;     /* it is armed for then; USEC_MAX: not */
        usec_t started;
        usec_t progress;         /* the last time that bytes moved */
        usec_t first_byte, read; /* USEC_MAX: none */
        usec_t head_until;       /* the head is whole by then; USEC_MAX: at any time */
        usec_t drain_until;

        enum attempt_state state;
        enum attempt_phase phase;
        const struct upstream_handlers *handlers;
        void *arg;

        struct request_lines lines;
        struct evbuffer *body;
        struct evbuffer_ptr body_at;
        size_t body_len, body_sent;
        bool replayable;
        const struct cidr_set *deny, *allow;

        unsigned sends;            /* times that the request was about to be sent */
        bool denied;               /* an address was refused by the guard */
        bool dialled;              /* an address was not */
        bool reached;              /* there was a TCP connection */
        enum upstream_error error; /* found here; wins over libcurl's code */
        struct answer_head head;
        size_t drained;
        struct bridge *bridge; /* NULL unless BRIDGED */
        struct {
                bool on;     /* this is only a look for the host's address */
                bool pinned; /* libcurl was told to connect to that, whatever the host's name */
                char address[64]; /* in the notation of CURLOPT_CONNECT_TO; "" none */
                struct curl_slist node;
        } lookup;
        struct answer_head tunnel;    /* what the proxy said of the tunnel */
        const char *exit_header;      /* "": none */
        char exit[ENDPOINT_EXIT_MAX]; /* what the proxy told; "" */
        bool head_only;               /* ended by us after the head: HEAD with a body */
        bool paused, resume;
        bool stalls; /* paused, and with it all that its connection carries */

        /* of a switch to another protocol (attempt_stream.c) */
        bool may_switch;            /* a 101 was asked for */
        bool over;                  /* the host has ended: nothing of its bytes is left to come */
        bool told;                  /* no more will come for the host */
        curl_socket_t socket;       /* of the connection */
        struct bufferevent *stream; /* our half of the pair, once it was switched over */

        struct attempt_peer { /* its text is made anew only when it has changed */
                char ip[46], text[64];
                long port;
        } peer;
        char error_text[CURL_ERROR_SIZE], detail[CURL_ERROR_SIZE + 64];
};

/* --- upstream.c: the pool --- */

struct attempt *upstream_take(struct upstream *u); /* an idle one, or a new one; active then */
void upstream_put(struct attempt *a, bool reusable);

/* Is libcurl on the stack? Then it may not be told to add or remove anything. */
bool upstream_inside(const struct upstream *u);
void upstream_enter(struct upstream *u);
void upstream_leave(struct upstream *u);

/* Calls attempt_do_deferred(a) from the event loop. */
void upstream_defer(struct attempt *a);

int upstream_add(struct attempt *a); /* 0 or -ENOMEM */
void upstream_remove(struct attempt *a);

/* Callbacks for sockets: CURLOPT_OPENSOCKETFUNCTION's second half, CURLOPT_CLOSESOCKETFUNCTION. */
curl_socket_t upstream_open_socket(struct upstream *u, const struct curl_sockaddr *address);
int upstream_close_socket(void *upstream, curl_socket_t fd);

/* The pool for what goes that way. */
struct upstream *upstream_for(struct upstream *u, const struct egress_endpoint *egress);

struct event_base *upstream_base(const struct upstream *u);

/* For CURLOPT_SHARE. */
CURLSH *upstream_share(const struct upstream *u);

struct exit_memory *upstream_exits(struct upstream *u);

/* The CAs to which a proxy that is spoken to over TLS must prove who it is; NULL: the system's. */
const char *upstream_proxy_cas(const struct upstream *u);

/* A pause of `a` holds up its whole connection, or does so no more. */
void upstream_stall(struct attempt *a, bool stalls);

/* Is a connection to that origin held up? */
bool upstream_is_stalled(const struct upstream *u, struct span host, unsigned port);

/* --- attempt.c --- */

struct attempt *attempt_new(struct upstream *u);
void attempt_free(struct attempt *a);
void attempt_do_deferred(struct attempt *a);
void attempt_go_on(struct attempt *a); /* there is more to be read from us, or we read again */
void attempt_done(struct attempt *a, CURLcode code); /* libcurl is through with it */

/* Bytes moved, in that phase: its deadline is counted from now. */
void attempt_progress(struct attempt *a, enum attempt_phase phase);

/* --- attempt_callbacks.c: what libcurl calls --- */

/* Once for each handle. */
void attempt_callbacks_set(struct attempt *a);

/* --- attempt_stream.c: a connection after a 101 --- */

/* libcurl's callbacks, as far as they are about the stream. */
enum upstream_flow attempt_stream_take(struct attempt *a, const void *data, size_t len);
size_t attempt_stream_give(struct attempt *a, char *to, size_t room);

/* libcurl wants to know when something happens to the socket, CURL_POLL_…: with a stream, the host
 * has ended when it does not want to read although it could. */
void attempt_stream_watch(struct attempt *a, curl_socket_t fd, int what);

/* Tells the other half, if there is one, that it is over. */
void attempt_stream_end(struct attempt *a, enum upstream_error error);
void attempt_stream_free(struct attempt *a); /* our half of it, where there is one */

/* --- attempt_setup.c: what libcurl is told --- */

/* Once for each handle. */
void attempt_setup_handle(struct attempt *a);

/* Sets a text option where it differs from what was set before (*was, owned). Without bytes, not
 * even none of them (NULL), the option is taken back. */
CURLcode attempt_setup_text(CURL *easy, CURLoption option, char **was, struct span text);

/* For each request: UPSTREAM_OK, or why it cannot be made. */
enum upstream_error attempt_setup_request(struct attempt *a,
                                          const struct upstream_request *request);

/* --- attempt_egress.c: the way out --- */

/* Behind all else that attempt_setup_request does, but for the target. */
enum upstream_error attempt_setup_egress(struct attempt *a, const struct upstream_request *request);
void attempt_egress_done(struct attempt_settings *set);

bool attempt_egress_is_proxy(const struct attempt *a);

/* Will its proxy read the request, rather than pass bytes on? */
bool attempt_egress_reads(const struct upstream_request *request);

/* The target as a proxy wants it, owned by the caller; NULL: as it is. */
char *attempt_egress_target(const struct attempt *a, const struct upstream_request *request);

/* The head of the answer is there: UPSTREAM_OK, or what is behind it when it is the proxy that
 * speaks for itself. */
enum upstream_error attempt_egress_head(struct attempt *a);

/* A line of what the proxy answers to CONNECT; returns what libcurl wants for it. */
size_t attempt_egress_tunnel_line(struct attempt *a, const char *line, size_t len);

/* The endpoint's doing, or what its proxy says that the host has done; UPSTREAM_OK: neither. */
enum upstream_error attempt_egress_error(const struct attempt *a, CURLcode code);
const char *attempt_egress_detail(enum upstream_error error); /* NULL: is none of these */

/* --- attempt_lookup.c: for proxies that are told addresses --- */

void attempt_lookup_begin(struct attempt *a);
void attempt_lookup_see(struct attempt *a, const struct sockaddr *sa); /* an address of the host */

/* UPSTREAM_OK: all is set up to be started anew with the address. */
enum upstream_error attempt_lookup_end(struct attempt *a, CURLcode code);
void attempt_lookup_forget(struct attempt *a);

/* --- attempt_error.c: what went wrong --- */

/* Reads libcurl's code in the light of what is known of the attempt. */
enum upstream_error attempt_error_from(const struct attempt *a, CURLcode code);

/* One plain phrase. */
const char *attempt_error_detail(struct attempt *a, enum upstream_error error);

#endif
