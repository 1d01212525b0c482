#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/governor.h"

#define SEC USEC_PER_SEC
#define NONE ((usec_t)0)

/* --- a governor with tickets to play with --- */

static struct governor *g;
static struct lane_policy slots1; /* one request at a time, no learning */
static struct lane_policy learns; /* adaptive: holds and the breaker */
static struct ticket t[64];
static struct governor_change last_change;
static char last_key[64];
static unsigned changes;

static void on_change(void *arg, const struct governor_change *change)
{
        (void)arg;
        last_change = *change;
        snprintf(last_key, sizeof last_key, "%s", change->key);
        changes++;
}

static int setup(void **state)
{
        (void)state;
        g = governor_new(
            &(struct governor_config){.max_lanes = 4, .seed = 1, .on_change = on_change});
        slots1 = (struct lane_policy){
            .limit = {.algorithm = LIMITER_FIXED,
                      .start = 1,
                      .floor = 1,
                      .ceiling = 1,
                      .max_hold = 900 * SEC,
                      .breaker = {.trip = 6, .cooldown = 30 * SEC}},
            .queue_max = 5,
            .retry_share = .2,
            .generation = 1,
        };
        learns = slots1;
        learns.limit.algorithm = LIMITER_ADAPTIVE;
        learns.limit.start = learns.limit.ceiling = 8;
        memset(t, 0, sizeof t);
        changes = 0;
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(t); i++)
                governor_cancel(g, &t[i], 0);
        struct governor_stats s;
        governor_stats(g, &s);
        governor_free(g);
        return s.sleeping || s.queued || s.in_flight || s.ready;
}

static enum ticket_reply ask_with(int i, const struct lane_policy *policy, struct ticket_wish w,
                                  usec_t now)
{
        w.policy = policy;
        if (!w.key.ptr)
                w.key = span_of("example.com:80");
        if (!w.client.ptr)
                w.client = span_of("a");
        if (!w.arrived)
                w.arrived = now;
        if (!w.deadline)
                w.deadline = now + 120 * SEC;
        return governor_ask(g, &t[i], &w, now);
}

static enum ticket_reply ask(int i, usec_t now)
{
        return ask_with(i, &slots1, (struct ticket_wish){0}, now);
}

/* What governor_take hands over at `now`, accepted: their indexes in order, -1 after the last. */
static const int *take(usec_t now)
{
        static int got[COUNT_OF(t) + 1];
        struct list ready;
        list_init(&ready);
        governor_take(g, now, &ready);
        assert_true(governor_next_wake(g) > now);
        int n = 0;
        while (!list_empty(&ready)) {
                struct ticket *first = LIST_ENTRY_OF(ready.next, struct ticket, link);
                assert_int_equal(first->state, TICKET_READY);
                governor_accept(g, first);
                assert_int_equal(first->state,
                                 first->reply == TICKET_GRANTED ? TICKET_IN_FLIGHT : TICKET_IDLE);
                got[n++] = (int)(first - t);
        }
        got[n] = -1;
        return got;
}

static void assert_taken(usec_t now, int first, int second)
{
        const int *got = take(now);
        assert_int_equal(got[0], first);
        if (first >= 0)
                assert_int_equal(got[1], second);
}

static void answer(int i, enum answer_class class, usec_t wait, usec_t now)
{
        governor_answer(g, &t[i], &(struct answer){.class = class, .wait = wait}, now);
        governor_finish(g, &t[i], now);
}

static struct governor_stats stats(void)
{
        struct governor_stats s;
        governor_stats(g, &s);
        return s;
}

/* --- tests --- */

