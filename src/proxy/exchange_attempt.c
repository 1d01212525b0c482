/* One attempt of an exchange: made, judged, and forwarded or made anew. */
#include "proxy/exchange_state.h"

#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "core/answer.h"
#include "core/classify.h"
#include "core/retry.h"
#include "proxy/client.h"
#include "proxy/tunnel.h"
#include "proxy/worker.h"
#include "runtime/clock.h"
#include "runtime/log.h"

/* What may wait in a client's socket buffer before the upstream is told to pause. */
#define OUTPUT_MARK ((size_t)256 * 1024)

/* Of the length of a body that a host has sent by the time that its head is read: below 10,000. */
#define SHORT_BODY_DIGITS 4

/* ---- again, or not ---- */

static usec_t time_left(const struct exchange *ex)
{
        return usec_sub(ex->deadline, clock_now());
}

void exchange_keep_endpoint(struct exchange *ex)
{
        gate_keep(ex->worker->shared->gate, &ex->ticket);
        ex->ticket_out = ex->ticket.state == TICKET_KEEPING;
}

void exchange_attempt_done(struct exchange *ex)
{
        if (!ex->ticket_out)
                return;
        ex->ticket_out = false;
        gate_finish(ex->worker->shared->gate, &ex->ticket);
}

/*
 * Shall it go again? If so its slot is given back and it sleeps until its next turn, if only for a
 * moment: libcurl allows no new transfer in its callbacks. False leaves it to the caller to reply,
 * also where the governor sees no turn for it in time.
 */
static bool try_again(struct exchange *ex, struct retry_case *c)
{
        usec_t wait = 0;
        if (ex->message.steering.no_retry)
                return false;
        c->policy = &ex->policy->retry;
        c->method = ex->message.method;
        c->attempts = ex->attempts - ex->failovers;
        c->elsewhere = ex->policy->pool;
        c->time_left = time_left(ex);
        enum retry_verdict verdict = retry_decide(c, &ex->worker->prng, &wait);
        if (verdict == RETRY_NO ||
            !exchange_ask_again(ex, wait, verdict == RETRY_WITH_BUDGET, c->class == ANSWER_BLOCKED))
                return false;
        exchange_report_retry(ex, c);
        exchange_move(ex, EXCHANGE_SLEEPING);
        return true;
}

/* ---- the answer ---- */

