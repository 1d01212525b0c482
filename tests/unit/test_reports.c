#include "tests/unit/unit.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "runtime/reports.h"

static struct report *numbered(unsigned n)
{
        struct report *r = xcalloc(1, sizeof *r);
        r->attempts = n;
        r->scope = xstrdup("a:80");
        r->url = report_url("http://a/");
        return r;
}

struct taken {
        unsigned next; /* the number that must come */
        unsigned skipped;
        size_t count;
};

static void on_report(void *arg, struct report *report)
{
        struct taken *t = arg;
        assert_true(report->attempts >= t->next);
        t->skipped += report->attempts - t->next;
        t->next = report->attempts + 1;
        t->count++;
        report_free(report);
}

static bool rings(const struct reports *r)
{
        struct pollfd p = {.fd = reports_bell(r), .events = POLLIN};
        return poll(&p, 1, 0) == 1;
}

static void hands_them_over_in_order(void **state)
{
        (void)state;
        struct reports *r = reports_new(2);
        struct taken t = {0};
        for (unsigned i = 0; i < 10; i++)
                assert_true(reports_put(r, 0, numbered(i)));
        for (unsigned i = 10; i < 20; i++)
                assert_true(reports_put(r, 1, numbered(i)));
        reports_take(r, on_report, &t);
        assert_int_equal(t.count, 20);
        assert_int_equal(t.skipped, 0);
        reports_take(r, on_report, &t);
        assert_int_equal(t.count, 20);
        reports_free(r);
}

static void knows_whether_anybody_watches(void **state)
{
        (void)state;
        struct reports *r = reports_new(1);
        assert_false(reports_are_watched(r));
        reports_watch(r, true);
        assert_true(reports_are_watched(r));
        reports_watch(r, false);
        assert_false(reports_are_watched(r));
        reports_free(r);
}

/* What nobody takes is dropped, the newest first, and told of. What is left is freed. */
static void is_bounded(void **state)
{
        (void)state;
        struct reports *r = reports_new(1);
        struct taken t = {0};
        unsigned kept = 0, dropped = 0;
        for (unsigned i = 0; i < 5000; i++)
                if (reports_put(r, 0, numbered(i)))
                        kept++;
                else
                        dropped++;
        assert_int_equal(kept, 4096);
        assert_int_equal(dropped, 904);
        reports_take(r, on_report, &t);
        assert_int_equal(t.count, kept);
        for (unsigned i = 5000; i < 5010; i++)
                assert_true(reports_put(r, 0, numbered(i)));
        reports_free(r);
}

static void rings_before_it_is_full(void **state)
{
        (void)state;
        struct reports *r = reports_new(1);
        struct taken t = {0};
        unsigned n = 0;
        while (!rings(r)) {
                assert_true(reports_put(r, 0, numbered(n++)));
                assert_true(n < 1000);
        }
        reports_take(r, on_report, &t);
        assert_false(rings(r));
        assert_int_equal(t.count, n);
        reports_free(r);
}

static void long_urls_are_cut_and_betray_nothing(void **state)
{
        (void)state;
        char url[4000], *kept;
        memset(url, 'x', sizeof url);
        memcpy(url, "http://user:", 12);
        memcpy(url + 3000, "@a/b?c", 6);
        url[3999] = '\0';
        kept = report_url(url);
        assert_int_equal(strncmp(kept, "http://***@a/b?c", 16), 0);
        assert_int_equal(strlen(kept), REPORT_MAX_URL);
        free(kept);
        kept = report_url("http://a/?token=short"); /* hidden when it is shown */
        assert_string_equal(kept, "http://a/?token=short");
        free(kept);
        report_free(NULL);
        reports_free(NULL);
}

#define ROUNDS 50000

struct writer {
        struct reports *reports;
        atomic_bool done;
};

static void *put_many(void *writer)
{
        struct writer *w = writer;
        for (unsigned i = 0; i < ROUNDS; i++)
                reports_put(w->reports, 0, numbered(i));
        atomic_store(&w->done, true);
        return NULL;
}

static void may_be_taken_while_they_are_put(void **state)
{
        (void)state;
        struct reports *r = reports_new(1);
        struct writer w = {.reports = r};
        struct taken t = {0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, put_many, &w), 0);
        while (!atomic_load(&w.done)) /* who is late may miss nearly all of them */
                reports_take(r, on_report, &t);
        pthread_join(thread, NULL);
        reports_take(r, on_report, &t);
        assert_true(t.count + t.skipped <= ROUNDS && t.count >= ROUNDS / 100);
        reports_free(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(hands_them_over_in_order),
            cmocka_unit_test(knows_whether_anybody_watches),
            cmocka_unit_test(is_bounded),
            cmocka_unit_test(rings_before_it_is_full),
            cmocka_unit_test(long_urls_are_cut_and_betray_nothing),
            cmocka_unit_test(may_be_taken_while_they_are_put),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
