#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "admin/recent.h"
#include "admin/tallies.h"
#include "base/xalloc.h"

#define SEC USEC_PER_SEC
#define MINUTE (60 * SEC)

static struct tallies *t;

static int setup(void **state)
{
        (void)state;
        t = tallies_new(3);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        tallies_free(t);
        return 0;
}

static struct report served(const char *scope, usec_t ended)
{
        return (struct report){.scope = (char *)scope,
                               .ended = ended,
                               .duration = SEC / 10,
                               .answered = true,
                               .class = ANSWER_SUCCESS,
                               .outcome = OUTCOME_SERVED,
                               .status = 200,
                               .attempts = 1,
                               .bytes_out = 10};
}

static void add(const char *scope, usec_t ended)
{
        struct report r = served(scope, ended);
        tallies_add(t, &r);
}

static struct tally find(const char *scope, usec_t now)
{
        struct tally y = {.requests = 0};
        assert_true(tallies_find(t, scope, now, &y));
        return y;
}

static void counts_each_scope_by_itself(void **state)
{
        (void)state;
        struct tally y;
        add("a", SEC);
        add("a", SEC);
        add("b", SEC);
        tallies_add(t, &(struct report){.scope = NULL, .status = 400});
        y = find("a", SEC);
        assert_int_equal(y.requests, 2);
        assert_int_equal(y.attempts, 2);
        assert_int_equal(y.successes, 2);
        assert_int_equal(y.bytes_out, 20);
        assert_int_equal(find("b", SEC).requests, 1);
        assert_false(tallies_find(t, "c", SEC, &y));
        assert_int_equal(y.requests, 2); /* untouched */
}

static void refusals_stand_apart(void **state)
{
        (void)state;
        struct report r = served("a", SEC);
        r.attempts = 3, r.refusals = 2;
        tallies_add(t, &r);
        r.class = ANSWER_THROTTLED, r.outcome = OUTCOME_GAVE_UP, r.status = 429;
        r.attempts = 4, r.refusals = 4;
        tallies_add(t, &r);
        /* weir's own answer after a refusal */
        r.outcome = OUTCOME_UPSTREAM_FAILED, r.status = 502, r.refusals = 1;
        tallies_add(t, &r);
        struct tally y = find("a", SEC);
        assert_int_equal(y.refusals, 7);
        assert_int_equal(y.refusals_absorbed, 6);
        assert_int_equal(y.successes, 1);
        assert_int_equal(y.status_count, 2);
        assert_int_equal(y.statuses[0].status, 200);
        assert_int_equal(y.statuses[1].status, 502);
        assert_int_equal(y.durations.count, 2); /* what weir says itself took no time of the host */
}

static void statuses_are_bounded(void **state)
{
        (void)state;
        for (int round = 0; round < 2; round++)
                for (int status = 400; status < 420; status++) {
                        struct report r = served("a", SEC);
                        r.status = status;
                        tallies_add(t, &r);
                }
        struct tally y = find("a", SEC);
        assert_int_equal(y.status_count, TALLY_STATUSES);
        for (size_t i = 0; i < TALLY_STATUSES; i++)
                assert_int_equal(y.statuses[i].count, 2);
        assert_int_equal(y.other_statuses, 2 * (20 - TALLY_STATUSES));
}

static void scopes_are_bounded(void **state)
{
        (void)state;
        struct tally y;
        add("a", SEC);
        add("b", SEC);
        add("c", SEC);
        add("a", 2 * SEC);
        add("d", 3 * SEC); /* b has been without a request for longest */
        assert_int_equal(find("a", SEC).requests, 2);
        assert_false(tallies_find(t, "b", SEC, &y));
        assert_int_equal(find("c", SEC).requests, 1);
        assert_int_equal(find("d", SEC).requests, 1);
}

static void the_last_minute_moves_on(void **state)
{
        (void)state;
        for (usec_t at = 0; at < 120; at++)
                add("a", 1000 * SEC + at * SEC);
        assert_int_equal(find("a", 1119 * SEC).last_minute, 60);
        assert_int_equal(find("a", 1150 * SEC).last_minute, 25); /* in steps of five seconds */
        assert_int_equal(find("a", 1180 * SEC).last_minute, 0);
        add("a", 9000 * SEC);
        assert_int_equal(find("a", 9000 * SEC).last_minute, 1);
        add("a", 8950 * SEC); /* reports of several workers come a little out of turn */
        assert_int_equal(find("a", 9000 * SEC).last_minute, 2);
        add("a", 8000 * SEC);
        assert_int_equal(find("a", 9000 * SEC).last_minute, 2);
        assert_int_equal(find("a", 9000 * SEC).successes, 123);
}

static void durations_are_of_late(void **state)
{
        (void)state;
        struct report r = served("a", 1000 * SEC);
        for (unsigned i = 0; i < 100; i++) {
                r.duration = (i + 1) * SEC / 100;
                tallies_add(t, &r);
        }
        struct histogram h = find("a", 1000 * SEC).durations;
        assert_int_equal(h.count, 100);
        assert_in_range(histogram_quantile(&h, .5), 400000, 600000);
        assert_in_range(histogram_quantile(&h, .99), 900000, 1100000);
        r.ended = 1000 * SEC + 6 * MINUTE;
        tallies_add(t, &r);
        assert_int_equal(find("a", r.ended).durations.count, 101);
        r.ended += 6 * MINUTE;
        tallies_add(t, &r);
        assert_int_equal(find("a", r.ended).durations.count, 2);
        assert_int_equal(find("a", r.ended + 60 * MINUTE).durations.count, 0);
}

static void tunnels_have_no_duration(void **state)
{
        (void)state;
        struct report r = served("a", SEC);
        r.relayed = true;
        tallies_add(t, &r);
        assert_int_equal(find("a", SEC).durations.count, 0);
        assert_int_equal(find("a", SEC).requests, 1);
}

static void the_last_ones_are_kept(void **state)
{
        (void)state;
        struct recent recent = {.count = 0};
        assert_null(recent_get(&recent, 0));
        for (unsigned i = 0; i < RECENT_MAX + 10; i++) {
                struct report *r = xcalloc(1, sizeof *r);
                r->attempts = i;
                r->url = xstrdup("http://a/");
                recent_add(&recent, r);
                assert_int_equal(recent_get(&recent, 0)->attempts, i);
        }
        assert_int_equal(recent_get(&recent, RECENT_MAX - 1)->attempts, 10);
        assert_null(recent_get(&recent, RECENT_MAX));
        recent_done(&recent);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(counts_each_scope_by_itself, setup, teardown),
            cmocka_unit_test_setup_teardown(refusals_stand_apart, setup, teardown),
            cmocka_unit_test_setup_teardown(statuses_are_bounded, setup, teardown),
            cmocka_unit_test_setup_teardown(scopes_are_bounded, setup, teardown),
            cmocka_unit_test_setup_teardown(the_last_minute_moves_on, setup, teardown),
            cmocka_unit_test_setup_teardown(durations_are_of_late, setup, teardown),
            cmocka_unit_test_setup_teardown(tunnels_have_no_duration, setup, teardown),
            cmocka_unit_test(the_last_ones_are_kept),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
