/* The governor under the eyes and hands of people: looking at scopes, and resetting one. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/governor.h"

#define SEC USEC_PER_SEC
#define MAX_LANES 8

static const struct lane_policy policy = {
    .limit = {.algorithm = LIMITER_ADAPTIVE,
              .start = 2,
              .floor = 1,
              .ceiling = 2,
              .max_hold = 900 * SEC,
              .breaker = {.trip = 6, .cooldown = 30 * SEC}},
    .queue_max = 100,
    .retry_share = .2,
    .generation = 1,
};

static struct governor *g;
static struct ticket t[8];
static struct governor_change last;

static void on_change(void *arg, const struct governor_change *change)
{
        (void)arg;
        last = *change;
}

static int setup(void **state)
{
        (void)state;
        memset(t, 0, sizeof t);
        g = governor_new(
            &(struct governor_config){.max_lanes = MAX_LANES, .seed = 1, .on_change = on_change});
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(t); i++)
                governor_cancel(g, &t[i], 0);
        governor_free(g);
        return 0;
}

static enum ticket_reply ask(size_t i, const char *key, usec_t now)
{
        struct ticket_wish w = {
            .key = span_of(key),
            .client = span_of("a"),
            .policy = &policy,
            .arrived = now,
            .deadline = now + 3600 * SEC,
        };
        return governor_ask(g, &t[i], &w, now);
}

static void answer(size_t i, enum answer_class class, usec_t wait, usec_t now)
{
        governor_answer(
            g, &t[i], &(struct answer){.class = class, .wait_named = wait > 0, .wait = wait}, now);
        governor_finish(g, &t[i], now);
}

static void one(const char *key, enum answer_class class, usec_t wait, usec_t now)
{
        assert_int_equal(ask(0, key, now), TICKET_GRANTED);
        answer(0, class, wait, now + SEC / 10);
}

/* ---- looking ---- */

struct seen {
        char keys[16][16];
        struct governor_change views[16];
        size_t count;
};

static void on_look(void *arg, const struct governor_change *view)
{
        struct seen *s = arg;
        assert_true(s->count < COUNT_OF(s->keys));
        snprintf(s->keys[s->count], sizeof s->keys[0], "%s", view->key);
        s->views[s->count++] = *view;
}

static size_t times_seen(const struct seen *s, const char *key)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                n += strcmp(s->keys[i], key) == 0;
        return n;
}

static const struct governor_change *look_at(const char *key, usec_t now)
{
        static struct seen s;
        s.count = 0;
        governor_look(g, true, SIZE_MAX, now, on_look, &s);
        for (size_t i = 0; i < s.count; i++)
                if (strcmp(s.keys[i], key) == 0)
                        return &s.views[i];
        return NULL;
}

/* Attempts are counted where they are learned from, whatever came of them; waiting is none. */
static void counts_what_was_sent(void **state)
{
        (void)state;
        one("a", ANSWER_SUCCESS, 0, 0);
        one("a", ANSWER_SUCCESS, 0, SEC);
        one("b", ANSWER_SUCCESS, 0, SEC);
        assert_int_equal(ask(1, "a", 2 * SEC), TICKET_GRANTED);
        assert_int_equal(ask(2, "a", 3 * SEC), TICKET_GRANTED);
        assert_int_equal(ask(3, "a", 4 * SEC), TICKET_WAITING);
        assert_int_equal(look_at("a", 4 * SEC)->sent, 4);
        assert_int_equal(look_at("b", 4 * SEC)->sent, 1);
        answer(1, ANSWER_THROTTLED, SEC, 4 * SEC);
        assert_int_equal(last.sent, 4);
}

static void looks_in_portions(void **state)
{
        (void)state;
        const char *const keys[] = {"a", "b", "c", "d", "e"};
        for (size_t i = 0; i < COUNT_OF(keys); i++)
                one(keys[i], ANSWER_SUCCESS, 0, SEC);
        for (size_t portion = 1; portion <= 6; portion++) {
                struct seen s = {.count = 0};
                size_t before = 0, rounds = 0;
                bool more = true;
                for (bool begin = true; more; begin = false, rounds++) {
                        more = governor_look(g, begin, portion, 2 * SEC, on_look, &s);
                        assert_true(s.count - before <= portion);
                        before = s.count;
                }
                assert_int_equal(s.count, COUNT_OF(keys));
                assert_true(rounds <= COUNT_OF(keys) / portion + 1);
                for (size_t i = 0; i < COUNT_OF(keys); i++)
                        assert_int_equal(times_seen(&s, keys[i]), 1);
        }
}

/* The lane that the next portion would begin with is forgotten in between. */
static void goes_on_behind_a_forgotten_scope(void **state)
{
        (void)state;
        char key[8];
        struct seen s = {.count = 0};
        for (unsigned i = 0; i < MAX_LANES; i++) {
                snprintf(key, sizeof key, "k%u", i);
                one(key, ANSWER_SUCCESS, 0, SEC + i);
        }
        one("k0", ANSWER_SUCCESS, 0, 2 * SEC); /* k1 is idle for longest now */
        assert_true(governor_look(g, true, 1, 3 * SEC, on_look, &s));
        one("new", ANSWER_SUCCESS, 0, 3 * SEC);
        while (governor_look(g, false, 1, 4 * SEC, on_look, &s))
                ;
        assert_int_equal(times_seen(&s, "k1"), 0);
        assert_int_equal(times_seen(&s, "k0"), 1);
        for (unsigned i = 2; i < MAX_LANES; i++) {
                snprintf(key, sizeof key, "k%u", i);
                assert_int_equal(times_seen(&s, key), 1);
        }
}

