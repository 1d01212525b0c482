#include "tests/unit/unit.h"

#include <errno.h>

#include "base/fields.h"
#include "core/retry_after.h"

#define NOW (1792567650 * USEC_PER_SEC) /* Wed, 21 Oct 2026 07:27:30 GMT */
#define SECONDS(n) ((usec_t)(n)*USEC_PER_SEC)
#define ABSENT ((usec_t)0xab5e) /* what a failed call must leave alone */
#define UNREADABLE (USEC_MAX - 2)

static const struct {
        const char *value;
        usec_t wait;
} values[] = {
    /* seconds */
    {"30", SECONDS(30)},
    {" 30 ", SECONDS(30)},
    {"\t30", SECONDS(30)},
    {"+30", SECONDS(30)},
    {"0", 0},
    {"000", 0},
    {"007", SECONDS(7)},
    {"0.503", 503000},
    {"292.052427053", 292052427},
    {".5", 500000},
    {"5.", SECONDS(5)},
    {"999999999", SECONDS(999999999)},
    /* lengths of time with units */
    {"1m0s", SECONDS(60)},
    {"6m0s", SECONDS(360)},
    {"1h", SECONDS(3600)},
    {"120s", SECONDS(120)},
    {"1500ms", 1500000},
    {"1.5s", 1500000},
    {"1h2m3.5s", 3723500000},
    {"250us", 250},
    {"250\xc2\xb5s", 250},
    {"2500ns", 2},
    {"+1m", SECONDS(60)},
    {"99999999999999999999h", USEC_MAX},
    /* none */
    {"-43", ABSENT},
    {"-0", ABSENT},
    {"", ABSENT},
    {" ", ABSENT},
    {"+", ABSENT},
    {"++3", ABSENT},
    {".", ABSENT},
    {"nan", ABSENT},
    {"inf", ABSENT},
    {"soon", ABSENT},
    {"rand(30),add(30)", ABSENT},
    {"0x10", ABSENT},
    {"1e3", ABSENT},
    {"1.2.3", ABSENT},
    {"30 s", ABSENT},
    {"1m30", ABSENT},
    {"s", ABSENT},
    {"3\xc2", ABSENT},
    {"3m\xc2", ABSENT},
    /* moments as numbers */
    {"1792567680", SECONDS(30)},
    {"1792567680.25", 30250000},
    {"1792567650", 0},
    {"1792567649", 0},
    {"1000000000", 0},
    {"99999999999999999999999", USEC_MAX},
    {"18446744073709551615", USEC_MAX},
    {"18446744073709551616", USEC_MAX},
    /* dates */
    {"Wed, 21 Oct 2026 07:28:00 GMT", SECONDS(30)},
    {"Wednesday, 21-Oct-26 07:28:00 GMT", SECONDS(30)},
    {"Wed Oct 21 07:28:00 2026", SECONDS(30)},
    {"Wed, 21 Oct 2026 09:28:00 +0200", SECONDS(30)},
    {"Wed, 21 Oct 2026 07:28:00 -0000", SECONDS(30)},
    {"Wed, 21 Oct 2026 07:28:00", SECONDS(30)},
    {"Wed, 21 Oct 2026 07:27:30 GMT", 0},
    {"Wed, 21 Oct 2026 07:27:29 GMT", 0},
    {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
    {"Thu, 01 Jan 1920 00:00:00 GMT", 0},
    {"Wed, 21 Okt 2026 07:28:00 GMT", ABSENT},
    {"Wed,", ABSENT},
    /* lists: the longest that can be read */
    {"5, 10", SECONDS(10)},
    {"10, 5", SECONDS(10)},
    {"5,", SECONDS(5)},
    {"soon, 5", SECONDS(5)},
    {"5, soon", SECONDS(5)},
    {"Wed, 21 Oct 2026 07:28:00 GMT, 10", SECONDS(30)},
    {"40, Wed, 21 Oct 2026 07:28:00 GMT", SECONDS(40)},
    {"Wed, 21 Oct 2026 07:28:00 GMT, Wednesday, 21-Oct-26 07:29:00 GMT", SECONDS(90)},
    {"Wed, 10", ABSENT}, /* "10" belongs to the broken date */
};

static void reads_a_value(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(values); i++) {
                usec_t wait = ABSENT;
                struct span v = span_of(values[i].value);
                int r = retry_after_parse(v.ptr, v.len, NOW, &wait);
                if (r != (values[i].wait == ABSENT ? -EINVAL : 0) || wait != values[i].wait)
                        fail_msg("\"%s\": %d, %llu µs", values[i].value, r,
                                 (unsigned long long)wait);
        }
}

static void stops_at_the_given_length(void **state)
{
        (void)state;
        usec_t wait = ABSENT;
        assert_int_equal(retry_after_parse("3000", 2, NOW, &wait), 0);
        assert_int_equal(wait, SECONDS(30));
        assert_int_equal(retry_after_parse(NULL, 0, NOW, &wait), -EINVAL);
        assert_int_equal(wait, SECONDS(30));
}

