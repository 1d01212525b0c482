#include "config/value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* Takes decimal digits off the front: 0, -EINVAL where there are none, -ERANGE. */
static int take_digits(struct span *text, uint64_t *ret)
{
        uint64_t n = 0;
        size_t i = 0;
        bool fits = true;
        for (; i < text->len && is_digit(text->ptr[i]); i++) {
                unsigned digit = (unsigned)(text->ptr[i] - '0');
                fits = fits && n <= (UINT64_MAX - digit) / 10;
                n = fits ? n * 10 + digit : n;
        }
        if (i == 0)
                return -EINVAL;
        *text = (struct span){text->ptr + i, text->len - i};
        *ret = n;
        return fits ? 0 : -ERANGE;
}

/* Takes the letters, or other signs that are no digits, off the front. */
static struct span take_unit(struct span *text)
{
        size_t n = 0;
        while (n < text->len && !is_digit(text->ptr[n]))
                n++;
        struct span unit = {text->ptr, n};
        *text = (struct span){text->ptr + n, text->len - n};
        return unit;
}

int value_bool(struct span text, bool *ret)
{
        bool yes = span_equal(text, span_of("true"));
        if (!yes && !span_equal(text, span_of("false")))
                return -EINVAL;
        *ret = yes;
        return 0;
}

int value_count(struct span text, unsigned *ret)
{
        uint64_t n = 0;
        int r = take_digits(&text, &n);
        if (r == -EINVAL || text.len)
                return -EINVAL;
        if (r < 0 || n > UINT_MAX)
                return -ERANGE;
        *ret = (unsigned)n;
        return 0;
}

int value_number(struct span text, double *ret)
{
        char copy[VALUE_TEXT_MAX];
        struct span rest = text;
        uint64_t ignored;
        if (take_digits(&rest, &ignored) == -EINVAL)
                return -EINVAL;
        if (rest.len && rest.ptr[0] == '.') {
                rest = (struct span){rest.ptr + 1, rest.len - 1};
                if (take_digits(&rest, &ignored) == -EINVAL)
                        return -EINVAL;
        }
        if (rest.len)
                return -EINVAL;
        if (text.len >= sizeof copy)
                return -ERANGE;
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
        *ret = strtod(copy, NULL);
        return 0;
}

static const struct {
        const char *name;
        usec_t length;
} time_units[] = {
    {"h", 3600 * USEC_PER_SEC},
    {"m", 60 * USEC_PER_SEC},
    {"s", USEC_PER_SEC},
    {"ms", USEC_PER_MSEC},
};
#define TIME_UNITS (sizeof time_units / sizeof time_units[0])

/* ".25" of a unit: at most as many digits as a microsecond needs. */
static int take_fraction(struct span *text, usec_t *ret_scaled, usec_t *ret_scale)
{
        *ret_scaled = 0;
        *ret_scale = 1;
        if (text->len == 0 || text->ptr[0] != '.')
                return 0;
        struct span digits = {text->ptr + 1, text->len - 1}, rest = digits;
        int r = take_digits(&rest, ret_scaled);
        size_t n = digits.len - rest.len;
        if (r < 0 || n > 6)
                return -EINVAL;
        while (n--)
                *ret_scale *= 10;
        *text = rest;
        return 0;
}

int value_duration(struct span text, usec_t *ret)
{
        usec_t sum = 0, scale = 1;
        bool fits = true;
        if (span_equal(text, span_of("0"))) {
                *ret = 0;
                return 0;
        }
        size_t unit = 0; /* the first that may still come */
        do {
                uint64_t whole = 0, fraction;
                bool ended = scale != 1; /* only the last part may have a fraction */
                int r = take_digits(&text, &whole);
                if (ended || r == -EINVAL || take_fraction(&text, &fraction, &scale) < 0)
                        return -EINVAL;
                struct span name = take_unit(&text);
                while (unit < TIME_UNITS && !span_equal(name, span_of(time_units[unit].name)))
                        unit++;
                if (unit == TIME_UNITS)
                        return -EINVAL;
                usec_t length = time_units[unit++].length;
                if (r < 0 || whole > (USEC_MAX / 2 - sum) / length)
                        fits = false;
                else
                        sum += whole * length + fraction * length / scale;
        } while (text.len);
        if (!fits)
                return -ERANGE;
        *ret = sum;
        return 0;
}

static const struct {
        const char *name;
        uint64_t bytes;
} size_units[] = {
    {"GiB", 1u << 30},
    {"MiB", 1u << 20},
    {"KiB", 1u << 10},
    {"B", 1},
};
#define SIZE_UNITS (sizeof size_units / sizeof size_units[0])

int value_size(struct span text, size_t *ret)
{
        uint64_t n = 0;
        int r = take_digits(&text, &n);
        uint64_t unit = text.len == 0; /* none: bytes */
        for (size_t i = 0; i < SIZE_UNITS; i++)
                if (span_equal(text, span_of(size_units[i].name)))
                        unit = size_units[i].bytes;
        if (r == -EINVAL || unit == 0)
                return -EINVAL;
        if (r < 0 || n > SIZE_MAX / unit)
                return -ERANGE;
        *ret = (size_t)(n * unit);
        return 0;
}

static const struct {
        const char *name;
        double seconds;
} rate_units[] = {{"/s", 1}, {"/min", 60}, {"/h", 3600}};
#define RATE_UNITS (sizeof rate_units / sizeof rate_units[0])

