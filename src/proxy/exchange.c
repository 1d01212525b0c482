#include "proxy/exchange.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "core/answer.h"
#include "core/classify.h"
#include "core/retry.h"
#include "core/scope_key.h"
#include "proxy/access_log.h"
#include "proxy/client.h"
#include "proxy/message.h"
#include "proxy/reply.h"
#include "runtime/clock.h"
#include "runtime/log.h"

/* What may wait in a client's socket buffer before the upstream is told to pause. */
#define OUTPUT_MARK ((size_t)256 * 1024)

enum exchange_state {
        EXCHANGE_RECEIVED,
        EXCHANGE_WAITING,  /* for its turn */
        EXCHANGE_SENDING,  /* an attempt is under way, no head yet */
        EXCHANGE_SLEEPING, /* until a retry may go */
        EXCHANGE_REPLYING, /* the final answer is on its way to the client */
        EXCHANGE_CLOSED,
};

#define TO(state) (1u << EXCHANGE_##state)
static const unsigned may_follow[] = {
    [EXCHANGE_RECEIVED] = TO(WAITING) | TO(SENDING) | TO(REPLYING) | TO(CLOSED),
    [EXCHANGE_WAITING] = TO(SENDING) | TO(REPLYING) | TO(CLOSED),
    [EXCHANGE_SENDING] = TO(SLEEPING) | TO(REPLYING) | TO(CLOSED),
    [EXCHANGE_SLEEPING] = TO(SENDING) | TO(REPLYING) | TO(CLOSED),
    [EXCHANGE_REPLYING] = TO(CLOSED),
    [EXCHANGE_CLOSED] = 0,
};
#undef TO

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

        struct ticket ticket;
        bool ticket_out; /* the governor has it: waiting or in flight */
        struct attempt *attempt;
        bool paused; /* the attempt waits for the client to read */

        usec_t arrived, arrived_real;
        usec_t asked; /* when it began to wait for its present turn */
        usec_t queued;
        unsigned attempts;
        struct upstream_end last; /* times and address of the last attempt */
        const char *class;
        int status; /* sent to the client */
        size_t bytes_out;
        enum outcome outcome;
};

static void move(struct exchange *ex, enum exchange_state to)
{
        assert(may_follow[ex->state] & (1u << to));
        ex->state = to;
}

static const char *class_name(enum answer_class class)
{
        switch (class) {
        case ANSWER_SUCCESS:
                return "success";
        case ANSWER_THROTTLED:
                return "throttled";
        case ANSWER_OVERLOADED:
                return "overloaded";
        case ANSWER_BLOCKED:
                return "blocked";
        case ANSWER_FAILED:
                return "failed";
        }
        return "";
}

/* ---- the end ---- */

static void write_access_log(const struct exchange *ex)
{
        struct access_entry e = {
            .real = ex->arrived_real,
            .client = ex->client->address,
            .method = ex->message.method,
            .url = ex->req ? evhttp_request_get_uri(ex->req) : "",
            .scope = ex->scope,
            .class = ex->class,
            .status = ex->status,
            .attempts = ex->attempts,
            .queued = ex->queued,
            .duration = clock_now() - ex->arrived,
            .upstream = {ex->last.connect, ex->last.first_byte, ex->last.total, ex->last.address},
            .bytes_in = evbuffer_get_length(evhttp_request_get_input_buffer(ex->req)),
            .bytes_out = ex->bytes_out,
            .outcome = ex->outcome,
        };
        access_log_write(ex->worker->shared->access, &e);
}

static void give_ticket_back(struct exchange *ex)
{
        if (!ex->ticket_out)
                return;
        ex->ticket_out = false;
        gate_cancel(ex->worker->shared->gate, &ex->ticket);
}

/* The only end of an exchange. The evhttp request is the caller's business. */
static void exchange_close(struct exchange *ex, enum outcome outcome)
{
        struct worker *w = ex->worker;
        move(ex, EXCHANGE_CLOSED);
        ex->outcome = outcome;
        if (w->shared->access)
                write_access_log(ex);
        if (ex->attempt)
                attempt_cancel(ex->attempt);
        give_ticket_back(ex);
        list_remove(&ex->link);
        atomic_fetch_sub_explicit(&w->shared->exchanges, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&w->shared->served, 1, memory_order_relaxed);
        message_done(&ex->message);
        config_unref(ex->config);
        free(ex->scope);
        free(ex);
        worker_check_drained(w);
}

/* The reply has been written whole; evhttp frees the request after this. */
static void on_replied(struct evhttp_request *req, void *arg)
{
        (void)req;
        struct exchange *ex = arg;
        client_end(ex->client);
        exchange_close(ex, ex->outcome);
}

