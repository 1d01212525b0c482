#include "tests/unit/unit.h"

#include "core/lane.h"

#define SPAN(text) ((struct span){text, sizeof(text) - 1})

static const struct lane_policy policy = {
    .limit = {.algorithm = LIMITER_FIXED, .start = 1, .floor = 1, .ceiling = 1}};

struct arrival {
        const char *client;
        usec_t arrived;
        unsigned priority;
};

/* Who goes when all of `asked` (in this order) wait: their indexes, in order. */
static const struct {
        const char *name;
        struct arrival asked[8];
        int goes[8];
} orders[] = {
    {"one client: by arrival", {{"a", 1, 0}, {"a", 2, 0}, {"a", 3, 0}}, {0, 1, 2}},
    {"the same moment: as asked", {{"a", 5, 0}, {"a", 5, 0}, {"a", 5, 0}}, {0, 1, 2}},
    {"clients take turns",
     {{"a", 1, 0}, {"a", 2, 0}, {"a", 3, 0}, {"b", 4, 0}, {"b", 5, 0}, {"c", 6, 0}},
     {0, 3, 5, 1, 4, 2}},
    {"a retry goes ahead of younger ones", {{"a", 3, 0}, {"a", 4, 0}, {"a", 1, 0}}, {2, 0, 1}},
    {"retries among themselves",
     {{"a", 9, 0}, {"a", 5, 0}, {"a", 1, 0}, {"a", 3, 0}, {"a", 7, 0}},
     {2, 3, 1, 4, 0}},
    {"but not ahead of another client's turn", {{"b", 8, 0}, {"a", 9, 0}, {"a", 1, 0}}, {0, 2, 1}},
    {"a late comer between two",
     {{"a", 2, 0}, {"a", 6, 0}, {"a", 4, 0}, {"a", 7, 0}},
     {0, 2, 1, 3}},
    {"an empty name is a client too", {{"", 1, 0}, {"", 2, 0}, {"a", 3, 0}}, {0, 2, 1}},
    {"a higher priority first", {{"a", 1, 5}, {"a", 2, 9}, {"a", 3, 0}}, {1, 0, 2}},
    {"whoever the client is", {{"a", 1, 5}, {"b", 2, 6}, {"c", 3, 7}}, {2, 1, 0}},
    {"turns within a priority",
     {{"a", 1, 1}, {"a", 2, 5}, {"a", 3, 5}, {"b", 4, 5}, {"b", 5, 1}},
     {1, 3, 2, 0, 4}},
    {"a retry is no priority", {{"a", 3, 5}, {"a", 1, 4}}, {0, 1}},
};

static void enqueue(struct lane *l, struct ticket *t, struct span client, usec_t now)
{
        lane_join(l, t, client);
        lane_queue(l, t, now);
}

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
                        t[n].priority = orders[i].asked[n].priority;
                        t[n].deadline = USEC_MAX;
                        enqueue(l, &t[n], span_of(orders[i].asked[n].client), 10);
                        assert_int_equal(t[n].state, TICKET_QUEUED);
                }
                for (int k = 0; k < n; k++)
                        if (lane_next(l) != &t[orders[i].goes[k]])
                                fail_msg("%s: wrong at %d", orders[i].name, k);
                assert_null(lane_next(l));
                for (unsigned p = 0; p < TICKET_PRIORITIES; p++)
                        assert_null(l->turns.levels[p].clients);
                assert_int_equal(lane_due(l), USEC_MAX);
                lane_free(l);
        }
}

/* Sixty of each of three priorities, while the highest lasts. */
static void passes_over_nobody_for_ever(void **state)
{
        (void)state;
        static const unsigned priorities[] = {7, 5, 2};
        enum { EACH = 60 };
        struct lane *l = lane_new(SPAN("k"), &policy);
        struct ticket t[3 * EACH] = {0};
        for (size_t n = 0; n < COUNT_OF(t); n++) {
                list_init(&t[n].link);
                t[n].priority = priorities[n / EACH];
                t[n].deadline = USEC_MAX;
                enqueue(l, &t[n], SPAN("a"), 10);
        }
        int served[10] = {0}, longest[10] = {0}, since[10] = {0};
        for (int place = 0; l->turns.levels[7].queued > 0; place++) {
                unsigned p = lane_next(l)->priority;
                served[p]++;
                for (size_t k = 0; k < COUNT_OF(priorities); k++) {
                        since[priorities[k]]++;
                        if (since[priorities[k]] > longest[priorities[k]])
                                longest[priorities[k]] = since[priorities[k]];
                }
                since[p] = 0;
        }
        /* 16 pass and then one goes, or one later where the other has waited as long. */
        assert_int_equal(longest[5], 18);
        assert_int_equal(longest[2], 18);
        assert_in_range(served[5], EACH / 16, EACH / 15);
        assert_in_range(served[2], EACH / 16, EACH / 15);
        while (l->queued > 0)
                lane_next(l);
        lane_free(l);
}

