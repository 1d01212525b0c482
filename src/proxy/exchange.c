#include "proxy/exchange.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "proxy/client.h"
#include "proxy/exchange_state.h"
#include "proxy/intercept.h"
#include "proxy/login.h"
#include "proxy/relay.h"
#include "proxy/request_scope.h"
#include "proxy/tunnel.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#define TO(state) (1u << EXCHANGE_##state)
static const unsigned may_follow[] = {
    [EXCHANGE_RECEIVED] = TO(WAITING) | TO(SENDING) | TO(REPLYING) | TO(CLOSED),
    [EXCHANGE_WAITING] = TO(SENDING) | TO(REPLYING) | TO(CLOSED),
    [EXCHANGE_SENDING] = TO(PEEKING) | TO(SLEEPING) | TO(REPLYING) | TO(RELAYING) | TO(CLOSED),
    [EXCHANGE_PEEKING] = TO(SLEEPING) | TO(REPLYING) | TO(CLOSED),
    [EXCHANGE_SLEEPING] = TO(SENDING) | TO(REPLYING) | TO(CLOSED),
    [EXCHANGE_REPLYING] = TO(CLOSED),
    [EXCHANGE_RELAYING] = TO(CLOSED),
    [EXCHANGE_CLOSED] = 0,
};
#undef TO

void exchange_move(struct exchange *ex, enum exchange_state to)
{
        assert(may_follow[ex->state] & (1u << to));
        ex->state = to;
}

/* ---- the end ---- */

static void give_ticket_back(struct exchange *ex)
{
        if (!ex->ticket_out)
                return;
        ex->ticket_out = false;
        gate_cancel(ex->worker->shared->gate, &ex->ticket);
}

void exchange_close(struct exchange *ex, enum outcome outcome)
{
        struct worker *w = ex->worker;
        exchange_move(ex, EXCHANGE_CLOSED);
        ex->outcome = outcome;
        exchange_report_end(ex);
        if (ex->attempt)
                attempt_cancel(ex->attempt);
        peek_free(ex->peek);
        relay_free(ex->relay);
        give_ticket_back(ex);
        list_remove(&ex->link);
        metrics_add(w->metrics, METRIC_OPEN, 0, (uint64_t)-1);
        login_leave(ex);
        message_done(&ex->message);
        config_unref(ex->config);
        free(ex->scope);
        free(ex->endpoint);
        free(ex);
        worker_check_drained(w);
}

/* The reply has been written whole; evhttp frees the request after this. */
static void on_replied(struct evhttp_request *req, void *arg)
{
        struct exchange *ex = arg;
        /* evhttp looks at this after the callback, also where the head went out before. */
        if (ex->worker->draining)
                evhttp_add_header(evhttp_request_get_output_headers(req), "Connection", "close");
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

void exchange_cut(struct exchange *ex, enum outcome outcome)
{
        struct client *c = ex->client;
        c->exchange = NULL;
        exchange_close(ex, outcome);
        client_drop(c);
}

void exchange_abort(struct list *link)
{
        exchange_cut(LIST_ENTRY_OF(link, struct exchange, link), OUTCOME_CLOSING);
}

/* ---- replying ---- */

const struct reply_note *exchange_note(const struct exchange *ex, struct reply_note *note)
{
        *note = (struct reply_note){.moved = ex->moved,
                                    .annotate = ex->config->annotate,
                                    .attempts = ex->attempts,
                                    .queued = ex->queued,
                                    .scope = ex->scope};
        return note;
}

void exchange_refuse(struct exchange *ex, enum outcome outcome, const struct reply_refusal *refusal)
{
        struct reply_note note;
        struct reply_refusal r = *refusal;
        if (ex->connected) { /* whatever was said now would pass for the host's words */
                exchange_cut(ex, outcome);
                return;
        }
        exchange_move(ex, EXCHANGE_REPLYING);
        give_ticket_back(ex);
        ex->outcome = outcome;
        ex->status = r.status;
        r.close = r.close || ex->message.wants_close || ex->worker->draining;
        log_debug("%s %s for %s: %d, %s", ex->message.method.ptr ? ex->message.method.ptr : "?",
                  ex->message.host ? ex->message.host : "?", ex->client->address, r.status, r.text);
        reply_refuse(ex->req, &r, exchange_note(ex, &note));
}

void exchange_refuse_turn(struct exchange *ex, enum ticket_reply reply)
{
        /* Where the governor cannot tell when, a second is the least that makes sense. */
        struct reply_refusal r = {
            .status = 503, .detail = "", .retry_after = usec_max(ex->ticket.wait, USEC_PER_SEC)};
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
        case TICKET_NO_ENDPOINT:
                outcome = OUTCOME_NO_ENDPOINT;
                r.error = "destination_unavailable";
                r.detail = "no endpoint of the pool is of use";
                r.text = "No endpoint of the pool is of use for this host at present.";
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
                r.text = ex->message.steering.deadline != USEC_MAX
                             ? "This request's turn would not come before its Weir-Deadline or "
                               "within queue.timeout."
                             : "This request's turn would not come within queue.timeout.";
                break;
        }
        exchange_refuse(ex, outcome, &r);
}

/* ---- its turn ---- */

/* Whose turn it is, and whose limit. */
static struct span who(const struct exchange *ex)
{
        return span_of(ex->user ? ex->user : ex->client->address);
}