void exchange_client_gone(struct exchange *ex)
{
        struct evhttp_request *req = ex->req;
        exchange_close(ex, OUTCOME_CLIENT_GONE);
        /* evhttp disowns a request that it has handed out when the connection breaks. */
        if (!req->evcon)
                evhttp_request_free(req);
}

void exchange_abort(struct list *link)
{
        client_drop(LIST_ENTRY_OF(link, struct exchange, link)->client);
}

/* The answer ends early: the client must see that, so its connection is closed in the midst of it.
 */
static void cut_short(struct exchange *ex)
{
        struct client *c = ex->client;
        c->exchange = NULL;
        exchange_close(ex, OUTCOME_CUT_SHORT);
        client_drop(c);
}

/* ---- replying ---- */

static const struct reply_note *note_of(const struct exchange *ex, struct reply_note *note)
{
        *note = (struct reply_note){ex->attempts, ex->queued, ex->scope};
        return ex->config->annotate ? note : NULL;
}

static void refuse(struct exchange *ex, enum outcome outcome, const struct reply_refusal *refusal)
{
        struct reply_note note;
        struct reply_refusal r = *refusal;
        move(ex, EXCHANGE_REPLYING);
        give_ticket_back(ex);
        ex->outcome = outcome;
        ex->status = r.status;
        r.close = r.close || ex->message.wants_close || ex->worker->draining;
        log_debug("%s %s for %s: %d, %s", ex->message.method.ptr ? ex->message.method.ptr : "?",
                  ex->message.host ? ex->message.host : "?", ex->client->address, r.status, r.text);
        reply_refuse(ex->req, &r, note_of(ex, &note));
}

static void refuse_turn(struct exchange *ex, enum ticket_reply reply)
{
        struct reply_refusal r = {.status = 503, .detail = "", .retry_after = ex->ticket.wait};
        enum outcome outcome;
        switch (reply) {
        case TICKET_QUEUE_FULL:
                outcome = OUTCOME_QUEUE_FULL;
                r.error = "connection_limit_reached";
                r.text = "The queue of this host is full (queue.max).";
                break;
        case TICKET_CIRCUIT_OPEN:
                outcome = OUTCOME_CIRCUIT_OPEN;
                r.error = "destination_unavailable";
                r.text = "This host refuses everything at present; its circuit is open.";
                break;
        case TICKET_CLOSING:
                outcome = OUTCOME_CLOSING;
                r.error = "destination_unavailable";
                r.detail = "the proxy is shutting down";
                r.text = "The proxy is shutting down.";
                break;
        case TICKET_TOO_LONG:
        case TICKET_GRANTED:
        case TICKET_WAITING:
        default:
                outcome = OUTCOME_TOO_LONG;
                r.error = "destination_unavailable";
                r.detail = "its turn would come too late";
                r.text = "This request's turn would not come within queue.timeout.";
                break;
        }
        refuse(ex, outcome, &r);
}

static void forward(struct exchange *ex, const struct upstream_answer *answer,
                    enum answer_class class)
{
        struct reply_note note;
        bool gave_up =
            class == ANSWER_THROTTLED || class == ANSWER_OVERLOADED || class == ANSWER_FAILED;
        move(ex, EXCHANGE_REPLYING);
        ex->outcome = gave_up ? OUTCOME_GAVE_UP : OUTCOME_SERVED;
        ex->status = answer->status;
        reply_forward(ex->req, answer, ex->worker->shared->via, note_of(ex, &note),
                      ex->message.wants_close || ex->worker->draining);
}

/* ---- one attempt ---- */

static void finish_attempt(struct exchange *ex)
{
        if (!ex->ticket_out)
                return;
        ex->ticket_out = false;
        gate_finish(ex->worker->shared->gate, &ex->ticket);
}

static usec_t time_left(const struct exchange *ex)
{
        return usec_sub(usec_add(ex->arrived, ex->policy->timeouts.total), clock_now());
}

static enum ticket_reply ask(struct exchange *ex, usec_t wait, bool retry)
{
        const struct policy *policy = ex->policy;
        usec_t now = clock_now();
        usec_t not_before = usec_add(now, wait);
        struct ticket_wish wish = {
            .key = span_of(ex->scope),
            .client = span_of(ex->client->address),
            .policy = &policy->lane,
            .arrived = ex->arrived,
            .not_before = wait ? not_before : 0,
            .deadline = usec_min(usec_add(not_before, policy->queue_timeout),
                                 usec_add(ex->arrived, policy->timeouts.total)),
            .retry = retry,
        };
        ex->asked = now;
        enum ticket_reply reply = gate_ask(ex->worker->shared->gate, &ex->ticket, &wish);
        ex->ticket_out = reply == TICKET_GRANTED || reply == TICKET_WAITING;
        return reply;
}

