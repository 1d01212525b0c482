#include "runtime/learned.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

const char learned_head[] = "{\"version\": 1, \"scopes\": [\n";
const char learned_between[] = ",\n";
const char learned_quarantines[] = "\n], \"quarantines\": [\n";
const char learned_tail[] = "\n]}\n";

enum kind {
        REAL,
        FLAG,  /* bool */
        COUNT, /* unsigned */
        LONG_COUNT,
        SPAN, /* usec_t, written in seconds */
        PAST, /* usec_t before now, written as a moment: seconds since 1970 */
};

static const double most[] = {
    [REAL] = 1e12, [COUNT] = 1e9, [LONG_COUNT] = 1e15, [SPAN] = 1e9, [PAST] = 1e12,
};

/* What is zero is not written, and what is not there is zero. */
static const struct member {
        const char *name;
        enum kind kind;
        size_t offset;
} members[] = {
#define MEMBER(name, kind, field)                                  \
        {                                                          \
                name, kind, offsetof(struct limiter_memory, field) \
        }
    MEMBER("used", PAST, idle),
    MEMBER("rate", REAL, pace.rate),
    MEMBER("refused_rate", REAL, pace.max),
    MEMBER("climb_from", REAL, pace.low),
    MEMBER("climb_progress", REAL, pace.x),
    MEMBER("climb_requests", REAL, pace.requests),
    MEMBER("climb_time", SPAN, pace.time),
    MEMBER("resume_rate", REAL, pace.resume),
    MEMBER("slow_start", FLAG, pace.slow_start),
    MEMBER("refused_rate_guessed", FLAG, pace.guessed),
    MEMBER("steady", FLAG, pace.steady),
    MEMBER("slots", COUNT, slots),
    MEMBER("slots_confirmed", FLAG, slots_confirmed),
    MEMBER("window", REAL, window),
    MEMBER("round_trip", SPAN, srtt),
    MEMBER("closed", FLAG, closed),
    MEMBER("closed_since", PAST, closed_age),
    MEMBER("closed_for", SPAN, closed_length),
    MEMBER("half_open", FLAG, half_open),
    MEMBER("circuit_open", FLAG, circuit_open),
    MEMBER("back_off", SPAN, back_off),
    MEMBER("refusals", COUNT, refusals),
    MEMBER("episode_refusals", COUNT, episode_refusals),
    MEMBER("refused_epochs", COUNT, refused_epochs),
    MEMBER("unmoved", COUNT, unmoved),
    MEMBER("full_hold", FLAG, full_hold),
    MEMBER("cycle_start", PAST, cycle_age),
    MEMBER("cycle_accepted", LONG_COUNT, cycle_accepted),
#undef MEMBER
};

