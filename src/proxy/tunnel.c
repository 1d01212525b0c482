#include "proxy/tunnel.h"

#include <event2/bufferevent.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "core/answer.h"
#include "proxy/client.h"
#include "proxy/exchange_state.h"
#include "proxy/message.h"
#include "proxy/relay.h"
#include "proxy/worker.h"
#include "runtime/log.h"

/* Clients show little of what answers CONNECT, so that who runs weir has to be told; but a line for
 * each of many requests would tell no more than one. */
#define TELL_EVERY (60 * USEC_PER_SEC)

static void tell_of_port(struct exchange *ex)
{
        struct worker *w = ex->worker;
        if (w->port_told && ex->arrived - w->port_told < TELL_EVERY)
                return;
        w->port_told = ex->arrived;
        log_warn("client %s may not have a tunnel to %.*s: port %u is none of "
                 "destinations.connect_ports; add it there if it should",
                 ex->client->address, (int)ex->message.authority.len, ex->message.authority.ptr,
                 ex->message.port);
}

bool tunnel_may_open(struct exchange *ex)
{
        const struct config *config = ex->config;
        for (size_t i = 0; i < config->destinations.connect_port_count; i++)
                if (config->destinations.connect_ports[i] == ex->message.port)
                        return true;
        tell_of_port(ex);
        exchange_refuse(ex, OUTCOME_DENIED,
                        &(struct reply_refusal){
                            .status = 403,
                            .error = "http_request_denied",
                            .detail = "the port is none of destinations.connect_ports",
                            .text = "CONNECT may not go to this port (destinations.connect_ports).",
                        });
        return false;
}

void tunnel_refuse_early_bytes(struct exchange *ex)
{
        exchange_refuse(ex, OUTCOME_REFUSED,
                        &(struct reply_refusal){
                            .status = 400,
                            .error = "http_request_error",
                            .detail = "",
                            .text = "Bytes came before CONNECT was answered.",
                            .close = true,
                        });
}

static enum outcome outcome_of(enum relay_end end)
{
        switch (end) {
        case RELAY_FRONT_BROKE:
                return OUTCOME_CLIENT_GONE;
        case RELAY_BACK_BROKE:
                return OUTCOME_CUT_SHORT;
        case RELAY_IDLE:
                return OUTCOME_IDLE;
        case RELAY_ENDED:
        default:
                return OUTCOME_SERVED;
        }
}

static void on_relay_end(void *arg, enum relay_end end)
{
        exchange_cut(arg, outcome_of(end));
}

/* That the host can be reached is all that there is to be learned; what the client then gets to
 * hear from it stays between the two. The slot was for the opening; an endpoint is in use for as
 * long as its connection is. */
static void report_success(struct exchange *ex)
{
        ex->told.class = ANSWER_SUCCESS;
        exchange_learn(ex);
        exchange_keep_endpoint(ex);
}

static void start_relay(struct exchange *ex, int status, const char *reason,
                        struct bufferevent *host)
{
        struct reply_note note;
        exchange_move(ex, EXCHANGE_RELAYING);
        ex->status = status;
        struct relay_side front = {NULL, NULL}, back = {host, NULL};
        front.bev = client_take_over(ex->client, &front.finish);
        if (!ex->connected)
                reply_open(ex->req, status, reason, exchange_note(ex, &note),
                           bufferevent_get_output(front.bev));
        ex->relay = relay_new(&front, &back, ex->policy->timeouts.tunnel, on_relay_end, ex);
}

void tunnel_open(struct exchange *ex, struct bufferevent *host)
{
        ex->told = (struct answer){0};
        report_success(ex);
        if (!ex->connected && client_has_sent_more(ex->client)) {
                bufferevent_free(host);
                tunnel_refuse_early_bytes(ex);
                return;
        }
        start_relay(ex, 200, "Connection established", host);
}

/* What the client has sent behind its request by now was meant for the other protocol, and the host
 * is the one to know: nothing of it can be taken for a request here. */
void tunnel_switch(struct exchange *ex, const struct upstream_answer *answer)
{
        char *reason = xspandup(answer->reason);
        report_success(ex);
        message_copy_answer(ex->req, &ex->message, answer->status, answer->fields,
                            ex->worker->shared->via);
        start_relay(ex, answer->status, reason, attempt_stream(ex->attempt));
        free(reason);
}