static void grants_at_once_then_in_turn(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        assert_int_equal(t[0].state, TICKET_IN_FLIGHT);
        assert_false(t[0].pass.limited);
        for (int i = 1; i < 4; i++)
                assert_int_equal(ask(i, 11), TICKET_WAITING);
        assert_int_equal(stats().queued, 3);
        assert_taken(20, -1, -1);
        governor_finish(g, &t[0], 30);
        assert_int_equal(governor_next_wake(g), 0); /* somebody is ready */
        assert_taken(30, 1, -1);
        assert_true(t[1].waited && t[1].pass.limited);
        assert_int_equal(t[1].pass.why, LIMITER_SLOT);
        governor_finish(g, &t[1], 40);
        assert_taken(40, 2, -1);
        governor_finish(g, &t[2], 50);
        assert_taken(50, 3, -1);
        assert_true(t[3].waited && !t[3].pass.limited); /* nobody behind it */
        governor_finish(g, &t[3], 60);
        assert_int_equal(stats().in_flight + stats().ready + stats().queued, 0);
        assert_int_equal(governor_next_wake(g), USEC_MAX);
        assert_int_equal(ask(0, 70), TICKET_GRANTED);
}

static void refuses_when_full(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        for (int i = 1; i <= 4; i++)
                assert_int_equal(ask(i, 10), TICKET_WAITING);
        /* Those asleep count as well, and a retry is admitted above the bound. */
        struct ticket_wish retry = {.retry = true, .not_before = 5 * SEC};
        assert_int_equal(ask_with(5, &slots1, retry, 10), TICKET_WAITING);
        assert_int_equal(ask(6, 10), TICKET_QUEUE_FULL);
        assert_int_equal(t[6].state, TICKET_IDLE);
        retry.not_before = 0;
        assert_int_equal(ask_with(7, &slots1, retry, 10), TICKET_WAITING);
        governor_cancel(g, &t[5], 11);
        governor_cancel(g, &t[7], 11);
        assert_int_equal(ask(6, 12), TICKET_WAITING);
}

static void sleeps_until_its_time(void **state)
{
        (void)state;
        struct ticket_wish w = {.not_before = 3 * SEC, .deadline = 9 * SEC};
        assert_int_equal(ask_with(0, &slots1, w, 1 * SEC), TICKET_WAITING);
        assert_int_equal(t[0].state, TICKET_SLEEPING);
        assert_int_equal(governor_next_wake(g), 3 * SEC);
        assert_int_equal(ask(1, 2 * SEC), TICKET_GRANTED); /* sleepers stand in nobody's way */
        assert_taken(3 * SEC - 1, -1, -1);
        assert_taken(3 * SEC, -1, -1);
        assert_int_equal(t[0].state, TICKET_QUEUED);
        assert_int_equal(governor_next_wake(g), 9 * SEC);
        governor_finish(g, &t[1], 4 * SEC);
        assert_taken(4 * SEC, 0, -1);
        assert_int_equal(t[0].reply, TICKET_GRANTED);

        w.not_before = 9 * SEC + 1;
        assert_int_equal(ask_with(2, &slots1, w, 4 * SEC), TICKET_TOO_LONG);
        assert_int_equal(t[2].wait, 5 * SEC + 1);
}

/* A ticket that slept and is granted the moment it wakes was not limited by anything. */
static void waking_together_is_no_limit(void **state)
{
        (void)state;
        learns.limit.start = 2;
        struct ticket_wish w = {.not_before = 3 * SEC};
        for (int i = 0; i < 3; i++)
                assert_int_equal(ask_with(i, &learns, w, 1 * SEC), TICKET_WAITING);
        const int *got = take(3 * SEC);
        assert_int_equal(got[2], -1); /* two slots to start with */
        assert_false(t[got[0]].waited || t[got[0]].pass.limited);
        assert_int_equal(stats().queued, 1);
}

