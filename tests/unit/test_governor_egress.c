/* The governor with a pool: a turn, a limiter and an endpoint in one. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/governor.h"

#define SEC USEC_PER_SEC
#define MOST 4

static struct governor *g;
static struct endpoint_policy ways[MOST];
static struct pool_policy versions[4], *pool; /* the governor refers to what it was told */
static struct lane_policy many;   /* no limit to speak of: what is to be had are endpoints */
static struct lane_policy each;   /* the same, with an adaptive limiter for each endpoint */
static struct lane_policy orders; /* requests of a session in order */
static struct ticket t[32];
static struct governor_change last_change;
static char last_key[64];

static void on_change(void *arg, const struct governor_change *change)
{
        (void)arg;
        last_change = *change;
        snprintf(last_key, sizeof last_key, "%s", change->key);
}

static void pools_of(size_t count, unsigned generation)
{
        static const char *const names[MOST] = {"a", "b", "c", "d"};
        for (size_t i = 0; i < MOST; i++)
                ways[i] = (struct endpoint_policy){names[i], 1, 1, NULL};
        pool = &versions[generation];
        *pool = (struct pool_policy){.name = "p",
                                     .endpoints = ways,
                                     .endpoint_count = count,
                                     .choose = EGRESS_ROUND_ROBIN,
                                     .sticky = true,
                                     .sticky_ttl = 100 * SEC,
                                     .quarantine = {.after = 1, .time = 600 * SEC},
                                     .generation = generation};
}

static int setup(void **state)
{
        (void)state;
        g = governor_new(
            &(struct governor_config){.max_lanes = 4, .seed = 1, .on_change = on_change});
        pools_of(2, 1);
        many = (struct lane_policy){
            .limit = {.algorithm = LIMITER_FIXED,
                      .start = 100,
                      .floor = 1,
                      .ceiling = 100,
                      .max_hold = 900 * SEC,
                      .breaker = {.trip = 6, .cooldown = 30 * SEC}},
            .queue_max = 20,
            .retry_share = .2,
            .generation = 1,
        };
        each = many;
        each.by_endpoint = true;
        each.limit.algorithm = LIMITER_ADAPTIVE;
        orders = many;
        orders.session_order = true;
        memset(t, 0, sizeof t);
        last_key[0] = '\0';
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(t); i++)
                governor_cancel(g, &t[i], 1000 * SEC);
        struct governor_stats s;
        governor_stats(g, &s);
        governor_free(g);
        return s.sleeping || s.queued || s.in_flight || s.ready;
}

static struct ticket_wish wish(const struct lane_policy *policy, struct ticket_wish w, usec_t now)
{
        w.policy = policy;
        if (!w.pool)
                w.pool = pool;
        if (!w.key.ptr)
                w.key = policy->by_endpoint ? span_of("k endpoint=p") : span_of("k pool=p");
        if (!w.client.ptr)
                w.client = span_of("client");
        if (!w.host.ptr)
                w.host = span_of("host");
        if (!w.arrived)
                w.arrived = now;
        if (!w.deadline)
                w.deadline = now + 120 * SEC;
        return w;
}

static enum ticket_reply ask_with(int i, const struct lane_policy *policy, struct ticket_wish w,
                                  usec_t now)
{
        w = wish(policy, w, now);
        return governor_ask(g, &t[i], &w, now);
}

static enum ticket_reply ask(int i, usec_t now)
{
        return ask_with(i, &many, (struct ticket_wish){0}, now);
}

static enum ticket_reply ask_for(int i, const char *session, usec_t now)
{
        return ask_with(i, &many, (struct ticket_wish){.session = span_of(session)}, now);
}

static bool again(int i, struct ticket_wish w, usec_t now)
{
        w.retry = true;
        w.not_before = now;
        w.arrived = t[i].arrived;
        w = wish(&many, w, now);
        return governor_requeue(g, &t[i], &w, now);
}

/* Who goes by which at `now`: "3a 1b" means that t[3] has a and then t[1] got b; refused: "3!". */
static const char *take(usec_t now)
{
        static char text[256];
        struct list ready;
        size_t len = 0;
        list_init(&ready);
        text[0] = '\0';
        governor_take(g, now, &ready);
        assert_true(governor_next_wake(g) > now);
        while (!list_empty(&ready)) {
                struct ticket *one = LIST_ENTRY_OF(ready.next, struct ticket, link);
                bool granted = governor_accept(g, one) == TICKET_GRANTED;
                len += (size_t)snprintf(text + len, sizeof text - len, "%s%d%s", len ? " " : "",
                                        (int)(one - t), granted ? one->endpoint->name : "!");
        }
        return text;
}

