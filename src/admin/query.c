#include "admin/query.h"

#include <ctype.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/xalloc.h"

char *query_text(const struct evhttp_request *req, const char *name)
{
        struct evkeyvalq pairs;
        const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
        const char *query = uri ? evhttp_uri_get_query(uri) : NULL;
        char *text = NULL;
        if (!query || evhttp_parse_query_str(query, &pairs) < 0)
                return NULL;
        const char *value = evhttp_find_header(&pairs, name);
        if (value)
                text = xstrdup(value);
        evhttp_clear_headers(&pairs);
        return text;
}

bool query_count(const struct evhttp_request *req, const char *name, size_t fallback, size_t most,
                 size_t *ret)
{
        char *text = query_text(req, name), *end = NULL;
        size_t n = fallback;
        bool good = true;
        if (text) {
                n = isdigit((unsigned char)text[0]) ? strtoul(text, &end, 10) : 0;
                good = n >= 1 && n <= most && *end == '\0';
        }
        free(text);
        if (good)
                *ret = n;
        return good;
}

/* Digits behind the point; what is finer than a microsecond is cut off. NULL: none. */
static const char *read_fraction(const char *text, usec_t *ret)
{
        usec_t unit = USEC_PER_SEC / 10, fraction = 0;
        if (!isdigit((unsigned char)*text))
                return NULL;
        for (; isdigit((unsigned char)*text); text++, unit /= 10)
                fraction += (usec_t)(*text - '0') * unit;
        *ret = fraction;
        return text;
}

static const char *read_seconds(const char *text, usec_t *ret)
{
        struct tm tm = {0};
        const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        if (end) {
                time_t t = timegm(&tm);
                *ret = t > 0 ? (usec_t)t * USEC_PER_SEC : 0;
                return end;
        }
        usec_t seconds = 0;
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 12)
                return NULL;
        for (size_t i = 0; i < digits; i++)
                seconds = 10 * seconds + (usec_t)(text[i] - '0');
        *ret = seconds * USEC_PER_SEC;
        return text + digits;
}

bool query_parse_time(const char *text, usec_t *ret)
{
        usec_t seconds, fraction = 0;
        const char *at = read_seconds(text, &seconds);
        bool is_date = at && strchr(text, 'T');
        if (at && *at == '.')
                at = read_fraction(at + 1, &fraction);
        if (at && is_date)
                at = *at == 'Z' ? at + 1 : NULL;
        if (!at || *at != '\0')
                return false;
        *ret = usec_add(seconds, fraction);
        return true;
}
