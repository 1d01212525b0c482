#include "cli/exec_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* More lines than that nobody reads. */
#define MOST_SCOPES 20

#define COLUMN "  %-15s "

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

static void print_unserved(FILE *to, const struct exec_figures *f)
{
        const char *between = "";
        for (enum outcome o = 0; o < OUTCOME_COUNT; o++) {
                if (o == OUTCOME_SERVED || f->outcomes[o] == 0)
                        continue;
                if (!*between)
                        fprintf(to, COLUMN, "not served");
                fprintf(to, "%s%s: %" PRIu64, between, outcome_name(o), f->outcomes[o]);
                between = ", ";
        }
        if (*between)
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

/* What a shorter run did says nothing about a minute. */
#define LEAST_SPAN (10 * USEC_PER_SEC)

static void print_title(FILE *to, const struct exec_figures *f)
{
        fprintf(to, "weir: %" PRIu64 " request%s in %s, ", f->requests, f->requests == 1 ? "" : "s",
                time_text(f->span).s);
        if (f->span >= LEAST_SPAN)
                fprintf(to, "%.0f successes a minute\n",
                        (double)f->succeeded * 60 / usec_seconds(f->span));
        else
                fprintf(to, "%" PRIu64 " success%s\n", f->succeeded, f->succeeded == 1 ? "" : "es");
}

void exec_report_print(FILE *to, struct exec_figures *f)
{
        if (f->requests == 0) {
                fprintf(to,
                        "weir: no request came through the proxy in %s: does the command look at "
                        "HTTP_PROXY, and are its hosts in NO_PROXY?\n",
                        time_text(f->span).s);
                return;
        }
        print_title(to, f);
        print_statuses(to, "statuses", f->answers, f->answer_count);
        print_unserved(to, f);
        if (f->relayed)
                fprintf(to, COLUMN "%" PRIu64 " connection%s, unread: a 429 inside is not seen\n",
                        "relayed", f->relayed, f->relayed == 1 ? "" : "s");
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
