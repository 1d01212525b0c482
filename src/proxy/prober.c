#include "proxy/prober.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "core/answer.h"
#include "core/classify.h"
#include "core/scope_key.h"
#include "proxy/target.h"
#include "proxy/worker.h"
#include "runtime/clock.h"
#include "runtime/log.h"

/* From the beginning of one round to that of the next. */
#define ROUND (10 * 60 * USEC_PER_SEC)

/* How long an endpoint is waited for that is in use; and an answer, to its end. */
#define PATIENCE (60 * USEC_PER_SEC)

/* Longer than any address with spaces around. */
#define MOST_BODY 256

struct prober {
        struct worker *worker;
        struct event *timer; /* for the next; or how long that under way may take */
        usec_t round;        /* when this one began */
        bool stopped;
        size_t pool, endpoint; /* the next one, in the worker's configuration */

        /* the one under way */
        struct config *config; /* held; NULL: none is */
        const struct egress_config *of;
        const char *name; /* the endpoint's */
        const struct policy *policy;
        struct target target;
        struct ticket ticket;
        bool ticket_out;
        struct attempt *attempt;
        struct answer told;
        bool answered;
        int status;
        char body[MOST_BODY + 1];
        size_t body_len;
};

static void wind(struct prober *p, usec_t wait)
{
        struct timeval tv = usec_timeval(wait);
        if (!p->stopped)
                event_add(p->timer, &tv);
}

/* ---- the end of one ---- */

static void done(struct prober *p)
{
        if (p->ticket_out)
                gate_cancel(p->worker->shared->gate, &p->ticket);
        p->ticket_out = false;
        if (!p->config)
                return;
        config_unref(p->config);
        p->config = NULL;
        target_done(&p->target);
        wind(p, 0);
}

/* Nothing more is wanted of the answer, or of the wait for it: the endpoint is needed by others. */
static void give_up(struct prober *p, const char *why)
{
        log_warn("exit_ip.probe of pool %s by %s: %s", p->of->name, p->ticket.endpoint->name, why);
        attempt_cancel(p->attempt);
        p->attempt = NULL;
        done(p);
}

static void learn(struct prober *p)
{
        if (!p->answered)
                gate_answer(p->worker->shared->gate, &p->ticket, &p->told);
        p->answered = true;
}

/* The address in the body; NULL: that is none. */
static const char *address_told(struct prober *p)
{
        struct in6_addr ignored;
        p->body[p->body_len] = '\0';
        char *text = p->body + strspn(p->body, " \t\r\n");
        text[strcspn(text, " \t\r\n")] = '\0';
        bool good = p->status == 200 && (inet_pton(AF_INET, text, &ignored) == 1 ||
                                         inet_pton(AF_INET6, text, &ignored) == 1);
        return good ? text : NULL;
}

static void note(struct prober *p)
{
        char exit[ENDPOINT_EXIT_MAX] = "";
        const char *address = address_told(p);
        if (!address) {
                log_warn(
                    "exit_ip.probe of pool %s by %s: the answer, with status %d, is no address",
                    p->of->name, p->ticket.endpoint->name, p->status);
                return;
        }
        snprintf(exit, sizeof exit, "%s", address);
        gate_exit(p->worker->shared->gate, &p->ticket, exit);
        log_debug("pool %s goes out by %s with the address %s", p->of->name,
                  p->ticket.endpoint->name, exit);
}

/* ---- the attempt ---- */

static void on_head(void *arg, const struct upstream_answer *answer)
{
        struct prober *p = arg;
        answer_read(answer->fields, clock_real(), &p->told);
        struct classify_case c = {
            .status = answer->status, .fields = answer->fields, .wait_named = p->told.wait_named};
        answer_judge(&p->told, &c);
        p->status = answer->status;
        learn(p);
}

static enum upstream_flow on_body(void *arg, const void *data, size_t len)
{
        struct prober *p = arg;
        if (len > MOST_BODY - p->body_len) {
                give_up(p, "the answer is no address, but long");
                return UPSTREAM_MORE;
        }
        memcpy(p->body + p->body_len, data, len);
        p->body_len += len;
        return UPSTREAM_MORE;
}

static void on_end(void *arg, const struct upstream_end *end)
{
        struct prober *p = arg;
        p->attempt = NULL;
        if (end->error == UPSTREAM_OK) {
                note(p);
        } else {
                log_warn("exit_ip.probe of pool %s by %s: %s", p->of->name,
                         p->ticket.endpoint->name, end->detail);
                bool refused = upstream_error_is_refusal(end->error);
                p->told = (struct answer){.class = refused ? ANSWER_BLOCKED : ANSWER_FAILED,
                                          .by_endpoint = refused};
                usec_t ignored;
                if (upstream_error_is_endpoints(end->error))
                        gate_endpoint_failed(p->worker->shared->gate, &p->ticket, &ignored);
                else if (refused || upstream_error_is_hosts(end->error))
                        learn(p);
        }
        p->ticket_out = false;
        gate_finish(p->worker->shared->gate, &p->ticket);
        done(p);
}

/* destinations.deny does not apply: it is for what clients ask for, and this URL was named by who
 * wrote the configuration. Often it is a service within their own network. */