static void ends_at_its_deadline(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        struct ticket_wish w = {.deadline = 500};
        assert_int_equal(ask_with(1, &slots1, w, 10), TICKET_WAITING);
        w.deadline = 400;
        assert_int_equal(ask_with(2, &slots1, w, 10), TICKET_WAITING);
        assert_int_equal(governor_next_wake(g), 400);
        assert_taken(399, -1, -1);
        assert_taken(400, 2, -1);
        assert_int_equal(t[2].reply, TICKET_TOO_LONG);
        assert_null(t[2].lane);
        governor_finish(g, &t[0], 500); /* on time to the last moment */
        assert_taken(500, 1, -1);
        assert_int_equal(t[1].reply, TICKET_GRANTED);
        w.deadline = 499;
        assert_int_equal(ask_with(3, &slots1, w, 500), TICKET_TOO_LONG);
        assert_int_equal(ask_with(3, &slots1, (struct ticket_wish){.deadline = USEC_MAX}, 500),
                         TICKET_WAITING);
        assert_int_equal(governor_next_wake(g), USEC_MAX);
}

/* A late timer: who missed its deadline is not sent, whoever did not is. */
static void a_late_take_sends_nobody_late(void **state)
{
        (void)state;
        slots1.limit.max_rate = 1;
        assert_int_equal(ask(0, 1 * SEC), TICKET_GRANTED);
        governor_finish(g, &t[0], 1 * SEC);
        struct ticket_wish w = {.deadline = 3 * SEC};
        assert_int_equal(ask_with(1, &slots1, w, 1 * SEC), TICKET_WAITING);
        w.deadline = 30 * SEC;
        assert_int_equal(ask_with(2, &slots1, w, 1 * SEC), TICKET_WAITING);
        assert_taken(10 * SEC, 1, 2);
        assert_int_equal(t[1].reply, TICKET_TOO_LONG);
        assert_int_equal(t[2].reply, TICKET_GRANTED);
}

static void hold_refuses_those_it_outlasts(void **state)
{
        (void)state;
        assert_int_equal(ask_with(0, &learns, (struct ticket_wish){0}, 1 * SEC), TICKET_GRANTED);
        learns.limit.start = 1;
        learns.generation++;
        const struct {
                usec_t not_before, deadline;
        } waits[] = {{NONE, 8 * SEC}, {NONE, 200 * SEC}, {4 * SEC, 9 * SEC}, {4 * SEC, 300 * SEC}};
        for (int i = 0; i < 4; i++) {
                struct ticket_wish w = {.not_before = waits[i].not_before,
                                        .deadline = waits[i].deadline};
                assert_int_equal(ask_with(i + 1, &learns, w, 1 * SEC), TICKET_WAITING);
        }
        answer(0, ANSWER_THROTTLED, 60 * SEC, 2 * SEC);
        assert_taken(2 * SEC, 1, 3);
        assert_int_equal(t[1].reply, TICKET_TOO_LONG);
        assert_true(t[1].wait >= 60 * SEC && t[1].wait < 70 * SEC);
        assert_int_equal(t[2].state, TICKET_QUEUED);
        assert_int_equal(t[4].state, TICKET_SLEEPING);
        /* Whoever asks now and cannot wait that long hears it at once. */
        struct ticket_wish w = {.deadline = 30 * SEC};
        assert_int_equal(ask_with(5, &learns, w, 3 * SEC), TICKET_TOO_LONG);
        assert_true(t[5].wait >= 59 * SEC && t[5].wait < 69 * SEC);
        assert_true(changes >= 1);
        assert_string_equal(last_key, "example.com:80");
        assert_true(last_change.view.closed_until >= 62 * SEC);
        /* By itself, with nothing in flight, the lane goes on when the hold ends. */
        assert_taken(4 * SEC, -1, -1);
        usec_t wake = governor_next_wake(g);
        assert_int_equal(wake, last_change.view.closed_until);
        assert_taken(wake, 2, -1);
        assert_true(t[2].pass.probe);
        answer(2, ANSWER_SUCCESS, 0, wake + SEC);
        assert_int_equal(last_change.event, LIMITER_REOPENED);
        for (int rounds = 0; t[4].state != TICKET_IN_FLIGHT && rounds < 3; rounds++)
                take(governor_next_wake(g));
        assert_int_equal(t[4].state, TICKET_IN_FLIGHT);
}

