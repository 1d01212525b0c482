#include "tests/unit/unit.h"

#include <stdio.h>

#include "core/quarantine.h"

#define SEC USEC_PER_SEC
#define TIME (600 * SEC)

static struct quarantine q;

static int setup(void **state)
{
        (void)state;
        quarantine_init(&q);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        quarantine_done(&q);
        return 0;
}

/* b: blocked, a: accepted; after each of them: is it avoided? */
static const struct {
        const char *name;
        unsigned after;
        struct {
                usec_t at;
                char what;
                bool avoided;
        } steps[6];
} rows[] = {
    {"the first one", 1, {{1, 'b', true}}},
    {"the third in a row", 3, {{1, 'b', false}, {2, 'b', false}, {3, 'b', true}}},
    {"an accepted one ends the row", 2, {{1, 'b', false}, {2, 'a', false}, {3, 'b', false}}},
    {"so does time",
     2,
     {{1 * SEC, 'b', false}, {1 * SEC + TIME, 'b', false}, {2 * SEC + TIME, 'b', true}}},
    {"a late answer opens nothing", 1, {{1, 'b', true}, {2, 'a', true}}},
    {"one that comes after the end does",
     1,
     {{1, 'b', true}, {1 + TIME, 'a', false}, {2 + TIME, 'b', true}}},
    {"a late block makes it longer",
     1,
     {{1, 'b', true}, {SEC, 'b', true}, {SEC + TIME - 1, 'a', true}, {SEC + TIME, 'a', false}}},
};

static void avoids(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct quarantine_host *h = quarantine_enter(&q, span_of("host"));
                usec_t now = 0;
                for (size_t k = 0; k < COUNT_OF(rows[i].steps) && rows[i].steps[k].what; k++) {
                        bool was = quarantine_until(h, 3) > rows[i].steps[k].at;
                        now = rows[i].steps[k].at;
                        if (rows[i].steps[k].what == 'a') {
                                quarantine_accepted(h, 3, now);
                        } else {
                                bool begins = quarantine_blocked(h, 3, rows[i].after, TIME, now);
                                assert_int_equal(begins, rows[i].steps[k].avoided && !was);
                        }
                        if ((quarantine_until(h, 3) > now) != rows[i].steps[k].avoided)
                                fail_msg("%s: wrong after step %zu", rows[i].name, k);
                        assert_int_equal(quarantine_until(h, 2), 0); /* the others are no matter */
                        assert_int_equal(quarantine_until(h, 100), 0);
                }
                quarantine_leave(h, now + 10 * TIME);
                assert_null(q.hosts); /* nothing is left to be remembered */
        }
}

static void keeps_hosts_apart(void **state)
{
        (void)state;
        struct quarantine_host *a = quarantine_enter(&q, span_of("a"));
        struct quarantine_host *b = quarantine_enter(&q, span_of("b"));
        quarantine_blocked(a, 0, 1, TIME, 1);
        assert_true(quarantine_is_on(a, 1 + TIME - 1));
        assert_false(quarantine_is_on(a, 1 + TIME));
        assert_false(quarantine_is_on(b, 1));
        assert_false(quarantine_is_on(NULL, 1));
        quarantine_leave(a, 2);
        quarantine_leave(b, 2);
        a = quarantine_enter(&q, span_of("a")); /* known still, though nobody asked for it */
        assert_int_equal(quarantine_until(a, 0), 1 + TIME);
        quarantine_forget(&q, 0);
        assert_int_equal(quarantine_until(a, 0), 0);
        quarantine_set(a, 5, 77);
        assert_int_equal(quarantine_until(a, 5), 77);
        quarantine_leave(a, 76);
}

/* Hosts that a peer can make up do not pile up for ever; one in use stays, without its marks. */
static void is_bounded(void **state)
{
        (void)state;
        char name[16];
        const size_t ids = 4096, fit = QUARANTINE_MAX_MARKS / ids;
        struct quarantine_host *used = quarantine_enter(&q, span_of("used"));
        quarantine_blocked(used, ids - 1, 1, TIME, 1);
        for (unsigned i = 0; i < fit; i++) {
                snprintf(name, sizeof name, "host%u", i);
                struct quarantine_host *h = quarantine_enter(&q, span_of(name));
                quarantine_blocked(h, ids - 1, 1, TIME, 2 + i);
                quarantine_leave(h, 2 + i);
                assert_true(q.marks <= QUARANTINE_MAX_MARKS);
        }
        assert_int_equal(HASH_COUNT(q.hosts), fit + 1);
        assert_int_equal(quarantine_until(used, ids - 1), 0);
        quarantine_blocked(used, ids - 1, 1, TIME, 2 + fit);
        assert_int_equal(HASH_COUNT(q.hosts), fit); /* the one that blocked longest ago is gone */
        quarantine_leave(used, 3 + fit);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(avoids, setup, teardown),
            cmocka_unit_test_setup_teardown(keeps_hosts_apart, setup, teardown),
            cmocka_unit_test_setup_teardown(is_bounded, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
