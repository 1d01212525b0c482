#include "tests/sim/origin.h"

#include <math.h>
#include <stdlib.h>

#include "base/xalloc.h"

static const usec_t violation_span = 60 * USEC_PER_SEC;
static const usec_t ban = 30 * USEC_PER_SEC;

void origin_init(struct origin *o, const struct origin_config *config, usec_t start)
{
        *o = (struct origin){
            .config = *config,
            .scale = 1,
            .window = start,
            .tokens = config->burst,
            .filled = start,
        };
        if (config->kind == ORIGIN_SLIDING) { /* room for a limit that has doubled */
                o->log_room = (size_t)(2 * config->rate * usec_seconds(config->period)) + 1;
                o->log = xcalloc(o->log_room, sizeof(*o->log));
        }
        if (config->violations)
                o->violated = xcalloc(config->violations, sizeof(*o->violated));
}

void origin_done(struct origin *o)
{
        free(o->log);
        free(o->violated);
}

static double rate(const struct origin *o)
{
        return o->config.rate * o->scale;
}

static double per_window(const struct origin *o)
{
        return floor(rate(o) * usec_seconds(o->config.period) + 1e-9);
}

static double servers(const struct origin *o)
{
        return fmax(1, floor(o->config.servers * o->scale));
}

static bool window_takes(struct origin *o, usec_t now, usec_t *ret_wait)
{
        usec_t period = o->config.period;
        if (now >= o->window + period) {
                o->window = o->config.from_first ? now : now - (now - o->window) % period;
                o->count = 0;
        }
        *ret_wait = o->window + period - now;
        if (o->count >= per_window(o))
                return false;
        o->count++;
        return true;
}

static bool sliding_takes(struct origin *o, usec_t now, usec_t *ret_wait)
{
        size_t n = (size_t)per_window(o);
        if (n == 0) {
                *ret_wait = o->config.period;
                return false;
        }
        usec_t oldest = o->log[(o->log_next + o->log_room - n) % o->log_room];
        if (oldest > 0 && now < oldest + o->config.period) {
                *ret_wait = oldest + o->config.period - now;
                return false;
        }
        o->log[o->log_next++ % o->log_room] = now;
        o->log_next %= o->log_room;
        return true;
}

static bool bucket_takes(struct origin *o, usec_t now, usec_t *ret_wait)
{
        o->tokens = fmin(o->config.burst, o->tokens + usec_seconds(now - o->filled) * rate(o));
        o->filled = now;
        *ret_wait = usec_from_seconds((1 - o->tokens) / rate(o));
        if (o->tokens < 1)
                return false;
        o->tokens--;
        return true;
}

static bool gcra_takes(struct origin *o, usec_t now, usec_t *ret_wait)
{
        usec_t interval = usec_from_seconds(1 / rate(o));
        usec_t tolerance = usec_from_seconds((o->config.burst - 1) / rate(o));
        usec_t arrival = usec_max(o->arrival, now);
        *ret_wait = usec_sub(arrival, now + tolerance);
        if (*ret_wait > 0)
                return false;
        o->arrival = arrival + interval;
        return true;
}

static bool penalty_box_takes(struct origin *o, usec_t now, usec_t *ret_wait)
{
        size_t n = o->config.violations;
        if (now < o->banned_until) {
                *ret_wait = ban;
                o->banned_until = now + ban;
                return false;
        }
        if (window_takes(o, now, ret_wait))
                return true;
        o->violated[o->violated_next++ % n] = now;
        usec_t first = o->violated[o->violated_next % n];
        if (first > 0 && now - first < violation_span) {
                o->banned_until = now + ban;
                *ret_wait = ban;
                for (size_t i = 0; i < n; i++)
                        o->violated[i] = 0;
        }
        return false;
}

static bool has_server(const struct origin *o)
{
        return o->busy < servers(o);
}

static bool takes(struct origin *o, usec_t now, usec_t *ret_wait)
{
        switch (o->config.kind) {
        case ORIGIN_FIXED_WINDOW:
                return window_takes(o, now, ret_wait);
        case ORIGIN_SLIDING:
                return sliding_takes(o, now, ret_wait);
        case ORIGIN_TOKEN_BUCKET:
                return bucket_takes(o, now, ret_wait);
        case ORIGIN_GCRA:
                return gcra_takes(o, now, ret_wait);
        case ORIGIN_PENALTY_BOX:
                return penalty_box_takes(o, now, ret_wait);
        case ORIGIN_CONCURRENCY:
                return has_server(o);
        case ORIGIN_WINDOW_AND_CONCURRENCY:
                return has_server(o) && window_takes(o, now, ret_wait);
        case ORIGIN_OVERLOADED:
                return has_server(o) || o->queued < o->config.burst;
        case ORIGIN_UNLIMITED:
                break;
        }
        return true;
}

enum origin_verdict origin_arrive(struct origin *o, usec_t now, usec_t *ret_wait)
{
        usec_t wait = 0;
        if (!takes(o, now, &wait)) {
                *ret_wait = wait;
                return ORIGIN_REFUSES;
        }
        if (o->config.kind == ORIGIN_OVERLOADED && !has_server(o)) {
                o->queued++;
                return ORIGIN_QUEUES;
        }
        o->busy++;
        return ORIGIN_SERVES;
}

bool origin_leave(struct origin *o)
{
        o->busy--;
        if (o->queued == 0 || !has_server(o))
                return false;
        o->queued--;
        o->busy++;
        return true;
}

bool origin_quota(const struct origin *o, usec_t now, struct quota_window *ret)
{
        if (o->config.kind != ORIGIN_FIXED_WINDOW &&
            o->config.kind != ORIGIN_WINDOW_AND_CONCURRENCY)
                return false;
        double limit = per_window(o);
        *ret = (struct quota_window){
            .limit = (uint64_t)limit,
            .remaining = (uint64_t)fmax(0, limit - o->count),
            .reset = usec_sub(o->window + o->config.period, now),
        };
        return true;
}

double origin_stretch(const struct origin *o)
{
        return o->config.kind == ORIGIN_OVERLOADED ? 1 + o->config.thrash * o->queued / servers(o)
                                                   : 1;
}

double origin_tolerates(const struct origin *o, usec_t service)
{
        double in_windows = per_window(o) / usec_seconds(o->config.period);
        switch (o->config.kind) {
        case ORIGIN_FIXED_WINDOW:
        case ORIGIN_SLIDING:
        case ORIGIN_PENALTY_BOX:
                return in_windows;
        case ORIGIN_WINDOW_AND_CONCURRENCY:
                return fmin(in_windows, servers(o) / usec_seconds(service));
        case ORIGIN_CONCURRENCY:
        case ORIGIN_OVERLOADED:
                return o->config.rate * servers(o) / o->config.servers;
        case ORIGIN_TOKEN_BUCKET:
        case ORIGIN_GCRA:
                break;
        case ORIGIN_UNLIMITED:
                return INFINITY;
        }
        return rate(o);
}