static void trip(usec_t now, bool refuse)
{
        learns.limit.breaker.trip = 1;
        learns.limit.start = 1;
        learns.refuse_when_open = refuse;
        assert_int_equal(ask_with(0, &learns, (struct ticket_wish){0}, now), TICKET_GRANTED);
        assert_int_equal(ask_with(1, &learns, (struct ticket_wish){0}, now), TICKET_WAITING);
        answer(0, ANSWER_THROTTLED, 0, now);
        assert_int_equal(last_change.event, LIMITER_CIRCUIT_OPEN);
}

static void open_circuit_refuses_if_told_to(void **state)
{
        (void)state;
        trip(1 * SEC, true);
        assert_taken(1 * SEC, 1, -1); /* also those who wait */
        assert_int_equal(t[1].reply, TICKET_CIRCUIT_OPEN);
        assert_true(t[1].wait >= 30 * SEC);
        assert_int_equal(ask_with(2, &learns, (struct ticket_wish){0}, 2 * SEC),
                         TICKET_CIRCUIT_OPEN);
        assert_true(t[2].wait >= 29 * SEC && t[2].wait < 60 * SEC);
        struct ticket_wish sleeper = {.retry = true, .not_before = 3 * SEC};
        assert_int_equal(ask_with(3, &learns, sleeper, 2 * SEC), TICKET_CIRCUIT_OPEN);
        /* Half-open: one may try, the others wait for it. */
        assert_int_equal(ask_with(2, &learns, (struct ticket_wish){0}, 90 * SEC), TICKET_GRANTED);
        assert_int_equal(ask_with(3, &learns, (struct ticket_wish){0}, 90 * SEC), TICKET_WAITING);
}

static void open_circuit_waits_otherwise(void **state)
{
        (void)state;
        trip(1 * SEC, false);
        assert_taken(1 * SEC, -1, -1);
        assert_int_equal(ask_with(2, &learns, (struct ticket_wish){0}, 2 * SEC), TICKET_WAITING);
        assert_taken(governor_next_wake(g), 1, -1);
}

/* At 10/s: refused from where even 20/s would not do. */
static void predicts_from_the_rate(void **state)
{
        (void)state;
        const struct {
                const char *client;
                usec_t deadline;
                int queued; /* of client "a" */
                enum ticket_reply reply;
        } cases[] = {
            {"a", 3 * SEC, 40, TICKET_WAITING},
            {"a", 3 * SEC - 1, 40, TICKET_TOO_LONG},
            {"a", 3 * SEC - 1, 39, TICKET_WAITING},
            {"b", 1 * SEC + SEC / 20, 40, TICKET_WAITING}, /* has the next turn but one */
            {"b", 1 * SEC + SEC / 20 - 1, 40, TICKET_TOO_LONG},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                slots1.limit.max_rate = 10;
                slots1.queue_max = 1000;
                assert_int_equal(ask(50, 1 * SEC), TICKET_GRANTED);
                for (int n = 0; n < cases[i].queued; n++)
                        assert_int_equal(ask(n, 1 * SEC), TICKET_WAITING);
                struct ticket_wish w = {.client = span_of(cases[i].client),
                                        .deadline = cases[i].deadline};
                enum ticket_reply reply = ask_with(60, &slots1, w, 1 * SEC);
                if (reply != cases[i].reply)
                        fail_msg("case %zu: %d", i, (int)reply);
                if (reply == TICKET_TOO_LONG) /* the honest guess, without the margin */
                        assert_int_equal(t[60].wait, (usec_t)cases[i].queued * SEC / 10);
                assert_int_equal(teardown(NULL), 0);
                setup(NULL);
        }
}

