#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "runtime/learned.h"

#define SEC USEC_PER_SEC
#define NOW (1790000000 * SEC)

static const struct limiter_memory whole = {
    .algorithm = LIMITER_AIMD,
    .pace = {.rate = 29.5,
             .max = 30.25,
             .low = 28,
             .resume = 14,
             .x = .5,
             .requests = 400,
             .time = 90 * SEC,
             .slow_start = true,
             .guessed = true,
             .steady = true},
    .slots = 12,
    .slots_confirmed = true,
    .window = 7.5,
    .srtt = 350250,
    .idle = 17 * SEC + 250000,
    .closed = true,
    .half_open = true,
    .circuit_open = true,
    .closed_age = 3 * SEC,
    .closed_length = 60 * SEC,
    .back_off = 250000,
    .refusals = 7,
    .episode_refusals = 8,
    .refused_epochs = 2,
    .unmoved = 3,
    .full_hold = true,
    .cycle_age = 100 * SEC,
    .cycle_accepted = 5000000000,
};

static char *file_of(const char *entries)
{
        return xasprintf("%s%s%s", learned_head, entries, learned_tail);
}

/* Everything comes back as it was, `later` later. */
static void round_trip(void **state)
{
        (void)state;
        char *line = learned_line("example.com:80", &whole, NOW);
        char *text = file_of(line);
        struct learned l;
        char *why = NULL;
        assert_int_equal(learned_parse(span_of(text), NOW + 10 * SEC, &l, &why), 0);
        assert_int_equal(l.count, 1);
        assert_int_equal(l.unreadable, 0);
        assert_string_equal(l.scopes[0].key, "example.com:80");
        struct limiter_memory want = whole, got = l.scopes[0].memory;
        limiter_memory_age(&want, 10 * SEC);
        assert_true(got.pace.rate == want.pace.rate && got.pace.max == want.pace.max);
        assert_true(got.pace.low == want.pace.low && got.pace.resume == want.pace.resume);
        assert_true(got.pace.x == want.pace.x && got.pace.requests == want.pace.requests);
        assert_int_equal(got.pace.time, want.pace.time);
        assert_true(got.pace.slow_start && got.pace.guessed && got.pace.steady);
        assert_int_equal(got.algorithm, want.algorithm);
        assert_int_equal(got.slots, want.slots);
        assert_int_equal(got.slots_confirmed, want.slots_confirmed);
        assert_true(got.window == want.window);
        assert_int_equal(got.srtt, want.srtt);
        assert_int_equal(got.idle, want.idle);
        assert_true(got.closed && got.half_open && got.circuit_open);
        assert_int_equal(got.closed_age, want.closed_age);
        assert_int_equal(got.closed_length, want.closed_length);
        assert_int_equal(got.back_off, want.back_off);
        assert_int_equal(got.refusals, want.refusals);
        assert_int_equal(got.episode_refusals, want.episode_refusals);
        assert_int_equal(got.refused_epochs, want.refused_epochs);
        assert_int_equal(got.unmoved, want.unmoved);
        assert_true(got.full_hold);
        assert_int_equal(got.cycle_age, want.cycle_age);
        assert_int_equal(got.cycle_accepted, want.cycle_accepted);
        learned_done(&l);
        free(text);
        free(line);
}

