#include "tests/unit/unit.h"

#include "core/hold.h"

#define MS USEC_PER_MSEC
#define S USEC_PER_SEC

static const usec_t now = 5000 * S;

static void a_hold_is_only_lengthened(void **state)
{
        (void)state;
        static const struct {
                usec_t first, second, until;
        } cases[] = {
            {S, 2 * S, 2 * S},
            {2 * S, S, 2 * S},
            {S, 0, S},
            {S, USEC_MAX, USEC_MAX - now}, /* until the end of time, not past it */
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct hold h = {0};
                hold_close(&h, cases[i].first, false, now);
                assert_true(h.closed && !h.half_open);
                hold_close(&h, cases[i].second, false, now);
                assert_true(h.until == now + cases[i].until);
                assert_true(h.since == now);
        }
}

static void half_open_stays_so(void **state)
{
        (void)state;
        struct hold h = {0};
        hold_close(&h, S, true, now);
        hold_close(&h, 2 * S, false, now + 1);
        assert_true(h.half_open);
        assert_int_equal(hold_reopen(&h, now + 3 * S), 3 * S);
        assert_false(h.closed || h.half_open);
        hold_close(&h, S, false, now + 4 * S); /* a new hold knows nothing of the old */
        assert_false(h.half_open);
        assert_true(h.since == now + 4 * S && h.until == now + 5 * S);
}

static void back_off_has_limits(void **state)
{
        (void)state;
        static const struct {
                usec_t asked;
                double jitter;
                usec_t back_off, closed;
        } cases[] = {
            {0, 1, 250 * MS, 250 * MS},
            {100 * MS, 1.1, 250 * MS, 275 * MS},
            {3 * S, 1.05, 3 * S, 3150 * MS},
            {120 * S, 1, 60 * S, 60 * S},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct hold h = {0};
                hold_back_off(&h, cases[i].asked, cases[i].jitter, now);
                assert_int_equal(h.back_off, cases[i].back_off);
                assert_in_range(h.until, now + cases[i].closed - 1, now + cases[i].closed + 1);
                assert_true(h.half_open);
        }
}

static void refused_probes_double_the_back_off(void **state)
{
        (void)state;
        static const usec_t expected[] = {500 * MS, 1 * S,  2 * S,  4 * S, 8 * S,
                                          16 * S,   32 * S, 60 * S, 60 * S};
        struct hold h = {0};
        usec_t t = now;
        hold_back_off(&h, 0, 1, t);
        for (size_t i = 0; i < COUNT_OF(expected); i++) {
                t = h.until;
                hold_probe_sent(&h);
                hold_probe_refused(&h, 0, 1, t);
                assert_false(h.probe_out);
                assert_int_equal(h.until - t, expected[i]);
        }
}

static void a_named_wait_and_its_probe(void **state)
{
        (void)state;
        struct hold h = {0};
        hold_named(&h, 2 * S, true, 700 * MS, now);
        assert_true(h.until == now + 2 * S); /* to the letter: no jitter */
        hold_probe_sent(&h);
        assert_true(h.probe_out);
        hold_probe_cancelled(&h);
        assert_true(!h.probe_out && h.closed && h.until == now + 2 * S);
        hold_probe_sent(&h);
        hold_probe_refused(&h, 10 * S, 1.1, now + 2 * S); /* the named wait is the later one */
        assert_in_range(h.until, now + 13 * S - 1, now + 13 * S + 1);
        assert_int_equal(h.back_off, 1400 * MS);
}

static void the_circuit_opens(void **state)
{
        (void)state;
        static const struct {
                unsigned trip, refusals, accepted_after; /* 0: none accepted */
                bool open;
        } cases[] = {
            {6, 5, 0, false}, {6, 6, 0, true}, {6, 7, 0, true},   {6, 7, 3, false},
            {6, 9, 3, true},  {1, 1, 0, true}, {0, 99, 0, false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct hold h = {0};
                bool open = false;
                for (unsigned k = 1; k <= cases[i].refusals; k++) {
                        open = hold_refused(&h, cases[i].trip, 30 * S, 1, now);
                        if (k == cases[i].accepted_after)
                                hold_accepted(&h);
                }
                assert_int_equal(open, cases[i].open);
                assert_int_equal(h.circuit_open, cases[i].open);
                assert_int_equal(h.half_open, cases[i].open);
                assert_true(h.until == (cases[i].open ? now + 30 * S : 0));
                hold_reopen(&h, now + 30 * S);
                assert_false(h.circuit_open);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_hold_is_only_lengthened),
            cmocka_unit_test(half_open_stays_so),
            cmocka_unit_test(back_off_has_limits),
            cmocka_unit_test(refused_probes_double_the_back_off),
            cmocka_unit_test(a_named_wait_and_its_probe),
            cmocka_unit_test(the_circuit_opens),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