static const struct {
        const char *name;
        struct arrival asked[8];
        struct arrival next;
        size_t ahead;
} aheads[] = {
    {"nobody", {{NULL, 0, 0}}, {"a", 9, 0}, 0},
    {"its own", {{"a", 1, 0}, {"a", 2, 0}}, {"a", 9, 0}, 2},
    {"a new client waits for one round", {{"a", 1, 0}, {"a", 2, 0}, {"b", 3, 0}}, {"c", 9, 0}, 2},
    {"others go as often as oneself",
     {{"a", 1, 0}, {"a", 2, 0}, {"b", 3, 0}, {"b", 4, 0}, {"b", 5, 0}, {"c", 6, 0}},
     {"a", 9, 0},
     5},
    {"a retry may be next", {{"a", 4, 0}, {"a", 5, 0}, {"b", 6, 0}}, {"a", 1, 0}, 0},
    {"all of a higher priority", {{"a", 1, 6}, {"b", 2, 9}, {"a", 3, 5}}, {"a", 9, 5}, 3},
    {"none of a lower", {{"a", 1, 4}, {"b", 2, 0}}, {"a", 9, 5}, 0},
    {"a retry after those of a higher priority", {{"a", 4, 5}, {"b", 6, 6}}, {"a", 1, 5}, 1},
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
                        t[n].priority = aheads[i].asked[n].priority;
                        enqueue(l, &t[n], span_of(aheads[i].asked[n].client), 10);
                }
                size_t ahead = turns_ahead(&l->turns, aheads[i].next.priority,
                                           span_of(aheads[i].next.client), aheads[i].next.arrived);
                if (ahead != aheads[i].ahead)
                        fail_msg("%s: %zu", aheads[i].name, ahead);
                while (lane_next(l))
                        ;
                lane_free(l);
        }
}

/* However many there are of a higher priority: only so many go before those that they pass. */
static void counts_no_more_than_may_pass(void **state)
{
        (void)state;
        enum { HIGH = 100 };
        struct lane *l = lane_new(SPAN("k"), &policy);
        struct ticket t[HIGH + 1] = {0};
        for (size_t n = 0; n <= HIGH; n++) {
                list_init(&t[n].link);
                t[n].priority = n < HIGH ? 9 : 5;
                t[n].deadline = USEC_MAX;
                enqueue(l, &t[n], SPAN("a"), 10);
        }
        assert_int_equal(turns_ahead(&l->turns, 4, SPAN("b"), 11), 16);
        assert_int_equal(turns_ahead(&l->turns, 5, SPAN("b"), 11), 1 + 32);
        for (int i = 0; i < 10; i++)
                assert_ptr_equal(lane_next(l), &t[i]);
        assert_int_equal(turns_ahead(&l->turns, 5, SPAN("b"), 11), 1 + 32 - 10);
        while (l->queued > 1)
                lane_next(l);
        assert_int_equal(turns_ahead(&l->turns, 5, SPAN("b"), 11), l->queued);
        while (l->queued > 0)
                lane_next(l);
        lane_free(l);
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
                enqueue(l, &t[n], (struct span){name, 1}, 10);
        }
        assert_int_equal(turns_ahead(&l->turns, 0, SPAN("new"), 11), 100);
        for (size_t n = 0; n < COUNT_OF(t); n += 2)
                lane_take_out(l, &t[n]);
        assert_int_equal(l->queued, 50);
        assert_ptr_equal(lane_expired(l, 52), &t[1]);
        assert_null(lane_expired(l, 51));
        for (size_t n = 1; n < COUNT_OF(t); n += 2)
                assert_ptr_equal(lane_next(l), &t[n]);
        lane_free(l);
}

static void wake(struct lane *l, usec_t now)
{
        for (struct ticket *t; (t = lane_awake(l, now));)
                lane_queue(l, t, now);
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
        wake(l, 199);
        assert_null(lane_next(l));
        wake(l, 300);
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
            cmocka_unit_test(goes_in_order),       cmocka_unit_test(passes_over_nobody_for_ever),
            cmocka_unit_test(counts_those_ahead),  cmocka_unit_test(counts_no_more_than_may_pass),
            cmocka_unit_test(counts_many_clients), cmocka_unit_test(sleeps_then_queues),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