static void answer(int i, enum answer_class class, usec_t wait, usec_t now)
{
        governor_answer(
            g, &t[i], &(struct answer){.class = class, .wait_named = wait > 0, .wait = wait}, now);
}

static void end(int i, usec_t now)
{
        governor_finish(g, &t[i], now);
}

static const char *by(int i)
{
        return t[i].endpoint ? t[i].endpoint->name : "";
}

static struct governor_stats stats(void)
{
        struct governor_stats s;
        governor_stats(g, &s);
        return s;
}

/* --- one at a time --- */

static void one_at_a_time_by_each(void **state)
{
        (void)state;
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        assert_int_equal(ask(1, SEC), TICKET_GRANTED);
        assert_string_equal(by(0), "a");
        assert_string_equal(by(1), "b");
        for (int i = 2; i < 5; i++)
                assert_int_equal(ask(i, SEC), TICKET_WAITING);
        assert_string_equal(take(SEC), "");
        end(1, 2 * SEC);
        assert_string_equal(take(2 * SEC), "2b");
        assert_string_equal(by(1), "");
        end(0, 2 * SEC);
        end(2, 2 * SEC);
        assert_string_equal(take(2 * SEC), "3a 4b");
        assert_true(t[3].waited);
}

static void lanes_take_turns(void **state)
{
        (void)state;
        const struct ticket_wish other = {.key = span_of("other pool=p")};
        pools_of(1, 2);
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        for (int i = 1; i < 5; i++)
                assert_int_equal(ask(i, SEC), TICKET_WAITING);
        for (int i = 5; i < 7; i++)
                assert_int_equal(ask_with(i, &many, other, SEC), TICKET_WAITING);
        static const int order[] = {0, 1, 5, 2, 6, 3, 4};
        for (size_t i = 0; i + 1 < COUNT_OF(order); i++) {
                char want[8];
                end(order[i], SEC);
                snprintf(want, sizeof want, "%da", order[i + 1]);
                assert_string_equal(take(SEC), want);
        }
}

static void a_cancelled_grant_gives_its_endpoint_back(void **state)
{
        (void)state;
        pools_of(1, 2);
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        assert_int_equal(ask(1, SEC), TICKET_WAITING);
        assert_int_equal(ask(2, SEC), TICKET_WAITING);
        end(0, SEC);
        assert_int_equal(t[1].state, TICKET_READY);
        governor_cancel(g, &t[1], SEC);
        assert_string_equal(take(SEC), "2a");
        governor_cancel(g, &t[2], SEC);
        assert_int_equal(ask(3, SEC), TICKET_GRANTED);
}

static void a_tunnel_keeps_its_endpoint_and_no_slot(void **state)
{
        (void)state;
        struct lane_policy one = many;
        one.limit.start = one.limit.ceiling = 1;
        assert_int_equal(ask_with(0, &one, (struct ticket_wish){0}, SEC), TICKET_GRANTED);
        assert_int_equal(ask_with(1, &one, (struct ticket_wish){0}, SEC), TICKET_WAITING);
        assert_int_equal(ask_with(2, &one, (struct ticket_wish){0}, SEC), TICKET_WAITING);
        governor_keep(g, &t[0], 2 * SEC);
        assert_int_equal(t[0].state, TICKET_KEEPING);
        assert_string_equal(by(0), "a");
        assert_string_equal(take(2 * SEC), "1b");
        governor_keep(g, &t[1], 2 * SEC);
        assert_string_equal(take(2 * SEC), ""); /* a slot, but no endpoint */
        end(0, 3 * SEC);
        assert_int_equal(t[0].state, TICKET_IDLE);
        assert_string_equal(take(3 * SEC), "2a");
        /* without a pool there is nothing to keep */
        struct ticket_wish w = {
            .key = span_of("direct"), .client = span_of("c"), .policy = &many, .deadline = 9 * SEC};
        assert_int_equal(governor_ask(g, &t[5], &w, 3 * SEC), TICKET_GRANTED);
        assert_null(t[5].endpoint);
        governor_keep(g, &t[5], 3 * SEC);
        assert_int_equal(t[5].state, TICKET_IDLE);
}

/* --- sessions --- */

