#include "tests/unit/unit.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/text_format.h"

/* What was written; in a static buffer. */
static const char *text_of(struct evbuffer *b)
{
        static char text[8192];
        size_t n = evbuffer_get_length(b);
        assert_true(n < sizeof text);
        evbuffer_remove(b, text, n);
        text[n] = '\0';
        return text;
}

static void labels_are_escaped(void **state)
{
        (void)state;
        static const struct {
                const char *value, *label;
        } cases[] = {
            {"a:80", "s=\"a:80\""},
            {"", "s=\"\""},
            {"a\"b", "s=\"a\\\"b\""},
            {"a\\b", "s=\"a\\\\b\""},
            {"a\\", "s=\"a\\\\\""},
            {"a\nb", "s=\"a\\nb\""},
            {"a\rb\t", "s=\"a\\\\x0db\\\\x09\""},
            {"\x7f", "s=\"\\\\x7f\""},
            {"\"} 1\nx 2", "s=\"\\\"} 1\\nx 2\""},
            {"\xc3\xa9", "s=\"\xc3\xa9\""},
            {"a,b={c}", "s=\"a,b={c}\""},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char *label = text_format_label("s", cases[i].value);
                assert_string_equal(label, cases[i].label);
                free(label);
        }
}

static void samples(void **state)
{
        (void)state;
        struct evbuffer *b = evbuffer_new();
        text_format_count(b, "a_total", "", UINT64_MAX);
        text_format_count(b, "a_total", "x=\"1\"", 0);
        text_format_real(b, "b", "x=\"1\",y=\"2\"", 0.25);
        text_format_real(b, "b", "", 1796039919.896);
        text_format_real(b, "b", "", 0);
        assert_string_equal(text_of(b), "a_total 18446744073709551615\n"
                                        "a_total{x=\"1\"} 0\n"
                                        "b{x=\"1\",y=\"2\"} 0.25\n"
                                        "b 1796039919.896\n"
                                        "b 0\n");
        evbuffer_free(b);
}

static void heads(void **state)
{
        (void)state;
        struct evbuffer *b = evbuffer_new();
        text_format_head(b, &(struct metrics_info){
                                .name = "a_total", .help = "What it is.", .type = METRICS_COUNTER});
        text_format_head(
            b, &(struct metrics_info){.name = "b", .help = "Else.", .type = METRICS_GAUGE});
        text_format_head(
            b, &(struct metrics_info){.name = "c", .help = "More.", .type = METRICS_HISTOGRAM});
        assert_string_equal(text_of(b), "# HELP a_total What it is.\n# TYPE a_total counter\n"
                                        "# HELP b Else.\n# TYPE b gauge\n"
                                        "# HELP c More.\n# TYPE c histogram\n");
        evbuffer_free(b);
}

/* The bounds rise, the counts never fall, and each value is below a bound exactly where it is. */
static bool number_after(const char *text, const char *start, unsigned long *ret)
{
        if (strncmp(text, start, strlen(start)) != 0)
                return false;
        char *end;
        *ret = strtoul(text + strlen(start), &end, 10);
        return end > text + strlen(start) && *end == '\0';
}

static void histograms(void **state)
{
        (void)state;
        static const usec_t values[] = {0,       1,          1023,       1024,    1025,
                                        2047,    2048,       500000,     1 << 29, (1 << 29) - 1,
                                        1 << 20, 1ull << 36, 1ull << 50, USEC_MAX};
        struct evbuffer *b = evbuffer_new();
        struct histogram h = {0};
        for (size_t i = 0; i < COUNT_OF(values); i++)
                histogram_add(&h, values[i]);
        text_format_histogram(b, "t", &h);
        double bound = 0;
        unsigned buckets = 0;
        unsigned long count = 0, infinite = 0;
        char *rest = (char *)text_of(b), *line;
        while ((line = strsep(&rest, "\n")) && *line) {
                double le;
                unsigned long n;
                size_t below = 0;
                if (number_after(line, "t_bucket{le=\"+Inf\"} ", &infinite) ||
                    number_after(line, "t_count ", &count) || strncmp(line, "t_sum ", 6) == 0)
                        continue;
                static const char start[] = "t_bucket{le=\"";
                char *end;
                assert_int_equal(strncmp(line, start, strlen(start)), 0);
                le = strtod(line + strlen(start), &end);
                assert_true(number_after(end, "\"} ", &n));
                assert_true(le > bound);
                for (size_t i = 0; i < COUNT_OF(values); i++)
                        below += usec_seconds(values[i]) < le;
                assert_int_equal(n, below);
                bound = le;
                buckets++;
        }
        assert_int_equal(buckets, 20);
        assert_int_equal(infinite, COUNT_OF(values));
        assert_int_equal(count, COUNT_OF(values));
        evbuffer_free(b);
}

static void empty_histograms_are_whole(void **state)
{
        (void)state;
        struct evbuffer *b = evbuffer_new();
        text_format_histogram(b, "t", &(struct histogram){0});
        const char *text = text_of(b);
        assert_non_null(strstr(text, "t_bucket{le=\"0.001024\"} 0\n"));
        assert_non_null(strstr(text, "t_bucket{le=\"536.870912\"} 0\n"));
        assert_non_null(strstr(text, "t_bucket{le=\"+Inf\"} 0\nt_sum 0\nt_count 0\n"));
        evbuffer_free(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(labels_are_escaped),
            cmocka_unit_test(samples),
            cmocka_unit_test(heads),
            cmocka_unit_test(histograms),
            cmocka_unit_test(empty_histograms_are_whole),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