/* Every stage at which a client can go away. */
static void cancels_at_every_stage(void **state)
{
        (void)state;
        governor_cancel(g, &t[0], 1); /* IDLE */
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        assert_int_equal(ask(1, 10), TICKET_WAITING);
        assert_int_equal(ask(2, 10), TICKET_WAITING);
        struct ticket_wish asleep = {.not_before = SEC};
        assert_int_equal(ask_with(3, &slots1, asleep, 10), TICKET_WAITING);
        governor_cancel(g, &t[3], 11); /* SLEEPING */
        assert_int_equal(stats().sleeping, 0);
        governor_cancel(g, &t[1], 12); /* QUEUED */
        assert_int_equal(stats().queued, 1);
        governor_cancel(g, &t[0], 13); /* IN_FLIGHT: the slot goes to the next */
        assert_int_equal(t[2].state, TICKET_READY);
        assert_int_equal(ask(1, 14), TICKET_WAITING);
        governor_cancel(g, &t[2], 15); /* READY, not taken: the same */
        assert_int_equal(t[1].state, TICKET_READY);
        assert_int_equal(ask(2, 16), TICKET_WAITING);
        struct list mailbox;
        list_init(&mailbox);
        governor_take(g, 17, &mailbox);
        assert_int_equal(stats().ready, 1);
        governor_cancel(g, &t[1], 18); /* READY, taken: out of the mailbox too */
        assert_true(list_empty(&mailbox));
        assert_taken(19, 2, -1);
        governor_close(g, 20);
        governor_cancel(g, &t[2], 21);
        for (size_t i = 0; i < COUNT_OF(t); i++)
                assert_int_equal(t[i].state, TICKET_IDLE);
        assert_int_equal(stats().in_flight + stats().ready, 0);
}

static void cancels_a_refusal_under_way(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        assert_int_equal(ask(1, 10), TICKET_WAITING);
        governor_close(g, 11);
        assert_int_equal(t[1].state, TICKET_READY);
        governor_cancel(g, &t[1], 12);
        assert_taken(13, -1, -1);
        assert_int_equal(stats().in_flight, 1); /* t[0] alone */
}

static void closing_refuses_all_that_waits(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        assert_int_equal(ask(1, 10), TICKET_WAITING);
        struct ticket_wish w = {.not_before = SEC, .key = span_of("other:80")};
        assert_int_equal(ask_with(2, &slots1, w, 10), TICKET_WAITING);
        governor_close(g, 11);
        assert_int_equal(ask(3, 12), TICKET_CLOSING);
        take(12);
        assert_int_equal(t[1].reply, TICKET_CLOSING);
        assert_int_equal(t[2].reply, TICKET_CLOSING);
        assert_int_equal(t[0].state, TICKET_IN_FLIGHT); /* what runs may end */
        answer(0, ANSWER_SUCCESS, 0, 13);
        assert_int_equal(governor_next_wake(g), USEC_MAX);
}

static size_t lanes_seen;
static char seen[8][32];

static void note_lane(void *arg, const struct governor_change *view)
{
        (void)arg;
        snprintf(seen[lanes_seen++ % 8], sizeof seen[0], "%s", view->key);
}

static bool is_known(const char *key)
{
        lanes_seen = 0;
        governor_look(g, true, SIZE_MAX, 0, note_lane, NULL);
        for (size_t i = 0; i < lanes_seen; i++)
                if (strcmp(seen[i], key) == 0)
                        return true;
        return false;
}

static enum ticket_reply ask_key(int i, const char *key, usec_t now)
{
        return ask_with(i, &slots1, (struct ticket_wish){.key = span_of(key)}, now);
}

