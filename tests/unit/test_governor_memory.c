#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "core/governor.h"

#define SEC USEC_PER_SEC
#define HOUR (3600 * SEC)
#define MAX_LANES 8

static const struct lane_policy policy = {
    .limit = {.algorithm = LIMITER_ADAPTIVE,
              .start = 4,
              .floor = 1,
              .ceiling = 32,
              .max_hold = 900 * SEC,
              .breaker = {.trip = 6, .cooldown = 30 * SEC}},
    .queue_max = 100,
    .generation = 1,
};

static struct governor *g;
static struct governor_change last;
static char last_key[32];
static unsigned changes;

static void on_change(void *arg, const struct governor_change *change)
{
        (void)arg;
        last = *change;
        snprintf(last_key, sizeof last_key, "%s", change->key);
        changes++;
}

static struct governor *make(void)
{
        changes = 0;
        return governor_new(
            &(struct governor_config){.max_lanes = MAX_LANES, .seed = 1, .on_change = on_change});
}

static int setup(void **state)
{
        (void)state;
        g = make();
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        governor_free(g);
        return 0;
}

static enum ticket_reply ask(struct governor *to, struct ticket *t, const char *key, usec_t now)
{
        struct ticket_wish w = {
            .key = span_of(key),
            .client = span_of("a"),
            .policy = &policy,
            .arrived = now,
            .deadline = now + 2 * HOUR,
        };
        return governor_ask(to, t, &w, now);
}

/* One request of a scope, answered after 100 ms. */
static void one(struct governor *to, const char *key, enum answer_class class, usec_t wait,
                usec_t now)
{
        struct ticket t = {0};
        struct answer answer = {.class = class, .wait_named = wait > 0, .wait = wait};
        assert_int_equal(ask(to, &t, key, now), TICKET_GRANTED);
        governor_answer(to, &t, &answer, now + SEC / 10);
        governor_finish(to, &t, now + SEC / 10);
}

/* ---- what is exported ---- */

struct exported {
        char keys[32][32];
        struct limiter_memory memories[32];
        size_t count;
};

static void on_export(void *arg, const char *key, const struct limiter_memory *m)
{
        struct exported *e = arg;
        assert_true(e->count < COUNT_OF(e->keys));
        snprintf(e->keys[e->count], sizeof e->keys[0], "%s", key);
        e->memories[e->count++] = *m;
}

static const struct exported *export_all(size_t portion, usec_t now)
{
        static struct exported e;
        e.count = 0;
        for (bool begin = true; governor_export(g, begin, portion, now, on_export, &e);)
                begin = false;
        return &e;
}

static const struct limiter_memory *exported(const struct exported *e, const char *key)
{
        for (size_t i = 0; i < e->count; i++)
                if (strcmp(e->keys[i], key) == 0)
                        return &e->memories[i];
        return NULL;
}

static void exports_those_that_learned(void **state)
{
        (void)state;
        struct ticket t = {0};
        one(g, "a", ANSWER_SUCCESS, 0, SEC);
        one(g, "b", ANSWER_FAILED, 0, SEC);
        one(g, "c", ANSWER_THROTTLED, 60 * SEC, SEC);
        ask(g, &t, "d", SEC);
        for (size_t portion = 1; portion <= 5; portion++) {
                const struct exported *e = export_all(portion, 3 * SEC);
                assert_int_equal(e->count, 2);
                assert_true(exported(e, "a")->pace.rate == 40);
                assert_int_equal(exported(e, "a")->idle, 2 * SEC);
                assert_true(exported(e, "c")->closed);
                assert_int_equal(exported(e, "c")->closed_length - exported(e, "c")->closed_age,
                                 58.1 * SEC);
        }
        governor_cancel(g, &t, 3 * SEC);
}

