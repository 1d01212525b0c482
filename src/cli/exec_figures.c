#include "cli/exec_figures.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "proxy/server.h"

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

static uint64_t ended(const struct metrics *m, enum answer_class class, enum outcome outcome)
{
        return metrics_get(m, METRIC_REQUESTS, metrics_ending(class, outcome));
}

static void take_outcomes(const struct metrics *m, uint64_t ret[static OUTCOME_COUNT])
{
        for (enum outcome o = 0; o < OUTCOME_COUNT; o++) {
                ret[o] = metrics_get(m, METRIC_REQUESTS, metrics_ending_unsent(o));
                for (enum answer_class class = 0; class < ANSWER_CLASSES; class ++)
                        ret[o] += ended(m, class, o);
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
                                     .succeeded = ended(m, ANSWER_SUCCESS, OUTCOME_SERVED),
                                     .relayed = metrics_total(m, METRIC_RELAYED),
                                     .retries = metrics_total(m, METRIC_RETRIES)};
        take_statuses(m, METRIC_RESPONSES, &ret->answers, &ret->answer_count);
        take_statuses(m, METRIC_ABSORBED, &ret->absorbed, &ret->absorbed_count);
        take_outcomes(m, ret->outcomes);
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
