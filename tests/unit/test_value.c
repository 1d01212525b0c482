#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "config/value.h"

static void durations(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int result;
                usec_t value;
        } cases[] = {
            {"0", 0, 0},
            {"0s", 0, 0},
            {"250ms", 0, 250 * USEC_PER_MSEC},
            {"30s", 0, 30 * USEC_PER_SEC},
            {"5m", 0, 300 * USEC_PER_SEC},
            {"1h30m", 0, 5400 * USEC_PER_SEC},
            {"1h30m5s10ms", 0, 5405 * USEC_PER_SEC + 10 * USEC_PER_MSEC},
            {"90m", 0, 5400 * USEC_PER_SEC},
            {"1.5s", 0, 1500 * USEC_PER_MSEC},
            {"1m0.25s", 0, 60250 * USEC_PER_MSEC},
            {"0.001ms", 0, 1},
            {"", -EINVAL, 0},
            {"30", -EINVAL, 0},
            {"s", -EINVAL, 0},
            {"5 parsecs", -EINVAL, 0},
            {"5 s", -EINVAL, 0},
            {" 5s", -EINVAL, 0},
            {"5s ", -EINVAL, 0},
            {"-5s", -EINVAL, 0},
            {"+5s", -EINVAL, 0},
            {"5S", -EINVAL, 0},
            {"1s1s", -EINVAL, 0},
            {"1s1m", -EINVAL, 0},
            {"1.5m3s", -EINVAL, 0},
            {"1.s", -EINVAL, 0},
            {".5s", -EINVAL, 0},
            {"1.1234567s", -EINVAL, 0},
            {"1h30", -EINVAL, 0},
            {"99999999999999999999h", -ERANGE, 0},
            {"99999999999999h", -ERANGE, 0},
            {"18446744073709551615ms", -ERANGE, 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                usec_t value = 77;
                print_message("%s\n", cases[i].text);
                assert_int_equal(value_duration(span_of(cases[i].text), &value), cases[i].result);
                assert_int_equal(value, cases[i].result == 0 ? cases[i].value : 77);
        }
}

static void sizes(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int result;
                size_t value;
        } cases[] = {
            {"0", 0, 0},
            {"4096", 0, 4096},
            {"0B", 0, 0},
            {"64KiB", 0, 65536},
            {"16MiB", 0, 16777216},
            {"1GiB", 0, 1073741824},
            {"", -EINVAL, 0},
            {"KiB", -EINVAL, 0},
            {"64KB", -EINVAL, 0},
            {"64kib", -EINVAL, 0},
            {"64 KiB", -EINVAL, 0},
            {"1.5MiB", -EINVAL, 0},
            {"-1", -EINVAL, 0},
            {"1KiB1", -EINVAL, 0},
            {"18446744073709551616", -ERANGE, 0},
            {"18446744073709551615GiB", -ERANGE, 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                size_t value = 77;
                print_message("%s\n", cases[i].text);
                assert_int_equal(value_size(span_of(cases[i].text), &value), cases[i].result);
                assert_int_equal(value, cases[i].result == 0 ? cases[i].value : 77);
        }
}

