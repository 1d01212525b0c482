#include "tests/unit/unit.h"

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/metrics.h"

static bool is_kept(enum metric m)
{
        return metrics_cells(m) > 0;
}

static void sums_what_the_writers_count(void **state)
{
        (void)state;
        struct metrics *m = metrics_new(3);
        size_t ok = metrics_status(200), slow = metrics_status(429);
        metrics_add(metrics_writer(m, 0), METRIC_UPSTREAM_RESPONSES, ok, 1);
        metrics_add(metrics_writer(m, 1), METRIC_UPSTREAM_RESPONSES, ok, 2);
        metrics_add(metrics_writer(m, 2), METRIC_UPSTREAM_RESPONSES, slow, 5);
        assert_int_equal(metrics_get(m, METRIC_UPSTREAM_RESPONSES, ok), 3);
        assert_int_equal(metrics_get(m, METRIC_UPSTREAM_RESPONSES, slow), 5);
        assert_int_equal(metrics_total(m, METRIC_UPSTREAM_RESPONSES), 8);
        for (enum metric other = 0; other < METRICS_COUNT; other++)
                if (other != METRIC_UPSTREAM_RESPONSES)
                        assert_int_equal(metrics_total(m, other), 0);
        metrics_free(m);
}

/* Two metrics that shared a cell would show here. */
static void every_cell_is_its_own(void **state)
{
        (void)state;
        struct metrics *m = metrics_new(1);
        struct metrics_writer *w = metrics_writer(m, 0);
        uint64_t n = 0;
        for (enum metric which = 0; which < METRICS_COUNT; which++)
                for (size_t cell = 0; cell < metrics_cells(which); cell++)
                        metrics_add(w, which, cell, ++n);
        n = 0;
        for (enum metric which = 0; which < METRICS_COUNT; which++)
                for (size_t cell = 0; cell < metrics_cells(which); cell++)
                        assert_int_equal(metrics_get(m, which, cell), ++n);
        metrics_free(m);
}

static void every_time_is_its_own(void **state)
{
        (void)state;
        struct metrics *m = metrics_new(2);
        struct histogram h;
        metrics_histogram(m, METRIC_QUEUE_WAIT, &h);
        assert_int_equal(h.count, 0);
        metrics_time(metrics_writer(m, 0), METRIC_QUEUE_WAIT, 3000);
        metrics_time(metrics_writer(m, 1), METRIC_QUEUE_WAIT, 90);
        metrics_time(metrics_writer(m, 1), METRIC_REQUEST_DURATION, 7 * USEC_PER_SEC);
        metrics_histogram(m, METRIC_QUEUE_WAIT, &h);
        assert_int_equal(h.count, 2);
        assert_int_equal(h.sum, 3090);
        assert_int_equal(h.min, 90);
        assert_int_equal(h.max, 3000);
        assert_int_equal(h.buckets[histogram_bucket(3000)], 1);
        metrics_histogram(m, METRIC_REQUEST_DURATION, &h);
        assert_int_equal(h.count, 1);
        assert_int_equal(h.min, 7 * USEC_PER_SEC);
        metrics_histogram(m, METRIC_FIRST_BYTE, &h);
        assert_int_equal(h.count, 0);
        metrics_free(m);
}

static void statuses_outside_share_a_cell(void **state)
{
        (void)state;
        char text[METRICS_LABEL_SIZE];
        const int odd[] = {-1, 0, 99, 600, 999};
        for (size_t i = 0; i < COUNT_OF(odd); i++)
                assert_string_equal(metrics_label(METRIC_RESPONSES, metrics_status(odd[i]), text),
                                    "status=\"other\"");
        assert_string_equal(metrics_label(METRIC_RESPONSES, metrics_status(100), text),
                            "status=\"100\"");
        assert_string_equal(metrics_label(METRIC_RESPONSES, metrics_status(599), text),
                            "status=\"599\"");
}

static void endings_are_named(void **state)
{
        (void)state;
        char text[METRICS_LABEL_SIZE];
        assert_string_equal(
            metrics_label(METRIC_REQUESTS, metrics_ending(ANSWER_THROTTLED, OUTCOME_GAVE_UP), text),
            "class=\"throttled\",outcome=\"gave_up\"");
        assert_string_equal(
            metrics_label(METRIC_REQUESTS, metrics_ending_unsent(OUTCOME_QUEUE_FULL), text),
            "class=\"none\",outcome=\"queue_full\"");
}

