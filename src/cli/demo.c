#include "cli/demo.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "cli/demo_options.h"
#include "cli/demo_picture.h"
#include "cli/demo_report.h"
#include "cli/demo_screen.h"
#include "cli/practice_load.h"
#include "cli/practice_origin.h"
#include "cli/practice_signals.h"
#include "cli/usage.h"
#include "config/config.h"
#include "proxy/server.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#define COMMAND "weir demo"
#define TICK (100 * USEC_PER_MSEC)
#define TICKS_PER_SECOND ((unsigned)(USEC_PER_SEC / TICK))
/* The clients are gone by then: there is nothing to be waited for. */
#define STOP_GRACE USEC_PER_SEC

struct demo {
        struct demo_options options;
        struct practice_origin *origin;
        struct server *server;
        struct practice_load *load;
        struct demo_screen screen;
        char *title;
        struct demo_sample *samples; /* one for each tick of the run; room for `total` */
        size_t count, total;
        struct demo_tally tally, ticked, reported; /* now, at the last tick, at the last line */
        bool interrupted;
};

/* There is but one scope: the origin's. */
static void on_scope(void *arg, const struct governor_change *scope)
{
        struct demo_sample *sample = arg;
        sample->rate = scope->view.rate;
        sample->in_flight = scope->view.in_flight;
        sample->closed = scope->view.closed_until > scope->now;
}

static void look(struct demo *d)
{
        practice_origin_look(d->origin, &d->tally.origin);
        practice_load_look(d->load, &d->tally.clients);
}

/* What happened since `before`, and how things stand now. */
static struct demo_sample sample_since(struct demo *d, const struct demo_tally *before)
{
        struct demo_sample sample = {
            .served = (unsigned)(d->tally.origin.served - before->origin.served),
            .refused = (unsigned)(d->tally.origin.refused - before->origin.refused),
        };
        server_look(d->server, on_scope, &sample);
        return sample;
}

static void draw(struct demo *d)
{
        char *status = demo_report_status(&d->tally);
        struct demo_scene scene = {
            .samples = d->samples,
            .count = d->count,
            .total = d->total,
            .ticks_per_second = TICKS_PER_SECOND,
            .hidden = practice_policy_rate(&d->options.origin.policy, d->options.origin.latency),
            .title = d->title,
            .status = status,
        };
        demo_screen_draw(&d->screen, &scene);
        free(status);
}

static void tick(struct demo *d)
{
        look(d);
        d->samples[d->count++] = sample_since(d, &d->ticked);
        d->ticked = d->tally;
        if (d->screen.used) {
                draw(d);
        } else if (d->count % TICKS_PER_SECOND == 0) {
                struct demo_sample second = sample_since(d, &d->reported);
                demo_report_second(stdout, (unsigned)d->count / TICKS_PER_SECOND, &second,
                                   &d->tally);
                fflush(stdout);
                d->reported = d->tally;
        }
}

/* Until the time is over, the user ends it, or nobody reads any more. */
static void watch(struct demo *d)
{
        usec_t next = clock_now();
        while (d->count < d->total && !d->interrupted && !ferror(stdout)) {
                next = usec_add(next, TICK);
                d->interrupted = practice_signals_wait(next);
                if (!d->interrupted)
                        tick(d);
        }
        look(d);
}

static int start_proxy(struct demo *d, char **ret_error)
{
        struct config *config;
        struct config_faults faults;
        int r = config_load_listen(NULL, "127.0.0.1:0", &config, &faults);
        if (r < 0) {
                config_faults_done(&faults);
                *ret_error = xstrdup("the built-in configuration cannot be used");
                return r;
        }
        faults = (struct config_faults){0};
        r = server_start(config, NULL, &d->server, &faults);
        if (r < 0)
                *ret_error = xstrdup(faults.list[0].text);
        config_faults_done(&faults);
        config_unref(config);
        return r;
}

static int start_clients(struct demo *d, char **ret_error)
{
        char *host = xasprintf("127.0.0.1:%u", practice_origin_port(d->origin));
        char *url = xasprintf("http://%s/", host);
        struct practice_load_settings settings = {
            .workers = d->options.workers,
            .proxy_port = server_port(d->server),
            .url = url,
            .host = host,
        };
        int r = practice_load_start(&settings, &d->load, ret_error);
        free(url);
        free(host);
        return r;
}

static int start_origin(struct demo *d, char **ret_error)
{
        struct sockaddr_storage address = {0};
        struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address;
        in->sin_family = AF_INET;
        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return practice_origin_start(&d->options.origin, &address, &d->origin, ret_error);
}

static int start(struct demo *d, char **ret_error)
{
        int r = start_origin(d, ret_error);
        if (r == 0)
                r = start_proxy(d, ret_error);
        if (r == 0)
                r = start_clients(d, ret_error);
        return r;
}

/* The clients leave first, so that the proxy has nothing to end and the origin nobody to wait. */
static void stop(struct demo *d)
{
        practice_load_free(d->load);
        if (d->server)
                server_stop(d->server, STOP_GRACE, NULL);
        practice_origin_free(d->origin);
        free(d->samples);
        free(d->title);
}

static char *title_new(const struct demo_options *o)
{
        char *limit = practice_policy_describe(&o->origin.policy);
        char *title = xasprintf("%u clients, a host that takes %s, %.0f s", o->workers, limit,
                                usec_seconds(o->duration));
        free(limit);
        return title;
}

int demo_main(int argc, char **argv)
{
        struct demo d = {0};
        if (demo_options_read(argc, argv, &d.options) < 0)
                return 2;
        if (d.options.help)
                return usage_print("demo");
        d.total = (size_t)(d.options.duration / TICK);
        d.samples = xcalloc(d.total, sizeof(*d.samples));
        d.title = title_new(&d.options);
        demo_screen_init(&d.screen, d.options.plain);
        practice_signals_block();
        log_set(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);

        char *error = NULL;
        int r = start(&d, &error);
        if (r < 0) {
                fprintf(stderr, COMMAND ": %s\n", error);
                free(error);
        } else {
                if (!d.screen.used)
                        puts(d.title);
                watch(&d);
                putchar('\n');
                demo_report_end(stdout, &d.tally);
                fflush(stdout);
                r = demo_tally_worked(&d.tally) || d.interrupted ? 0 : -1;
        }
        stop(&d);
        if (ferror(stdout))
                r = -1;
        return r < 0 ? 1 : 0;
}
