#include "tests/sim/simulator.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/xalloc.h"

static const usec_t begin = 1000000 * USEC_PER_SEC; /* a monotonic clock may stand anywhere */
static const usec_t start_span = 25 * USEC_PER_SEC;

enum client_state {
        CLIENT_AWAY,
        CLIENT_QUEUED,
        CLIENT_GOING,
        CLIENT_SERVED,
        CLIENT_COMING,
        CLIENT_BACKING_OFF
};

struct client {
        struct heap_node wake;
        struct list link; /* in the queue before the limiter, or in the host's */
        enum client_state state;
        enum answer_class class;
        usec_t wait; /* named by the host */
        struct quota quota;
        usec_t since; /* it has this request */
        bool waited;
        struct sim_request request;
};

struct sim {
        const struct sim_scenario *sc;
        struct sim_result *result;
        struct origin origin;
        const struct sim_controller *controller;
        void *control; /* its state */
        unsigned in_flight, backing_off;
        struct prng prng;
        struct heap heap;
        struct heap_node control_wake, stepping, switching, ending;
        struct client *clients;
        struct list queue, host_queue;
        usec_t now;
        usec_t phase_began;
        size_t next_step;
        bool off;
        unsigned long started; /* jobs */
        usec_t last_send;
};

/* ---- chance ---- */

static double normal(struct prng *prng)
{
        double radius = sqrt(-2 * log(1 - prng_unit(prng)));
        return radius * cos(2 * 3.14159265358979 * prng_unit(prng));
}

/* A factor with mean 1. */
static double spread(struct sim *s)
{
        static const double sigma = .4;
        switch (s->sc->spread) {
        case SIM_LATENCY_LOGNORMAL:
                return exp(sigma * normal(&s->prng) - sigma * sigma / 2);
        case SIM_LATENCY_BIMODAL:
                return prng_unit(&s->prng) < .1 ? 3.7 : .7;
        case SIM_LATENCY_EVEN:
                break;
        }
        return 1;
}

static usec_t one_way(const struct sim *s)
{
        return usec_from_seconds(usec_seconds(s->sc->latency) * s->sc->network_share / 2);
}

static usec_t service(struct sim *s)
{
        double share = (1 - s->sc->network_share) * origin_stretch(&s->origin);
        return usec_from_seconds(usec_seconds(s->sc->latency) * share * spread(s));
}

static bool happens(struct sim *s, double share)
{
        return share > 0 && prng_unit(&s->prng) < share;
}

/* ---- counting ---- */

/* In the last half of the phase between two steps? */
static bool is_settled(const struct sim *s)
{
        usec_t end = begin + s->sc->duration;
        if (s->next_step < 2 && s->sc->steps[s->next_step].at)
                end = usec_min(end, begin + s->sc->steps[s->next_step].at);
        return s->now >= s->phase_began + (end - s->phase_began) / 2;
}

static void tally(struct sim *s, bool accepted)
{
        struct sim_tally *all[] = {&s->result->whole, &s->result->start, &s->result->settled};
        bool counts[] = {true, s->now < begin + start_span, is_settled(s)};
        for (size_t i = 0; i < 3; i++) {
                all[i]->accepted += counts[i] && accepted;
                all[i]->refused += counts[i] && !accepted;
        }
        size_t second = (s->now - begin) / USEC_PER_SEC;
        s->result->served_in[second] += accepted;
        s->result->refused_in[second] += !accepted;
}

static void note_send(struct sim *s, const struct sim_request *request)
{
        struct sim_result *r = s->result;
        if (r->send_count == r->send_room) {
                r->send_room = r->send_room ? 2 * r->send_room : 1024;
                r->sends = xrealloc(r->sends, r->send_room * sizeof(*r->sends));
        }
        r->sends[r->send_count++] =
            (struct sim_send){s->now - begin, request->in_flight, request->pass.probe};
        r->whole.sent++;
        s->last_send = s->now;
}

static void note_event(struct sim *s, enum limiter_event event)
{
        s->result->events[event]++;
        if (event == LIMITER_UNCHANGED || !s->sc->watch)
                return;
        struct limiter_view v = {0};
        if (s->controller->look)
                s->controller->look(s->control, s->now, &v);
        s->sc->watch(s->sc->watch_arg, s->now - begin, event, &v);
}