static void a_session_waits_for_its_endpoint_and_holds_up_nobody(void **state)
{
        (void)state;
        assert_int_equal(ask_for(0, "s", SEC), TICKET_GRANTED);
        assert_int_equal(ask(1, SEC), TICKET_GRANTED);
        assert_int_equal(ask_for(2, "s", SEC), TICKET_WAITING);
        assert_int_equal(ask_for(3, "s", SEC), TICKET_WAITING);
        assert_int_equal(ask(4, SEC), TICKET_WAITING);
        assert_int_equal(ask(5, SEC), TICKET_WAITING);
        end(1, 2 * SEC);
        assert_string_equal(take(2 * SEC), "4b");
        end(0, 3 * SEC); /* those parked have had their turn, */
        assert_string_equal(take(3 * SEC), "2a");
        end(2, 4 * SEC); /* but do not go twice while another waits */
        assert_string_equal(take(4 * SEC), "5a");
        end(5, 5 * SEC);
        assert_string_equal(take(5 * SEC), "3a");
        assert_false(t[2].moved || t[3].moved);
}

static void sessions_of_one_lane_bind_in_another(void **state)
{
        (void)state;
        const struct ticket_wish other = {.key = span_of("other pool=p"), .session = span_of("s")};
        assert_int_equal(ask_for(0, "s", SEC), TICKET_GRANTED);
        assert_int_equal(ask_with(1, &many, other, SEC), TICKET_WAITING);
        assert_int_equal(ask(2, SEC), TICKET_GRANTED);
        end(2, 2 * SEC);
        assert_string_equal(take(2 * SEC), "");
        end(0, 3 * SEC);
        assert_string_equal(take(3 * SEC), "1a");
        end(1, 3 * SEC);
        assert_int_equal(ask(3, 3 * SEC), TICKET_GRANTED);            /* by b, the turns go round */
        assert_int_equal(ask_for(4, "s", 103 * SEC), TICKET_GRANTED); /* forgotten: any */
        assert_false(t[4].moved);
}

static void without_stickiness_any_endpoint_will_do(void **state)
{
        (void)state;
        pool->sticky = false;
        assert_int_equal(ask_for(0, "s", SEC), TICKET_GRANTED);
        assert_int_equal(ask_for(1, "s", SEC), TICKET_GRANTED);
}

static void goes_in_order(void **state)
{
        (void)state;
        const struct ticket_wish s = {.session = span_of("s")}, u = {.session = span_of("u")};
        assert_int_equal(ask_with(0, &orders, s, SEC), TICKET_GRANTED);
        assert_int_equal(ask_with(1, &orders, s, SEC), TICKET_WAITING);
        assert_int_equal(ask_with(2, &orders, s, SEC), TICKET_WAITING);
        assert_int_equal(ask_with(3, &orders, u, SEC), TICKET_GRANTED);
        end(3, SEC);
        assert_int_equal(stats().queued, 2);
        /* a retry of the first is the first's: the others go on waiting */
        answer(0, ANSWER_THROTTLED, 0, 2 * SEC);
        struct ticket_wish w = s;
        w.retry = true;
        w.not_before = 5 * SEC;
        w = wish(&orders, w, SEC);
        assert_true(governor_requeue(g, &t[0], &w, 2 * SEC));
        assert_string_equal(take(2 * SEC), "");
        assert_string_equal(take(5 * SEC), "0a");
        end(0, 6 * SEC);
        assert_string_equal(take(6 * SEC), "1a");
        governor_cancel(g, &t[1], 7 * SEC);
        assert_string_equal(take(7 * SEC), "2a");
        end(2, 8 * SEC);
        assert_int_equal(ask_with(4, &orders, s, 8 * SEC), TICKET_GRANTED);
}

static void goes_in_order_without_a_pool(void **state)
{
        (void)state;
        struct ticket_wish w = {.key = span_of("x"),
                                .client = span_of("c"),
                                .policy = &orders,
                                .session = span_of("s"),
                                .deadline = 10 * SEC};
        assert_int_equal(governor_ask(g, &t[0], &w, SEC), TICKET_GRANTED);
        w.key = span_of("y"); /* whichever lanes they are of */
        assert_int_equal(governor_ask(g, &t[1], &w, SEC), TICKET_WAITING);
        w.deadline = 3 * SEC;
        assert_int_equal(governor_ask(g, &t[2], &w, SEC), TICKET_WAITING);
        assert_string_equal(take(3 * SEC + 1), "2!");
        assert_int_equal(t[2].reply, TICKET_TOO_LONG);
        assert_int_equal(governor_next_wake(g), 10 * SEC);
        end(0, 4 * SEC);
        struct list ready;
        list_init(&ready);
        governor_take(g, 4 * SEC, &ready);
        assert_ptr_equal(LIST_ENTRY_OF(ready.next, struct ticket, link), &t[1]);
        assert_int_equal(governor_accept(g, &t[1]), TICKET_GRANTED);
        w.session = span_of("");
        w.deadline = 10 * SEC;
        assert_int_equal(governor_ask(g, &t[3], &w, 4 * SEC), TICKET_GRANTED);
}

