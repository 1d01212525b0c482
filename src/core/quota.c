#include "core/quota.h"

#include <errno.h>
#include <string.h>

#include "base/fields.h"
#include "base/span.h"
#include "core/duration.h"
#include "core/http_date.h"

/* A part of a window, or a whole one, as it was found. */
enum found {
        FOUND_NONE,    /* no such field */
        FOUND_GOOD,    /* read */
        FOUND_BAD,     /* there, and it makes no sense */
        FOUND_FOREIGN, /* there, and it speaks of something else */
};

static const struct family {
        const char *limit, *remaining, *reset, *reset_after; /* reset_after may be NULL */
} families[] = {
    {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Reset-After"},
    {"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset",
     "X-Rate-Limit-Reset-After"},
    {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", NULL},
    {"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests",
     NULL},
    {"anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining",
     "anthropic-ratelimit-requests-reset", NULL},
};

/* Lists that are compared each with each are looked at no further; no host has as many. */
static const size_t most_members = 32;

static const struct quota_window untold = {.reset = USEC_MAX};

/* Takes in a window that was read, if it can be true. */
static void keep(struct quota *q, const struct quota_window *w)
{
        bool is_sane = (w->limit == 0 || w->remaining <= w->limit) &&
                       (w->reset == USEC_MAX || w->reset <= QUOTA_RESET_MAX);
        if (!is_sane)
                q->unreadable++;
        else if (q->count < QUOTA_MAX_WINDOWS)
                q->windows[q->count++] = *w;
}

static int read_count(struct span text, uint64_t *ret)
{
        struct decimal d;
        if (decimal_parse(text, &d) < 0)
                return -EINVAL;
        *ret = d.whole;
        return 0;
}

static usec_t epoch_usec(struct decimal d)
{
        if (d.whole < 100000000000u)
                return decimal_usec(d, USEC_PER_SEC);
        if (d.whole < 100000000000000u)
                return decimal_usec(d, USEC_PER_MSEC);
        if (d.whole < 100000000000000000u)
                return d.whole;
        return d.whole / 1000;
}

static int read_reset(struct span text, usec_t clock, usec_t *ret)
{
        struct decimal d;
        usec_t moment;
        if (decimal_parse(text, &d) == 0) {
                *ret = d.whole < 1000000000u ? decimal_usec(d, USEC_PER_SEC)
                                             : usec_sub(epoch_usec(d), clock);
                return 0;
        }
        if (duration_parse(text, ret) == 0)
                return 0;
        if (http_date_parse(text, clock, &moment) < 0 && http_date_parse_iso(text, &moment) < 0)
                return -EINVAL;
        *ret = usec_sub(moment, clock);
        return 0;
}

/* The text before the first `sep`; all of it where there is none. */
static struct span before(struct span text, char sep)
{
        struct span part = text;
        (void)span_next(&text, sep, &part);
        return part;
}

/* The smallest of the counts in all fields of that name. */
static enum found find_count(const struct fields *fields, const char *name, uint64_t *ret)
{
        enum found found = FOUND_NONE;
        struct span rest, member;
        uint64_t value;
        for (size_t i = 0; fields_find(fields, i, span_of(name), &rest, &i); i++) {
                while (span_next(&rest, ',', &member)) {
                        if (member.len > 0 && memchr(member.ptr, '/', member.len))
                                return FOUND_FOREIGN;
                        /* Old drafts put parameters there: "100, 100;w=60". */
                        if (read_count(before(member, ';'), &value) < 0)
                                return FOUND_BAD;
                        if (found == FOUND_NONE || value < *ret)
                                *ret = value;
                        found = FOUND_GOOD;
                }
        }
        return found;
}

/* The longest of the resets in all fields of that name. */
static enum found find_reset(const struct fields *fields, const char *name, usec_t clock,
                             usec_t *ret)
{
        enum found found = FOUND_NONE;
        struct span rest, member;
        usec_t value;
        if (!name)
                return FOUND_NONE;
        for (size_t i = 0; fields_find(fields, i, span_of(name), &rest, &i); i++) {
                while (http_date_next(&rest, &member)) {
                        if (read_reset(member, clock, &value) < 0)
                                return FOUND_BAD;
                        if (found == FOUND_NONE || value > *ret)
                                *ret = value;
                        found = FOUND_GOOD;
                }
        }
        return found;
}

static void read_family(const struct fields *fields, const struct family *family, usec_t clock,
                        struct quota *q)
{
        struct quota_window w = untold;
        enum found limit = find_count(fields, family->limit, &w.limit);
        enum found remaining = find_count(fields, family->remaining, &w.remaining);
        enum found reset = find_reset(fields, family->reset_after, clock, &w.reset);
        if (reset == FOUND_NONE)
                reset = find_reset(fields, family->reset, clock, &w.reset);
        if (limit == FOUND_FOREIGN || remaining == FOUND_FOREIGN)
                return;
        if (limit == FOUND_BAD || remaining == FOUND_BAD || reset == FOUND_BAD)
                q->unreadable++;
        else if (remaining == FOUND_GOOD)
                keep(q, &w);
}

/* As span_next, but separators between double quotes are text (RFC 9651, 3.3.3). */
static bool next_quoted(struct span *rest, char sep, struct span *ret)
{
        bool quoted = false;
        size_t n = 0;
        if (!rest->ptr)
                return false;
        for (; n < rest->len && (quoted || rest->ptr[n] != sep); n++) {
                if (rest->ptr[n] == '"')
                        quoted = !quoted;
                else if (rest->ptr[n] == '\\' && quoted && n + 1 < rest->len)
                        n++;
        }
        *ret = span_trim((struct span){rest->ptr, n});
        *rest = n < rest->len ? (struct span){rest->ptr + n + 1, rest->len - n - 1}
                              : (struct span){NULL, 0};
        return true;
}

/* Splits "key=value"; false where there is no "=". */
static bool take_pair(struct span text, struct span *ret_key, struct span *ret_value)
{
        const char *at = text.len > 0 ? memchr(text.ptr, '=', text.len) : NULL;
        if (!at || text.ptr[0] == '"')
                return false;
        size_t n = (size_t)(at - text.ptr);
        *ret_key = span_trim((struct span){text.ptr, n});
        *ret_value = span_trim((struct span){at + 1, text.len - n - 1});
        return true;
}

/* One member of RateLimit-Policy: `"burst";q=100;w=60`, or of old `100;w=60`. */
struct policy {
        struct span name; /* with its quotes */
        uint64_t limit;
        usec_t length;
};

static int read_policy(struct span member, struct policy *ret)
{
        struct policy p = {.limit = 0};
        struct span part, key, value;
        if (!next_quoted(&member, ';', &p.name))
                return -EINVAL;
        bool has_limit = read_count(p.name, &p.limit) == 0;
        while (next_quoted(&member, ';', &part)) {
                struct decimal d;
                if (!take_pair(part, &key, &value))
                        continue;
                if (span_equal(key, span_of("q")))
                        has_limit = read_count(value, &p.limit) == 0;
                else if (span_equal(key, span_of("w")) && decimal_parse(value, &d) == 0)
                        p.length = decimal_usec(d, USEC_PER_SEC);
        }
        if (!has_limit)
                return -EINVAL;
        *ret = p;
        return 0;
}

/* The policy that a window names; the only one where there is one alone, since there is nothing to
 * take it for another. Old policies have no name but the limit itself. */
static bool find_policy(const struct fields *fields, struct span name, uint64_t limit,
                        struct policy *ret)
{
        struct span rest, member;
        struct policy p;
        size_t count = 0, seen = 0;
        for (size_t i = 0; fields_find(fields, i, span_of("RateLimit-Policy"), &rest, &i); i++) {
                while (seen++ < most_members && next_quoted(&rest, ',', &member)) {
                        if (read_policy(member, &p) < 0)
                                continue;
                        *ret = p;
                        if (name.len > 0 ? span_equal(p.name, name) : p.limit == limit)
                                return true;
                        count++;
                }
        }
        return count == 1 && limit == 0;
}

/* One "key=value" of either draft; false where it cannot be read. Unknown keys are fine. */
static bool read_part(struct span part, usec_t clock, struct quota_window *w, bool *has_remaining)
{
        struct span key, value;
        if (!take_pair(part, &key, &value))
                return true;
        if (span_equal(key, span_of("limit")))
                return read_count(value, &w->limit) == 0;
        if (span_equal(key, span_of("reset")) || span_equal(key, span_of("t")))
                return read_reset(value, clock, &w->reset) == 0;
        if (!span_equal(key, span_of("remaining")) && !span_equal(key, span_of("r")))
                return true;
        *has_remaining = read_count(value, &w->remaining) == 0;
        return *has_remaining;
}

/* A window from a name, "" for none, and its parts. */
static void read_parts(const struct fields *fields, struct span name, struct span parts, char sep,
                       usec_t clock, struct quota *q)
{
        struct quota_window w = untold;
        struct span part;
        bool good = true, has_remaining = false;
        while (good && next_quoted(&parts, sep, &part))
                good = read_part(part, clock, &w, &has_remaining);
        if (!good || !has_remaining) {
                q->unreadable++;
                return;
        }
        struct policy policy = {.limit = 0};
        if (find_policy(fields, name, w.limit, &policy)) {
                w.limit = policy.limit;
                w.length = policy.length;
        }
        keep(q, &w);
}

static void read_ratelimit(const struct fields *fields, usec_t clock, struct quota *q)
{
        struct span rest, member, name, key, value;
        size_t seen = 0;
        for (size_t i = 0; fields_find(fields, i, span_of("RateLimit"), &rest, &i); i++) {
                struct span first = rest;
                if (seen++ >= most_members)
                        return;
                if (next_quoted(&first, ';', &name) && take_pair(name, &key, &value)) {
                        bool by_comma = memchr(name.ptr, ',', name.len) != NULL;
                        read_parts(fields, span_of(""), rest, by_comma ? ',' : ';', clock, q);
                        continue;
                }
                while (seen++ < most_members && next_quoted(&rest, ',', &member))
                        if (next_quoted(&member, ';', &name))
                                read_parts(fields, name, member, ';', clock, q);
        }
}

/* "20:1": a count, and the seconds in which it is counted. */
static int read_per(struct span member, uint64_t *ret_count, usec_t *ret_length)
{
        struct span count, seconds;
        struct decimal d;
        if (!span_next(&member, ':', &count) || !span_next(&member, ':', &seconds) || member.ptr)
                return -EINVAL;
        if (decimal_parse(seconds, &d) < 0)
                return -EINVAL;
        *ret_length = decimal_usec(d, USEC_PER_SEC);
        return read_count(count, ret_count);
}

/* The count of the period of that length in "3:1,7:120". */
static int count_of(struct span counts, usec_t length, uint64_t *ret)
{
        struct span member;
        uint64_t count;
        usec_t of;
        size_t seen = 0;
        while (seen++ < most_members && span_next(&counts, ',', &member)) {
                if (read_per(member, &count, &of) < 0 || of != length)
                        continue;
                *ret = count;
                return 0;
        }
        return -ENOENT;
}

static void read_app(const struct fields *fields, struct quota *q)
{
        struct span limits, counts, member;
        if (!fields_find(fields, 0, span_of("X-App-Rate-Limit"), &limits, NULL) ||
            !fields_find(fields, 0, span_of("X-App-Rate-Limit-Count"), &counts, NULL))
                return;
        size_t seen = 0;
        while (seen++ < most_members && span_next(&limits, ',', &member)) {
                struct quota_window w = untold;
                uint64_t used;
                if (read_per(member, &w.limit, &w.length) < 0 ||
                    count_of(counts, w.length, &used) < 0) {
                        q->unreadable++;
                        continue;
                }
                w.remaining = used < w.limit ? w.limit - used : 0;
                keep(q, &w);
        }
}

static void read_shopify(const struct fields *fields, struct quota *q)
{
        struct span value, used, limit;
        struct quota_window w = untold;
        uint64_t count;
        if (!fields_find(fields, 0, span_of("X-Shopify-Shop-Api-Call-Limit"), &value, NULL))
                return;
        if (!span_next(&value, '/', &used) || !span_next(&value, '/', &limit) || value.ptr ||
            read_count(used, &count) < 0 || read_count(limit, &w.limit) < 0) {
                q->unreadable++;
                return;
        }
        w.remaining = count < w.limit ? w.limit - count : 0;
        keep(q, &w);
}

static bool says(const struct fields *fields, const char *name, const char *text)
{
        struct span value;
        return fields_find(fields, 0, span_of(name), &value, NULL) &&
               span_equal_nocase(span_trim(value), span_of(text));
}

void quota_read(const struct fields *fields, usec_t now_real, struct quota *ret_quota)
{
        usec_t clock = http_date_clock(fields, now_real);
        *ret_quota = (struct quota){.shared = says(fields, "X-RateLimit-Scope", "shared") ||
                                              says(fields, "X-Rate-Limit-Type", "service")};
        for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
                read_family(fields, &families[i], clock, ret_quota);
        read_ratelimit(fields, clock, ret_quota);
        read_app(fields, ret_quota);
        read_shopify(fields, ret_quota);
}

usec_t quota_hold(const struct quota *quota)
{
        usec_t longest = 0;
        for (size_t i = 0; i < quota->count; i++) {
                const struct quota_window *w = &quota->windows[i];
                if (w->remaining > 0)
                        continue;
                usec_t hold = w->reset != USEC_MAX ? w->reset : w->length;
                longest = usec_max(longest, usec_max(hold, QUOTA_HOLD_MIN));
        }
        return longest;
}