static void numbers(void **state)
{
        (void)state;
        static const struct {
                int (*parse)(struct span text, double *ret);
                const char *text;
                int result;
                double value;
        } cases[] = {
            {value_number, "0", 0, 0},
            {value_number, "1", 0, 1},
            {value_number, "0.5", 0, 0.5},
            {value_number, "12.125", 0, 12.125},
            {value_number, "", -EINVAL, 0},
            {value_number, ".5", -EINVAL, 0},
            {value_number, "5.", -EINVAL, 0},
            {value_number, "-1", -EINVAL, 0},
            {value_number, "1e3", -EINVAL, 0},
            {value_number, "nan", -EINVAL, 0},
            {value_number, "inf", -EINVAL, 0},
            {value_number, "0x10", -EINVAL, 0},
            {value_rate, "none", 0, 0},
            {value_rate, "10/s", 0, 10},
            {value_rate, "0.5/s", 0, 0.5},
            {value_rate, "600/min", 0, 10},
            {value_rate, "5000/h", 0, 5000.0 / 3600},
            {value_rate, "0/s", -EINVAL, 0},
            {value_rate, "0.0/h", -EINVAL, 0},
            {value_rate, "10", -EINVAL, 0},
            {value_rate, "/s", -EINVAL, 0},
            {value_rate, "10/day", -EINVAL, 0},
            {value_rate, "10 /s", -EINVAL, 0},
            {value_rate, "-1/s", -EINVAL, 0},
            {value_rate, "", -EINVAL, 0},
            {value_rate, "None", -EINVAL, 0},
            {value_share, "20%", 0, 0.2},
            {value_share, "0%", 0, 0},
            {value_share, "12.5%", 0, 0.125},
            {value_share, "100%", 0, 1},
            {value_share, "%", -EINVAL, 0},
            {value_share, "20", -EINVAL, 0},
            {value_share, "0.2", -EINVAL, 0},
            {value_share, "20 %", -EINVAL, 0},
            {value_share, "-5%", -EINVAL, 0},
            {value_share, "", -EINVAL, 0},
            {value_number, "11111111111111111111111111111111111111111111111111111111111111111",
             -ERANGE, 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                double value = 77;
                print_message("%s\n", cases[i].text);
                assert_int_equal(cases[i].parse(span_of(cases[i].text), &value), cases[i].result);
                assert_true(value == (cases[i].result == 0 ? cases[i].value : 77));
        }
}

static void counts_and_bools(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int result;
                unsigned value;
        } cases[] = {
            {"0", 0, 0},
            {"007", 0, 7},
            {"4294967295", 0, UINT_MAX},
            {"4294967296", -ERANGE, 0},
            {"99999999999999999999999", -ERANGE, 0},
            {"", -EINVAL, 0},
            {"-1", -EINVAL, 0},
            {"+1", -EINVAL, 0},
            {"1.0", -EINVAL, 0},
            {"many", -EINVAL, 0},
            {"1 ", -EINVAL, 0},
            {"99999999999999999999999x", -EINVAL, 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                unsigned value = 77;
                print_message("%s\n", cases[i].text);
                assert_int_equal(value_count(span_of(cases[i].text), &value), cases[i].result);
                assert_int_equal(value, cases[i].result == 0 ? cases[i].value : 77);
        }
        bool yes = false;
        assert_int_equal(value_bool(span_of("true"), &yes), 0);
        assert_true(yes);
        assert_int_equal(value_bool(span_of("yes"), &yes), -EINVAL);
        assert_int_equal(value_bool(span_of("True"), &yes), -EINVAL);
        assert_int_equal(value_bool(span_of(""), &yes), -EINVAL);
        assert_true(yes);
        assert_int_equal(value_bool(span_of("false"), &yes), 0);
        assert_false(yes);
}

static void addresses(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int result, family;
        } cases[] = {
            {"127.0.0.1:8080", 0, AF_INET},
            {"0.0.0.0:0", 0, AF_INET},
            {"127.0.0.1:65535", 0, AF_INET},
            {"[::1]:8080", 0, AF_INET6},
            {"[::]:80", 0, AF_INET6},
            {"unix:/run/weir/proxy.sock", 0, AF_UNIX},
            {"", -EINVAL, 0},
            {":8080", -EINVAL, 0},
            {"8080", -EINVAL, 0},
            {"127.0.0.1", -EINVAL, 0},
            {"127.0.0.1:", -EINVAL, 0},
            {"127.0.0.1:65536", -EINVAL, 0},
            {"127.0.0.1:http", -EINVAL, 0},
            {"127.0.0.1:-1", -EINVAL, 0},
            {"127.1:80", -EINVAL, 0},
            {"localhost:80", -EINVAL, 0},
            {"::1:8080", -EINVAL, 0},
            {"[::1]", -EINVAL, 0},
            {"[]:80", -EINVAL, 0},
            {"[127.0.0.1]:80", -EINVAL, 0},
            {"[fe80::1%lo]:80", -EINVAL, 0},
            {"unix:", -EINVAL, 0},
            {"unix:relative", -EINVAL, 0},
            {"unix:/1234567890123456789012345678901234567890123456789012345678901234567890123456789"
             "01234567890123456789012345678",
             -ERANGE, 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct sockaddr_storage sa = {.ss_family = 77};
                print_message("%s\n", cases[i].text);
                assert_int_equal(value_address(span_of(cases[i].text), &sa), cases[i].result);
                assert_int_equal(sa.ss_family, cases[i].result == 0 ? cases[i].family : 77);
        }
}

static void texts_read_back(void **state)
{
        (void)state;
        static const struct {
                usec_t value;
                const char *text;
        } times[] = {
            {0, "0s"},
            {1, "0.001ms"},
            {1500, "1.500ms"},
            {250 * USEC_PER_MSEC, "250ms"},
            {90 * USEC_PER_SEC, "1m30s"},
            {5400 * USEC_PER_SEC, "1h30m"},
            {3600 * USEC_PER_SEC + 1, "1h0.001ms"},
            {USEC_PER_SEC + 1500 * USEC_PER_MSEC, "2s500ms"},
        };
        char text[VALUE_TEXT_MAX];
        for (size_t i = 0; i < COUNT_OF(times); i++) {
                usec_t back = 77;
                value_duration_text(times[i].value, text);
                assert_string_equal(text, times[i].text);
                assert_int_equal(value_duration(span_of(text), &back), 0);
                assert_int_equal(back, times[i].value);
        }
        static const struct {
                size_t value;
                const char *text;
        } size_cases[] = {{0, "0B"},        {1, "1B"},          {1000, "1000B"},   {1024, "1KiB"},
                          {65536, "64KiB"}, {1 << 24, "16MiB"}, {1 << 30, "1GiB"}, {1537, "1537B"}};
        for (size_t i = 0; i < COUNT_OF(size_cases); i++) {
                size_t back = 77;
                value_size_text(size_cases[i].value, text);
                assert_string_equal(text, size_cases[i].text);
                assert_int_equal(value_size(span_of(text), &back), 0);
                assert_int_equal(back, size_cases[i].value);
        }
        static const struct {
                const char *written, *text; /* fewest digits */
        } rates[] = {{"none", "none"},    {"10/s", "10/s"},     {"600/min", "10/s"},
                     {"0.5/s", "30/min"}, {"1.25/s", "75/min"}, {"5000/h", "5000/h"},
                     {"7/min", "7/min"},  {"1/h", "1/h"},       {"1000000/s", "1000000/s"}};
        for (size_t i = 0; i < COUNT_OF(rates); i++) {
                double rate = 77;
                assert_int_equal(value_rate(span_of(rates[i].written), &rate), 0);
                value_rate_text(rate, text);
                assert_string_equal(text, rates[i].text);
                double back = 77;
                assert_int_equal(value_rate(span_of(text), &back), 0);
                assert_true(back == rate);
        }
        static const char *const shares[] = {"0%", "7%", "20%", "33.3%", "12.5%", "100%"};
        for (size_t i = 0; i < COUNT_OF(shares); i++) {
                double share = 77;
                assert_int_equal(value_share(span_of(shares[i]), &share), 0);
                value_share_text(share, text);
                assert_string_equal(text, shares[i]);
        }
        static const double plain[] = {0, 1, 0.5, 0.1, 1.0 / 3, 1e-6, 123456789.25};
        for (size_t i = 0; i < COUNT_OF(plain); i++) {
                double back = 77;
                value_number_text(plain[i], text);
                assert_int_equal(value_number(span_of(text), &back), 0);
                assert_true(back == plain[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(durations), cmocka_unit_test(sizes),
            cmocka_unit_test(numbers),   cmocka_unit_test(counts_and_bools),
            cmocka_unit_test(addresses), cmocka_unit_test(texts_read_back),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
