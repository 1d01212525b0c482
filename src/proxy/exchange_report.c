/* What is told of an exchange: counted, and written into the access log. */
#include "proxy/exchange_state.h"

#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <stdio.h>
#include <string.h>

#include "base/xalloc.h"
#include "proxy/access_log.h"
#include "proxy/client.h"
#include "proxy/relay.h"
#include "proxy/worker.h"
#include "runtime/clock.h"

static void count(struct exchange *ex, enum metric m, size_t cell)
{
        metrics_add(ex->worker->metrics, m, cell, 1);
}

void exchange_report_head(struct exchange *ex, int status, unsigned unreadable)
{
        ex->refusals += status == 429;
        count(ex, METRIC_UPSTREAM_RESPONSES, metrics_status(status));
        metrics_add(ex->worker->metrics, METRIC_UNREADABLE, 0, unreadable);
}

void exchange_report_class(struct exchange *ex)
{
        count(ex, METRIC_ANSWERS, ex->told.class);
        if (ex->told.class == ANSWER_BLOCKED)
                count(ex, METRIC_BLOCKED, 0);
        if (ex->told.by_address)
                count(ex, METRIC_BY_ADDRESS, 0);
}

void exchange_report_failure(struct exchange *ex, enum retry_failure failure)
{
        count(ex, METRIC_FAILURES, failure);
}

void exchange_report_retry(struct exchange *ex, const struct retry_case *c)
{
        count(ex, METRIC_RETRIES, metrics_retry(c->class, c->failure));
        if (c->status)
                count(ex, METRIC_ABSORBED, metrics_status(c->status));
}

void exchange_report_failover(struct exchange *ex)
{
        count(ex, METRIC_FAILOVERS, 0);
}

static void count_end(struct exchange *ex, usec_t duration, size_t bytes_in, size_t bytes_out)
{
        struct metrics_writer *w = ex->worker->metrics;
        count(ex, METRIC_REQUESTS,
              ex->class ? metrics_ending(ex->told.class, ex->outcome)
                        : metrics_ending_unsent(ex->outcome));
        if (ex->status)
                count(ex, METRIC_RESPONSES, metrics_status(ex->status));
        if (ex->relay)
                count(ex, METRIC_RELAYED, 0);
        else /* a tunnel's is up to the client */
                metrics_time(w, METRIC_REQUEST_DURATION, duration);
        if (ex->scope)
                metrics_time(w, METRIC_QUEUE_WAIT, ex->queued);
        if (ex->last.first_byte)
                metrics_time(w, METRIC_FIRST_BYTE, ex->last.first_byte);
        metrics_add(w, METRIC_REQUEST_BYTES, 0, bytes_in);
        metrics_add(w, METRIC_RESPONSE_BYTES, 0, bytes_out);
}

static const char *url_of(const struct exchange *ex)
{
        return ex->message.url ? ex->message.url : evhttp_request_get_uri(ex->req);
}

static const char *endpoint_of(const struct exchange *ex)
{
        return ex->endpoint ? ex->endpoint : ex->attempts ? "direct" : NULL;
}

static void write_access_log(const struct exchange *ex, usec_t duration, size_t bytes_in,
                             size_t bytes_out)
{
        struct access_entry e = {
            .real = ex->arrived_real,
            .client = ex->client->address,
            .user = ex->user,
            .method = ex->message.method,
            .url = url_of(ex),
            .scope = ex->scope,
            .class = ex->class,
            .status = ex->status,
            .attempts = ex->attempts,
            .queued = ex->queued,
            .duration = duration,
            .upstream = {ex->last.connect, ex->last.first_byte, ex->last.total, ex->last.address,
                         endpoint_of(ex), ex->last.exit},
            .bytes_in = bytes_in,
            .bytes_out = bytes_out,
            .outcome = ex->outcome,
        };
        access_log_write(ex->worker->shared->access, &e);
}

/* It takes the scope's name over, which nobody needs any more. */
static void hand_report_over(struct exchange *ex, usec_t duration, size_t bytes_in,
                             size_t bytes_out)
{
        struct worker *w = ex->worker;
        struct report *r = xmalloc(sizeof *r);
        *r = (struct report){
            .ended = ex->arrived + duration,
            .arrived_real = ex->arrived_real,
            .queued = ex->queued,
            .duration = duration,
            .first_byte = ex->last.first_byte,
            .scope = ex->scope,
            .url = report_url(url_of(ex)),
            .answered = ex->class != NULL,
            .class = ex->told.class,
            .outcome = ex->outcome,
            .relayed = ex->relay != NULL,
            .status = ex->status,
            .attempts = ex->attempts,
            .refusals = ex->refusals,
            .bytes_in = bytes_in,
            .bytes_out = bytes_out,
        };
        ex->scope = NULL;
        snprintf(r->method, sizeof r->method, "%.*s", (int)ex->message.method.len,
                 ex->message.method.len ? ex->message.method.ptr : "");
        strcpy(r->client, ex->client->address);
        memcpy(r->address, ex->last.address, sizeof r->address);
        r->endpoint = ex->endpoint;
        ex->endpoint = NULL;
        memcpy(r->exit_address, ex->last.exit, sizeof r->exit_address);
        if (!reports_put(w->shared->reports, w->index, r))
                count(ex, METRIC_REPORTS_DROPPED, 0);
}

void exchange_report_end(struct exchange *ex)
{
        usec_t duration = clock_now() - ex->arrived;
        size_t bytes_in = evbuffer_get_length(evhttp_request_get_input_buffer(ex->req));
        size_t bytes_out = ex->bytes_out;
        if (ex->relay) {
                struct relay_counts relayed = relay_count(ex->relay);
                bytes_in += relayed.forth;
                bytes_out += relayed.back;
        }
        /* A tunnel that was opened is not counted: the requests inside are. */
        bool counts = ex->outcome != OUTCOME_OPENED;
        if (counts)
                count_end(ex, duration, bytes_in, bytes_out);
        if (ex->worker->shared->access)
                write_access_log(ex, duration, bytes_in, bytes_out);
        if (counts && reports_are_watched(ex->worker->shared->reports))
                hand_report_over(ex, duration, bytes_in, bytes_out);
}
