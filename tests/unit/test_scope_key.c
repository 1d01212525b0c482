#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "core/scope_key.h"

static const struct {
        const char *parts[SCOPE_MAX_PARTS];
        struct {
                const char *host;
                unsigned port;
                const char *rule, *client, *session, *path, *digests[2];
        } of;
        const char *key;
} cases[] = {
    {{"host"}, {.host = "example.com", .port = 80}, "example.com:80"},
    {{"host"}, {.host = "example.com", .port = 8443}, "example.com:8443"},
    {{"host"}, {.host = "192.0.2.7", .port = 80}, "192.0.2.7:80"},
    {{"host"}, {.host = "2001:db8::1", .port = 80}, "[2001:db8::1]:80"},
    {{"domain"}, {.host = "www.example.com", .port = 80}, "domain=example.com"},
    {{"domain"}, {.host = "www.example.com", .port = 8080}, "domain=example.com"},
    {{"domain", "port"}, {.host = "www.example.com", .port = 8080}, "domain=example.com port=8080"},
    {{"rule"}, {.rule = "api"}, "rule=api"},
    {{"client"}, {.client = "192.0.2.1"}, "client=192.0.2.1"},
    {{"client"}, {.client = "2001:db8::2"}, "client=2001:db8::2"},
    {{"session"}, {.session = "s1"}, "session=s1"},
    {{"session"}, {.session = ""}, "session="},
    {{"port"}, {.port = 80}, "port=80"},
    {{"rule", "client"}, {.rule = "api", .client = "ann"}, "rule=api client=ann"},
    {{"client", "rule"}, {.rule = "api", .client = "ann"}, "client=ann rule=api"},
    {{"host", "client"},
     {.host = "a.example", .port = 80, .client = "ann"},
     "a.example:80 client=ann"},
    {{"rule", "port"}, {.port = 65535, .rule = "api"}, "rule=api port=65535"},
    {{NULL}, {.host = "a.example"}, "*"},

    /* without a pool it says nothing */
    {{"host", "endpoint"}, {.host = "a.example", .port = 80}, "a.example:80"},
    {{"endpoint", "rule", "client"}, {.rule = "r", .client = "c"}, "rule=r client=c"},
    {{"endpoint"}, {.host = "a.example"}, "*"},

    {{"path:1"}, {.path = "/v1/users/7"}, "path=/v1"},
    {{"path:2"}, {.path = "/v1/users/7"}, "path=/v1/users"},
    {{"path:3"}, {.path = "/v1/users/7"}, "path=/v1/users/7"},
    {{"path:16"}, {.path = "/v1/users/7"}, "path=/v1/users/7"},
    {{"path:1"}, {.path = "/"}, "path=/"},
    {{"path:2"}, {.path = "/"}, "path=/"},
    {{"path:1"}, {.path = "/?a=/b/c"}, "path=/"},
    {{"path:2"}, {.path = "/v1?a=/b/c"}, "path=/v1"},
    {{"path:1"}, {.path = "/v1/"}, "path=/v1"},
    {{"path:2"}, {.path = "/v1/"}, "path=/v1"},
    {{"path:2"}, {.path = "/v1/?x"}, "path=/v1"},
    {{"path:1"}, {.path = "//v1"}, "path=/"},
    {{"path:2"}, {.path = "//v1"}, "path=//v1"},
    {{"path:1"}, {.path = "/a%20b/c"}, "path=/a%2520b"},
    {{"path:1"}, {.path = "/a;k=v/c"}, "path=/a;k%3Dv"},
    {{"path:1"}, {.path = "*"}, "path=*"},
    {{"host", "path:1"}, {.host = "a.example", .port = 80, .path = "/x"}, "a.example:80 path=/x"},

    {{"header:authorization"},
     {.digests = {"5d41402abc4b2a76"}},
     "header:authorization=5d41402abc4b2a76"},
    {{"header:x-key"}, {.digests = {""}}, "header:x-key="},
    {{"header:a", "host", "header:b"},
     {.host = "a.example", .port = 80, .digests = {"11", "22"}},
     "header:a=11 a.example:80 header:b=22"},
    {{"header:x%y"}, {.digests = {"11"}}, "header:x%25y=11"},

    {{"host", "domain", "port", "rule", "client", "session", "path:1", "header:h"},
     {"www.example.com", 1, "r", "c", "s", "/p/q", {"d", NULL}},
     "www.example.com:1 domain=example.com port=1 rule=r client=c session=s path=/p header:h=d"},

    /* one name cannot pass for two parts, nor hide control characters in a log */
    {{"client"}, {.client = "a rule=b"}, "client=a%20rule%3Db"},
    {{"session"}, {.session = "a rule=b"}, "session=a%20rule%3Db"},
    {{"path:1"}, {.path = "/a client=b"}, "path=/a%20client%3Db"},
    {{"client"}, {.client = "a%20b"}, "client=a%2520b"},
    {{"client"}, {.client = "a\n\x7f\xc3\xa9"}, "client=a%0A%7F%C3%A9"},
    {{"rule", "client"}, {.rule = "", .client = ""}, "rule= client="},
    {{"host"}, {.host = "rule=api", .port = 1}, "rule%3Dapi:1"},
};