/* What is over is left out, and so is what makes no sense. */
static void quarantines(void **state)
{
        (void)state;
        const struct learned_quarantine q = {"res", "e1:80 \"x\"", "a.example", 300 * SEC};
        char *line = learned_quarantine_line(&q, NOW), *why = NULL;
        char *scope = learned_line("a", &whole, NOW);
        char *text = xasprintf(
            "%s%s%s%s%s%s%s", learned_head, scope, learned_quarantines, line, learned_between,
            "{\"pool\": \"res\", \"endpoint\": 1, \"host\": \"a\", \"until\": 1}, 7", learned_tail);
        struct learned l;
        assert_int_equal(learned_parse(span_of(text), NOW + 100 * SEC, &l, &why), 0);
        assert_int_equal(l.count, 1);
        assert_int_equal(l.quarantine_count, 1);
        assert_int_equal(l.unreadable, 2);
        assert_string_equal(l.quarantines[0].pool, q.pool);
        assert_string_equal(l.quarantines[0].endpoint, q.endpoint);
        assert_string_equal(l.quarantines[0].host, q.host);
        assert_int_equal(l.quarantines[0].left, 200 * SEC);
        learned_done(&l);
        assert_int_equal(learned_parse(span_of(text), NOW + 300 * SEC, &l, &why), 0);
        assert_int_equal(l.quarantine_count, 0);
        learned_done(&l);
        free(text);
        free(scope);
        free(line);
        char long_name[LEARNED_MAX_KEY + 2];
        memset(long_name, 'n', sizeof long_name - 1);
        long_name[sizeof long_name - 1] = '\0';
        assert_null(
            learned_quarantine_line(&(struct learned_quarantine){"p", "e", long_name, 1}, NOW));
        assert_null(
            learned_quarantine_line(&(struct learned_quarantine){"p", "\xff", "h", 1}, NOW));
}

static void clock_set_back(void **state)
{
        (void)state;
        char *line = learned_line("a", &whole, NOW), *text = file_of(line), *why = NULL;
        struct learned l;
        assert_int_equal(learned_parse(span_of(text), NOW - 3600 * SEC, &l, &why), 0);
        assert_int_equal(l.scopes[0].memory.idle, 0);
        assert_int_equal(l.scopes[0].memory.closed_age, 0);
        assert_int_equal(l.scopes[0].memory.closed_length, 60 * SEC); /* never longer than it was */
        learned_done(&l);
        free(text);
        free(line);
}

static void keys(void **state)
{
        (void)state;
        char key[LEARNED_MAX_KEY + 2];
        memset(key, 'k', sizeof key - 1);
        key[sizeof key - 1] = '\0';
        assert_null(learned_line(key, &whole, NOW)); /* too long by one */
        assert_null(learned_line("\xff\xfe", &whole, NOW));
        static const char *const good[] = {"", "example.com:80 client=a%20b", "\"\\\n\x01 quoted",
                                           "b\xc3\xbcrger.example:80"};
        for (size_t i = 0; i < COUNT_OF(good); i++) {
                char *line = learned_line(good[i], &whole, NOW), *text = file_of(line), *why = NULL;
                struct learned l;
                assert_null(strchr(line, '\n'));
                assert_int_equal(learned_parse(span_of(text), NOW, &l, &why), 0);
                assert_string_equal(l.scopes[0].key, good[i]);
                learned_done(&l);
                free(text);
                free(line);
        }
}

static void most_recently_used_last(void **state)
{
        (void)state;
        char *text = file_of("{\"scope\":\"b\",\"algorithm\":\"adaptive\",\"used\":1789999990},"
                             "{\"scope\":\"c\",\"algorithm\":\"adaptive\",\"used\":1789999999},"
                             "{\"scope\":\"a\",\"algorithm\":\"adaptive\",\"used\":1789990000}");
        char *why = NULL;
        struct learned l;
        assert_int_equal(learned_parse(span_of(text), NOW, &l, &why), 0);
        assert_int_equal(l.count, 3);
        assert_string_equal(l.scopes[0].key, "a");
        assert_string_equal(l.scopes[1].key, "b");
        assert_string_equal(l.scopes[2].key, "c");
        learned_done(&l);
        free(text);
}

