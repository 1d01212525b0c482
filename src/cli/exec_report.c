#include "cli/exec_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "proxy/server.h"

/* More lines than that nobody reads. */
#define MOST_SCOPES 20

#define COLUMN "  %-15s "

/* ---- gathering ---- */

static void take_statuses(const struct metrics *m, enum metric which, struct exec_status **ret,
                          size_t *ret_count)
{
        *ret = xcalloc(500, sizeof **ret);
        *ret_count = 0;
        for (int status = 100; status < 600; status++) {
                uint64_t count = metrics_get(m, which, metrics_status(status));
                if (count)
                        (*ret)[(*ret_count)++] = (struct exec_status){status, count};
        }
}

static void on_scope(void *arg, const struct governor_change *scope)
{
        struct exec_figures *f = arg;
        if (scope->sent == 0) /* remembered from another time */
                return;
        f->scopes = xrealloc(f->scopes, (f->scope_count + 1) * sizeof *f->scopes);
        f->scopes[f->scope_count++] = (struct exec_scope){
            .key = xstrdup(scope->key),
            .sent = scope->sent,
            .rate = scope->view.settled ? scope->view.rate : 0,
            .concurrency = scope->view.concurrency,
            .closed_for = usec_sub(scope->view.closed_until, scope->now),
        };
}

void exec_figures_take(struct server *s, struct exec_figures *ret)
{
        const struct metrics *m = server_metrics(s);
        *ret = (struct exec_figures){.requests = metrics_total(m, METRIC_REQUESTS),
                                     .retries = metrics_total(m, METRIC_RETRIES)};
        take_statuses(m, METRIC_RESPONSES, &ret->answers, &ret->answer_count);
        take_statuses(m, METRIC_ABSORBED, &ret->absorbed, &ret->absorbed_count);
        uint64_t answered = 0;
        for (size_t i = 0; i < ret->answer_count; i++) {
                const struct exec_status *a = &ret->answers[i];
                answered += a->count;
                if (a->status >= 200 && a->status < 400)
                        ret->succeeded += a->count;
        }
        ret->unanswered = ret->requests > answered ? ret->requests - answered : 0;
        metrics_histogram(m, METRIC_REQUEST_DURATION, &ret->duration);
        metrics_histogram(m, METRIC_QUEUE_WAIT, &ret->queued);
        server_look(s, on_scope, ret);
}

void exec_figures_done(struct exec_figures *f)
{
        for (size_t i = 0; i < f->scope_count; i++)
                free(f->scopes[i].key);
        free(f->scopes);
        free(f->answers);
        free(f->absorbed);
}

/* ---- printing ---- */

struct text {
        char s[32];
};

static struct text time_text(usec_t t)
{
        struct text text;
        double s = usec_seconds(t);
        if (t < USEC_PER_SEC)
                snprintf(text.s, sizeof text.s, "%.0f ms", 1000 * s);
        else if (s < 99.95)
                snprintf(text.s, sizeof text.s, "%.1f s", s);
        else if (s < 5970)
                snprintf(text.s, sizeof text.s, "%.1f min", s / 60);
        else
                snprintf(text.s, sizeof text.s, "%.1f h", s / 3600);
        return text;
}

static uint64_t count_of(const struct exec_status *list, size_t count, int status)
{
        for (size_t i = 0; i < count; i++)
                if (list[i].status == status)
                        return list[i].count;
        return 0;
}

static void print_statuses(FILE *to, const char *title, const struct exec_status *list,
                           size_t count)
{
        if (count == 0)
                return;
        fprintf(to, COLUMN, title);
        for (size_t i = 0; i < count; i++)
                fprintf(to, "%s%d: %" PRIu64, i ? ", " : "", list[i].status, list[i].count);
        fputc('\n', to);
}

static void print_times(FILE *to, const char *title, const struct histogram *h)
{
        if (h->count)
                fprintf(to, COLUMN "p50 %s, p95 %s\n", title,
                        time_text(histogram_quantile(h, 0.5)).s,
                        time_text(histogram_quantile(h, 0.95)).s);
}

static int by_sent(const void *a, const void *b)
{
        const struct exec_scope *x = a, *y = b;
        if (x->sent != y->sent)
                return x->sent < y->sent ? 1 : -1;
        return strcmp(x->key, y->key);
}

static void print_scopes(FILE *to, struct exec_figures *f)
{
        size_t shown = f->scope_count < MOST_SCOPES ? f->scope_count : MOST_SCOPES;
        int width = (int)strlen("scope");
        if (shown == 0)
                return;
        qsort(f->scopes, f->scope_count, sizeof *f->scopes, by_sent);
        for (size_t i = 0; i < shown; i++) {
                int len = (int)strlen(f->scopes[i].key);
                width = len > width ? len : width;
        }
        fprintf(to, "\n  %-*s  attempts  limit/s  at once  closed for\n", width, "scope");
        for (size_t i = 0; i < shown; i++) {
                const struct exec_scope *s = &f->scopes[i];
                struct text rate = {"-"};
                if (s->rate > 0)
                        snprintf(rate.s, sizeof rate.s, "%.*f", s->rate < 1 ? 3 : 1, s->rate);
                fprintf(to, "  %-*s  %8" PRIu64 "  %7s  %7.0f  %s\n", width, s->key, s->sent,
                        rate.s, s->concurrency, s->closed_for ? time_text(s->closed_for).s : "-");
        }
        if (shown < f->scope_count)
                fprintf(to, "  and %zu more\n", f->scope_count - shown);
}

void exec_report_print(FILE *to, struct exec_figures *f)
{
        double minutes = usec_seconds(f->span) / 60;
        if (f->requests == 0) {
                fprintf(to,
                        "weir: no request came through the proxy in %s: does the command look at "
                        "HTTP_PROXY, and are its hosts in NO_PROXY?\n",
                        time_text(f->span).s);
                return;
        }
        fprintf(to, "weir: %" PRIu64 " request%s in %s, %.0f successes a minute\n", f->requests,
                f->requests == 1 ? "" : "s", time_text(f->span).s,
                minutes > 0 ? (double)f->succeeded / minutes : 0);
        print_statuses(to, "statuses", f->answers, f->answer_count);
        if (f->unanswered)
                fprintf(to, COLUMN "%" PRIu64 ": the command left before\n", "unanswered",
                        f->unanswered);
        fprintf(to, COLUMN "%" PRIu64 " absorbed, %" PRIu64 " passed on\n", "429s",
                count_of(f->absorbed, f->absorbed_count, 429),
                count_of(f->answers, f->answer_count, 429));
        fprintf(to, COLUMN "%" PRIu64, "retries", f->retries);
        for (size_t i = 0, n = 0; i < f->absorbed_count; i++)
                fprintf(to, "%s%d: %" PRIu64, n++ ? ", " : ", after ", f->absorbed[i].status,
                        f->absorbed[i].count);
        fputc('\n', to);
        print_times(to, "duration", &f->duration);
        print_times(to, "in the queue", &f->queued);
        print_scopes(to, f);
}