static void composes_keys(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct scope_part parts[SCOPE_MAX_PARTS];
                struct span digests[] = {span_of(cases[i].of.digests[0]),
                                         span_of(cases[i].of.digests[1])};
                size_t count = 0;
                for (; count < SCOPE_MAX_PARTS && cases[i].parts[count]; count++)
                        assert_int_equal(
                            scope_part_parse(span_of(cases[i].parts[count]), &parts[count]), 0);
                struct scope_subject subject = {
                    .host = span_of(cases[i].of.host),
                    .port = cases[i].of.port,
                    .domain = span_of("example.com"),
                    .rule = span_of(cases[i].of.rule),
                    .client = span_of(cases[i].of.client),
                    .session = span_of(cases[i].of.session),
                    .path = span_of(cases[i].of.path),
                    .header_digests = digests,
                };
                char *key = scope_key_new(parts, count, &subject);
                assert_string_equal(key, cases[i].key);
                free(key);
        }
}

/* What goes through a pool is another scope than what does not, and each of its endpoints may be.
 */
static void names_the_pool(void **state)
{
        (void)state;
        static const struct {
                enum scope_part_kind kinds[2];
                size_t count;
                const char *pool, *key;
        } rows[] = {
            {{SCOPE_HOST}, 1, "res", "a.example:80 pool=res"},
            {{SCOPE_HOST}, 1, "r s/=", "a.example:80 pool=r%20s/%3D"},
            {{SCOPE_HOST, SCOPE_ENDPOINT}, 2, "res", "a.example:80 endpoint=res"},
            {{SCOPE_ENDPOINT, SCOPE_HOST}, 2, "res", "a.example:80 endpoint=res"},
            {{SCOPE_ENDPOINT}, 1, "res", "endpoint=res"},
            {{SCOPE_HOST}, 0, "res", "* pool=res"},
            {{SCOPE_HOST, SCOPE_ENDPOINT}, 2, "", "a.example:80"},
            {{SCOPE_ENDPOINT}, 1, "", "*"},
        };
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
                struct scope_part parts[] = {{.kind = rows[i].kinds[0]},
                                             {.kind = rows[i].kinds[1]}};
                struct scope_subject subject = {
                    .host = span_of("a.example"), .port = 80, .pool = span_of(rows[i].pool)};
                char *key = scope_key_new(parts, rows[i].count, &subject);
                assert_string_equal(key, rows[i].key);
                free(key);
        }
        char *key = scope_key_of_endpoint(span_of("a.example:80 endpoint=res"), span_of("h/1:80"));
        assert_string_equal(key, "a.example:80 endpoint=res/h%2F1:80");
        free(key);
}

/* Every byte three times as long, in every part: what the room is measured for. */
static void has_room_for_the_longest(void **state)
{
        (void)state;
        char spaces[300];
        memset(spaces, ' ', sizeof spaces);
        struct span s = {spaces, sizeof spaces};
        struct scope_subject subject = {.host = s,
                                        .port = 4294967295u,
                                        .domain = s,
                                        .rule = s,
                                        .client = s,
                                        .session = s,
                                        .pool = s,
                                        .path = s,
                                        .header_digests = &s};
        struct scope_part parts[] = {{.kind = SCOPE_HOST},
                                     {.kind = SCOPE_DOMAIN},
                                     {.kind = SCOPE_PORT},
                                     {.kind = SCOPE_RULE},
                                     {.kind = SCOPE_CLIENT},
                                     {.kind = SCOPE_SESSION},
                                     {.kind = SCOPE_PATH, .segments = 1},
                                     {.kind = SCOPE_HEADER, .name = s}};
        char *key = scope_key_new(parts, COUNT_OF(parts), &subject);
        assert_int_equal(strlen(key), 3 * (8 * sizeof spaces + SCOPE_MAX_PATH_BYTES) +
                                          strlen(":4294967295 domain= port=4294967295 rule= "
                                                 "client= session= path= header:= pool="));
        free(key);
}