static void tells_how_a_scope_stands(void **state)
{
        (void)state;
        for (size_t i = 0; i < 5; i++)
                ask(i, "a", SEC + i);
        const struct governor_change *a = look_at("a", 2 * SEC);
        assert_int_equal(a->event, LIMITER_UNCHANGED);
        assert_int_equal(a->view.in_flight, 2);
        assert_int_equal(a->queued, 3);
        assert_int_equal(a->sleeping, 0);
        assert_int_equal(a->view.used, SEC + 1);
        assert_true(a->view.concurrency == 2);
}

/* ---- resetting ---- */

static void a_reset_opens_and_forgets(void **state)
{
        (void)state;
        one("a", ANSWER_THROTTLED, 600 * SEC, SEC);
        assert_true(look_at("a", 2 * SEC)->view.closed_until > 500 * SEC);
        assert_int_equal(ask(1, "a", 2 * SEC), TICKET_WAITING);
        assert_true(governor_reset(g, span_of("a"), 3 * SEC));
        assert_int_equal(last.event, LIMITER_RESET);
        struct list ready;
        list_init(&ready);
        governor_take(g, 3 * SEC, &ready);
        assert_int_equal(t[1].state, TICKET_READY); /* at once, not in ten minutes */
        assert_int_equal(governor_accept(g, &t[1]), TICKET_GRANTED);
        const struct governor_change *a = look_at("a", 3 * SEC);
        assert_int_equal(a->view.closed_until, 0);
        assert_true(a->view.rate <= 0 && !a->view.settled && a->view.concurrency == 2);
}

static void what_is_in_flight_keeps_its_slots(void **state)
{
        (void)state;
        one("a", ANSWER_SUCCESS, 0, SEC);
        assert_int_equal(ask(0, "a", 3 * SEC), TICKET_GRANTED);
        assert_int_equal(ask(1, "a", 3 * SEC + SEC / 2), TICKET_GRANTED);
        assert_true(governor_reset(g, span_of("a"), 4 * SEC));
        assert_int_equal(look_at("a", 4 * SEC)->view.in_flight, 2);
        assert_int_equal(ask(2, "a", 4 * SEC), TICKET_WAITING);
        answer(0, ANSWER_SUCCESS, 0, 5 * SEC);
        assert_int_equal(t[2].state, TICKET_READY);
        /* Refused, but sent before the reset: nothing is cut. */
        answer(1, ANSWER_THROTTLED, 0, 5 * SEC);
        assert_int_equal(look_at("a", 5 * SEC)->view.closed_until, 0);
        assert_true(look_at("a", 5 * SEC)->view.refused_rate <= 0);
}

static void the_next_refusal_teaches_again(void **state)
{
        (void)state;
        one("a", ANSWER_THROTTLED, 600 * SEC, SEC);
        governor_reset(g, span_of("a"), 2 * SEC);
        one("a", ANSWER_THROTTLED, 60 * SEC, 3 * SEC);
        usec_t until = look_at("a", 4 * SEC)->view.closed_until;
        assert_in_range(until, 63 * SEC, 64 * SEC);
}

static void a_reset_probe_disturbs_nobody(void **state)
{
        (void)state;
        one("a", ANSWER_THROTTLED, 30 * SEC, SEC);
        assert_int_equal(ask(0, "a", 40 * SEC), TICKET_GRANTED); /* the probe */
        governor_reset(g, span_of("a"), 41 * SEC);
        answer(0, ANSWER_THROTTLED, 0, 42 * SEC);
        assert_int_equal(look_at("a", 42 * SEC)->view.closed_until, 0);
        assert_int_equal(ask(1, "a", 43 * SEC), TICKET_GRANTED);
}

/* One that nobody has asked for since it was restored is nothing but its memory. */
static void a_remembered_scope_goes(void **state)
{
        (void)state;
        const struct limiter_memory m = {
            .slots = 5, .srtt = SEC / 10, .pace = {.rate = 20, .max = 21, .x = .5}};
        governor_import(g, span_of("a"), &m, SEC);
        assert_non_null(look_at("a", SEC));
        assert_true(governor_reset(g, span_of("a"), SEC));
        assert_null(look_at("a", SEC));
}

static void only_what_is_known_can_be_reset(void **state)
{
        (void)state;
        struct governor_stats before, after;
        governor_stats(g, &before);
        assert_false(governor_reset(g, span_of("a"), SEC));
        assert_false(governor_reset(g, (struct span){NULL, 0}, SEC));
        one("a", ANSWER_SUCCESS, 0, SEC);
        assert_true(governor_reset(g, span_of("a"), 2 * SEC));
        governor_stats(g, &after);
        assert_int_equal(before.resets, 0);
        assert_int_equal(after.resets, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(counts_what_was_sent, setup, teardown),
            cmocka_unit_test_setup_teardown(looks_in_portions, setup, teardown),
            cmocka_unit_test_setup_teardown(goes_on_behind_a_forgotten_scope, setup, teardown),
            cmocka_unit_test_setup_teardown(tells_how_a_scope_stands, setup, teardown),
            cmocka_unit_test_setup_teardown(a_reset_opens_and_forgets, setup, teardown),
            cmocka_unit_test_setup_teardown(what_is_in_flight_keeps_its_slots, setup, teardown),
            cmocka_unit_test_setup_teardown(the_next_refusal_teaches_again, setup, teardown),
            cmocka_unit_test_setup_teardown(a_reset_probe_disturbs_nobody, setup, teardown),
            cmocka_unit_test_setup_teardown(a_remembered_scope_goes, setup, teardown),
            cmocka_unit_test_setup_teardown(only_what_is_known_can_be_reset, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