/* --- blocks --- */

static void a_blocked_endpoint_is_left_by_that_host_alone(void **state)
{
        (void)state;
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        answer(0, ANSWER_BLOCKED, 0, 2 * SEC);
        assert_true(again(0, (struct ticket_wish){.elsewhere = true}, 2 * SEC));
        assert_string_equal(take(2 * SEC), "0b");
        const struct ticket_wish other = {.host = span_of("other")};
        assert_int_equal(ask(1, 2 * SEC), TICKET_WAITING);
        assert_int_equal(ask(2, 2 * SEC), TICKET_WAITING);
        assert_int_equal(ask_with(3, &many, other, 2 * SEC), TICKET_WAITING);
        /* one lane: those of the host are put aside, since a is none for them */
        assert_string_equal(take(2 * SEC), "3a");
        end(3, 3 * SEC);
        assert_string_equal(take(3 * SEC), "");
        end(0, 4 * SEC);
        assert_string_equal(take(4 * SEC), "1b");
        end(1, 5 * SEC);
        assert_string_equal(take(5 * SEC), "2b");
        end(2, 602 * SEC);
        assert_int_equal(ask(4, 602 * SEC), TICKET_GRANTED); /* the quarantine is over */
        assert_int_equal(ask(5, 602 * SEC), TICKET_GRANTED);
}

static void blocked_by_all_there_is_none(void **state)
{
        (void)state;
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        answer(0, ANSWER_BLOCKED, 0, SEC);
        assert_true(again(0, (struct ticket_wish){.elsewhere = true}, SEC));
        assert_string_equal(take(SEC), "0b");
        assert_int_equal(ask(1, SEC), TICKET_WAITING);
        answer(0, ANSWER_BLOCKED, 0, 2 * SEC);
        assert_false(again(0, (struct ticket_wish){.elsewhere = true}, 2 * SEC));
        assert_int_equal(t[0].reply, TICKET_NO_ENDPOINT);
        end(0, 2 * SEC);
        assert_string_equal(take(2 * SEC), "1!"); /* its deadline comes before a's time */
        assert_int_equal(t[1].reply, TICKET_NO_ENDPOINT);
        assert_int_equal(t[1].wait, 599 * SEC);
        assert_int_equal(ask(2, 2 * SEC), TICKET_NO_ENDPOINT);
        assert_int_equal(t[2].wait, 599 * SEC);
        const struct ticket_wish patient = {.deadline = 3000 * SEC};
        assert_int_equal(ask_with(3, &many, patient, 2 * SEC), TICKET_WAITING);
        assert_string_equal(take(600 * SEC), "");
        assert_string_equal(take(601 * SEC), "3a");
}

static void a_new_endpoint_is_there_at_once(void **state)
{
        (void)state;
        const struct ticket_wish patient = {.deadline = 3000 * SEC};
        pools_of(1, 2);
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        answer(0, ANSWER_BLOCKED, 0, SEC);
        end(0, SEC);
        assert_int_equal(ask_with(1, &many, patient, SEC), TICKET_WAITING);
        assert_string_equal(take(SEC), "");
        pools_of(2, 3);
        governor_pools(g, (const struct pool_policy *const[]){pool}, 1, 2 * SEC);
        assert_string_equal(take(2 * SEC), "1b");
        const struct ticket_wish old = {.pool = &versions[2]};
        assert_int_equal(ask_with(2, &many, old, 2 * SEC), TICKET_WAITING); /* what it has not */
        assert_true(t[1].endpoint == &ways[1]);
}

static void a_session_moves_once_where_it_is_blocked(void **state)
{
        (void)state;
        assert_int_equal(ask_for(0, "s", SEC), TICKET_GRANTED);
        assert_int_equal(ask_for(1, "s", SEC), TICKET_WAITING);
        answer(0, ANSWER_BLOCKED, 0, 2 * SEC);
        assert_string_equal(take(2 * SEC), "1b");
        assert_true(t[1].moved);
        assert_true(
            again(0, (struct ticket_wish){.session = span_of("s"), .elsewhere = true}, SEC));
        assert_string_equal(take(2 * SEC), "");
        end(1, 3 * SEC);
        assert_string_equal(take(3 * SEC), "0b");
        assert_false(t[0].moved);
}

