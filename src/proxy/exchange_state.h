/* proxy/exchange_state.h - the inside of an exchange, for the files that make it up. */
#ifndef WEIR_PROXY_EXCHANGE_STATE_H
#define WEIR_PROXY_EXCHANGE_STATE_H

#include "base/list.h"
#include "base/usec.h"
#include "config/config.h"
#include "core/answer.h"
#include "core/governor.h"
#include "core/outcome.h"
#include "core/retry.h"
#include "egress/upstream.h"
#include "proxy/credentials.h"
#include "proxy/message.h"
#include "proxy/peek.h"
#include "proxy/reply.h"

enum exchange_state {
        EXCHANGE_RECEIVED,
        EXCHANGE_WAITING,  /* for its turn */
        EXCHANGE_SENDING,  /* an attempt is under way, no head yet */
        EXCHANGE_PEEKING,  /* a head is there; what it means depends on the body */
        EXCHANGE_SLEEPING, /* until a retry may go */
        EXCHANGE_REPLYING, /* the final answer is on its way to the client */
        EXCHANGE_RELAYING, /* the answer was a connection: bytes go both ways (tunnel.c) */
        EXCHANGE_CLOSED,
};

struct exchange {
        struct list link; /* worker->exchanges */
        struct worker *worker;
        struct client *client;
        struct evhttp_request *req;
        struct config *config; /* the snapshot at its arrival, held */
        const struct policy *policy;
        struct message message;
        char *scope;
        enum exchange_state state;
        struct credentials credentials;
        const char *user;       /* who asks; NULL: nobody is asked for a name */
        struct list login_link; /* among those that wait for one password to be checked */

        struct ticket ticket;
        bool ticket_out; /* the governor has it: waiting or in flight */
        struct attempt *attempt;
        struct answer told;  /* the last one */
        struct peek *peek;   /* NULL unless PEEKING */
        bool paused;         /* the attempt waits for the client to read */
        struct relay *relay; /* NULL unless RELAYING */

        usec_t arrived, arrived_real;
        usec_t deadline; /* no head of an answer later than this is of use */
        usec_t asked;    /* when it began to wait for its present turn */
        usec_t queued;
        unsigned attempts;
        unsigned failovers; /* of them, those that an endpoint's own fault has ended */
        bool moved;         /* its session has another endpoint than before */
        unsigned refusals;  /* answers of 429 */
        char *endpoint;     /* of the last attempt: "POOL/NAME"; NULL: it went directly, or never */
        struct upstream_end last; /* times and address of the last attempt */
        const char *class;
        int status;     /* sent to the client */
        bool connected; /* a CONNECT of which the client was told already that it is open */
        size_t bytes_out;
        enum outcome outcome;
};

/* The one way from state to state; may_follow in exchange.c has those that there are. */
void exchange_move(struct exchange *ex, enum exchange_state to);

/* The only end of an exchange. The evhttp request is the caller's business. */
void exchange_close(struct exchange *ex, enum outcome outcome);

/* weir's own answer. */
void exchange_refuse(struct exchange *ex, enum outcome outcome,
                     const struct reply_refusal *refusal);

/* What the Weir-… fields say; NULL where they are switched off. */
const struct reply_note *exchange_note(const struct exchange *ex, struct reply_note *note);

/* After an attempt: gives its turn back for another one, once `wait` has passed; `elsewhere` by
 * another endpoint. False: there is none to be had, as ex->ticket.reply says, and it keeps the one
 * that it has. */
bool exchange_ask_again(struct exchange *ex, usec_t wait, bool budgeted, bool elsewhere);

/* weir's own answer where the governor refuses it a turn. */
void exchange_refuse_turn(struct exchange *ex, enum ticket_reply reply);

/* The client may use the proxy: it goes on. */
void exchange_begin(struct exchange *ex);

/* Asks the governor for its first turn. */
void exchange_ask(struct exchange *ex);

/* Makes one attempt (exchange_attempt.c). What follows from its answer is found there too. */
void exchange_send(struct exchange *ex);

/* The limiter learns from ex->told, and may know better what it means: ex->told.class after it. */
void exchange_learn(struct exchange *ex);

/* The attempt is over: gives its slot back. */
void exchange_attempt_done(struct exchange *ex);

/* The same, but it keeps its endpoint until the exchange ends. */
void exchange_keep_endpoint(struct exchange *ex);

/* Closes the exchange and, in the midst of whatever it carries, the client's connection. */
void exchange_cut(struct exchange *ex, enum outcome outcome);

/* What is counted and written down of an exchange (exchange_report.c). */
void exchange_report_head(struct exchange *ex, int status, unsigned unreadable);
void exchange_report_class(struct exchange *ex); /* of `told` */
void exchange_report_failure(struct exchange *ex, enum retry_failure failure);
void exchange_report_retry(struct exchange *ex, const struct retry_case *c);
void exchange_report_failover(struct exchange *ex);
void exchange_report_end(struct exchange *ex);

#endif
