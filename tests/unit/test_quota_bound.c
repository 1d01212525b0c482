#include "tests/unit/unit.h"

#include "core/quota_bound.h"

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC
#define UNTOLD USEC_MAX
#define NOW (1000 * S)

static const struct {
        struct quota_window windows[3]; /* limit, remaining, reset, length */
        size_t count;
        uint64_t sent;
        usec_t rtt;
        double rate;    /* 0: none */
        usec_t lasting; /* from now */
} rows[] = {
    {{{30, 20, 10 * S, 0}}, 1, 0, 0, 2, 4 * S},
    {{{30, 20, 10 * S, 0}}, 1, 4, 2 * S, 2, 4 * S}, /* 16 left for 8 s */
    {{{0, 20, 10 * S, 0}}, 1, 0, 0, 2, 4 * S},      /* the limit is at least what remains */
    {{{0, 9, 10 * S, 0}}, 1, 0, 0, 0, 0},
    {{{9, 9, 10 * S, 0}}, 1, 0, 0, 0, 0}, /* too few */
    {{{10, 10, 10 * S, 0}}, 1, 0, 0, 1, 4 * S},
    {{{30, 20, 3 * S - 1, 0}}, 1, 0, 0, 0, 0}, /* too soon whole again */
    {{{30, 21, 3 * S, 0}}, 1, 0, 0, 7, 4 * S},
    {{{30, 21, 3 * S, 0}}, 1, 0, 5 * S, 21, 4 * S}, /* never less than a second */
    {{{30, 3, 10 * S, 0}}, 1, 3, 0, .1, 10 * S},    /* never less than one request */
    {{{30, 3, 10 * S, 0}}, 1, 500, 0, .1, 10 * S},
    {{{30, 0, 10 * S, 0}}, 1, 0, 0, .1, 10 * S},
    /* two requests long, when that is longer; but not beyond the reset */
    {{{5000, 100, 1000 * S, 0}}, 1, 0, 0, .1, 20 * S},
    {{{5000, 2, 1000 * S, 0}}, 1, 0, 0, .002, 1000 * S},
    {{{5000, 1, 1000 * S, 0}}, 1, 0, 0, .001, 1000 * S},
    /* the scarcest counts */
    {{{20, 20, 10 * S, 0}, {1000, 100, 1000 * S, 0}, {50, 40, 20 * S, 0}}, 3, 0, 0, .1, 20 * S},
    {{{9, 1, 10 * S, 0}, {50, 40, 20 * S, 0}}, 2, 0, 0, 2, 4 * S},
    /* no reset: what the period allows in the long run */
    {{{120, 3, UNTOLD, 60 * S}}, 1, 0, 0, 2, 4 * S},
    {{{20, 3, UNTOLD, 1 * S}, {100, 93, UNTOLD, 200 * S}}, 2, 0, 0, .5, 4 * S},
    {{{40, 8, UNTOLD, 0}}, 1, 0, 0, 0, 0},
    {{{0}}, 0, 0, 0, 0, 0},
};

static void bounds(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct quota q = {.count = rows[i].count};
                struct quota_bound b = {0};
                for (size_t k = 0; k < q.count; k++)
                        q.windows[k] = rows[i].windows[k];
                quota_bound_read(&b, &q, rows[i].sent, rows[i].rtt, NOW);
                double rate = quota_bound_rate(&b, NOW);
                usec_t lasting = usec_sub(b.until, NOW);
                if (rate < rows[i].rate - 1e-9 || rate > rows[i].rate + 1e-9 ||
                    lasting + 1 < rows[i].lasting || lasting > rows[i].lasting)
                        fail_msg("row %zu: %g/s for %llu us", i, rate, (unsigned long long)lasting);
        }
}

static void ends_when_it_is_not_fresh(void **state)
{
        (void)state;
        struct quota q = {.count = 1, .windows = {{30, 20, 10 * S, 0}}};
        struct quota_bound b = {0};
        quota_bound_read(&b, &q, 0, 0, NOW);
        assert_float_equal(quota_bound_rate(&b, NOW + 4 * S - 1), 2, 1e-9);
        assert_float_equal(quota_bound_rate(&b, NOW + 4 * S), 0, 0);
}

static void keeps_it_where_nothing_is_told(void **state)
{
        (void)state;
        struct quota q = {.count = 1, .windows = {{30, 20, 10 * S, 0}}}, none = {0};
        struct quota_bound b = {0};
        quota_bound_read(&b, &q, 0, 0, NOW);
        quota_bound_read(&b, &none, 0, 0, NOW + S);
        assert_float_equal(quota_bound_rate(&b, NOW + S), 2, 1e-9);
        q.windows[0].remaining = 30; /* more may be had as well as less */
        quota_bound_read(&b, &q, 0, 0, NOW + S);
        assert_float_equal(quota_bound_rate(&b, NOW + S), 3, 1e-9);
        assert_int_equal(b.until, NOW + 5 * S);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(bounds),
            cmocka_unit_test(ends_when_it_is_not_fresh),
            cmocka_unit_test(keeps_it_where_nothing_is_told),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