/* What could be served while there is demand. */
static double tolerated(const struct sim *s)
{
        double seconds = usec_seconds(s->sc->latency);
        usec_t work = usec_from_seconds(seconds * (1 - s->sc->network_share));
        return fmin(s->sc->workers / seconds, origin_tolerates(&s->origin, work));
}

/* Adds what could have been served from `from` to `until` within one phase. */
static void offer(struct sim *s, struct sim_tally *t, usec_t from, usec_t until)
{
        if (until <= from)
                return;
        double span = usec_seconds(until - from);
        double share = s->sc->on_off ? .5 : 1;
        t->span += span;
        t->tolerated += span * share * tolerated(s);
}

static void end_phase(struct sim *s)
{
        usec_t from = s->phase_began;
        s->result->phases[s->result->phase_count++] =
            (struct sim_phase){from - begin, s->now - begin, tolerated(s)};
        offer(s, &s->result->whole, from, s->now);
        offer(s, &s->result->start, from, usec_min(s->now, begin + start_span));
        offer(s, &s->result->settled, from + (s->now - from) / 2, s->now);
        s->phase_began = s->now;
}

/* ---- before the limiter ---- */

static bool has_work(const struct sim *s)
{
        return !s->off && (s->sc->jobs == 0 || s->started < s->sc->jobs);
}

static void queue_new(struct sim *s, struct client *c)
{
        c->state = CLIENT_AWAY;
        if (!has_work(s))
                return;
        s->started++;
        c->state = CLIENT_QUEUED;
        c->request.attempts = 0;
        c->since = s->now;
        c->waited = !list_empty(&s->queue);
        if (list_empty(&s->queue))
                s->last_send = s->now; /* silence counts from here */
        list_append(&s->queue, &c->link);
}

static void queue_again(struct sim *s, struct client *c)
{
        c->state = CLIENT_QUEUED;
        c->waited = true;
        if (list_empty(&s->queue))
                s->last_send = s->now;
        list_insert_before(s->queue.next, &c->link);
}

static void send(struct sim *s, struct client *c)
{
        list_remove(&c->link);
        s->result->longest_silence = usec_max(s->result->longest_silence, s->now - s->last_send);
        c->request = (struct sim_request){
            .sent = s->now,
            .in_flight = ++s->in_flight,
            .attempts = c->request.attempts + 1,
            .limited = c->waited && !list_empty(&s->queue),
        };
        note_event(s, s->controller->go(s->control, &c->request, s->now, &s->prng));
        note_send(s, &c->request);
        c->state = CLIENT_GOING;
        heap_set(&s->heap, &c->wake, s->now + one_way(s));
}

static void pump(struct sim *s)
{
        usec_t wake = USEC_MAX;
        while (!list_empty(&s->queue)) {
                struct client *c = LIST_ENTRY_OF(s->queue.next, struct client, link);
                wake = USEC_MAX;
                if (!s->controller->may_go(s->control, s->in_flight, s->now, &wake)) {
                        c->waited = true;
                        break;
                }
                send(s, c);
        }
        if (list_empty(&s->queue))
                wake = USEC_MAX;
        else if (wake != USEC_MAX && s->sc->late_max)
                wake += prng_usec(&s->prng, s->sc->late_max);
        heap_set(&s->heap, &s->control_wake, wake);
}

/* ---- at the host ---- */

static usec_t whole_seconds_up(usec_t t)
{
        return (t + USEC_PER_SEC - 1) / USEC_PER_SEC * USEC_PER_SEC;
}

static usec_t named_wait(struct sim *s, usec_t wait)
{
        switch (s->sc->retry_after) {
        case SIM_WAIT_NONE:
        case SIM_WAIT_ZERO:
                return 0;
        case SIM_WAIT_EXACT:
                return usec_max(whole_seconds_up(wait), USEC_PER_SEC);
        case SIM_WAIT_DATE:
                return usec_max(whole_seconds_up(s->now + wait) -
                                    s->now / USEC_PER_SEC * USEC_PER_SEC,
                                USEC_PER_SEC);
        case SIM_WAIT_LONG:
                return s->sc->long_wait;
        case SIM_WAIT_ONE:
                break;
        }
        return USEC_PER_SEC;
}

static void serve(struct sim *s, struct client *c)
{
        c->state = CLIENT_SERVED;
        heap_set(&s->heap, &c->wake, s->now + service(s));
}

