#include "core/http_date.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"
#include "core/duration.h"

static const char *const weekdays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                       "Friday", "Saturday", "Sunday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

struct civil {
        unsigned year, month, day; /* month and day from 1 */
        unsigned hour, minute, second;
        unsigned usec;
        int offset; /* minutes east of GMT */
};

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void drop(struct span *s, size_t n)
{
        s->ptr += n;
        s->len -= n;
}

static bool take_char(struct span *rest, char c)
{
        if (rest->len == 0 || rest->ptr[0] != c)
                return false;
        drop(rest, 1);
        return true;
}

static bool take_spaces(struct span *rest)
{
        size_t before = rest->len;
        while (take_char(rest, ' '))
                ;
        return rest->len < before;
}

/* A number of `least` to `most` digits; false where there are fewer or more. */
static bool take_number(struct span *rest, size_t least, size_t most, unsigned *ret)
{
        unsigned value = 0;
        size_t n = 0;
        for (; n < rest->len && is_digit(rest->ptr[n]); n++) {
                if (n == most)
                        return false;
                value = value * 10 + (unsigned)(rest->ptr[n] - '0');
        }
        if (n < least)
                return false;
        drop(rest, n);
        *ret = value;
        return true;
}

static struct span take_word(struct span *rest)
{
        struct span word = {rest->ptr, 0};
        while (word.len < rest->len && is_letter(rest->ptr[word.len]))
                word.len++;
        drop(rest, word.len);
        return word;
}

/* Which of the names is it, whole or cut to three letters? From 1; 0: none. */
static unsigned name_index(const char *const *names, unsigned count, struct span word)
{
        for (unsigned i = 0; i < count; i++) {
                struct span name = span_of(names[i]);
                if (span_equal_nocase(word, name) ||
                    span_equal_nocase(word, (struct span){name.ptr, 3}))
                        return i + 1;
        }
        return 0;
}

bool http_date_is_weekday(struct span word)
{
        return name_index(weekdays, 7, word) > 0;
}

static bool take_month(struct span *rest, unsigned *ret)
{
        *ret = name_index(months, 12, take_word(rest));
        return *ret > 0;
}

static bool take_time(struct span *rest, struct civil *c)
{
        return take_number(rest, 1, 2, &c->hour) && take_char(rest, ':') &&
               take_number(rest, 2, 2, &c->minute) && take_char(rest, ':') &&
               take_number(rest, 2, 2, &c->second);
}

static bool take_offset(struct span *rest, int *ret)
{
        int sign = take_char(rest, '+') ? 1 : take_char(rest, '-') ? -1 : 0;
        if (sign == 0 || rest->len < 4)
                return false;
        struct span hours = {rest->ptr, 2};
        unsigned h, m;
        if (!take_number(&hours, 2, 2, &h))
                return false;
        drop(rest, 2);
        (void)take_char(rest, ':');
        if (!take_number(rest, 2, 2, &m) || h > 23 || m > 59)
                return false;
        *ret = sign * (int)(h * 60 + m);
        return true;
}

/* The zone, and with it the end of the text. */
static bool take_zone(struct span *rest, int *ret)
{
        static const char *const zero[] = {"GMT", "UTC", "UT", "Z"};
        (void)take_spaces(rest);
        if (rest->len == 0)
                return true;
        if (!is_letter(rest->ptr[0]))
                return take_offset(rest, ret) && rest->len == 0;
        for (size_t i = 0; i < sizeof zero / sizeof zero[0]; i++)
                if (span_equal_nocase(*rest, span_of(zero[i])))
                        return true;
        return false;
}

