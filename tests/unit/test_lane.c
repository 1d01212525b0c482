#include "tests/unit/unit.h"

#include "core/lane.h"

#define SPAN(text) ((struct span){text, sizeof(text) - 1})

static const struct lane_policy policy = {
    .limit = {.algorithm = LIMITER_FIXED, .start = 1, .floor = 1, .ceiling = 1}};

struct arrival {
        const char *client;
        usec_t arrived;
};

/* Who goes when all of `asked` (in this order) wait: their indexes, in order. */
static const struct {
        const char *name;
        struct arrival asked[8];
        int goes[8];
} orders[] = {
    {"one client: by arrival", {{"a", 1}, {"a", 2}, {"a", 3}}, {0, 1, 2}},
    {"the same moment: as asked", {{"a", 5}, {"a", 5}, {"a", 5}}, {0, 1, 2}},
    {"clients take turns",
     {{"a", 1}, {"a", 2}, {"a", 3}, {"b", 4}, {"b", 5}, {"c", 6}},
     {0, 3, 5, 1, 4, 2}},
    {"a retry goes ahead of younger ones", {{"a", 3}, {"a", 4}, {"a", 1}}, {2, 0, 1}},
    {"retries among themselves",
     {{"a", 9}, {"a", 5}, {"a", 1}, {"a", 3}, {"a", 7}},
     {2, 3, 1, 4, 0}},
    {"but not ahead of another client's turn", {{"b", 8}, {"a", 9}, {"a", 1}}, {0, 2, 1}},
    {"a late comer between two", {{"a", 2}, {"a", 6}, {"a", 4}, {"a", 7}}, {0, 2, 1, 3}},
    {"an empty name is a client too", {{"", 1}, {"", 2}, {"a", 3}}, {0, 2, 1}},
};

static void goes_in_order(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(orders); i++) {
                struct lane *l = lane_new(SPAN("k"), &policy);
                struct ticket t[8] = {0};
                int n = 0;
                for (; orders[i].asked[n].client; n++) {
                        list_init(&t[n].link);
                        t[n].arrived = orders[i].asked[n].arrived;
                        t[n].deadline = USEC_MAX;
                        lane_enqueue(l, &t[n], span_of(orders[i].asked[n].client), 10);
                        assert_int_equal(t[n].state, TICKET_QUEUED);
                }
                for (int k = 0; k < n; k++)
                        if (lane_next(l) != &t[orders[i].goes[k]])
                                fail_msg("%s: wrong at %d", orders[i].name, k);
                assert_null(lane_next(l));
                assert_null(l->clients);
                assert_int_equal(lane_due(l), USEC_MAX);
                lane_free(l);
        }
}

static const struct {
        const char *name;
        struct arrival asked[8];
        struct arrival next;
        size_t ahead;
} aheads[] = {
    {"nobody", {{0}}, {"a", 9}, 0},
    {"its own", {{"a", 1}, {"a", 2}}, {"a", 9}, 2},
    {"a new client waits for one round", {{"a", 1}, {"a", 2}, {"b", 3}}, {"c", 9}, 2},
    {"others go as often as oneself",
     {{"a", 1}, {"a", 2}, {"b", 3}, {"b", 4}, {"b", 5}, {"c", 6}},
     {"a", 9},
     5},
    {"a retry may be next", {{"a", 4}, {"a", 5}, {"b", 6}}, {"a", 1}, 0},
};

static void counts_those_ahead(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(aheads); i++) {
                struct lane *l = lane_new(SPAN("k"), &policy);
                struct ticket t[8] = {0};
                for (int n = 0; aheads[i].asked[n].client; n++) {
                        list_init(&t[n].link);
                        t[n].arrived = aheads[i].asked[n].arrived;
                        lane_enqueue(l, &t[n], span_of(aheads[i].asked[n].client), 10);
                }
                size_t ahead =
                    lane_ahead(l, span_of(aheads[i].next.client), aheads[i].next.arrived);
                if (ahead != aheads[i].ahead)
                        fail_msg("%s: %zu", aheads[i].name, ahead);
                while (lane_next(l))
                        ;
                lane_free(l);
        }
}

/* Many clients with one ticket each: never more than there are. */
static void counts_many_clients(void **state)
{
        (void)state;
        struct lane *l = lane_new(SPAN("k"), &policy);
        struct ticket t[100] = {0};
        for (size_t n = 0; n < COUNT_OF(t); n++) {
                char name[] = {(char)n};
                list_init(&t[n].link);
                t[n].deadline = 50 + n;
                lane_enqueue(l, &t[n], (struct span){name, 1}, 10);
        }
        assert_int_equal(lane_ahead(l, SPAN("new"), 11), 100);
        for (size_t n = 0; n < COUNT_OF(t); n += 2)
                lane_take_out(l, &t[n]);
        assert_int_equal(l->queued, 50);
        assert_ptr_equal(lane_expired(l, 52), &t[1]);
        assert_null(lane_expired(l, 51));
        for (size_t n = 1; n < COUNT_OF(t); n += 2)
                assert_ptr_equal(lane_next(l), &t[n]);
        lane_free(l);
}

static void sleeps_then_queues(void **state)
{
        (void)state;
        struct lane *l = lane_new(SPAN("k"), &policy);
        struct ticket t[3] = {{.arrived = 1, .deadline = 500},
                              {.arrived = 2, .deadline = 900},
                              {.arrived = 3, .deadline = USEC_MAX}};
        const usec_t until[] = {300, 200, 400};
        for (size_t n = 0; n < COUNT_OF(t); n++) {
                list_init(&t[n].link);
                lane_sleep(l, &t[n], SPAN("a"), until[n]);
        }
        assert_int_equal(l->sleeping, 3);
        assert_int_equal(lane_due(l), 200);
        lane_wake(l, 199);
        assert_null(lane_next(l));
        lane_wake(l, 300);
        assert_int_equal(l->queued, 2);
        assert_int_equal(t[2].state, TICKET_SLEEPING);
        l->limiter_wake = USEC_MAX;
        assert_int_equal(lane_due(l), 400);
        lane_take_out(l, &t[2]);
        assert_int_equal(lane_due(l), 500);
        l->limiter_wake = 350;
        assert_int_equal(lane_due(l), 350);
        assert_ptr_equal(lane_next(l), &t[0]);
        assert_ptr_equal(lane_next(l), &t[1]);
        assert_int_equal(l->queued + l->sleeping, 0);
        lane_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(goes_in_order),
            cmocka_unit_test(counts_those_ahead),
            cmocka_unit_test(counts_many_clients),
            cmocka_unit_test(sleeps_then_queues),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