/* With the second block the endpoint is lost, not with the first. */
static void a_session_that_keeps_its_endpoint_does_not_go_elsewhere(void **state)
{
        (void)state;
        const struct ticket_wish elsewhere = {.session = span_of("s"), .elsewhere = true};
        pool->quarantine.after = 2;
        assert_int_equal(ask_for(0, "s", SEC), TICKET_GRANTED);
        answer(0, ANSWER_BLOCKED, 0, SEC);
        assert_false(again(0, elsewhere, SEC));
        end(0, SEC);
        assert_int_equal(ask_for(0, "s", SEC), TICKET_GRANTED);
        assert_string_equal(by(0), "a");
        answer(0, ANSWER_BLOCKED, 0, SEC);
        assert_true(again(0, elsewhere, SEC));
        assert_string_equal(take(SEC), "0b");
        assert_true(t[0].moved);
        /* one of no session goes elsewhere with the first */
        assert_int_equal(ask_with(1, &many, (struct ticket_wish){.host = span_of("x")}, SEC),
                         TICKET_GRANTED);
        assert_string_equal(by(1), "a");
        answer(1, ANSWER_BLOCKED, 0, SEC);
        assert_true(again(1, (struct ticket_wish){.host = span_of("x"), .elsewhere = true}, SEC));
        assert_string_equal(take(SEC), ""); /* though a is free */
        end(0, SEC);
        assert_string_equal(take(SEC), "1b");
}

static void blocks_in_a_row_open_the_circuit(void **state)
{
        (void)state;
        const struct ticket_wish later = {.deadline = 600 * SEC};
        pool->quarantine.after = 100;
        many.limit.breaker.trip = 3;
        for (int i = 0; i < 3; i++) {
                assert_int_equal(ask(i, SEC), TICKET_GRANTED);
                answer(i, ANSWER_BLOCKED, 0, SEC);
                end(i, SEC);
        }
        assert_int_equal(last_change.event, LIMITER_CIRCUIT_OPEN);
        assert_true(last_change.view.circuit_open);
        assert_in_range(last_change.view.closed_until, 31 * SEC, 34 * SEC);
        usec_t until = last_change.view.closed_until;
        assert_int_equal(ask_with(3, &many, later, SEC), TICKET_WAITING);
        assert_int_equal(ask_with(4, &many, later, SEC), TICKET_WAITING);
        assert_int_equal(ask_with(5, &many, (struct ticket_wish){.deadline = 20 * SEC}, SEC),
                         TICKET_TOO_LONG);
        assert_int_equal(governor_next_wake(g), until);
        assert_string_equal(take(until), "3b"); /* a probe, alone */
        answer(3, ANSWER_BLOCKED, 0, until);
        end(3, until);
        usec_t next = governor_next_wake(g);
        assert_in_range(next - until, 30 * SEC, 33 * SEC);
        assert_string_equal(take(next), "4a");
        assert_int_equal(ask_with(3, &many, later, next), TICKET_WAITING);
        end(4, next); /* of which nothing was learned: the next one is a probe too */
        assert_string_equal(take(next), "3b");
        answer(3, ANSWER_SUCCESS, 0, next);
        assert_int_equal(last_change.event, LIMITER_REOPENED);
        assert_int_equal(ask(6, next), TICKET_GRANTED);
        end(6, next);
        many.refuse_when_open = true;
        many.generation = 2;
        end(3, next);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(ask(i, next), TICKET_GRANTED);
                answer(i, ANSWER_BLOCKED, 0, next);
                end(i, next);
        }
        assert_int_equal(ask(0, next), TICKET_CIRCUIT_OPEN);
        assert_true(governor_reset(g, span_of("k pool=p"), next));
        assert_int_equal(ask(0, next), TICKET_GRANTED);
}

/* --- an endpoint's own faults --- */

static usec_t until_one_is_of_use;

/* Returns whether that is news. */
static bool endpoint_failed(int i, usec_t now)
{
        return governor_endpoint_failed(g, &t[i], now, &until_one_is_of_use);
}

/* Nothing reached the host: whoever comes next has to see whether that lets anybody through. */
static void a_refusal_of_the_endpoint_says_nothing_to_the_limiter(void **state)
{
        (void)state;
        const struct answer refusal = {.class = ANSWER_BLOCKED, .by_endpoint = true};
        pools_of(4, 2);
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        answer(0, ANSWER_THROTTLED, 60 * SEC, SEC);
        end(0, SEC);
        assert_int_equal(ask(0, 62 * SEC), TICKET_GRANTED); /* to see whether it is over */
        assert_int_equal(governor_answer(g, &t[0], &refusal, 62 * SEC), ANSWER_BLOCKED);
        end(0, 62 * SEC);
        assert_int_equal(ask(1, 62 * SEC), TICKET_GRANTED);
        assert_int_equal(ask(2, 62 * SEC), TICKET_WAITING);
        answer(1, ANSWER_SUCCESS, 0, 63 * SEC);
        assert_string_not_equal(take(63 * SEC), "");
}

