/* /metrics: every figure of metrics.def, for Prometheus. */
#include <event2/buffer.h>
#include <stdlib.h>

#include "admin/admin_state.h"
#include "admin/answer.h"
#include "admin/endpoints.h"
#include "admin/self.h"
#include "admin/scopes.h"
#include "admin/text_format.h"
#include "base/xalloc.h"

struct scrape {
        struct admin *admin;
        struct evbuffer *to;
        struct governor_stats governor;
        struct self_figures process;
        struct scopes scopes;
        char **labels; /* of those scopes that have series of their own */
        size_t own;
        struct endpoints endpoints;
};

/* ---- what the workers count ---- */

static void write_cells(struct scrape *s, enum metric m)
{
        char label[METRICS_LABEL_SIZE];
        const char *name = metrics_info(m)->name;
        for (size_t cell = 0; cell < metrics_cells(m); cell++) {
                uint64_t value = metrics_get(s->admin->sources.metrics, m, cell);
                if (value > 0 || metrics_shows_zero(m, cell))
                        text_format_count(s->to, name, metrics_label(m, cell, label), value);
        }
}

static void write_histogram(struct scrape *s, enum metric m)
{
        struct histogram h;
        metrics_histogram(s->admin->sources.metrics, m, &h);
        text_format_histogram(s->to, metrics_info(m)->name, &h);
}

/* ---- scopes ---- */

static double scope_value(enum metric m, const struct governor_change *s)
{
        switch (m) {
        case METRIC_SCOPE_RATE:
                return s->view.rate;
        case METRIC_SCOPE_LIMIT:
                return s->view.concurrency;
        case METRIC_SCOPE_IN_FLIGHT:
                return s->view.in_flight;
        case METRIC_SCOPE_QUEUED:
                return (double)s->queued;
        default:
                return usec_seconds(answer_real_time(s->view.closed_until));
        }
}

/* Of those without series of their own: the sum, or for a moment the latest. */
static double others_value(const struct scrape *s, enum metric m)
{
        double sum = 0, latest = 0;
        for (size_t i = s->own; i < s->scopes.count; i++) {
                double value = scope_value(m, &s->scopes.list[i]);
                sum += value;
                latest = value > latest ? value : latest;
        }
        return m == METRIC_SCOPE_CLOSED ? latest : sum;
}

static void write_scopes(struct scrape *s, enum metric m)
{
        const char *name = metrics_info(m)->name;
        for (size_t i = 0; i < s->own; i++)
                text_format_real(s->to, name, s->labels[i], scope_value(m, &s->scopes.list[i]));
        if (s->own < s->scopes.count)
                text_format_real(s->to, name, "scope=\"other\"", others_value(s, m));
}

static void look_at_scopes(struct scrape *s)
{
        size_t most = s->admin->config->admin.max_scopes;
        scopes_look(s->admin->sources.gate, &s->scopes);
        s->own = s->scopes.count < most ? s->scopes.count : most;
        s->labels = xcalloc(s->own + 1, sizeof *s->labels);
        for (size_t i = 0; i < s->own; i++)
                s->labels[i] = text_format_label("scope", s->scopes.list[i].key);
}

/* ---- endpoints ---- */

static double endpoint_value(enum metric m, const struct endpoints_row *row)
{
        const struct endpoint_view *e = &row->view;
        switch (m) {
        case METRIC_ENDPOINT_UP:
                return e->back_off_until == 0;
        case METRIC_ENDPOINT_IN_FLIGHT:
                return e->in_flight;
        case METRIC_ENDPOINT_REQUESTS:
                return (double)e->uses;
        case METRIC_ENDPOINT_FAULTS:
                return (double)e->faults;
        case METRIC_ENDPOINT_BLOCKED:
                return (double)e->blocks;
        case METRIC_ENDPOINT_QUARANTINES:
                return (double)row->quarantines;
        default:
                return (double)e->sessions;
        }
}

static void write_exit(struct scrape *s, const struct endpoints_row *row)
{
        if (!row->view.exit[0])
                return;
        char *address = text_format_label("exit_address", row->view.exit);
        char *labels = xasprintf("%s,%s", row->labels, address);
        text_format_count(s->to, metrics_info(METRIC_ENDPOINT_EXIT)->name, labels, 1);
        free(labels);
        free(address);
}

static void write_endpoints(struct scrape *s, enum metric m)
{
        for (size_t i = 0; i < s->endpoints.count; i++) {
                const struct endpoints_row *row = &s->endpoints.list[i];
                if (m == METRIC_ENDPOINT_EXIT)
                        write_exit(s, row);
                else
                        text_format_real(s->to, metrics_info(m)->name, row->labels,
                                         endpoint_value(m, row));
        }
}

/* ---- the rest ---- */

static double asked_value(const struct scrape *s, enum metric m)
{
        switch (m) {
        case METRIC_SCOPES:
                return (double)s->governor.lanes;
        case METRIC_QUEUED:
                return (double)s->governor.queued;
        case METRIC_SLEEPING:
                return (double)s->governor.sleeping;
        case METRIC_IN_FLIGHT: /* a turn that is on its way to its worker holds a slot as well */
                return (double)(s->governor.in_flight + s->governor.ready);
        case METRIC_PROCESS_CPU:
                return s->process.cpu_seconds;
        case METRIC_PROCESS_RESIDENT:
                return s->process.resident_bytes;
        case METRIC_PROCESS_VIRTUAL:
                return s->process.virtual_bytes;
        case METRIC_PROCESS_FDS:
                return s->process.open_fds;
        case METRIC_PROCESS_MAX_FDS:
                return s->process.max_fds;
        case METRIC_PROCESS_THREADS:
                return s->process.threads;
        case METRIC_PROCESS_START:
                return usec_seconds(s->admin->process_started);
        default:
                return 0;
        }
}

static void write_metric(struct scrape *s, enum metric m)
{
        const struct metrics_info *info = metrics_info(m);
        text_format_head(s->to, info);
        if (info->type == METRICS_HISTOGRAM)
                write_histogram(s, m);
        else if (metrics_cells(m) > 0)
                write_cells(s, m);
        else if (info->labels == LABELS_SCOPE)
                write_scopes(s, m);
        else if (info->labels == LABELS_ENDPOINT)
                write_endpoints(s, m);
        else if (m == METRIC_BUILD)
                text_format_count(s->to, info->name, "version=\"" PACKAGE_VERSION "\"", 1);
        else
                text_format_real(s->to, info->name, "", asked_value(s, m));
}

void page_metrics(struct admin *a, struct evhttp_request *req, const char *key)
{
        (void)key;
        struct scrape s = {.admin = a, .to = evbuffer_new()};
        if (!s.to)
                abort(); /* out of memory */
        gate_stats(a->sources.gate, &s.governor);
        self_look(&s.process);
        look_at_scopes(&s);
        endpoints_look(a->sources.gate, &s.endpoints);
        for (enum metric m = 0; m < METRICS_COUNT; m++)
                write_metric(&s, m);
        answer_buffer(req, 200, TEXT_FORMAT_TYPE, s.to);
        for (size_t i = 0; i < s.own; i++)
                free(s.labels[i]);
        free(s.labels);
        scopes_done(&s.scopes);
        endpoints_done(&s.endpoints);
        evbuffer_free(s.to);
}