/* Whose requests go by one endpoint, and in order. */
static struct span session_of(const struct exchange *ex)
{
        const struct egress_config *pool = ex->policy->pool;
        return pool && pool->sticky == EGRESS_STICKY_CLIENT ? who(ex)
                                                            : ex->message.steering.session;
}

static struct ticket_wish wish_for(const struct exchange *ex, usec_t from)
{
        const struct policy *policy = ex->policy;
        return (struct ticket_wish){
            .key = span_of(ex->scope),
            .client = who(ex),
            .policy = &policy->lane,
            .pool = policy->pool ? &policy->pool->policy : NULL,
            .host = span_of(ex->message.host),
            .session = session_of(ex),
            .arrived = ex->arrived,
            .deadline = usec_min(usec_add(from, policy->queue_timeout), ex->deadline),
            .priority = ex->message.steering.priority,
        };
}

static enum ticket_reply ask(struct exchange *ex)
{
        ex->asked = clock_now();
        struct ticket_wish wish = wish_for(ex, ex->asked);
        enum ticket_reply reply = gate_ask(ex->worker->shared->gate, &ex->ticket, &wish);
        ex->ticket_out = reply == TICKET_GRANTED || reply == TICKET_WAITING;
        return reply;
}

bool exchange_ask_again(struct exchange *ex, usec_t wait, bool budgeted, bool elsewhere)
{
        usec_t now = clock_now(), not_before = usec_add(now, wait);
        struct ticket_wish wish = wish_for(ex, not_before);
        wish.not_before = not_before;
        wish.retry = true;
        wish.budgeted = budgeted;
        wish.elsewhere = elsewhere;
        if (!gate_requeue(ex->worker->shared->gate, &ex->ticket, &wish))
                return false;
        ex->asked = now;
        return true;
}

void exchange_turn(struct ticket *ticket, enum ticket_reply reply)
{
        struct exchange *ex = LIST_ENTRY_OF(ticket, struct exchange, ticket);
        ex->queued += clock_now() - ex->asked;
        if (reply == TICKET_GRANTED) {
                exchange_send(ex);
        } else {
                ex->ticket_out = false;
                exchange_refuse_turn(ex, reply);
        }
}

/* ---- the beginning ---- */

void exchange_ask(struct exchange *ex)
{
        ex->deadline = usec_add(
            ex->arrived, usec_min(ex->policy->timeouts.total, ex->message.steering.deadline));
        ex->scope = request_scope_key(&(struct request_scope){
            .policy = ex->policy,
            .host = ex->message.host,
            .port = ex->message.port,
            .target = span_of(ex->message.target),
            .fields = &ex->message.fields,
            .client = who(ex),
            .session = ex->message.steering.session,
        });
        enum ticket_reply reply = ask(ex);
        if (reply == TICKET_GRANTED)
                exchange_send(ex);
        else if (reply == TICKET_WAITING)
                exchange_move(ex, EXCHANGE_WAITING);
        else
                exchange_refuse_turn(ex, reply);
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
        list_init(&ex->login_link);
        list_append(&w->exchanges, &ex->link);
        metrics_add(w->metrics, METRIC_OPEN, 0, 1);
        evhttp_request_set_on_complete_cb(req, on_replied, ex);
        client_begin(c, ex);
        return ex;
}

void exchange_begin(struct exchange *ex)
{
        struct message *m = &ex->message;
        if (m->chunked && evbuffer_get_length(evhttp_request_get_input_buffer(ex->req)) == 0)
                fields_add(&m->fields, span_of("Content-Length"), span_of("0"));
        ex->policy = config_policy(ex->config, span_of(m->host));
        if (ex->policy->https == HTTPS_UPGRADE && !m->connect)
                message_upgrade(m);
        if (m->connect && !tunnel_may_open(ex))
                return;
        if (m->connect && ex->policy->https == HTTPS_INTERCEPT)
                intercept_open(ex);
        else
                exchange_ask(ex);
}

void exchange_receive(struct evhttp_request *req, void *worker)
{
        struct worker *w = worker;
        struct client *c = client_find(w, evhttp_request_get_connection(req));
        /* Else evhttp keeps the connection only where the obsolete Proxy-Connection asks for it. */
        req->flags &= ~EVHTTP_PROXY_REQUEST;
        struct exchange *ex = exchange_new(w, c, req);
        struct message_fault fault;
        bool good = message_read(&ex->message, req, c->intake.facts.fields,
                                 c->intercept ? intercept_inside(c->intercept) : NULL,
                                 w->shared->via, &fault);
        if (!client_is_allowed(c, ex->config)) {
                exchange_refuse(ex, OUTCOME_DENIED,
                                &(struct reply_refusal){
                                    .status = 403,
                                    .error = "http_request_denied",
                                    .detail = "",
                                    .text = "Your address may not use this proxy (clients.allow).",
                                    .close = true});
        } else if (!good) {
                exchange_refuse(ex, OUTCOME_REFUSED,
                                &(struct reply_refusal){.status = fault.status,
                                                        .error = fault.error,
                                                        .detail = "",
                                                        .text = fault.text,
                                                        .close = fault.close});
        } else if (login_admit(ex)) {
                exchange_begin(ex);
        }
}