static void retries_have_a_reason(void **state)
{
        (void)state;
        static const struct {
                enum answer_class class;
                enum retry_failure failure;
                const char *label;
        } cases[] = {
            {ANSWER_THROTTLED, RETRY_FAILURE_NONE, "reason=\"throttled\""},
            {ANSWER_OVERLOADED, RETRY_FAILURE_NONE, "reason=\"overloaded\""},
            {ANSWER_FAILED, RETRY_FAILURE_NONE, "reason=\"status\""},
            {ANSWER_SUCCESS, RETRY_FAILURE_NONE, "reason=\"status\""},
            {ANSWER_FAILED, RETRY_FAILURE_CONNECT, "reason=\"connect\""},
            {ANSWER_FAILED, RETRY_FAILURE_TIMEOUT, "reason=\"timeout\""},
            {ANSWER_FAILED, RETRY_FAILURE_RESET, "reason=\"reset\""},
        };
        char text[METRICS_LABEL_SIZE];
        for (size_t i = 0; i < COUNT_OF(cases); i++)
                assert_string_equal(metrics_label(METRIC_RETRIES,
                                                  metrics_retry(cases[i].class, cases[i].failure),
                                                  text),
                                    cases[i].label);
}

/* No two cells of a metric with the same labels, and none without where it has several. */
static void labels_tell_cells_apart(void **state)
{
        (void)state;
        char a[METRICS_LABEL_SIZE], b[METRICS_LABEL_SIZE];
        for (enum metric m = 0; m < METRICS_COUNT; m++)
                for (size_t i = 1; i < metrics_cells(m); i++) {
                        metrics_label(m, i - 1, a);
                        metrics_label(m, i, b);
                        assert_string_not_equal(a, b);
                        assert_true(strlen(b) > 0 && strlen(b) < METRICS_LABEL_SIZE - 1);
                }
}

/* https://prometheus.io/docs/practices/naming/ */
static void names_follow_the_rules(void **state)
{
        (void)state;
        for (enum metric m = 0; m < METRICS_COUNT; m++) {
                const struct metrics_info *i = metrics_info(m);
                assert_non_null(i->name);
                assert_true(strncmp(i->name, "weir_", 5) == 0 ||
                            strncmp(i->name, "process_", 8) == 0);
                for (const char *c = i->name; *c; c++)
                        assert_true(islower((unsigned char)*c) || *c == '_');
                size_t n = strlen(i->name);
                bool total = n > 6 && strcmp(i->name + n - 6, "_total") == 0;
                assert_int_equal(total, i->type == METRICS_COUNTER);
                if (i->unit == METRICS_SECONDS)
                        assert_non_null(strstr(i->name, "_seconds"));
                if (i->unit == METRICS_BYTES)
                        assert_non_null(strstr(i->name, "_bytes"));
                assert_null(strpbrk(i->help, "\\\n"));
                assert_true(strlen(i->help) > 10);
                for (enum metric other = 0; other < m; other++)
                        assert_string_not_equal(metrics_info(other)->name, i->name);
                if (i->labels == LABELS_SCOPE)
                        assert_false(is_kept(m));
        }
}

#define ROUNDS 20000

static void *count_on(void *writer)
{
        for (unsigned i = 0; i < ROUNDS; i++) {
                metrics_add(writer, METRIC_BLOCKED, 0, 1);
                metrics_time(writer, METRIC_REQUEST_DURATION, 200 + i % 7);
        }
        return NULL;
}

/* A reader sees figures that never fall, and in the end nothing is lost. */
static void may_be_read_while_it_counts(void **state)
{
        (void)state;
        struct metrics *m = metrics_new(2);
        pthread_t threads[2];
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, count_on, metrics_writer(m, i)),
                                 0);
        uint64_t count = 0, blocked = 0;
        for (unsigned i = 0; i < 200; i++) {
                struct histogram h;
                metrics_histogram(m, METRIC_REQUEST_DURATION, &h);
                assert_true(h.count >= count && h.sum >= 200 * h.count);
                if (h.count > 0)
                        assert_in_range(histogram_quantile(&h, 0.5), 200, 206);
                count = h.count;
                uint64_t now = metrics_get(m, METRIC_BLOCKED, 0);
                assert_true(now >= blocked);
                blocked = now;
        }
        for (unsigned i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(metrics_get(m, METRIC_BLOCKED, 0), 2 * ROUNDS);
        metrics_free(m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(sums_what_the_writers_count),
            cmocka_unit_test(every_cell_is_its_own),
            cmocka_unit_test(every_time_is_its_own),
            cmocka_unit_test(statuses_outside_share_a_cell),
            cmocka_unit_test(endings_are_named),
            cmocka_unit_test(retries_have_a_reason),
            cmocka_unit_test(labels_tell_cells_apart),
            cmocka_unit_test(names_follow_the_rules),
            cmocka_unit_test(may_be_read_while_it_counts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