static bool is_leap(unsigned year)
{
        return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned days_in(unsigned month, unsigned year)
{
        static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        return days[month - 1] + (month == 2 && is_leap(year) ? 1u : 0u);
}

/* Days before the first of January of that year, counted from the year 0. */
static int64_t days_before(int64_t year)
{
        int64_t last = year - 1;
        return year > 0 ? 366 + last * 365 + last / 4 - last / 100 + last / 400 : 0;
}

static unsigned year_of(usec_t real)
{
        unsigned year = 1970;
        uint64_t days = real / USEC_PER_SEC / 86400;
        while (year < 9999 && days >= (is_leap(year) ? 366u : 365u))
                days -= is_leap(year++) ? 366 : 365;
        return year;
}

/* In the century that puts it nearest to now, at most 50 years ahead (RFC 9110, 5.6.7). */
static unsigned full_year(unsigned two_digits, usec_t now_real)
{
        unsigned now = year_of(now_real);
        unsigned year = now - now % 100 + two_digits;
        if (year > now + 50)
                year -= 100;
        else if (year + 50 <= now)
                year += 100;
        return year;
}

static int to_real(const struct civil *c, usec_t *ret_real)
{
        if (c->month < 1 || c->month > 12 || c->day < 1 || c->day > days_in(c->month, c->year))
                return -EINVAL;
        if (c->hour > 23 || c->minute > 59 || c->second > 60) /* 60: a leap second */
                return -EINVAL;
        int64_t days = days_before(c->year) - days_before(1970) + c->day - 1;
        for (unsigned month = 1; month < c->month; month++)
                days += days_in(month, c->year);
        int64_t seconds = days * 86400 + (int64_t)c->hour * 3600 +
                          ((int64_t)c->minute - c->offset) * 60 + c->second;
        *ret_real = seconds < 0 ? 0 : (usec_t)seconds * USEC_PER_SEC + c->usec;
        return 0;
}

/* "21 Oct 2026 07:28:00", "21-Oct-26 07:28:00" */
static bool take_day_first(struct span *rest, usec_t now_real, struct civil *c)
{
        if (!take_number(rest, 1, 2, &c->day))
                return false;
        if (!take_char(rest, '-') && !take_spaces(rest))
                return false;
        if (!take_month(rest, &c->month))
                return false;
        if (!take_char(rest, '-') && !take_spaces(rest))
                return false;
        size_t before = rest->len;
        if (!take_number(rest, 2, 4, &c->year) || before - rest->len == 3)
                return false;
        if (before - rest->len == 2)
                c->year = full_year(c->year, now_real);
        return take_spaces(rest) && take_time(rest, c);
}

/* "Oct 21 07:28:00 2026"; a day of one digit follows two spaces. */
static bool take_month_first(struct span *rest, struct civil *c)
{
        return take_month(rest, &c->month) && take_spaces(rest) &&
               take_number(rest, 1, 2, &c->day) && take_spaces(rest) && take_time(rest, c) &&
               take_spaces(rest) && take_number(rest, 4, 4, &c->year);
}

int http_date_parse(struct span text, usec_t now_real, usec_t *ret_real)
{
        struct span rest = span_trim(text), after = rest;
        struct civil c = {0};
        struct span word = take_word(&after);
        if (http_date_is_weekday(word)) {
                rest = after;
                bool comma = take_char(&rest, ',');
                if (!take_spaces(&rest) && !comma)
                        return -EINVAL;
        }
        if (rest.len == 0)
                return -EINVAL;
        bool good = is_letter(rest.ptr[0]) ? take_month_first(&rest, &c)
                                           : take_day_first(&rest, now_real, &c);
        if (!good || !take_zone(&rest, &c.offset))
                return -EINVAL;
        return to_real(&c, ret_real);
}

int http_date_parse_iso(struct span text, usec_t *ret_real)
{
        struct span rest = span_trim(text);
        struct civil c = {0};
        if (!take_number(&rest, 4, 4, &c.year) || !take_char(&rest, '-') ||
            !take_number(&rest, 2, 2, &c.month) || !take_char(&rest, '-') ||
            !take_number(&rest, 2, 2, &c.day))
                return -EINVAL;
        if (!take_char(&rest, 'T') && !take_char(&rest, 't') && !take_spaces(&rest))
                return -EINVAL;
        if (!take_time(&rest, &c))
                return -EINVAL;
        if (rest.len > 0 && rest.ptr[0] == '.') {
                struct decimal fraction;
                if (decimal_take(&rest, &fraction) < 0)
                        return -EINVAL;
                c.usec = fraction.billionth / 1000;
        }
        if (!take_zone(&rest, &c.offset))
                return -EINVAL;
        return to_real(&c, ret_real);
}

bool http_date_next(struct span *rest, struct span *ret_member)
{
        struct span more;
        if (!span_next(rest, ',', ret_member))
                return false;
        if (http_date_is_weekday(*ret_member) && span_next(rest, ',', &more))
                ret_member->len = (size_t)(more.ptr + more.len - ret_member->ptr);
        return true;
}

usec_t http_date_clock(const struct fields *fields, usec_t now_real)
{
        struct span value;
        usec_t clock = now_real;
        if (fields_find(fields, 0, span_of("Date"), &value, NULL))
                (void)http_date_parse(value, now_real, &clock);
        return clock;
}