static void forgets_the_longest_idle(void **state)
{
        (void)state;
        const char *keys[] = {"a:1", "b:1", "c:1", "d:1"};
        for (int i = 0; i < 4; i++) { /* a stays busy */
                assert_int_equal(ask_key(i, keys[i], 1), TICKET_GRANTED);
                if (i > 0)
                        governor_finish(g, &t[i], 2);
        }
        assert_int_equal(ask_key(1, "b:1", 3), TICKET_GRANTED); /* b is used again, c is not */
        governor_finish(g, &t[1], 3);
        assert_int_equal(ask_key(4, "e:1", 4), TICKET_GRANTED);
        assert_int_equal(stats().lanes, 4);
        assert_false(is_known("c:1"));
        assert_true(is_known("a:1") && is_known("b:1") && is_known("d:1") && is_known("e:1"));
        /* Busy ones may be more than the bound, until they end. */
        assert_int_equal(ask_key(5, "f:1", 5), TICKET_GRANTED);
        assert_int_equal(ask_key(6, "g:1", 5), TICKET_GRANTED);
        assert_int_equal(ask_key(7, "h:1", 5), TICKET_GRANTED);
        assert_int_equal(stats().lanes, 5);
        governor_finish(g, &t[6], 6);
        assert_int_equal(stats().lanes, 4);
        assert_false(is_known("g:1"));
        governor_close(g, 7);
        assert_int_equal(stats().lanes, 4);
}

static void takes_over_a_newer_policy(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        assert_int_equal(ask(1, 10), TICKET_WAITING);
        struct lane_policy wider = slots1;
        wider.limit.start = wider.limit.ceiling = 3;
        wider.generation = 2;
        assert_int_equal(ask_with(2, &wider, (struct ticket_wish){0}, 11), TICKET_GRANTED);
        assert_taken(11, 1, -1); /* and who waited goes too */
        /* The snapshot of an older request changes nothing back. */
        governor_finish(g, &t[0], 12);
        assert_int_equal(ask(0, 12), TICKET_GRANTED);
        assert_int_equal(ask(3, 12), TICKET_WAITING);
}

/* One request goes and wants to go again, on the budget; as in a scope that always fails. */
static bool requeue(int i, struct ticket_wish w, usec_t now)
{
        w.client = span_of("a");
        w.retry = true;
        w.deadline = w.deadline ? w.deadline : now + 120 * SEC;
        return governor_requeue(g, &t[i], &w, now);
}

static bool goes_again(int i)
{
        if (!requeue(i, (struct ticket_wish){.budgeted = true}, 10))
                return false;
        assert_taken(10, i, -1);
        return true;
}

static void keeps_a_retry_budget(void **state)
{
        (void)state;
        slots1.limit.start = slots1.limit.ceiling = 64;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        int first = 0;
        while (goes_again(0)) /* retries earn none */
                first++;
        assert_true(first >= 3 && first < 10); /* what a scope starts with */
        struct ticket_wish retry = {.retry = true};
        for (int i = 1; i < 30; i++)
                assert_int_equal(ask_with(i, &slots1, retry, 10), TICKET_GRANTED);
        assert_false(goes_again(0));
        for (int i = 30; i < 41; i++) /* a share of .2: eleven requests earn two */
                assert_int_equal(ask(i, 10), TICKET_GRANTED);
        assert_true(goes_again(0));
        assert_true(goes_again(1));
        assert_false(goes_again(2));
        assert_true(requeue(2, (struct ticket_wish){0}, 10)); /* without the budget at any time */
}

static void requeues_in_one_step(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        assert_int_equal(ask(1, 10), TICKET_WAITING);
        struct ticket_wish w = {.not_before = 3 * SEC, .arrived = 10};
        assert_true(requeue(0, w, 20));
        assert_int_equal(t[0].state, TICKET_SLEEPING);
        assert_int_equal(stats().sleeping, 1);
        assert_taken(20, 1, -1); /* its slot is free */
        assert_taken(3 * SEC, -1, -1);
        governor_finish(g, &t[1], 4 * SEC);
        assert_taken(4 * SEC, 0, -1);
        governor_finish(g, &t[0], 5 * SEC);
        assert_int_equal(stats().in_flight + stats().ready + stats().queued, 0);
        assert_int_equal(governor_next_wake(g), USEC_MAX);
}

