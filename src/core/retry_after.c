#include "core/retry_after.h"

#include <errno.h>
#include <stdbool.h>

#include "base/fields.h"
#include "core/duration.h"
#include "core/http_date.h"

/* Nobody asks for a wait of 31 years: from here on it is a moment, in seconds since 1970. */
#define FIRST_EPOCH_SECOND 1000000000u

static int read_one(struct span text, usec_t now_real, usec_t *ret_wait)
{
        struct decimal number;
        usec_t moment;
        if (decimal_parse(text, &number) == 0) {
                usec_t value = decimal_usec(number, USEC_PER_SEC);
                bool is_moment = number.whole >= FIRST_EPOCH_SECOND && value != USEC_MAX;
                *ret_wait = is_moment ? usec_sub(value, now_real) : value;
                return 0;
        }
        if (duration_parse(text, ret_wait) == 0)
                return 0;
        if (http_date_parse(text, now_real, &moment) < 0)
                return -EINVAL;
        *ret_wait = usec_sub(moment, now_real);
        return 0;
}

int retry_after_parse(const char *value, size_t len, usec_t now_real, usec_t *ret_wait)
{
        struct span rest = {value, len}, member;
        usec_t longest = 0, wait;
        bool found = false;
        while (http_date_next(&rest, &member)) {
                if (read_one(member, now_real, &wait) < 0)
                        continue;
                longest = usec_max(longest, wait);
                found = true;
        }
        if (!found)
                return -EINVAL;
        *ret_wait = longest;
        return 0;
}

static int read_msec(const struct fields *fields, usec_t *ret_wait)
{
        const struct span name = span_of("Retry-After-Ms");
        struct span rest, member;
        struct decimal number;
        usec_t longest = 0;
        bool found = false, good = false;
        for (size_t i = 0; fields_find(fields, i, name, &rest, &i); i++) {
                found = true;
                while (span_next(&rest, ',', &member)) {
                        if (decimal_parse(member, &number) < 0)
                                continue;
                        longest = usec_max(longest, decimal_usec(number, USEC_PER_MSEC));
                        good = true;
                }
        }
        if (!good)
                return found ? -EINVAL : -ENOENT;
        *ret_wait = longest;
        return 0;
}

int retry_after_read(const struct fields *fields, usec_t now_real, usec_t *ret_wait)
{
        const struct span name = span_of("Retry-After");
        struct span value;
        usec_t clock = http_date_clock(fields, now_real), longest = 0, wait;
        bool good = false;
        int r = read_msec(fields, ret_wait);
        if (r == 0)
                return 0;
        for (size_t i = 0; fields_find(fields, i, name, &value, &i); i++) {
                r = -EINVAL;
                if (retry_after_parse(value.ptr, value.len, clock, &wait) < 0)
                        continue;
                longest = usec_max(longest, wait);
                good = true;
        }
        if (!good)
                return r;
        *ret_wait = longest;
        return 0;
}

static const uint64_t most_seconds = 1000; /* in JSON, where the unit is anyone's guess */

static bool is_space(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(struct span *rest)
{
        while (rest->len > 0 && is_space(*rest->ptr))
                rest->ptr++, rest->len--;
}

static bool take(struct span *rest, char c)
{
        skip_space(rest);
        if (rest->len == 0 || *rest->ptr != c)
                return false;
        rest->ptr++, rest->len--;
        return true;
}

/* Takes a string off the front, which begins with a quotation mark. ret  without the marks */
static bool take_string(struct span *rest, struct span *ret)
{
        for (size_t i = 1; i < rest->len; i++) {
                if (rest->ptr[i] == '\\') {
                        i++;
                } else if (rest->ptr[i] == '"') {
                        *ret = (struct span){rest->ptr + 1, i - 1};
                        *rest = (struct span){rest->ptr + i + 1, rest->len - i - 1};
                        return true;
                }
        }
        return false;
}

/* A number that ends where a member may end: not one that the end of the text has cut. */
static bool take_number(struct span *rest, struct decimal *ret)
{
        skip_space(rest);
        return decimal_take(rest, ret) == 0 && rest->len > 0 &&
               (is_space(*rest->ptr) || *rest->ptr == ',' || *rest->ptr == '}');
}

int retry_after_in_json(struct span text, usec_t *ret_wait)
{
        struct span rest = text, string;
        struct decimal number;
        while (rest.len > 0) {
                const char *quote = memchr(rest.ptr, '"', rest.len);
                if (!quote)
                        break;
                rest = (struct span){quote, rest.len - (size_t)(quote - rest.ptr)};
                if (!take_string(&rest, &string))
                        break;
                if (!span_equal(string, span_of("retry_after")) || !take(&rest, ':') ||
                    !take_number(&rest, &number))
                        continue;
                bool is_msec = number.whole > most_seconds ||
                               (number.whole == most_seconds && number.billionth > 0);
                *ret_wait = decimal_usec(number, is_msec ? USEC_PER_MSEC : USEC_PER_SEC);
                return 0;
        }
        return -ENOENT;
}