static void start(struct prober *p)
{
        static const struct upstream_handlers handlers = {on_head, on_body, on_end};
        const struct policy *policy = p->policy;
        struct fields fields = {0};
        fields_add(&fields, span_of("Host"), p->target.authority);
        fields_add(&fields, span_of("User-Agent"), span_of("weir/" PACKAGE_VERSION));
        fields_add(&fields, span_of("Accept"), span_of("text/plain"));
        struct upstream_request r = {
            .tls = span_equal_nocase(p->target.scheme, span_of("https")),
            .with = {.verify = policy->tls.verify,
                     .ca_file = policy->tls.ca_file,
                     .min_version = policy->tls.min_version},
            .host = span_of(p->target.host),
            .port = p->target.port,
            .method = span_of("GET"),
            .target = span_of(p->target.path),
            .fields = &fields,
            .replayable = true,
            .egress = p->ticket.endpoint->egress,
            .timeouts = {.connect = policy->timeouts.connect,
                         .first_byte = policy->timeouts.first_byte,
                         .read = policy->timeouts.read,
                         .head = policy->timeouts.total},
        };
        p->told = (struct answer){0};
        p->answered = false;
        p->status = 0;
        p->body_len = 0;
        p->attempt = upstream_start(p->worker->upstream, &r, &handlers, p);
        fields_done(&fields);
        wind(p, usec_min(policy->timeouts.total, PATIENCE));
}

/* ---- its turn ---- */

static void take_turn(struct prober *p, enum ticket_reply reply)
{
        p->ticket_out = reply == TICKET_GRANTED || reply == TICKET_WAITING;
        if (reply == TICKET_WAITING)
                return;
        /* It goes by another where its own is of no use at present: that one has its own turn. */
        if (reply == TICKET_GRANTED && strcmp(p->ticket.endpoint->name, p->name) == 0)
                start(p);
        else
                done(p);
}

bool prober_turn(struct prober *p, struct ticket *t, enum ticket_reply reply)
{
        if (!p || t != &p->ticket)
                return false;
        take_turn(p, reply);
        return true;
}

/* As a request would whose scope is the host: what that allows is learned, and kept to. The lane
 * may be one that requests share, so that its policy has to be theirs. The name of the session is
 * one that no client can have. */
static void ask(struct prober *p)
{
        const struct scope_part part = {.kind = SCOPE_HOST};
        const struct scope_subject subject = {
            .host = span_of(p->target.host), .port = p->target.port, .pool = span_of(p->of->name)};
        struct lane_policy lane = p->policy->lane;
        usec_t now = clock_now();
        char *key = scope_key_new(&part, 1, &subject);
        lane.by_endpoint = false;
        struct ticket_wish wish = {
            .key = span_of(key),
            .client = span_of("exit_ip.probe"),
            .policy = &lane,
            .pool = &p->of->policy,
            .host = span_of(p->target.host),
            .session = span_of("\1exit_ip.probe"),
            .by = p->name,
            .arrived = now,
            .deadline = now + PATIENCE,
            .priority = TICKET_PRIORITY_DEFAULT,
        };
        p->ticket = (struct ticket){.worker = p->worker->index};
        enum ticket_reply reply = gate_ask(p->worker->shared->gate, &p->ticket, &wish);
        free(key);
        take_turn(p, reply);
}

/* ---- one after the other ---- */

/* Moves on to the next that is to be asked. False: the round is over. */
static bool next(struct prober *p)
{
        const struct config *c = p->worker->config;
        for (; p->pool < c->pool_count; p->pool++, p->endpoint = 0) {
                p->of = &c->pools[p->pool];
                if (!*p->of->exit_ip.probe || p->endpoint == p->of->endpoints.count)
                        continue;
                p->name = p->of->endpoints.list[p->endpoint++].name;
                return true;
        }
        return false;
}

static void begin(struct prober *p)
{
        p->config = config_ref(p->worker->config);
        const char *fault = target_read(&p->target, p->of->exit_ip.probe);
        if (fault) {
                log_warn("exit_ip.probe of pool %s: %s", p->of->name, fault);
                p->endpoint = p->of->endpoints.count;
                done(p);
                return;
        }
        if (!p->target.port)
                p->target.port = span_equal_nocase(p->target.scheme, span_of("https")) ? 443 : 80;
        p->policy = config_policy(p->config, span_of(p->target.host));
        ask(p);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
        (void)fd, (void)what;
        struct prober *p = arg;
        usec_t now = clock_now();
        if (p->config) {
                give_up(p, "the answer does not end in time");
                return;
        }
        if (next(p)) {
                begin(p);
                return;
        }
        usec_t due = usec_add(p->round, ROUND);
        if (due > now) {
                wind(p, due - now);
                return;
        }
        p->round = now;
        p->pool = p->endpoint = 0;
        wind(p, 0);
}

struct prober *prober_new(struct worker *w)
{
        struct prober *p = xcalloc(1, sizeof *p);
        p->worker = w;
        p->timer = evtimer_new(w->base, on_timer, p);
        if (!p->timer)
                abort();
        prober_reload(p);
        return p;
}

void prober_reload(struct prober *p)
{
        p->round = clock_now();
        p->pool = p->endpoint = 0;
        if (!p->config) /* else it goes on when that has ended */
                wind(p, 0);
}

void prober_stop(struct prober *p)
{
        p->stopped = true;
        event_del(p->timer);
        if (p->attempt)
                attempt_cancel(p->attempt);
        p->attempt = NULL;
        done(p);
}

void prober_free(struct prober *p)
{
        if (!p)
                return;
        event_free(p->timer);
        free(p);
}