/* Lanes may come and go between two portions. */
static void export_survives_changes(void **state)
{
        (void)state;
        static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
        struct exported e = {.count = 0};
        for (size_t i = 0; i < COUNT_OF(keys); i++)
                one(g, keys[i], ANSWER_SUCCESS, 0, SEC + i);
        assert_true(governor_export(g, true, 2, SEC, on_export, &e));
        one(g, "i", ANSWER_SUCCESS, 0, 2 * SEC); /* a is forgotten, which was copied, */
        one(g, "b", ANSWER_SUCCESS, 0, 2 * SEC); /* and c, d and e, the next ones */
        one(g, "j", ANSWER_SUCCESS, 0, 2 * SEC);
        one(g, "k", ANSWER_SUCCESS, 0, 2 * SEC);
        one(g, "l", ANSWER_SUCCESS, 0, 2 * SEC);
        while (governor_export(g, false, 1, 3 * SEC, on_export, &e))
                ;
        assert_null(exported(&e, "c"));
        assert_null(exported(&e, "e"));
        assert_non_null(exported(&e, "f"));
        assert_non_null(exported(&e, "l"));
        assert_int_equal(e.count, 2 + 3 + 4);
        for (size_t i = 0; i < 5; i++) /* nothing is left but the cursor: forget it all */
                one(g, keys[i], ANSWER_SUCCESS, 0, 4 * SEC);
}

/* ---- what is imported ---- */

static const struct limiter_memory known = {
    .algorithm = LIMITER_ADAPTIVE,
    .pace = {.rate = 20, .max = 21, .low = 20, .requests = 200, .time = 2 * SEC},
    .slots = 6,
    .srtt = SEC / 10,
};

static void takes_over_when_asked(void **state)
{
        (void)state;
        struct ticket t = {0};
        governor_import(g, span_of("a"), &known, 5 * SEC);
        assert_int_equal(changes, 0);
        assert_int_equal(governor_next_wake(g), USEC_MAX);
        assert_int_equal(ask(g, &t, "a", 65 * SEC), TICKET_GRANTED);
        assert_int_equal(changes, 1);
        assert_int_equal(last.event, LIMITER_RESTORED);
        assert_string_equal(last_key, "a");
        assert_true(last.view.rate == 20 && last.view.refused_rate == 21);
        assert_true(last.view.concurrency == 6);
        governor_cancel(g, &t, 66 * SEC);
        assert_int_equal(ask(g, &t, "a", 67 * SEC), TICKET_GRANTED);
        assert_int_equal(changes, 1);
        governor_cancel(g, &t, 67 * SEC);
}

static void ages_until_it_is_asked(void **state)
{
        (void)state;
        struct limiter_memory m = known;
        struct ticket t = {0};
        m.closed = m.half_open = true;
        m.closed_length = 60 * SEC;
        m.closed_age = 10 * SEC;
        governor_import(g, span_of("a"), &m, 5 * SEC);
        governor_import(g, span_of("b"), &m, 5 * SEC);
        governor_import(g, span_of("c"), &known, 5 * SEC);
        assert_int_equal(ask(g, &t, "a", 25 * SEC), TICKET_WAITING);
        assert_int_equal(governor_next_wake(g), 55 * SEC);
        governor_cancel(g, &t, 25 * SEC);
        assert_int_equal(ask(g, &t, "b", 55 * SEC), TICKET_GRANTED); /* the probe */
        governor_cancel(g, &t, 56 * SEC);
        one(g, "c", ANSWER_FAILED, 0, 5 * SEC + HOUR);
        assert_true(last.view.rate == 10 && last.view.refused_rate == 21);
}

static void unasked_is_exported_again(void **state)
{
        (void)state;
        struct limiter_memory m = known;
        m.idle = HOUR;
        governor_import(g, span_of("a"), &m, 5 * SEC);
        const struct exported *e = export_all(1, 105 * SEC);
        assert_int_equal(e->count, 1);
        assert_int_equal(e->memories[0].idle, HOUR + 100 * SEC);
        assert_true(e->memories[0].pace.rate == 20 && e->memories[0].slots == 6);
}

