/* Tests cli/exec_report: what is said, in which unit, in which order. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "cli/exec_report.h"

static char *print(struct exec_figures *f)
{
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        assert_non_null(to);
        exec_report_print(to, f);
        fclose(to);
        return text;
}

static void check(struct exec_figures *f, const char *expected)
{
        char *text = print(f);
        assert_string_equal(text, expected);
        free(text);
}

static void nothing(void **state)
{
        (void)state;
        struct exec_figures f = {.span = 1500 * USEC_PER_MSEC};
        check(&f, "weir: no request came through the proxy in 1.5 s: does the command look at "
                  "HTTP_PROXY, and are its hosts in NO_PROXY?\n");
}

static void all_of_it(void **state)
{
        (void)state;
        struct exec_status answers[] = {{200, 118}, {404, 1}, {429, 2}};
        struct exec_status absorbed[] = {{429, 7}, {503, 1}};
        struct exec_scope scopes[] = {
            {.key = (char *)"b:443", .sent = 3, .concurrency = 32},
            {.key = (char *)"long.example:8443", .sent = 120, .rate = 9.96, .concurrency = 4.4},
            {.key = (char *)"a:443",
             .sent = 3,
             .rate = 0.05,
             .concurrency = 1,
             .closed_for = 90 * USEC_PER_SEC},
        };
        struct exec_figures f = {
            .span = 120 * USEC_PER_SEC,
            .requests = 123,
            .succeeded = 118,
            .relayed = 5,
            .outcomes = {[OUTCOME_SERVED] = 119, [OUTCOME_GAVE_UP] = 2, [OUTCOME_CLIENT_GONE] = 2},
            .retries = 9,
            .answers = answers,
            .answer_count = 3,
            .absorbed = absorbed,
            .absorbed_count = 2,
            .scopes = scopes,
            .scope_count = 3,
        };
        histogram_add(&f.duration, 20 * USEC_PER_SEC);
        check(&f, "weir: 123 requests in 2.0 min, 59 successes a minute\n"
                  "  statuses        200: 118, 404: 1, 429: 2\n"
                  "  not served      gave_up: 2, client_gone: 2\n"
                  "  relayed         5 connections, unread: a 429 inside is not seen\n"
                  "  429s            7 absorbed, 2 passed on\n"
                  "  retries         9, after 429: 7, 503: 1\n"
                  "  duration        p50 20.0 s, p95 20.0 s\n"
                  "\n"
                  "  scope              attempts  limit/s  at once  closed for\n"
                  "  long.example:8443       120     10.0        4  -\n"
                  "  a:443                     3    0.050        1  90.0 s\n"
                  "  b:443                     3        -       32  -\n");
}

/* The unit that is shown is that which a person would choose. */
static void times(void **state)
{
        (void)state;
        static const struct {
                usec_t span;
                const char *text;
        } cases[] = {
            {0, "in 0 ms"},
            {1499, "in 1 ms"},
            {999 * USEC_PER_MSEC, "in 999 ms"},
            {USEC_PER_SEC, "in 1.0 s"},
            {99900 * USEC_PER_MSEC, "in 99.9 s"},
            {100 * USEC_PER_SEC, "in 1.7 min"},
            {99 * 60 * USEC_PER_SEC, "in 99.0 min"},
            {100 * 60 * USEC_PER_SEC, "in 1.7 h"},
            {240 * 3600 * USEC_PER_SEC, "in 240.0 h"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct exec_figures f = {.span = cases[i].span};
                char *text = print(&f);
                assert_non_null(strstr(text, cases[i].text));
                free(text);
        }
}

/* What came of a moment is not made out to be what comes of a minute. */
static void little_time(void **state)
{
        (void)state;
        static const struct {
                usec_t span;
                uint64_t succeeded;
                const char *title;
        } cases[] = {
            {0, 1, "weir: 60 requests in 0 ms, 1 success\n"},
            {100 * USEC_PER_MSEC, 60, "weir: 60 requests in 100 ms, 60 successes\n"},
            {9999 * USEC_PER_MSEC, 0, "weir: 60 requests in 10.0 s, 0 successes\n"},
            {10 * USEC_PER_SEC, 60, "weir: 60 requests in 10.0 s, 360 successes a minute\n"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct exec_figures f = {
                    .requests = 60, .succeeded = cases[i].succeeded, .span = cases[i].span};
                char *text = print(&f);
                assert_memory_equal(text, cases[i].title, strlen(cases[i].title));
                free(text);
        }
        struct exec_status answers[] = {{200, 1}};
        struct exec_figures f = {
            .requests = 1, .succeeded = 1, .answers = answers, .answer_count = 1};
        check(&f, "weir: 1 request in 0 ms, 1 success\n"
                  "  statuses        200: 1\n"
                  "  429s            0 absorbed, 0 passed on\n"
                  "  retries         0\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(nothing),
            cmocka_unit_test(all_of_it),
            cmocka_unit_test(times),
            cmocka_unit_test(little_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