static const char *const algorithms[] = {
    [LIMITER_ADAPTIVE] = "adaptive",
    [LIMITER_AIMD] = "aimd",
    [LIMITER_FIXED] = "fixed",
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- writing ---- */

static json_t *number(double value)
{
        return value > 0 ? json_real(value) : NULL;
}

static json_t *member_json(const struct member *m, const struct limiter_memory *memory,
                           usec_t now_real)
{
        const void *field = (const char *)memory + m->offset;
        switch (m->kind) {
        case REAL:
                return number(*(const double *)field);
        case FLAG:
                return *(const bool *)field ? json_true() : NULL;
        case COUNT:
                return *(const unsigned *)field ? json_integer(*(const unsigned *)field) : NULL;
        case LONG_COUNT:
                return *(const uint64_t *)field
                           ? json_integer((json_int_t) * (const uint64_t *)field)
                           : NULL;
        case SPAN:
                return number(usec_seconds(*(const usec_t *)field));
        case PAST:
                if (field == &memory->closed_age && !memory->closed)
                        return NULL;
                return number(usec_seconds(usec_sub(now_real, *(const usec_t *)field)));
        }
        return NULL;
}

char *learned_line(const char *key, const struct limiter_memory *m, usec_t now_real)
{
        json_t *scope = strlen(key) <= LEARNED_MAX_KEY ? json_string(key) : NULL;
        if (!scope)
                return NULL;
        json_t *entry = json_object();
        json_object_set_new(entry, "scope", scope);
        json_object_set_new(entry, "algorithm", json_string(algorithms[m->algorithm]));
        for (size_t i = 0; i < COUNT_OF(members); i++) {
                json_t *value = member_json(&members[i], m, now_real);
                if (value)
                        json_object_set_new(entry, members[i].name, value);
        }
        char *line = json_dumps(entry, JSON_REAL_PRECISION(14));
        json_decref(entry);
        return line;
}

char *learned_quarantine_line(const struct learned_quarantine *q, usec_t now_real)
{
        if (strlen(q->pool) > LEARNED_MAX_KEY || strlen(q->endpoint) > LEARNED_MAX_KEY ||
            strlen(q->host) > LEARNED_MAX_KEY)
                return NULL;
        json_t *entry =
            json_pack("{s:s, s:s, s:s, s:f}", "pool", q->pool, "endpoint", q->endpoint, "host",
                      q->host, "until", usec_seconds(usec_add(now_real, q->left)));
        char *line = entry ? json_dumps(entry, JSON_REAL_PRECISION(14)) : NULL;
        json_decref(entry);
        return line;
}

/* ---- reading ---- */

/* False where the value is of the wrong type or absurd. */
static bool read_member(const struct member *m, const json_t *value, usec_t now_real,
                        struct limiter_memory *memory)
{
        void *field = (char *)memory + m->offset;
        if (m->kind == FLAG) {
                *(bool *)field = json_is_true(value);
                return json_is_boolean(value);
        }
        double number = json_number_value(value);
        if (!json_is_number(value) || !(number >= 0 && number <= most[m->kind]))
                return false;
        switch (m->kind) {
        case REAL:
                *(double *)field = number;
                break;
        case COUNT:
                *(unsigned *)field = (unsigned)number;
                break;
        case LONG_COUNT:
                *(uint64_t *)field = (uint64_t)number;
                break;
        case SPAN:
                *(usec_t *)field = usec_from_seconds(number);
                break;
        case PAST:
                *(usec_t *)field = usec_sub(now_real, usec_from_seconds(number));
                break;
        case FLAG:
                break;
        }
        return true;
}

static bool read_algorithm(const char *name, enum limiter_algorithm *ret)
{
        for (size_t i = 0; name && i < COUNT_OF(algorithms); i++)
                if (strcmp(name, algorithms[i]) == 0) {
                        *ret = (enum limiter_algorithm)i;
                        return true;
                }
        return false;
}

static bool read_scope(const json_t *entry, usec_t now_real, struct learned_scope *ret)
{
        const json_t *key = json_object_get(entry, "scope");
        struct limiter_memory m = {0};
        if (!json_is_string(key) || json_string_length(key) > LEARNED_MAX_KEY ||
            !read_algorithm(json_string_value(json_object_get(entry, "algorithm")), &m.algorithm))
                return false;
        for (size_t i = 0; i < COUNT_OF(members); i++) {
                const json_t *value = json_object_get(entry, members[i].name);
                if (value && !read_member(&members[i], value, now_real, &m))
                        return false;
        }
        *ret = (struct learned_scope){xstrdup(json_string_value(key)), m};
        return true;
}

static int by_use(const void *a, const void *b)
{
        usec_t x = ((const struct learned_scope *)a)->memory.idle;
        usec_t y = ((const struct learned_scope *)b)->memory.idle;
        return x < y ? 1 : x > y ? -1 : 0;
}

static void read_scopes(const json_t *list, usec_t now_real, struct learned *ret)
{
        size_t n = json_array_size(list);
        struct learned l = {.scopes = xcalloc(n ? n : 1, sizeof *l.scopes)};
        for (size_t i = 0; i < n; i++) {
                if (read_scope(json_array_get(list, i), now_real, &l.scopes[l.count]))
                        l.count++;
                else
                        l.unreadable++;
        }
        qsort(l.scopes, l.count, sizeof *l.scopes, by_use);
        *ret = l;
}

static const char *name_of(const json_t *entry, const char *key)
{
        const json_t *name = json_object_get(entry, key);
        return json_string_length(name) <= LEARNED_MAX_KEY ? json_string_value(name) : NULL;
}

static void read_quarantines(const json_t *list, usec_t now_real, struct learned *l)
{
        size_t n = json_array_size(list);
        l->quarantines = xcalloc(n ? n : 1, sizeof *l->quarantines);
        for (size_t i = 0; i < n; i++) {
                const json_t *entry = json_array_get(list, i);
                const char *pool = name_of(entry, "pool"), *host = name_of(entry, "host");
                const char *endpoint = name_of(entry, "endpoint");
                const json_t *until = json_object_get(entry, "until");
                double end = json_number_value(until);
                if (!pool || !host || !endpoint || !json_is_number(until) ||
                    !(end >= 0 && end <= most[PAST])) {
                        l->unreadable++;
                        continue;
                }
                usec_t left = usec_sub(usec_from_seconds(end), now_real);
                if (left > 0)
                        l->quarantines[l->quarantine_count++] = (struct learned_quarantine){
                            xstrdup(pool), xstrdup(endpoint), xstrdup(host), left};
        }
}

int learned_parse(struct span text, usec_t now_real, struct learned *ret, char **ret_why)
{
        json_error_t error;
        json_t *root = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &error);
        const json_t *version = json_object_get(root, "version");
        const json_t *scopes = json_object_get(root, "scopes");
        int r = 0;
        if (!root) {
                *ret_why = xasprintf("line %d: %s", error.line, error.text);
                r = -EINVAL;
        } else if (json_integer_value(version) > LEARNED_VERSION) {
                *ret_why = xasprintf("its version is %lld, and this weir knows none above %d",
                                     (long long)json_integer_value(version), LEARNED_VERSION);
                r = -ENOTSUP;
        } else if (json_integer_value(version) < 1 || !json_is_array(scopes)) {
                *ret_why = xstrdup("it is JSON, but no list of scopes with a version");
                r = -EINVAL;
        } else {
                read_scopes(scopes, now_real, ret);
                read_quarantines(json_object_get(root, "quarantines"), now_real, ret);
        }
        json_decref(root);
        return r;
}

void learned_done(struct learned *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->scopes[i].key);
        free(l->scopes);
        for (size_t i = 0; i < l->quarantine_count; i++) {
                free(l->quarantines[i].pool);
                free(l->quarantines[i].endpoint);
                free(l->quarantines[i].host);
        }
        free(l->quarantines);
        *l = (struct learned){0};
}