static void forward(struct exchange *ex, const struct upstream_answer *answer)
{
        struct reply_note note;
        enum answer_class class = ex->told.class;
        bool gave_up =
            class == ANSWER_THROTTLED || class == ANSWER_OVERLOADED || class == ANSWER_FAILED;
        exchange_move(ex, EXCHANGE_REPLYING);
        ex->outcome = gave_up ? OUTCOME_GAVE_UP : OUTCOME_SERVED;
        ex->status = answer->status;
        reply_forward(ex->req, &ex->message, answer, ex->worker->shared->via,
                      exchange_note(ex, &note), ex->message.wants_close || ex->worker->draining);
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

/* Empties `piece`. */
static void send_body(struct exchange *ex, struct evbuffer *piece)
{
        size_t len = evbuffer_get_length(piece);
        if (len == 0)
                return;
        evhttp_send_reply_chunk_with_cb(ex->req, piece, on_output_empty, ex);
        evbuffer_drain(piece, evbuffer_get_length(piece)); /* not taken where no body is due */
        ex->bytes_out += len;
}

static struct classify_case case_of(const struct exchange *ex, const struct upstream_answer *answer)
{
        return (struct classify_case){
            .rules = ex->policy->classify.list,
            .rule_count = ex->policy->classify.count,
            .status = answer->status,
            .fields = answer->fields,
            .wait_named = ex->told.wait_named,
        };
}

void exchange_learn(struct exchange *ex)
{
        ex->told.class = gate_answer(ex->worker->shared->gate, &ex->ticket, &ex->told);
        ex->class = answer_class_name(ex->told.class);
        exchange_report_class(ex);
}

/* What is left of the body is read, for the sake of the connection. But an endpoint may have
 * another request by now, and what is long would be its second one at a time. */
static void drop_attempt(struct exchange *ex, const struct upstream_answer *answer)
{
        struct span length;
        bool is_short = fields_find(answer->fields, 0, span_of("Content-Length"), &length, NULL) &&
                        length.len <= SHORT_BODY_DIGITS;
        if (!ex->policy->pool || is_short)
                attempt_discard(ex->attempt);
        else
                attempt_cancel(ex->attempt);
        ex->attempt = NULL;
}

/* All is known of the answer that is needed: it is forwarded, or the request goes again. */
static void judge(struct exchange *ex, const struct upstream_answer *answer, struct span body)
{
        struct classify_case c = case_of(ex, answer);
        c.has_body = true;
        c.body = body;
        answer_judge(&ex->told, &c);
        exchange_learn(ex);
        struct retry_case again = {.status = answer->status,
                                   .class = ex->told.class,
                                   .wait_named = ex->told.wait_named,
                                   .wait = ex->told.wait};
        if (!try_again(ex, &again))
                forward(ex, answer);
        else if (ex->attempt)
                drop_attempt(ex, answer);
}

/* Enough of the body is there, or no more of it will come. */
static void end_peek(void *arg)
{
        struct exchange *ex = arg;
        struct peek *peek = ex->peek;
        ex->peek = NULL;
        judge(ex, peek_head(peek), peek_text(peek));
        if (ex->state == EXCHANGE_REPLYING)
                send_body(ex, peek_body(peek));
        peek_free(peek);
}

static void on_head(void *arg, const struct upstream_answer *answer)
{
        struct exchange *ex = arg;
        unsigned unreadable = answer_read(answer->fields, clock_real(), &ex->told);
        exchange_report_head(ex, answer->status, unreadable);
        if (answer->status == 101) {
                tunnel_switch(ex, answer);
                return;
        }
        struct classify_case c = case_of(ex, answer);
        if (answer_wants_body(&c) && peek_can_read(answer->fields)) {
                exchange_move(ex, EXCHANGE_PEEKING);
                ex->peek = peek_new(ex->worker->base, answer, end_peek, ex);
        } else {
                judge(ex, answer, (struct span){NULL, 0});
        }
}

static enum upstream_flow on_body(void *arg, const void *data, size_t len)
{
        struct exchange *ex = arg;
        struct evbuffer *scratch = ex->worker->scratch;
        if (ex->state == EXCHANGE_PEEKING) {
                if (peek_take(ex->peek, data, len))
                        end_peek(ex);
                return UPSTREAM_MORE;
        }
        /* Only behind a piece of the body: nobody tells when a head alone has been written. */
        if (ex->bytes_out > 0 &&
            evbuffer_get_length(bufferevent_get_output(ex->client->bev)) >= OUTPUT_MARK) {
                ex->paused = true;
                return UPSTREAM_PAUSE;
        }
        evbuffer_add(scratch, data, len);
        send_body(ex, scratch);
        return UPSTREAM_MORE;
}

/* ---- its end ---- */

/* Nothing has reached the host, so that the method does not matter. */
static bool may_fail_over(const struct exchange *ex)
{
        size_t endpoints = ex->policy->pool->endpoints.count;
        unsigned attempts = ex->policy->retry.attempts;
        return ex->failovers < (endpoints > attempts ? endpoints : attempts) &&
               !ex->message.steering.no_retry;
}

/* The endpoint is to blame. Does the exchange go on by another one, or end because there is none?
 */
static bool fail_over(struct exchange *ex, const struct upstream_end *end)
{
        usec_t wait;
        if (gate_endpoint_failed(ex->worker->shared->gate, &ex->ticket, &wait))
                log_warn("endpoint %s: %s", ex->endpoint, end->detail);
        ex->failovers++;
        if (may_fail_over(ex) && exchange_ask_again(ex, 0, false, false)) {
                exchange_report_failover(ex);
                exchange_move(ex, EXCHANGE_SLEEPING);
                return true;
        }
        if (wait == 0)
                return false;
        ex->ticket.wait = wait < USEC_MAX ? wait : 0;
        exchange_refuse_turn(ex, TICKET_NO_ENDPOINT);
        return true;
}

/* May it be the port alone for which the endpoint does not open a tunnel? Then it says nothing
 * about other requests for that host. */
static bool is_about_port(const struct exchange *ex)
{
        const struct message *m = &ex->message;
        return (m->connect || m->tls || m->wants_switch) && m->port != 443;
}

static void fail(struct exchange *ex, const struct upstream_end *end)
{
        bool endpoints = upstream_error_is_endpoints(end->error);
        bool refused = upstream_error_is_refusal(end->error);
        if (endpoints && fail_over(ex, end))
                return;
        struct retry_case again = {.class = refused ? ANSWER_BLOCKED : ANSWER_FAILED,
                                   .failure = upstream_error_failure(end->error)};
        exchange_report_failure(ex, again.failure);
        ex->told = (struct answer){.class = again.class, .by_endpoint = refused};
        ex->class = answer_class_name(again.class);
        if ((refused && !is_about_port(ex)) || upstream_error_is_hosts(end->error))
                exchange_learn(ex);
        if (!endpoints && try_again(ex, &again))
                return;
        struct reply_refusal r = {
            .status = upstream_error_status(end->error),
            .error = upstream_error_type(end->error),
            .detail = end->detail,
            .text = end->detail,
        };
        bool denied = end->error == UPSTREAM_DESTINATION_IP_PROHIBITED;
        exchange_refuse(ex, denied ? OUTCOME_DENIED : OUTCOME_UPSTREAM_FAILED, &r);
}

static void on_end(void *arg, const struct upstream_end *end)
{
        struct exchange *ex = arg;
        ex->attempt = NULL;
        ex->last = *end;
        ex->last.detail = NULL;
        ex->last.dialled = NULL;
        if (ex->ticket.endpoint)
                gate_exit(ex->worker->shared->gate, &ex->ticket, ex->last.exit);
        if (ex->state == EXCHANGE_PEEKING && end->error != UPSTREAM_OK) {
                /* Nothing of it has reached the client, so it need not see it break off. */
                peek_free(ex->peek);
                ex->peek = NULL;
                fail(ex, end);
                return;
        }
        if (end->dialled) {
                tunnel_open(ex, end->dialled);
                return;
        }
        if (ex->state == EXCHANGE_SENDING) {
                fail(ex, end);
                return;
        }
        if (ex->state == EXCHANGE_PEEKING)
                end_peek(ex);
        if (ex->state != EXCHANGE_REPLYING)
                return; /* it goes again, or the relay has heard of it */
        exchange_attempt_done(ex);
        if (end->error != UPSTREAM_OK)
                exchange_cut(ex, OUTCOME_CUT_SHORT); /* the client must see that */
        else
                evhttp_send_reply_end(ex->req); /* ends the exchange, now or when all is written */
}

/* ---- its beginning ---- */

/* May libcurl send it again by itself, when a connection turns out to be dead? */
static bool may_go_twice(const struct exchange *ex)
{
        if (ex->message.steering.no_retry)
                return false;
        return ex->policy->retry.methods == RETRY_ALL_METHODS ||
               (ex->req->type != EVHTTP_REQ_POST && ex->req->type != EVHTTP_REQ_PATCH);
}

void exchange_send(struct exchange *ex)
{
        static const struct upstream_handlers handlers = {on_head, on_body, on_end};
        const struct policy *policy = ex->policy;
        struct evbuffer *body = evhttp_request_get_input_buffer(ex->req);
        usec_t left = usec_max(time_left(ex), USEC_PER_MSEC);
        struct upstream_request r = {
            .dial = ex->message.connect,
            .tls = ex->message.tls,
            .with = {.verify = policy->tls.verify,
                     .ca_file = policy->tls.ca_file,
                     .min_version = policy->tls.min_version,
                     .http2 = policy->http2},
            .host = span_of(ex->message.host),
            .port = ex->message.port,
            .method = ex->message.method,
            .target = span_of(ex->message.target),
            .fields = &ex->message.fields,
            .body = evbuffer_get_length(body) ? body : NULL,
            .may_switch = ex->message.wants_switch,
            .replayable = may_go_twice(ex),
            .deny = &ex->config->destinations.deny,
            .allow = &ex->config->destinations.allow,
            .timeouts = {.connect = usec_min(policy->timeouts.connect, left),
                         .first_byte = policy->timeouts.first_byte,
                         .read = policy->timeouts.read,
                         .head = left},
        };
        free(ex->endpoint);
        ex->endpoint = NULL;
        if (ex->ticket.endpoint) {
                ex->endpoint = xasprintf("%s/%s", policy->pool->name, ex->ticket.endpoint->name);
                r.egress = ex->ticket.endpoint->egress;
                r.exit_header = policy->pool->exit_ip.header;
        }
        ex->moved |= ex->ticket.moved;
        exchange_move(ex, EXCHANGE_SENDING);
        ex->attempts++;
        ex->attempt = upstream_start(ex->worker->upstream, &r, &handlers, ex);
}