static void fails_over(void **state)
{
        (void)state;
        many.retry_share = 0;
        for (int i = 0; i < 10; i++) { /* far more than the budget would bear */
                usec_t now = (1000 + 1000 * (usec_t)i) * SEC;
                assert_int_equal(ask(0, now), TICKET_GRANTED);
                const char *first = by(0);
                assert_true(endpoint_failed(0, now));
                assert_int_equal(until_one_is_of_use, 0);
                assert_true(again(0, (struct ticket_wish){0}, now));
                const char *went = take(now);
                assert_int_equal(went[0], '0');
                assert_int_not_equal(went[1], first[0]);
                answer(0, ANSWER_SUCCESS, 0, now);
                end(0, now);
                assert_int_equal(ask(0, now), TICKET_GRANTED); /* not by the one that failed */
                assert_int_not_equal(by(0)[0], first[0]);
                end(0, now);
                take(now + 500 * SEC); /* it may be probed by then */
        }
        assert_string_equal(last_key, ""); /* no limit has changed */
}

static void waits_for_one_to_recover(void **state)
{
        (void)state;
        pools_of(1, 2);
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        assert_int_equal(ask(1, SEC + 1), TICKET_WAITING);
        assert_int_equal(ask_with(2, &many, (struct ticket_wish){.deadline = 3 * SEC}, SEC),
                         TICKET_WAITING);
        endpoint_failed(0, 2 * SEC + 500000);
        assert_string_equal(take(2 * SEC + 500000), "2!");
        assert_int_equal(t[2].reply, TICKET_NO_ENDPOINT);
        assert_in_range(t[2].wait, SEC, SEC + SEC / 10);
        assert_true(again(0, (struct ticket_wish){0}, 2 * SEC + 500000));
        assert_string_equal(take(2 * SEC + 500000), "");
        usec_t up = governor_next_wake(g);
        assert_in_range(up, 3 * SEC + 500000, 3 * SEC + 600000);
        assert_int_equal(
            ask_with(3, &many, (struct ticket_wish){.deadline = 3 * SEC}, 2 * SEC + 600000),
            TICKET_NO_ENDPOINT);
        assert_string_equal(take(up), "0a"); /* it arrived first */
        assert_string_equal(take(up + 1), "");
        endpoint_failed(0, up + 1);
        end(0, up + 1);
        usec_t again_up = governor_next_wake(g);
        assert_in_range(again_up - up, 2 * SEC, 2 * SEC + SEC / 5 + 1);
        assert_string_equal(take(again_up), "1a");
        answer(1, ANSWER_FAILED, 0, again_up); /* the host's matter: the endpoint works */
        end(1, again_up);
        assert_int_equal(ask(4, again_up), TICKET_GRANTED);
}

static void tells_when_one_will_be_of_use(void **state)
{
        (void)state;
        pools_of(1, 2);
        assert_int_equal(ask(0, SEC), TICKET_GRANTED);
        assert_int_equal(ask(1, SEC), TICKET_WAITING);
        assert_true(endpoint_failed(0, 2 * SEC));
        assert_in_range(until_one_is_of_use, SEC, SEC + SEC / 10);
        end(0, 2 * SEC);
        take(4 * SEC);
        assert_string_equal(by(1), "a");
        answer(1, ANSWER_BLOCKED, 0, 5 * SEC); /* which this host avoids now for longer */
        assert_true(endpoint_failed(1, 6 * SEC));
        assert_int_equal(until_one_is_of_use, pool->quarantine.time - SEC);
        assert_false(endpoint_failed(1, 6 * SEC)); /* it backs off already */
        assert_int_equal(until_one_is_of_use, pool->quarantine.time - SEC);
        end(1, 6 * SEC);
}

/* Twice its session waits for it, but not for ever. */
static void a_session_leaves_an_endpoint_that_does_not_come_back(void **state)
{
        (void)state;
        const struct ticket_wish s = {.session = span_of("s")};
        usec_t now = SEC;
        assert_int_equal(ask_for(0, "s", now), TICKET_GRANTED);
        for (int i = 0; i < 2; i++) {
                endpoint_failed(0, now);
                assert_true(again(0, s, now));
                assert_string_equal(take(now), "");
                now = governor_next_wake(g);
                assert_string_equal(take(now), "0a");
        }
        assert_int_equal(ask_for(1, "s", now), TICKET_WAITING);
        endpoint_failed(0, now);
        assert_string_equal(take(now), "1b");
        assert_true(t[1].moved);
        assert_true(again(0, s, now));
        end(1, now);
        assert_string_equal(take(now), "0b");
        assert_false(t[0].moved);
}