static void a_present_lane_stays(void **state)
{
        (void)state;
        one(g, "a", ANSWER_SUCCESS, 0, SEC);
        governor_import(g, span_of("a"), &known, 2 * SEC);
        governor_import(g, span_of("b"), &known, 2 * SEC);
        governor_import(g, span_of("b"), &(struct limiter_memory){0}, 2 * SEC);
        const struct exported *e = export_all(10, 2 * SEC);
        assert_true(exported(e, "a")->pace.rate == 40);
        assert_true(exported(e, "b")->pace.rate == 20);
}

static void is_bounded(void **state)
{
        (void)state;
        struct governor_stats stats;
        char key[16];
        for (int i = 0; i < 100; i++) {
                snprintf(key, sizeof key, "%d", i);
                governor_import(g, span_of(key), &known, SEC);
        }
        governor_stats(g, &stats);
        assert_int_equal(stats.lanes, MAX_LANES);
        one(g, "new", ANSWER_SUCCESS, 0, SEC);
        const struct exported *e = export_all(100, SEC);
        assert_int_equal(e->count, MAX_LANES);
        assert_null(exported(e, "92")); /* the first ones went first */
        assert_non_null(exported(e, "93"));
        assert_non_null(exported(e, "new"));
        governor_import(g, (struct span){NULL, 0}, &known, SEC); /* an empty key is one, too */
        assert_non_null(exported(export_all(100, SEC), ""));
}

static void on_look(void *arg, const struct governor_change *view)
{
        unsigned *seen = arg;
        assert_true(view->view.rate == 20 && view->view.refused_rate == 21);
        assert_true(view->view.concurrency == 6 && view->view.settled);
        assert_int_equal(view->view.closed_until, 0);
        ++*seen;
}

static void can_be_looked_at(void **state)
{
        (void)state;
        unsigned seen = 0;
        governor_import(g, span_of("a"), &known, SEC);
        governor_look(g, true, SIZE_MAX, SEC, on_look, &seen);
        assert_int_equal(seen, 1);
}

static void closing_leaves_it_alone(void **state)
{
        (void)state;
        governor_import(g, span_of("a"), &known, SEC);
        governor_close(g, 2 * SEC);
        assert_int_equal(export_all(1, 2 * SEC)->count, 1);
}

/* A whole restart: what one governor exports another one imports. */
static void restart(void **state)
{
        (void)state;
        struct governor *before = g;
        one(before, "a", ANSWER_SUCCESS, 0, 10 * SEC);
        one(before, "b", ANSWER_THROTTLED, 30 * SEC, 10 * SEC);
        const struct exported *e = export_all(1, 12 * SEC);
        g = make();
        for (size_t i = 0; i < e->count; i++)
                governor_import(g, span_of(e->keys[i]), &e->memories[i], SEC);
        governor_free(before);
        struct ticket t = {0};
        one(g, "a", ANSWER_FAILED, 0, SEC);
        assert_true(last.view.rate == 40 && !last.view.settled);
        assert_int_equal(ask(g, &t, "b", SEC), TICKET_WAITING);
        assert_int_equal(governor_next_wake(g), SEC + 28.1 * SEC);
        governor_cancel(g, &t, SEC);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(exports_those_that_learned, setup, teardown),
            cmocka_unit_test_setup_teardown(export_survives_changes, setup, teardown),
            cmocka_unit_test_setup_teardown(takes_over_when_asked, setup, teardown),
            cmocka_unit_test_setup_teardown(ages_until_it_is_asked, setup, teardown),
            cmocka_unit_test_setup_teardown(unasked_is_exported_again, setup, teardown),
            cmocka_unit_test_setup_teardown(a_present_lane_stays, setup, teardown),
            cmocka_unit_test_setup_teardown(is_bounded, setup, teardown),
            cmocka_unit_test_setup_teardown(can_be_looked_at, setup, teardown),
            cmocka_unit_test_setup_teardown(closing_leaves_it_alone, setup, teardown),
            cmocka_unit_test_setup_teardown(restart, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