/*
 * Shall it go again? If so its slot is given back and it sleeps until its next turn; false leaves
 * it to the caller to reply, also where the governor sees no turn for it in time.
 */
static bool try_again(struct exchange *ex, struct retry_case *c)
{
        usec_t wait = 0;
        c->policy = &ex->policy->retry;
        c->method = ex->message.method;
        c->attempts = ex->attempts;
        c->time_left = time_left(ex);
        enum retry_verdict verdict = retry_decide(c, &ex->worker->prng, &wait);
        if (verdict == RETRY_WITH_BUDGET &&
            !gate_withdraw_retry(ex->worker->shared->gate, &ex->ticket))
                verdict = RETRY_NO;
        if (verdict == RETRY_NO)
                return false;
        finish_attempt(ex);
        /* It always sleeps, if only for a moment: libcurl allows no new transfer in its callbacks.
         */
        if (ask(ex, usec_max(wait, 1), true) != TICKET_WAITING)
                return false;
        move(ex, EXCHANGE_SLEEPING);
        return true;
}

static void on_head(void *arg, const struct upstream_answer *answer)
{
        struct exchange *ex = arg;
        struct answer told = {0};
        unsigned unreadable = answer_read(answer->fields, clock_real(), &told);
        atomic_fetch_add_explicit(&ex->worker->shared->unreadable, unreadable,
                                  memory_order_relaxed);
        told.class = classify_answer(
            &(struct classify_case){answer->status, answer->fields, told.wait_named});
        told.class = gate_answer(ex->worker->shared->gate, &ex->ticket, &told);
        ex->class = class_name(told.class);
        struct retry_case again = {.status = answer->status,
                                   .class = told.class,
                                   .wait_named = told.wait_named,
                                   .wait = told.wait};
        if (!try_again(ex, &again)) {
                forward(ex, answer, again.class);
        } else {
                attempt_discard(ex->attempt);
                ex->attempt = NULL;
        }
}

/* The client has read what waited for it. */
static void on_output_empty(struct evhttp_connection *evcon, void *arg)
{
        (void)evcon;
        struct exchange *ex = arg;
        if (ex->paused) {
                ex->paused = false;
                attempt_resume(ex->attempt);
        }
}

static enum upstream_flow on_body(void *arg, const void *data, size_t len)
{
        struct exchange *ex = arg;
        struct evbuffer *scratch = ex->worker->scratch;
        if (evbuffer_get_length(bufferevent_get_output(ex->client->bev)) >= OUTPUT_MARK) {
                ex->paused = true;
                return UPSTREAM_PAUSE;
        }
        evbuffer_add(scratch, data, len);
        evhttp_send_reply_chunk_with_cb(ex->req, scratch, on_output_empty, ex);
        evbuffer_drain(scratch, evbuffer_get_length(scratch)); /* not taken where no body is due */
        ex->bytes_out += len;
        return UPSTREAM_MORE;
}

static void on_failure(struct exchange *ex, const struct upstream_end *end)
{
        struct retry_case again = {.class = ANSWER_FAILED,
                                   .failure = upstream_error_failure(end->error)};
        ex->class = class_name(ANSWER_FAILED);
        /* A denied address says nothing about the host's limit. */
        if (end->error != UPSTREAM_DESTINATION_IP_PROHIBITED)
                gate_answer(ex->worker->shared->gate, &ex->ticket,
                            &(struct answer){.class = ANSWER_FAILED});
        if (try_again(ex, &again))
                return;
        struct reply_refusal r = {
            .status = upstream_error_status(end->error),
            .error = upstream_error_type(end->error),
            .detail = end->detail,
            .text = end->detail,
        };
        bool denied = end->error == UPSTREAM_DESTINATION_IP_PROHIBITED;
        refuse(ex, denied ? OUTCOME_DENIED : OUTCOME_UPSTREAM_FAILED, &r);
}

static void on_end(void *arg, const struct upstream_end *end)
{
        struct exchange *ex = arg;
        ex->attempt = NULL;
        ex->last = *end;
        ex->last.detail = NULL;
        if (ex->state == EXCHANGE_SENDING) {
                on_failure(ex, end);
                return;
        }
        finish_attempt(ex);
        if (end->error != UPSTREAM_OK)
                cut_short(ex);
        else
                evhttp_send_reply_end(ex->req); /* ends the exchange, now or when all is written */
}

