#include "core/duration.h"

#include <errno.h>
#include <stddef.h>

#define BILLION 1000000000u

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static void drop(struct span *s, size_t n)
{
        s->ptr += n;
        s->len -= n;
}

static size_t take_whole(struct span *rest, uint64_t *ret)
{
        uint64_t value = 0;
        size_t n = 0;
        for (; n < rest->len && is_digit(rest->ptr[n]); n++) {
                unsigned digit = (unsigned)(rest->ptr[n] - '0');
                value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
        }
        drop(rest, n);
        *ret = value;
        return n;
}

static size_t take_fraction(struct span *rest, uint32_t *ret)
{
        uint32_t value = 0, place = BILLION / 10;
        size_t n = 0;
        for (; n < rest->len && is_digit(rest->ptr[n]); n++, place /= 10)
                value += (uint32_t)(rest->ptr[n] - '0') * place;
        drop(rest, n);
        *ret = value;
        return n;
}

int decimal_take(struct span *rest, struct decimal *ret)
{
        struct span s = *rest;
        struct decimal d = {.is_whole = true};
        size_t digits = take_whole(&s, &d.whole);
        if (s.len > 0 && s.ptr[0] == '.') {
                drop(&s, 1);
                d.is_whole = false;
                digits += take_fraction(&s, &d.billionth);
        }
        if (digits == 0)
                return -EINVAL;
        *rest = s;
        *ret = d;
        return 0;
}

static struct span without_plus(struct span text)
{
        struct span s = span_trim(text);
        if (s.len > 0 && s.ptr[0] == '+')
                drop(&s, 1);
        return s;
}

int decimal_parse(struct span text, struct decimal *ret)
{
        struct span s = without_plus(text);
        struct decimal d;
        if (decimal_take(&s, &d) < 0 || s.len > 0)
                return -EINVAL;
        *ret = d;
        return 0;
}

usec_t decimal_usec(struct decimal d, usec_t unit)
{
        if (unit > 0 && d.whole > USEC_MAX / unit)
                return USEC_MAX;
        /* In two steps, so that the product fits whatever the unit. */
        usec_t part = unit / BILLION * d.billionth + unit % BILLION * d.billionth / BILLION;
        return usec_add(d.whole * unit, part);
}

/* Longer names first: "ms" begins like "m". */
static const struct {
        const char *name;
        usec_t unit; /* 0: nanoseconds */
} units[] = {
    {"ms", USEC_PER_MSEC},    {"us", 1},           {"\xc2\xb5s", 1},
    {"\xce\xbcs", 1},         {"ns", 0},           {"h", 3600 * USEC_PER_SEC},
    {"m", 60 * USEC_PER_SEC}, {"s", USEC_PER_SEC},
};

static int take_unit(struct span *rest, usec_t *ret_unit)
{
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
                size_t n = strlen(units[i].name);
                if (rest->len < n || memcmp(rest->ptr, units[i].name, n) != 0)
                        continue;
                drop(rest, n);
                *ret_unit = units[i].unit;
                return 0;
        }
        return -EINVAL;
}

int duration_parse(struct span text, usec_t *ret)
{
        struct span s = without_plus(text);
        usec_t sum = 0;
        if (s.len == 0)
                return -EINVAL;
        while (s.len > 0) {
                struct decimal d;
                usec_t unit;
                if (decimal_take(&s, &d) < 0 || take_unit(&s, &unit) < 0)
                        return -EINVAL;
                sum = usec_add(sum, unit ? decimal_usec(d, unit) : d.whole / 1000);
        }
        *ret = sum;
        return 0;
}