static void tell_quota(const struct sim *s, struct quota *q)
{
        *q = (struct quota){0};
        if (s->sc->quota == SIM_QUOTA_NONE || !origin_quota(&s->origin, s->now, &q->windows[0]))
                return;
        q->count = 1;
        if (s->sc->quota == SIM_QUOTA_UP)
                q->windows[0].reset = whole_seconds_up(q->windows[0].reset);
        else if (s->sc->quota == SIM_QUOTA_DOWN)
                q->windows[0].reset -= q->windows[0].reset % USEC_PER_SEC;
}

static void arrive(struct sim *s, struct client *c)
{
        usec_t wait = 0;
        c->class = ANSWER_SUCCESS;
        c->wait = 0;
        enum origin_verdict verdict = origin_arrive(&s->origin, s->now, &wait);
        tell_quota(s, &c->quota);
        switch (verdict) {
        case ORIGIN_SERVES:
                serve(s, c);
                return;
        case ORIGIN_QUEUES:
                c->state = CLIENT_SERVED;
                list_append(&s->host_queue, &c->link);
                return;
        case ORIGIN_REFUSES:
                break;
        }
        c->class = s->sc->overloaded ? ANSWER_OVERLOADED : ANSWER_THROTTLED;
        c->wait = named_wait(s, wait);
        c->state = CLIENT_COMING;
        heap_set(&s->heap, &c->wake, s->now + one_way(s) + (s->sc->slow_refusals ? service(s) : 0));
}

static void leave(struct sim *s, struct client *c)
{
        c->state = CLIENT_COMING;
        heap_set(&s->heap, &c->wake, s->now + one_way(s));
        if (!origin_leave(&s->origin))
                return;
        struct client *next = LIST_ENTRY_OF(s->host_queue.next, struct client, link);
        list_remove(&next->link);
        serve(s, next);
}

static void try_again(struct sim *s, struct client *c, const struct answer *a)
{
        usec_t wait = 0;
        if (s->controller->back_off)
                wait = s->controller->back_off(s->control, &c->request, a, &s->prng);
        if (wait == 0) {
                queue_again(s, c);
                return;
        }
        c->state = CLIENT_BACKING_OFF;
        s->backing_off++;
        heap_set(&s->heap, &c->wake, s->now + wait);
}

static void come_back(struct sim *s, struct client *c)
{
        bool refused = c->class != ANSWER_SUCCESS;
        if (happens(s, s->sc->fail_share))
                c->class = ANSWER_FAILED;
        else if (happens(s, s->sc->block_share))
                c->class = ANSWER_BLOCKED;
        struct answer a = {.class = c->class, .wait = c->wait, .quota = c->quota};
        s->in_flight--;
        if (!happens(s, s->sc->cancel_share)) {
                tally(s, !refused);
                note_event(s, s->controller->answer(s->control, &c->request, &a, s->now, &s->prng));
        }
        if (s->controller->finish)
                s->controller->finish(s->control, &c->request);
        bool again = c->class == ANSWER_THROTTLED || c->class == ANSWER_OVERLOADED;
        if (again && c->request.attempts < s->sc->attempts) {
                try_again(s, c, &a);
                return;
        }
        s->result->gave_up += again;
        if (!again)
                histogram_add(&s->result->waits, c->request.sent - c->since);
        queue_new(s, c);
}

/* ---- events ---- */

static void step(struct sim *s)
{
        end_phase(s);
        s->origin.scale = s->sc->steps[s->next_step++].scale;
        if (s->next_step < 2 && s->sc->steps[s->next_step].at)
                heap_set(&s->heap, &s->stepping, begin + s->sc->steps[s->next_step].at);
}

static void switch_demand(struct sim *s)
{
        s->off = !s->off;
        heap_set(&s->heap, &s->switching, s->now + s->sc->on_off);
        for (unsigned i = 0; i < s->sc->workers && !s->off; i++)
                if (s->clients[i].state == CLIENT_AWAY)
                        queue_new(s, &s->clients[i]);
}

static void client_event(struct sim *s, struct client *c)
{
        if (c->state == CLIENT_GOING)
                arrive(s, c);
        else if (c->state == CLIENT_SERVED)
                leave(s, c);
        else if (c->state == CLIENT_BACKING_OFF) {
                s->backing_off--;
                queue_again(s, c);
        } else
                come_back(s, c);
}

