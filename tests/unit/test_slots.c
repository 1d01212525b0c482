#include "tests/unit/unit.h"

#include "core/slots.h"

/* Two refusals have shown that `known` in flight are borne. */
static struct slots knows(unsigned known, unsigned floor, unsigned ceiling)
{
        struct slots s;
        slots_init(&s, floor, ceiling);
        slots_refused(&s, known + 1, false);
        slots_refused(&s, known + 1, false);
        return s;
}

static void bounds_make_sense(void **state)
{
        (void)state;
        static const struct {
                unsigned floor, ceiling, limit;
        } cases[] = {{1, 32, 32}, {0, 0, 1}, {9, 3, 3}, {4, 4, 4}};
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct slots s;
                slots_init(&s, cases[i].floor, cases[i].ceiling);
                assert_int_equal(s.limit, cases[i].limit);
                assert_int_equal(s.known, 0);
        }
}

/* What happened to requests: number in flight, negative where it was refused; 0 ends it. */
struct story {
        int answers[8];
        unsigned known;
        bool found; /* with the last of them */
        bool again; /* all of one episode */
};

static void tell(const struct story *story, struct slots *s)
{
        bool found = false;
        for (size_t i = 0; i < 8 && story->answers[i]; i++) {
                int n = story->answers[i];
                if (n > 0)
                        slots_accepted(s, (unsigned)n);
                else
                        found = slots_refused(s, (unsigned)-n, story->again) == SLOTS_FOUND;
        }
        assert_int_equal(s->known, story->known);
        assert_int_equal(found, story->found);
}

static void two_refusals_above_what_is_accepted_find_it(void **state)
{
        (void)state;
        static const struct story stories[] = {
            {{-9}, 0, false, false},
            {{-9, -9}, 8, true, false},
            {{-9, 8, 3, -12}, 8, true, false},
            {{-9, 9, -9}, 0, false, false},        /* so many were accepted, too */
            {{-9, 30, -9, 7, -9}, 8, true, false}, /* but no more */
            {{-9, -8, -7}, 0, false, false},       /* lower each time: which of them? */
            {{-9, -6, 5, -8}, 5, true, false},     /* the lowest one */
            {{-1, -1, -1}, 0, false, false},       /* one alone cannot be too many at once */
            {{-9, -9, -9}, 0, false, true},        /* nothing new */
            {{-9, -1, -9}, 0, false, false},       /* and tells that it was not that */
        };
        for (size_t i = 0; i < COUNT_OF(stories); i++) {
                struct slots s;
                slots_init(&s, 1, 32);
                tell(&stories[i], &s);
                assert_int_equal(s.limit, s.known ? s.known : 32);
        }
}

static void what_is_known_is_lowered_the_same_way(void **state)
{
        (void)state;
        static const struct story stories[] = {
            {{-8, -8}, 7, true, false},
            {{-4, 3, -5}, 3, true, false}, /* halved: at once */
            {{-8, 8, -8}, 8, false, false},
            {{-5, -9, -5}, 8, false, false}, /* a trial's refusal says no more than that */
        };
        for (size_t i = 0; i < COUNT_OF(stories); i++) {
                struct slots s = knows(8, 1, 32);
                tell(&stories[i], &s);
                assert_int_equal(s.limit, stories[i].known);
        }
}

static void grow(struct slots *s, unsigned times, unsigned in_flight)
{
        for (unsigned i = 0; i < times; i++)
                slots_grow(s, in_flight, 0);
}

static void a_trial_succeeds_or_not(void **state)
{
        (void)state;
        struct slots s = knows(8, 1, 32);
        grow(&s, 199, 8); /* two refusals confirmed it: rarely */
        assert_int_equal(s.limit, 8);
        grow(&s, 2, 8);
        assert_int_equal(s.limit, 10);
        grow(&s, 3, 9); /* max(4, 2 * 2) accepted above C are wanted */
        grow(&s, 1, 8); /* is not above */
        assert_int_equal(s.known, 8);
        grow(&s, 1, 10);
        assert_int_equal(s.known, 10);
        assert_false(s.confirmed);

        for (unsigned i = 0; s.limit == 10 && i < 11; i++)
                grow(&s, 1, 10);
        assert_int_equal(s.limit, 12);
        assert_int_equal(slots_refused(&s, 11, false), SLOTS_TRIAL_REFUSED);
        assert_int_equal(s.limit, 10);
        assert_true(s.confirmed);
}

static void a_trial_has_its_price(void **state)
{
        (void)state;
        struct slots s = knows(8, 1, 32);
        for (unsigned i = 0; i < 990; i++)
                slots_grow(&s, 8, 1000);
        assert_int_equal(s.limit, 8);
        for (unsigned i = 0; i < 12; i++)
                slots_grow(&s, 8, 1000);
        assert_int_equal(s.limit, 10);
}

static void bounds_hold(void **state)
{
        (void)state;
        struct slots s = knows(4, 3, 5);
        for (unsigned i = 0; i < 100; i++)
                slots_refused(&s, s.known, false);
        assert_int_equal(s.known, 3);
        for (unsigned i = 0; i < 10000; i++)
                grow(&s, 1, s.limit);
        assert_int_equal(s.known, 5);
        assert_int_equal(s.limit, 5);
        slots_bound(&s, 1, 2); /* a reload */
        assert_int_equal(s.known, 2);
        assert_int_equal(s.limit, 2);
        slots_bound(&s, 6, 64);
        assert_int_equal(s.limit, 6);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(bounds_make_sense),
            cmocka_unit_test(two_refusals_above_what_is_accepted_find_it),
            cmocka_unit_test(what_is_known_is_lowered_the_same_way),
            cmocka_unit_test(a_trial_succeeds_or_not),
            cmocka_unit_test(a_trial_has_its_price),
            cmocka_unit_test(bounds_hold),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