/* --- limiters of endpoints --- */

static struct governor_change found;

static void on_look(void *arg, const struct governor_change *view)
{
        if (strcmp(view->key, arg) == 0) {
                found = *view;
                found.key = arg;
        }
}

static const struct governor_change *look(const char *key, usec_t now)
{
        found.key = NULL;
        governor_look(g, true, SIZE_MAX, now, on_look, (void *)key);
        return found.key ? &found : NULL;
}

static void on_record(void *arg, const struct series_record *record)
{
        *(enum limiter_event *)arg = record->event;
}

static void each_endpoint_has_its_limit(void **state)
{
        (void)state;
        const struct ticket_wish none = {0};
        assert_int_equal(ask_with(0, &each, none, SEC), TICKET_GRANTED);
        assert_int_equal(ask_with(1, &each, none, SEC), TICKET_GRANTED);
        answer(0, ANSWER_THROTTLED, 50 * SEC, 2 * SEC);
        assert_string_equal(last_key, "k endpoint=p/a");
        assert_int_equal(last_change.event, LIMITER_CUT);
        end(0, 2 * SEC);
        assert_int_equal(ask_with(2, &each, none, 2 * SEC), TICKET_WAITING);
        answer(1, ANSWER_SUCCESS, 0, 3 * SEC);
        end(1, 3 * SEC);
        assert_string_equal(take(3 * SEC), "2b");
        assert_int_equal(look("k endpoint=p/a", 3 * SEC)->view.closed_until, 52 * SEC);
        assert_int_equal(look("k endpoint=p/b", 3 * SEC)->view.closed_until, 0);
        assert_int_equal(look("k endpoint=p/b", 3 * SEC)->view.in_flight, 1);
        const struct governor_change *all = look("k endpoint=p", 3 * SEC);
        assert_true(all->view.in_flight == 1 && all->view.closed_until == 0);
        answer(2, ANSWER_THROTTLED, 60 * SEC, 4 * SEC);
        end(2, 4 * SEC);
        assert_int_equal(look("k endpoint=p", 4 * SEC)->view.closed_until, 52 * SEC); /* by all */
        assert_int_equal(ask_with(3, &each, (struct ticket_wish){.deadline = 50 * SEC}, 4 * SEC),
                         TICKET_TOO_LONG);
        assert_int_equal(t[3].wait, 48 * SEC);
        assert_int_equal(ask_with(4, &each, none, 4 * SEC), TICKET_WAITING);
        assert_string_equal(take(52 * SEC - 1), "");
        assert_string_equal(take(52 * SEC), "4a");
        enum limiter_event event = LIMITER_UNCHANGED;
        assert_true(governor_series(g, span_of("k endpoint=p/b"), 0, on_record, &event));
        assert_int_equal(event, LIMITER_CUT);
        assert_false(governor_series(g, span_of("k endpoint=p/c"), 0, on_record, &event));
        assert_false(governor_series(g, span_of("k endpoint=q/b"), 0, on_record, &event));
        assert_true(governor_reset(g, span_of("k endpoint=p/b"), 52 * SEC));
        assert_int_equal(ask_with(5, &each, none, 52 * SEC), TICKET_GRANTED);
        assert_string_equal(by(5), "b");
}

static char saved_keys[4][32];
static struct limiter_memory saved[4];
static size_t saved_count;

static void on_export(void *arg, const char *key, const struct limiter_memory *m)
{
        (void)arg;
        snprintf(saved_keys[saved_count], sizeof saved_keys[0], "%s", key);
        saved[saved_count++] = *m;
}

static void remembers_each_limit(void **state)
{
        (void)state;
        const struct ticket_wish none = {0};
        assert_int_equal(ask_with(0, &each, none, SEC), TICKET_GRANTED);
        answer(0, ANSWER_THROTTLED, 50 * SEC, 2 * SEC);
        end(0, 2 * SEC);
        saved_count = 0;
        assert_false(governor_export(g, true, 100, 3 * SEC, on_export, NULL));
        assert_int_equal(saved_count, 1);
        assert_string_equal(saved_keys[0], "k endpoint=p/a");
        teardown(NULL);
        setup(NULL);
        governor_import(g, span_of(saved_keys[0]), &saved[0], 3 * SEC);
        assert_int_equal(stats().lanes, 0); /* no pool of that name is known as yet */
        governor_pools(g, (const struct pool_policy *const[]){pool}, 1, 3 * SEC);
        governor_import(g, span_of(saved_keys[0]), &saved[0], 3 * SEC);
        governor_import(g, span_of("k endpoint=p/unknown"), &saved[0], 3 * SEC);
        assert_int_equal(look("k endpoint=p/a", 4 * SEC)->view.closed_until, 52 * SEC);
        saved_count = 0;
        governor_export(g, true, 100, 3 * SEC, on_export, NULL);
        assert_int_equal(saved_count, 1);
        assert_int_equal(ask_with(0, &each, none, 4 * SEC), TICKET_GRANTED);
        assert_string_equal(by(0), "b");
        assert_int_equal(ask_with(1, &each, none, 4 * SEC), TICKET_WAITING);
        assert_string_equal(last_key, "k endpoint=p/a");
        assert_int_equal(last_change.event, LIMITER_RESTORED);
        assert_string_equal(take(52 * SEC), "1a");
}