/* What a peer can make long ends somewhere, and not with the "/" that it was cut at. */
static void bounds_paths(void **state)
{
        (void)state;
        char path[2 * SCOPE_MAX_PATH_BYTES];
        memset(path, 'x', sizeof path);
        path[0] = path[SCOPE_MAX_PATH_BYTES - 1] = '/';
        struct scope_subject subject = {.path = {path, sizeof path}};
        struct scope_part part = {.kind = SCOPE_PATH, .segments = 2};
        char *key = scope_key_new(&part, 1, &subject);
        assert_int_equal(strlen(key), strlen("path=") + SCOPE_MAX_PATH_BYTES - 1);
        assert_int_equal(key[strlen(key) - 1], 'x');
        free(key);
}

static const struct {
        const char *text;
        struct scope_part part;
} good[] = {
    {"host", {.kind = SCOPE_HOST}},
    {"domain", {.kind = SCOPE_DOMAIN}},
    {"port", {.kind = SCOPE_PORT}},
    {"rule", {.kind = SCOPE_RULE}},
    {"client", {.kind = SCOPE_CLIENT}},
    {"session", {.kind = SCOPE_SESSION}},
    {"path:1", {.kind = SCOPE_PATH, .segments = 1}},
    {"path:16", {.kind = SCOPE_PATH, .segments = 16}},
    {"header:X-Api-Key", {.kind = SCOPE_HEADER, .name = {"X-Api-Key", 9}}},
};

static void reads_parts(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(good); i++) {
                struct scope_part part = {0};
                assert_int_equal(scope_part_parse(span_of(good[i].text), &part), 0);
                assert_int_equal(part.kind, good[i].part.kind);
                assert_int_equal(part.segments, good[i].part.segments);
                assert_true(span_equal(part.name, good[i].part.name));
                struct span word = {good[i].text, strcspn(good[i].text, ":")};
                assert_true(span_equal(span_of(scope_part_name(part.kind)), word));
        }
}

static void refuses_unknown_parts(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int error;
        } bad[] = {
            {"", -EINVAL},           {"hosts", -EINVAL},     {"hos", -EINVAL},
            {"Host", -EINVAL},       {"host ", -EINVAL},     {"host:", -EINVAL},
            {"host:1", -EINVAL},     {"session:x", -EINVAL}, {":", -EINVAL},
            {"path", -EINVAL},       {"path:", -EINVAL},     {"path:0", -EINVAL},
            {"path:17", -EINVAL},    {"path:01", -EINVAL},   {"path:100", -EINVAL},
            {"path:-1", -EINVAL},    {"path:a", -EINVAL},    {"path: 1", -EINVAL},
            {"path:1.", -EINVAL},    {"header", -EINVAL},    {"header:", -EINVAL},
            {"header:a b", -EINVAL}, {"header:a:", -EINVAL}, {"header:\xc3\xa9", -EINVAL},
            {"header: a", -EINVAL},  {"endpoints", -EINVAL}, {"endpoint:1", -EINVAL},
        };
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
                struct scope_part part = {.kind = SCOPE_CLIENT};
                assert_int_equal(scope_part_parse(span_of(bad[i].text), &part), bad[i].error);
                assert_int_equal(part.kind, SCOPE_CLIENT);
        }
        struct scope_part part;
        assert_int_equal(scope_part_parse((struct span){NULL, 0}, &part), -EINVAL);
        assert_int_equal(scope_part_parse((struct span){"header:a\0b", 10}, &part), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(composes_keys),
            cmocka_unit_test(names_the_pool),
            cmocka_unit_test(has_room_for_the_longest),
            cmocka_unit_test(bounds_paths),
            cmocka_unit_test(reads_parts),
            cmocka_unit_test(refuses_unknown_parts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