static void whole_files(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int want;
                size_t count;
        } cases[] = {
            {"{\"version\": 1, \"scopes\": []}", 0, 0},
            {"{\"version\": 1, \"scopes\": [], \"more\": 7}", 0, 0},
            {"", -EINVAL, 0},
            {"{", -EINVAL, 0},
            {"[]", -EINVAL, 0},
            {"7", -EINVAL, 0},
            {"null", -EINVAL, 0},
            {"{}", -EINVAL, 0},
            {"{\"version\": 1}", -EINVAL, 0},
            {"{\"version\": 1, \"scopes\": {}}", -EINVAL, 0},
            {"{\"scopes\": []}", -EINVAL, 0},
            {"{\"version\": 0, \"scopes\": []}", -EINVAL, 0},
            {"{\"version\": \"1\", \"scopes\": []}", -EINVAL, 0},
            {"{\"version\": 2, \"scopes\": []}", -ENOTSUP, 0},
            {"{\"version\": 2}", -ENOTSUP, 0},
            {"{\"version\": 1, \"version\": 1, \"scopes\": []}", -EINVAL, 0},
            {"{\"version\": 1, \"scopes\": [{\"scope\": \"a\", \"algorithm\": \"adaptive\"",
             -EINVAL, 0},
            {"{\"version\": 1, \"scopes\": []} and more", -EINVAL, 0},
            {"{\"version\": 1, \"scopes\": [\xff]}", -EINVAL, 0},
            {"{\"version\": 1, \"scopes\": [1e999]}", -EINVAL, 0},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct learned l = {.count = 99};
                char *why = NULL;
                int r = learned_parse(span_of(cases[i].text), NOW, &l, &why);
                if (r != cases[i].want)
                        fail_msg("%s: %d", cases[i].text, r);
                assert_int_equal(r == 0, why == NULL);
                if (r == 0) {
                        assert_int_equal(l.count, cases[i].count);
                        learned_done(&l);
                }
                free(why);
        }
        char nul[] = "{\"version\": 1, \"scopes\": [{\"scope\": \"a\\u0000b\"}]}", *why = NULL;
        struct learned l;
        assert_int_equal(learned_parse(span_of(nul), NOW, &l, &why), -EINVAL);
        free(why);
}

/* An entry that makes no sense is left out; the others count. */
static void entries(void **state)
{
        (void)state;
        static const struct {
                const char *members;
                bool good;
        } cases[] = {
            {"", true},
            {", \"rate\": 5", true},
            {", \"rate\": 5.5, \"what\": [\"is\", \"this\"]", true},
            {", \"rate\": \"5\"", false},
            {", \"rate\": -1", false},
            {", \"rate\": 1e13", false},
            {", \"rate\": null", false},
            {", \"closed\": true", true},
            {", \"closed\": 1", false},
            {", \"slots\": 3", true},
            {", \"slots\": 3.9", true},
            {", \"slots\": 2000000000", false},
            {", \"slots\": true", false},
            {", \"round_trip\": 1e10", false},
            {", \"used\": 1e12", true},
            {", \"used\": 0", true},
            {", \"used\": 1e13", false},
            {", \"cycle_accepted\": 1e16", false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                char *list = xasprintf("{\"scope\": \"a\", \"algorithm\": \"adaptive\"%s},"
                                       "{\"scope\": \"b\", \"algorithm\": \"fixed\"}",
                                       cases[i].members);
                char *text = file_of(list), *why = NULL;
                struct learned l;
                assert_int_equal(learned_parse(span_of(text), NOW, &l, &why), 0);
                if (l.count != 1u + cases[i].good || l.unreadable != 1u - cases[i].good)
                        fail_msg("%s", cases[i].members);
                learned_done(&l);
                free(text);
                free(list);
        }
        static const char *const bad[] = {
            "{}",
            "7",
            "[]",
            "null",
            "{\"scope\": \"a\"}",
            "{\"scope\": 7, \"algorithm\": \"fixed\"}",
            "{\"scope\": \"a\", \"algorithm\": 7}",
            "{\"scope\": \"a\", \"algorithm\": \"other\"}",
            "{\"algorithm\": \"fixed\"}",
        };
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
                char *text = file_of(bad[i]), *why = NULL;
                struct learned l;
                assert_int_equal(learned_parse(span_of(text), NOW, &l, &why), 0);
                assert_int_equal(l.count, 0);
                assert_int_equal(l.unreadable, 1);
                learned_done(&l);
                free(text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(round_trip),
            cmocka_unit_test(quarantines),
            cmocka_unit_test(clock_set_back),
            cmocka_unit_test(keys),
            cmocka_unit_test(most_recently_used_last),
            cmocka_unit_test(whole_files),
            cmocka_unit_test(entries),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