static bool jobs_done(const struct sim *s)
{
        return s->sc->jobs && s->started >= s->sc->jobs && list_empty(&s->queue) &&
               s->in_flight + s->backing_off == 0;
}

/* Something waits, and neither an answer nor a moment is going to change that. */
static bool is_parked(const struct sim *s)
{
        return !list_empty(&s->queue) && s->in_flight + s->backing_off == 0 &&
               s->control_wake.place == 0;
}

static void run(struct sim *s)
{
        for (struct heap_node *n; (n = heap_first(&s->heap)) != NULL;) {
                if (jobs_done(s))
                        break;
                s->now = n->at;
                heap_set(&s->heap, n, USEC_MAX);
                if (n == &s->ending)
                        break;
                if (n == &s->stepping)
                        step(s);
                else if (n == &s->switching)
                        switch_demand(s);
                else if (n != &s->control_wake)
                        client_event(s, LIST_ENTRY_OF(n, struct client, wake));
                pump(s);
                s->result->parked |= is_parked(s);
        }
        end_phase(s);
        if (s->sc->jobs) { /* their end is only known now, and bursts count for much */
                struct sim_tally *whole = &s->result->whole;
                whole->tolerated = fmax(whole->tolerated, (double)whole->accepted);
                s->result->settled = *whole;
        }
        if (!list_empty(&s->queue))
                s->result->longest_silence =
                    usec_max(s->result->longest_silence, s->now - s->last_send);
        if (s->controller->look)
                s->controller->look(s->control, s->now, &s->result->last);
}

static void set_up(struct sim *s)
{
        const struct sim_scenario *sc = s->sc;
        s->now = s->phase_began = s->last_send = begin;
        prng_init(&s->prng, sc->seed);
        heap_init(&s->heap);
        list_init(&s->queue);
        list_init(&s->host_queue);
        origin_init(&s->origin, &sc->origin, begin - prng_usec(&s->prng, sc->origin.period));
        s->controller = sc->controller ? sc->controller : &sim_weir;
        s->control = xcalloc(1, s->controller->state_size);
        s->controller->init(s->control, sc, &s->origin);
        s->clients = xcalloc(sc->workers, sizeof(*s->clients));
        for (unsigned i = 0; i < sc->workers; i++) {
                list_init(&s->clients[i].link);
                queue_new(s, &s->clients[i]);
        }
        heap_set(&s->heap, &s->ending, begin + sc->duration);
        if (sc->steps[0].at)
                heap_set(&s->heap, &s->stepping, begin + sc->steps[0].at);
        if (sc->on_off)
                heap_set(&s->heap, &s->switching, begin + sc->on_off);
}

void sim_run(const struct sim_scenario *scenario, struct sim_result *ret_result)
{
        struct sim s = {.sc = scenario, .result = ret_result};
        *ret_result = (struct sim_result){0};
        ret_result->served_in =
            xcalloc(scenario->duration / USEC_PER_SEC + 2, sizeof(*ret_result->served_in));
        ret_result->refused_in =
            xcalloc(scenario->duration / USEC_PER_SEC + 2, sizeof(*ret_result->refused_in));
        set_up(&s);
        pump(&s);
        run(&s);
        origin_done(&s.origin);
        heap_done(&s.heap);
        free(s.clients);
        free(s.control);
}

/* ---- results ---- */

void sim_result_done(struct sim_result *r)
{
        free(r->sends);
        free(r->served_in);
        free(r->refused_in);
}

double sim_goodput(const struct sim_tally *t)
{
        return t->tolerated > 0 ? (double)t->accepted / t->tolerated : 0;
}

double sim_refused_share(const struct sim_tally *t)
{
        unsigned long answered = t->accepted + t->refused;
        return answered ? (double)t->refused / (double)answered : 0;
}

size_t sim_most_within(const struct sim_result *r, usec_t span, usec_t from, usec_t until)
{
        size_t most = 0;
        for (size_t first = 0, last = 0; first < r->send_count; first++) {
                if (r->sends[first].at < from)
                        continue;
                last = last > first ? last : first;
                while (last < r->send_count && r->sends[last].at < until &&
                       r->sends[last].at < r->sends[first].at + span)
                        last++;
                most = last - first > most ? last - first : most;
        }
        return most;
}
