#include "tests/unit/unit.h"

#include <errno.h>
#include <time.h>

#include "core/http_date.h"

#define NOW (1792567650 * USEC_PER_SEC) /* Wed, 21 Oct 2026 07:27:30 GMT */
#define BAD ((usec_t)0xbad)

/* Seconds since 1970, taken from `date -u +%s`; BAD: not a date. */
static const struct {
        const char *text;
        usec_t real;
} dates[] = {
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Sun Nov  6 08:49:37 1994", 784111777},
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Wed, 31 Dec 1969 23:59:59 GMT", 0},
    {"Fri, 01 Jan 0001 00:00:00 GMT", 0},
    {"Thu, 01 Jan 1970 00:00:01 GMT", 1},
    {"Tue, 29 Feb 2000 12:00:00 GMT", 951825600},
    {"Thu, 29 Feb 2024 23:59:59 GMT", 1709251199},
    {"Tue, 19 Jan 2038 03:14:08 GMT", 2147483648},
    {"Sun, 01 Mar 2100 00:00:00 GMT", 4107542400},
    {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
    /* offsets */
    {"Wed, 21 Oct 2026 09:28:00 +0200", 1792567680},
    {"Wed, 21 Oct 2026 09:28:00 +02:00", 1792567680},
    {"Wed, 21 Oct 2026 03:58:00 -0330", 1792567680},
    {"Wed, 21 Oct 2026 07:28:00 -0000", 1792567680},
    {"Wed, 21 Oct 2026 07:28:00 +0000", 1792567680},
    {"Thu, 01 Jan 1970 00:30:00 +0100", 0},
    /* liberties */
    {"Wed, 21 Oct 2026 07:28:00", 1792567680},
    {"  Wed, 21 Oct 2026 07:28:00 GMT\t", 1792567680},
    {"wed, 21 oct 2026 07:28:00 gmt", 1792567680},
    {"WED, 21 OCT 2026 07:28:00 UTC", 1792567680},
    {"Wed, 21 Oct 2026 07:28:00Z", 1792567680},
    {"Mon, 21 Oct 2026 07:28:00 GMT", 1792567680}, /* it was a Wednesday */
    {"Wed 21 Oct 2026 07:28:00 GMT", 1792567680},
    {"Wed,21 Oct 2026 07:28:00 GMT", 1792567680},
    {"21 Oct 2026 07:28:00 GMT", 1792567680},
    {"Wed, 21 Oct 26 07:28:00 GMT", 1792567680},
    {"Wed, 21-Oct-2026 07:28:00 GMT", 1792567680},
    {"Wed, 21 October 2026 07:28:00 GMT", 1792567680},
    {"Wed, 21 Oct 2026 7:28:00 GMT", 1792567680},
    {"Wed Oct 21 07:28:00 2026 GMT", 1792567680},
    {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800}, /* a leap second */
    /* the century of two digits */
    {"Tuesday, 21-Oct-76 07:28:00 GMT", 3370490880}, /* 50 years ahead: still ahead */
    {"Friday, 21-Oct-77 07:28:00 GMT", 246266880},
    {"Friday, 31-Dec-99 23:59:59 GMT", 946684799},
    /* not dates */
    {"", BAD},
    {" ", BAD},
    {"Wed", BAD},
    {"Wed,", BAD},
    {"Wed, ", BAD},
    {"Xyz, 21 Oct 2026 07:28:00 GMT", BAD},
    {"Wed, 21 Okt 2026 07:28:00 GMT", BAD},
    {"Wed, 21 O 2026 07:28:00 GMT", BAD},
    {"Wed, 00 Oct 2026 07:28:00 GMT", BAD},
    {"Wed, 32 Oct 2026 07:28:00 GMT", BAD},
    {"Wed, 31 Nov 2026 07:28:00 GMT", BAD},
    {"Sun, 29 Feb 2026 07:28:00 GMT", BAD},
    {"Mon, 29 Feb 2100 07:28:00 GMT", BAD},
    {"Wed, 21 Oct 2026 24:00:00 GMT", BAD},
    {"Wed, 21 Oct 2026 07:60:00 GMT", BAD},
    {"Wed, 21 Oct 2026 07:28:61 GMT", BAD},
    {"Wed, 21 Oct 2026 07:28 GMT", BAD},
    {"Wed, 21 Oct 2026 07:28:0 GMT", BAD},
    {"Wed, 21 Oct 2026", BAD},
    {"Wed, 21 Oct 226 07:28:00 GMT", BAD},
    {"Wed, 21 Oct 20266 07:28:00 GMT", BAD},
    {"Wed, 21 Oct 2026 07:28:00 EST", BAD},
    {"Wed, 21 Oct 2026 07:28:00 +2", BAD},
    {"Wed, 21 Oct 2026 07:28:00 +02", BAD},
    {"Wed, 21 Oct 2026 07:28:00 +020", BAD},
    {"Wed, 21 Oct 2026 07:28:00 +2400", BAD},
    {"Wed, 21 Oct 2026 07:28:00 +0060", BAD},
    {"Wed, 21 Oct 2026 07:28:00 +02:", BAD},
    {"Wed, 21 Oct 2026 07:28:00 +02:0", BAD},
    {"Wed, 21 Oct 2026 07:28:00 GMT!", BAD},
    {"Wed, 21 Oct 2026 07:28:00 GMT GMT", BAD},
    {"Wed, 21 Oct -2026 07:28:00 GMT", BAD},
    {"2026-10-21T07:28:00Z", BAD}, /* another function's */
    {"1792567680", BAD},
};

static void reads_dates(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(dates); i++) {
                usec_t want = dates[i].real, real = BAD;
                int r = http_date_parse(span_of(dates[i].text), NOW, &real);
                if (r != (want == BAD ? -EINVAL : 0) ||
                    real != (want == BAD ? BAD : want * USEC_PER_SEC))
                        fail_msg("\"%s\": %d, %llu µs", dates[i].text, r, (unsigned long long)real);
        }
}