/* However long it took to ask: whoever asks is not ready to be told at once that it may go. */
static void requeues_one_whose_wait_has_passed(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        assert_true(requeue(0, (struct ticket_wish){.not_before = 1 * SEC}, 2 * SEC));
        assert_int_equal(t[0].state, TICKET_SLEEPING);
        assert_int_equal(stats().in_flight, 0);
        assert_taken(2 * SEC, 0, -1);
        assert_int_equal(t[0].reply, TICKET_GRANTED);
}

/* Its answer is forwarded instead, which takes the slot until its end. */
static void a_requeue_refused_changes_nothing(void **state)
{
        (void)state;
        assert_int_equal(ask(0, 10), TICKET_GRANTED);
        assert_int_equal(ask(1, 10), TICKET_WAITING);
        struct ticket_wish late = {.not_before = 3 * SEC, .deadline = 2 * SEC, .budgeted = true};
        for (int i = 0; i < 100; i++) /* costs no budget either */
                assert_false(requeue(0, late, 20));
        assert_int_equal(t[0].state, TICKET_IN_FLIGHT);
        assert_int_equal(stats().in_flight, 1);
        assert_taken(20, -1, -1);
        struct ticket_wish w = {.not_before = 21, .budgeted = true};
        assert_true(requeue(0, w, 20));
        assert_taken(20, 1, -1);
        governor_close(g, 30);
        assert_false(requeue(1, w, 30));
        assert_int_equal(t[1].state, TICKET_IN_FLIGHT);
        assert_taken(30, 0, -1);
        assert_int_equal(t[0].reply, TICKET_CLOSING);
}

static void an_open_circuit_requeues_nobody(void **state)
{
        (void)state;
        learns.refuse_when_open = true;
        learns.limit.breaker.trip = 1;
        assert_int_equal(ask_with(0, &learns, (struct ticket_wish){0}, 1 * SEC), TICKET_GRANTED);
        governor_answer(g, &t[0], &(struct answer){.class = ANSWER_THROTTLED}, 1 * SEC);
        assert_false(requeue(0, (struct ticket_wish){.not_before = 2 * SEC}, 1 * SEC));
        assert_int_equal(t[0].state, TICKET_IN_FLIGHT);
}

/* An unused scope is paced by its limiter alone: the lane's wake comes from it. */
static void wakes_when_the_pace_allows(void **state)
{
        (void)state;
        slots1.limit.start = slots1.limit.ceiling = 9;
        slots1.limit.max_rate = 4;
        assert_int_equal(ask(0, 1 * SEC), TICKET_GRANTED);
        assert_int_equal(ask(1, 1 * SEC), TICKET_WAITING);
        assert_int_equal(ask(2, 1 * SEC), TICKET_WAITING);
        for (int i = 1; i < 3; i++) {
                usec_t wake = governor_next_wake(g);
                usec_t ideal = (usec_t)(4 + i) * SEC / 4;
                assert_true(wake >= ideal && wake < ideal + 1000);
                assert_taken(wake, i, -1);
        }
        assert_int_equal(governor_next_wake(g), USEC_MAX);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
            TEST(grants_at_once_then_in_turn),
            TEST(refuses_when_full),
            TEST(sleeps_until_its_time),
            TEST(waking_together_is_no_limit),
            TEST(ends_at_its_deadline),
            TEST(a_late_take_sends_nobody_late),
            TEST(hold_refuses_those_it_outlasts),
            TEST(open_circuit_refuses_if_told_to),
            TEST(open_circuit_waits_otherwise),
            TEST(predicts_from_the_rate),
            TEST(cancels_at_every_stage),
            TEST(cancels_a_refusal_under_way),
            TEST(closing_refuses_all_that_waits),
            TEST(forgets_the_longest_idle),
            TEST(takes_over_a_newer_policy),
            TEST(keeps_a_retry_budget),
            TEST(wakes_when_the_pace_allows),
            TEST(requeues_in_one_step),
            TEST(requeues_one_whose_wait_has_passed),
            TEST(a_requeue_refused_changes_nothing),
            TEST(an_open_circuit_requeues_nobody),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