int value_rate(struct span text, double *ret)
{
        if (span_equal(text, span_of("none"))) {
                *ret = 0;
                return 0;
        }
        for (size_t i = 0; i < RATE_UNITS; i++) {
                struct span unit = span_of(rate_units[i].name);
                if (text.len <= unit.len ||
                    memcmp(text.ptr + text.len - unit.len, unit.ptr, unit.len) != 0)
                        continue;
                double n;
                int r = value_number((struct span){text.ptr, text.len - unit.len}, &n);
                if (r < 0)
                        return r;
                if (!(n > 0))
                        return -EINVAL;
                *ret = n / rate_units[i].seconds;
                return 0;
        }
        return -EINVAL;
}

int value_share(struct span text, double *ret)
{
        double percent;
        if (text.len < 2 || text.ptr[text.len - 1] != '%')
                return -EINVAL;
        int r = value_number((struct span){text.ptr, text.len - 1}, &percent);
        if (r == 0)
                *ret = percent / 100;
        return r;
}

static int unix_address(struct span path, struct sockaddr_storage *ret)
{
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        if (path.len == 0 || path.ptr[0] != '/')
                return -EINVAL;
        if (path.len >= sizeof un.sun_path)
                return -ERANGE;
        memcpy(un.sun_path, path.ptr, path.len);
        memcpy(ret, &un, sizeof un);
        return 0;
}

int value_address(struct span text, struct sockaddr_storage *ret)
{
        struct span scheme = span_of("unix:");
        struct sockaddr_storage sa = {0};
        struct sockaddr_in in = {.sin_family = AF_INET};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        if (text.len > scheme.len && memcmp(text.ptr, scheme.ptr, scheme.len) == 0) {
                struct span path = {text.ptr + scheme.len, text.len - scheme.len};
                int r = unix_address(path, &sa);
                if (r == 0)
                        *ret = sa;
                return r;
        }
        char host[INET6_ADDRSTRLEN + 2];
        const char *colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
        size_t len = colon ? (size_t)(colon - text.ptr) : 0;
        unsigned port;
        if (len == 0 || len >= sizeof host ||
            value_count((struct span){colon + 1, text.len - len - 1}, &port) < 0 || port > 65535)
                return -EINVAL;
        memcpy(host, text.ptr, len);
        host[len] = '\0';
        in.sin_port = in6.sin6_port = htons((uint16_t)port);
        if (host[0] == '[' && host[len - 1] == ']') {
                host[len - 1] = '\0';
                if (inet_pton(AF_INET6, host + 1, &in6.sin6_addr) != 1)
                        return -EINVAL;
                memcpy(&sa, &in6, sizeof in6);
        } else {
                if (inet_pton(AF_INET, host, &in.sin_addr) != 1)
                        return -EINVAL;
                memcpy(&sa, &in, sizeof in);
        }
        *ret = sa;
        return 0;
}

bool value_is_name(const char *text)
{
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789._-";
        size_t len = strspn(text, allowed);
        return len > 0 && len <= 64 && text[len] == '\0';
}

/* %g turns to exponents where they are shorter, which value_number does not read. */
void value_number_text(double number, char ret[VALUE_TEXT_MAX])
{
        for (int digits = 0; digits <= 20; digits++) {
                snprintf(ret, VALUE_TEXT_MAX, "%.*f", digits, number);
                if (strtod(ret, NULL) == number)
                        return;
        }
}

void value_duration_text(usec_t duration, char ret[VALUE_TEXT_MAX])
{
        size_t n = 0;
        for (size_t i = 0; i < TIME_UNITS; i++) {
                usec_t whole = duration / time_units[i].length;
                if (whole)
                        n += (size_t)snprintf(ret + n, VALUE_TEXT_MAX - n, "%llu%s",
                                              (unsigned long long)whole, time_units[i].name);
                duration -= whole * time_units[i].length;
                if (i + 2 == TIME_UNITS && duration % USEC_PER_MSEC)
                        break;
        }
        if (duration)
                snprintf(ret + n, VALUE_TEXT_MAX - n, "%llu.%03llums",
                         (unsigned long long)(duration / USEC_PER_MSEC),
                         (unsigned long long)(duration % USEC_PER_MSEC));
        else if (n == 0)
                snprintf(ret, VALUE_TEXT_MAX, "0s");
}

void value_size_text(size_t size, char ret[VALUE_TEXT_MAX])
{
        size_t i = 0;
        while (size_units[i].bytes > 1 && (size == 0 || size % size_units[i].bytes))
                i++;
        snprintf(ret, VALUE_TEXT_MAX, "%zu%s", (size_t)(size / size_units[i].bytes),
                 size_units[i].name);
}

void value_rate_text(double rate, char ret[VALUE_TEXT_MAX])
{
        char number[VALUE_TEXT_MAX];
        if (!(rate > 0)) {
                snprintf(ret, VALUE_TEXT_MAX, "none");
                return;
        }
        /* The unit in which it was written is the one in which few digits do. */
        size_t best = 0, best_len = SIZE_MAX;
        for (size_t i = 0; i < RATE_UNITS; i++) {
                double n = rate * rate_units[i].seconds, whole = (double)(uint64_t)(n + 0.5);
                if (n < 1e15 && whole > 0 && whole / rate_units[i].seconds == rate)
                        n = whole;
                value_number_text(n, number);
                if (n / rate_units[i].seconds == rate && strlen(number) < best_len) {
                        best = i;
                        best_len = strlen(number);
                        snprintf(ret, VALUE_TEXT_MAX, "%.50s%s", number, rate_units[best].name);
                }
        }
}

void value_share_text(double share, char ret[VALUE_TEXT_MAX])
{
        char number[VALUE_TEXT_MAX];
        for (int digits = 0; digits <= 20; digits++) {
                snprintf(number, sizeof number, "%.*f", digits, share * 100);
                if (strtod(number, NULL) / 100 == share)
                        break;
        }
        snprintf(ret, VALUE_TEXT_MAX, "%.50s%%", number);
}