static const struct {
        const char *text;
        usec_t real; /* µs */
} iso_dates[] = {
    {"2026-10-21T07:28:00Z", 1792567680000000},
    {"2026-10-21t07:28:00z", 1792567680000000},
    {"2026-10-21 07:28:00", 1792567680000000},
    {"2026-10-21T07:28:00.25Z", 1792567680250000},
    {"2026-10-21T07:28:00.123456789Z", 1792567680123456},
    {"2026-10-21T09:28:00+02:00", 1792567680000000},
    {"2026-10-21T00:28:00-0700", 1792567680000000},
    {"2026-10-21", BAD},
    {"2026-10-21T07:28Z", BAD},
    {"2026-1-21T07:28:00Z", BAD},
    {"2026-13-21T07:28:00Z", BAD},
    {"2026-00-21T07:28:00Z", BAD},
    {"2026-10-21T07:28:00.Zulu", BAD},
    {"26-10-21T07:28:00Z", BAD},
    {"Wed, 21 Oct 2026 07:28:00 GMT", BAD},
    {"", BAD},
};

static void reads_iso_dates(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(iso_dates); i++) {
                usec_t want = iso_dates[i].real, real = BAD;
                int r = http_date_parse_iso(span_of(iso_dates[i].text), &real);
                if (r != (want == BAD ? -EINVAL : 0) || real != want)
                        fail_msg("\"%s\": %d, %llu µs", iso_dates[i].text, r,
                                 (unsigned long long)real);
        }
}

/* Every 9 hours and 1 second of 230 years, against the C library's calendar. */
static void agrees_with_the_calendar(void **state)
{
        (void)state;
        for (time_t t = 0; t < (time_t)7258118400; t += 32401) {
                struct tm tm;
                char fixdate[64], rfc850[64], asctime_form[64];
                usec_t real = BAD;
                gmtime_r(&t, &tm);
                strftime(fixdate, sizeof fixdate, "%a, %d %b %Y %H:%M:%S GMT", &tm);
                strftime(rfc850, sizeof rfc850, "%A, %d-%b-%y %H:%M:%S GMT", &tm);
                strftime(asctime_form, sizeof asctime_form, "%a %b %e %H:%M:%S %Y", &tm);
                usec_t want = (usec_t)t * USEC_PER_SEC;
                assert_int_equal(http_date_parse(span_of(fixdate), NOW, &real), 0);
                assert_int_equal(real, want);
                assert_int_equal(http_date_parse(span_of(asctime_form), NOW, &real), 0);
                assert_int_equal(real, want);
                /* Two digits are enough for whoever knows about when it is. */
                assert_int_equal(http_date_parse(span_of(rfc850), want, &real), 0);
                assert_int_equal(real, want);
        }
}

static void knows_the_days(void **state)
{
        (void)state;
        assert_true(http_date_is_weekday(span_of("Wed")));
        assert_true(http_date_is_weekday(span_of("sunday")));
        assert_false(http_date_is_weekday(span_of("We")));
        assert_false(http_date_is_weekday(span_of("Wedn")));
        assert_false(http_date_is_weekday(span_of("soon")));
        assert_false(http_date_is_weekday(span_of("")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_dates),
            cmocka_unit_test(reads_iso_dates),
            cmocka_unit_test(agrees_with_the_calendar),
            cmocka_unit_test(knows_the_days),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