/* --- reload --- */

static void an_endpoint_that_is_taken_away(void **state)
{
        (void)state;
        assert_int_equal(ask_for(0, "s", SEC), TICKET_GRANTED);
        assert_int_equal(ask_for(1, "s", SEC), TICKET_WAITING);
        assert_int_equal(ask(2, SEC), TICKET_GRANTED);
        static const struct endpoint_policy only_b = {"b", 2, 1, NULL};
        pools_of(1, 2);
        pool->endpoints = &only_b;
        governor_pools(g, (const struct pool_policy *const[]){pool}, 1, 2 * SEC);
        assert_string_equal(take(2 * SEC), "1b");
        assert_true(t[1].moved);
        assert_string_equal(by(0), "a"); /* goes on as it was */
        answer(0, ANSWER_BLOCKED, 0, 3 * SEC);
        endpoint_failed(0, 3 * SEC);
        end(0, 3 * SEC);
        end(1, 3 * SEC);
        assert_int_equal(ask(3, 3 * SEC), TICKET_GRANTED);
        assert_string_equal(by(3), "b");
}

static void count_endpoints(void *arg, const struct endpoint_view *view)
{
        (void)view;
        ++*(size_t *)arg;
}

static void a_pool_goes_with_its_last_user(void **state)
{
        (void)state;
        size_t count = 0;
        assert_int_equal(ask_for(0, "s", SEC), TICKET_GRANTED);
        governor_keep(g, &t[0], SEC);
        assert_int_equal(ask(1, SEC), TICKET_GRANTED);
        governor_pools(g, NULL, 0, 2 * SEC);
        end(1, 2 * SEC);
        assert_int_equal(ask(1, 2 * SEC), TICKET_GRANTED); /* of a configuration that has it yet */
        end(1, 2 * SEC);
        const char *const others[] = {"1", "2", "3", "4"}; /* the lane is forgotten */
        for (int i = 0; i < 4; i++) {
                struct ticket_wish w = {.key = span_of(others[i]),
                                        .client = span_of("c"),
                                        .policy = &many,
                                        .deadline = 9 * SEC};
                assert_int_equal(governor_ask(g, &t[4 + i], &w, 3 * SEC), TICKET_GRANTED);
        }
        governor_look_endpoints(g, 0, 100, count_endpoints, &count);
        assert_int_equal(count, 2); /* a tunnel uses one of them */
        end(0, 4 * SEC);
        count = 0;
        governor_look_endpoints(g, 0, 100, count_endpoints, &count);
        assert_int_equal(count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
            TEST(one_at_a_time_by_each),
            TEST(lanes_take_turns),
            TEST(a_cancelled_grant_gives_its_endpoint_back),
            TEST(a_tunnel_keeps_its_endpoint_and_no_slot),
            TEST(a_session_waits_for_its_endpoint_and_holds_up_nobody),
            TEST(sessions_of_one_lane_bind_in_another),
            TEST(without_stickiness_any_endpoint_will_do),
            TEST(goes_in_order),
            TEST(goes_in_order_without_a_pool),
            TEST(a_blocked_endpoint_is_left_by_that_host_alone),
            TEST(blocked_by_all_there_is_none),
            TEST(a_new_endpoint_is_there_at_once),
            TEST(a_session_moves_once_where_it_is_blocked),
            TEST(a_session_that_keeps_its_endpoint_does_not_go_elsewhere),
            TEST(blocks_in_a_row_open_the_circuit),
            TEST(a_refusal_of_the_endpoint_says_nothing_to_the_limiter),
            TEST(fails_over),
            TEST(waits_for_one_to_recover),
            TEST(tells_when_one_will_be_of_use),
            TEST(a_session_leaves_an_endpoint_that_does_not_come_back),
            TEST(each_endpoint_has_its_limit),
            TEST(remembers_each_limit),
            TEST(an_endpoint_that_is_taken_away),
            TEST(a_pool_goes_with_its_last_user),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