static const struct {
        const char *what;
        const char *headers[8]; /* name, value, … */
        usec_t wait;
} answers[] = {
    {"none", {"Content-Type", "text/plain"}, ABSENT},
    {"any case of the name", {"retry-after", "30"}, SECONDS(30)},
    {"unreadable", {"Retry-After", "soon"}, UNREADABLE},
    {"several, none readable", {"Retry-After", "soon", "Retry-After", "-1"}, UNREADABLE},
    {"unreadable milliseconds alone", {"Retry-After-Ms", "soon"}, UNREADABLE},
    {"two headers: the longer", {"Retry-After", "5", "Retry-After", "10"}, SECONDS(10)},
    {"two headers: the longer first", {"Retry-After", "10", "Retry-After", "5"}, SECONDS(10)},
    {"two headers, one unreadable", {"Retry-After", "soon", "Retry-After", "5"}, SECONDS(5)},
    {"zero is named", {"Retry-After", "0"}, 0},
    {"milliseconds", {"Retry-After-Ms", "1500"}, 1500000},
    {"milliseconds win", {"Retry-After", "2", "Retry-After-Ms", "1500"}, 1500000},
    {"milliseconds win, zero included", {"Retry-After", "2", "Retry-After-Ms", "0"}, 0},
    {"unreadable milliseconds do not", {"Retry-After", "2", "Retry-After-Ms", "-1"}, SECONDS(2)},
    {"of two in milliseconds the longer",
     {"Retry-After-Ms", "1500", "Retry-After-Ms", "20, 1600.5"},
     1600500},
    {"a date, our clock", {"Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"}, SECONDS(30)},
    {"a date, their clock an hour behind",
     {"Retry-After", "Wed, 21 Oct 2026 06:28:00 GMT", "Date", "Wed, 21 Oct 2026 06:27:15 GMT"},
     SECONDS(45)},
    {"a date, their clock ahead",
     {"Date", "Wed, 21 Oct 2026 07:29:00 GMT", "Retry-After", "Wed, 21 Oct 2026 07:29:02 GMT"},
     SECONDS(2)},
    {"a past date by their clock",
     {"Date", "Wed, 21 Oct 2026 07:29:00 GMT", "Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"},
     0},
    {"epoch seconds, their clock",
     {"Date", "Wed, 21 Oct 2026 07:27:40 GMT", "Retry-After", "1792567680"},
     SECONDS(20)},
    {"seconds need no clock",
     {"Date", "Wed, 21 Oct 2026 06:00:00 GMT", "Retry-After", "30"},
     SECONDS(30)},
    {"unreadable Date: our clock",
     {"Date", "now", "Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"},
     SECONDS(30)},
};

static void reads_an_answer(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(answers); i++) {
                struct fields f = {0};
                usec_t wait = ABSENT;
                for (size_t h = 0; h < COUNT_OF(answers[i].headers) && answers[i].headers[h];
                     h += 2)
                        fields_add(&f, span_of(answers[i].headers[h]),
                                   span_of(answers[i].headers[h + 1]));
                int r = retry_after_read(&f, NOW, &wait);
                fields_done(&f);
                usec_t want = answers[i].wait;
                int result = want == ABSENT ? -ENOENT : want == UNREADABLE ? -EINVAL : 0;
                if (r != result || wait != (result < 0 ? ABSENT : want))
                        fail_msg("%s: %d, %llu µs", answers[i].what, r, (unsigned long long)wait);
        }
}

static const struct {
        const char *text;
        usec_t wait;
} bodies[] = {
    {"{\"retry_after\": 1.5}", 1500000},
    {"{\"retry_after\":0}", 0},
    {"{ \"retry_after\"\t:\n 64.57 , \"global\": false}", 64570000},
    {"{\"message\": \"slow\", \"retry_after\": 3}", SECONDS(3)},
    {"{\"ok\":false,\"parameters\":{\"retry_after\":35}}", SECONDS(35)},
    {"[{\"retry_after\": 2}]", SECONDS(2)},
    /* over 1000: milliseconds */
    {"{\"retry_after\": 1000}", SECONDS(1000)},
    {"{\"retry_after\": 1000.5}", 1000500},
    {"{\"retry_after\": 1001}", 1001000},
    {"{\"retry_after\": 64570}", 64570000},
    {"{\"retry_after\": 99999999999999999999999}", USEC_MAX},
    /* a member of that name, and no text that looks like one */
    {"{\"message\": \"retry_after\", \"x\": 5}", ABSENT},
    {"{\"message\": \"\\\"retry_after\\\": 5,\"}", ABSENT},
    {"{\"a\\\\\": 1, \"retry_after\": 5}", SECONDS(5)},
    {"{\"x_retry_after\": 5}", ABSENT},
    {"{\"Retry_After\": 5}", ABSENT},
    {"retry_after: 5,", ABSENT},
    /* not a number that can be used */
    {"{\"retry_after\": \"5\"}", ABSENT},
    {"{\"retry_after\": -5}", ABSENT},
    {"{\"retry_after\": 1e3}", ABSENT},
    {"{\"retry_after\": null}", ABSENT},
    {"{\"retry_after\": {\"retry_after\": 5}}", SECONDS(5)},
    /* it may end anywhere */
    {"{\"retry_after\": 12", ABSENT},
    {"{\"retry_after\": ", ABSENT},
    {"{\"retry_after\"", ABSENT},
    {"{\"retry_aft", ABSENT},
    {"{\"retry_after\\", ABSENT},
    {"\"", ABSENT},
    {"", ABSENT},
};

static void reads_a_body(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(bodies); i++) {
                usec_t wait = ABSENT;
                int r = retry_after_in_json(span_of(bodies[i].text), &wait);
                if (r != (bodies[i].wait == ABSENT ? -ENOENT : 0) || wait != bodies[i].wait)
                        fail_msg("%s: %d, %llu µs", bodies[i].text, r, (unsigned long long)wait);
        }
        usec_t wait = ABSENT;
        assert_int_equal(retry_after_in_json((struct span){NULL, 0}, &wait), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_a_value),
            cmocka_unit_test(stops_at_the_given_length),
            cmocka_unit_test(reads_an_answer),
            cmocka_unit_test(reads_a_body),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