static void send_attempt(struct exchange *ex)
{
        static const struct upstream_handlers handlers = {on_head, on_body, on_end};
        const struct policy *policy = ex->policy;
        struct evbuffer *body = evhttp_request_get_input_buffer(ex->req);
        usec_t left = usec_max(time_left(ex), USEC_PER_MSEC);
        struct upstream_request r = {
            .host = span_of(ex->message.host),
            .port = ex->message.port,
            .method = ex->message.method,
            .target = span_of(ex->message.target),
            .fields = &ex->message.fields,
            .body = evbuffer_get_length(body) ? body : NULL,
            .replayable = policy->retry.methods == RETRY_ALL_METHODS ||
                          (ex->req->type != EVHTTP_REQ_POST && ex->req->type != EVHTTP_REQ_PATCH),
            .deny = &ex->config->destinations.deny,
            .allow = &ex->config->destinations.allow,
            .timeouts = {usec_min(policy->timeouts.connect, left),
                         usec_min(policy->timeouts.first_byte, left), policy->timeouts.read},
        };
        move(ex, EXCHANGE_SENDING);
        ex->attempts++;
        ex->attempt = upstream_start(ex->worker->upstream, &r, &handlers, ex);
}

void exchange_turn(struct ticket *ticket, enum ticket_reply reply)
{
        struct exchange *ex = LIST_ENTRY_OF(ticket, struct exchange, ticket);
        ex->queued += clock_now() - ex->asked;
        if (reply == TICKET_GRANTED) {
                send_attempt(ex);
        } else {
                ex->ticket_out = false;
                refuse_turn(ex, reply);
        }
}

/* ---- the beginning ---- */

static void ask_first_turn(struct exchange *ex)
{
        struct scope_subject subject = {
            .host = span_of(ex->message.host),
            .port = ex->message.port,
            .rule = span_of(ex->policy->name),
            .client = span_of(ex->client->address),
        };
        ex->scope = scope_key_new(ex->policy->scope, ex->policy->scope_count, &subject);
        enum ticket_reply reply = ask(ex, 0, false);
        if (reply == TICKET_GRANTED)
                send_attempt(ex);
        else if (reply == TICKET_WAITING)
                move(ex, EXCHANGE_WAITING);
        else
                refuse_turn(ex, reply);
}

static bool may_use(const struct exchange *ex)
{
        const struct sockaddr *peer = (const struct sockaddr *)&ex->client->peer;
        return peer->sa_family == AF_UNIX || cidr_set_contains(&ex->config->clients.allow, peer);
}

static struct exchange *exchange_new(struct worker *w, struct client *c, struct evhttp_request *req)
{
        struct exchange *ex = xcalloc(1, sizeof *ex);
        ex->worker = w;
        ex->client = c;
        ex->req = req;
        ex->config = config_ref(w->config);
        ex->ticket.worker = w->index;
        ex->arrived = clock_now();
        ex->arrived_real = clock_real();
        list_append(&w->exchanges, &ex->link);
        atomic_fetch_add_explicit(&w->shared->exchanges, 1, memory_order_relaxed);
        evhttp_request_set_on_complete_cb(req, on_replied, ex);
        client_begin(c, ex);
        return ex;
}

void exchange_receive(struct evhttp_request *req, void *worker)
{
        struct worker *w = worker;
        struct client *c = client_find(w, evhttp_request_get_connection(req));
        if (c->phase == CLIENT_REFUSED) {
                client_drop(c);
                return;
        }
        /* Else evhttp keeps the connection only where the obsolete Proxy-Connection asks for it. */
        req->flags &= ~EVHTTP_PROXY_REQUEST;
        struct exchange *ex = exchange_new(w, c, req);
        struct message_fault fault;
        bool good =
            message_read(&ex->message, req, ex->config->clients.max_header, w->shared->via, &fault);
        if (!may_use(ex)) {
                refuse(ex, OUTCOME_DENIED,
                       &(struct reply_refusal){
                           .status = 403,
                           .error = "http_request_denied",
                           .detail = "",
                           .text = "Your address may not use this proxy (clients.allow).",
                           .close = true});
        } else if (!good) {
                refuse(ex, OUTCOME_REFUSED,
                       &(struct reply_refusal){.status = fault.status,
                                               .error = fault.error,
                                               .detail = "",
                                               .text = fault.text,
                                               .close = fault.close});
        } else {
                if (ex->message.chunked &&
                    evbuffer_get_length(evhttp_request_get_input_buffer(req)) == 0)
                        fields_add(&ex->message.fields, span_of("Content-Length"), span_of("0"));
                ex->policy = config_policy(ex->config, span_of(ex->message.host));
                ask_first_turn(ex);
        }
}
