#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "config/document.h"
#include "config/setting.h"
#include "tests/unit/config_text.h"

#ifndef SAMPLE
#define SAMPLE "conf/weir.yaml"
#endif

static struct config *load_defaults(void)
{
        struct config *c = NULL;
        struct config_faults faults;
        assert_int_equal(config_load(NULL, &c, &faults), 0);
        return c;
}

static char *shown(const struct config *c)
{
        char *out = NULL;
        size_t len;
        FILE *to = open_memstream(&out, &len);
        config_show(c, to);
        fclose(to);
        return out;
}

static void assert_same(const struct config *a, const struct config *b)
{
        char *x = shown(a), *y = shown(b);
        assert_string_equal(x, y);
        free(x);
        free(y);
}

static bool denied(const struct config *c, const char *address)
{
        struct sockaddr_in in = {.sin_family = AF_INET};
        assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
        return cidr_set_contains(&c->destinations.deny, (struct sockaddr *)&in);
}

static void has_defaults(void **state)
{
        (void)state;
        struct config *c = load_defaults();
        const struct policy *p = &c->defaults;
        assert_string_equal(c->listen[0], "127.0.0.1:8080");
        assert_null(c->listen[1]);
        assert_in_range(c->workers, 1, 8);
        assert_int_equal(c->shutdown_grace, 30 * USEC_PER_SEC);
        assert_int_equal(c->clients.allow.count, 2);
        assert_int_equal(c->clients.max_connections, 10000);
        assert_int_equal(c->clients.header_timeout, 10 * USEC_PER_SEC);
        assert_int_equal(c->clients.idle_timeout, 75 * USEC_PER_SEC);
        assert_int_equal(c->clients.max_header, 64 << 10);
        assert_int_equal(c->clients.max_body, 16 << 20);
        assert_true(denied(c, "169.254.169.254"));
        assert_false(denied(c, "127.0.0.1"));
        assert_int_equal(c->destinations.allow.count, 0);
        assert_int_equal(c->destinations.connect_port_count, 2);
        assert_int_equal(c->destinations.connect_ports[1], 8443);
        assert_int_equal(c->log.level, LOG_LEVEL_INFO);
        assert_int_equal(c->log.format, LOG_FORMAT_TEXT);
        assert_string_equal(c->log.file, "-");
        assert_string_equal(c->log.access, "");
        assert_string_equal(c->log.series, "");
        assert_true(c->annotate);
        assert_string_equal(p->name, "default");
        assert_null(p->hosts[0]);
        assert_int_equal(p->scope_count, 1);
        assert_int_equal(p->scope[0].kind, SCOPE_HOST);
        assert_int_equal(p->lane.limit.algorithm, LIMITER_ADAPTIVE);
        assert_int_equal(p->lane.limit.start, 4);
        assert_int_equal(p->lane.limit.floor, 1);
        assert_int_equal(p->lane.limit.ceiling, 32);
        assert_true(p->lane.limit.max_rate == 0);
        assert_int_equal(p->lane.limit.min_delay, 0);
        assert_int_equal(p->lane.limit.max_hold, 900 * USEC_PER_SEC);
        assert_true(p->lane.limit.aimd.increase == 1 && p->lane.limit.aimd.decrease == 0.5);
        assert_int_equal(p->lane.limit.aimd.per, AIMD_PER_SUCCESS);
        assert_int_equal(p->lane.limit.breaker.trip, 6);
        assert_int_equal(p->lane.limit.breaker.cooldown, 30 * USEC_PER_SEC);
        assert_false(p->lane.refuse_when_open);
        assert_int_equal(p->lane.queue_max, 1000);
        assert_true(p->lane.retry_share == 0.2);
        assert_int_equal(p->queue_timeout, 120 * USEC_PER_SEC);
        assert_int_equal(p->retry.attempts, 4);
        assert_int_equal(p->retry.on.status_count, 5);
        assert_int_equal(p->retry.on.status[4], 504);
        assert_true(p->retry.on.connect && p->retry.on.timeout && p->retry.on.reset);
        assert_int_equal(p->retry.methods, RETRY_SAFE_METHODS);
        assert_int_equal(p->retry.base, 500 * USEC_PER_MSEC);
        assert_int_equal(p->retry.max, 30 * USEC_PER_SEC);
        assert_int_equal(p->retry.max_wait, 120 * USEC_PER_SEC);
        assert_true(p->retry.budget == 0.2);
        assert_int_equal(p->timeouts.connect, 10 * USEC_PER_SEC);
        assert_int_equal(p->timeouts.first_byte, 30 * USEC_PER_SEC);
        assert_int_equal(p->timeouts.read, 30 * USEC_PER_SEC);
        assert_int_equal(p->timeouts.total, 300 * USEC_PER_SEC);
        assert_int_equal(p->timeouts.tunnel, 600 * USEC_PER_SEC);
        assert_int_equal(p->https, HTTPS_TUNNEL);
        assert_true(p->tls.verify && p->http2);
        assert_string_equal(p->tls.ca_file, "");
        assert_int_equal(p->tls.min_version, TLS_1_2);
        assert_string_equal(c->admin.listen, "127.0.0.1:8081");
        assert_string_equal(c->admin.token, "");
        assert_int_equal(c->admin.max_scopes, 1000);
        assert_string_equal(c->ca.certificate, "");
        assert_string_equal(c->ca.key, "");
        assert_string_equal(p->egress, "direct");
        assert_null(p->pool);
        assert_false(p->session_order);
        assert_int_equal(c->rule_count, 0);
        assert_int_equal(c->pool_count, 0);

        static const char *const empty[] = {"", "# nothing\n", "defaults:\nclients: ~\nrules:\n",
                                            "defaults: {limit: {aimd: }}\nrules: []\npools:\n"};
        for (size_t i = 0; i < COUNT_OF(empty); i++) {
                struct config *other = load_good(empty[i]);
                assert_same(c, other);
                config_unref(other);
        }
        config_unref(c);
}

/* Sets every key to something else than its default. */
static const char all[] =
    "listen: [\"[::1]:0\", \"unix:/run/weir \\\"x\\\".sock\"]\n"
    "workers: 3\n"
    "shutdown_grace: 1m\n"
    "clients:\n"
    "  allow: [\"::/0\", loopback, 192.0.2.1]\n"
    "  max_connections: 1\n"
    "  header_timeout: 1.5s\n"
    "  idle_timeout: 1h30m\n"
    "  max_header: 1KiB\n"
    "  max_body: 0\n"
    "destinations:\n"
    "  deny: [multicast, private, 192.0.2.0/24]\n"
    "  allow: 10.0.0.1\n"
    "  connect_ports: [1, 65535]\n"
    "ca: {certificate: /etc/weir/ca.pem, key: ca.key}\n"
    "log:\n"
    "  level: debug\n"
    "  format: json\n"
    "  file: /var/log/weir/'x\"\\.log\n"
    "  access: \"-\"\n"
    "  series: \"a\\nb\"\n"
    "annotate: false\n"
    "defaults:\n"
    "  scope: [client, \"path:2\", session, port, \"header:X-Api-Key\", rule, domain,\n"
    "    endpoint]\n"
    "  limit: {algorithm: aimd, start: 7, floor: 2, ceiling: 9, max_rate: 5000/h, min_delay: 5ms,\n"
    "    max_hold: 24h, aimd: {increase: 0.25, per: round_trip, decrease: 0.75}}\n"
    "  breaker: {trip: 100, cooldown: 0, when_open: refuse}\n"
    "  queue: {max: 0, timeout: 0s}\n"
    "  retry: {attempts: 1, on: [599, reset], methods: all, base: 0s, max: 24h, max_wait: 1s,\n"
    "    budget: 33.3%}\n"
    "  timeouts: {connect: 1ms, first_byte: 2ms, read: 3ms, total: 4ms, tunnel: 5ms}\n"
    "  https: intercept\n"
    "  tls: {verify: false, ca_file: /ca's.pem, min_version: 1.3}\n"
    "  http2: false\n"
    "  egress: fast\n"
    "  session_order: true\n"
    "  classify:\n"
    "    - {status: [403, 999], header: \"Server:  cloudflare \", body: 'slow \"down\"', as: "
    "throttled}\n"
    "    - {as: blocked, header: x-robot}\n"
    "    - {status: 200, body: 1015, as: failed}\n"
    "rules:\n"
    "  - name: first-one\n"
    "    hosts: [\"*.Example.COM\", \"[2001:DB8:0::1]\", 192.0.2.7, a.]\n"
    "    limit: {start: 3, aimd: {per: success}}\n"
    "    retry: {on: []}\n"
    "  - hosts: \"*\"\n"
    "    breaker: {when_open: wait}\n"
    "    classify: [{status: 503, as: success}]\n"
    "    scope: host\n"
    "    https: upgrade\n"
    "    egress: direct\n"
    "    session_order: false\n"
    "    tls: {verify: true}\n"
    "pools:\n"
    "  slow: {endpoints: direct}\n"
    "  fast:\n"
    "    endpoints:\n"
    "      - \"http://user:${WEIR_TEST_PASSWORD}@Proxy1.example:8000/\"\n"
    "      - {url: \"socks5h://proxy2.example:1080\", max_in_flight: 2, weight: 3, name: two}\n"
    "      - {source: \"2001:DB8:0::1\"}\n"
    "      - direct\n"
    "      - https://user:pass@proxy1.example:8000\n"
    "      - \"${WEIR_TEST_URL}\"\n"
    "      - {source: \"192.0.2.1\", max_in_flight: 7}\n"
    "    max_in_flight: 7\n"
    "    choose: round_robin\n"
    "    sticky: client\n"
    "    sticky_ttl: 1h\n"
    "    quarantine: {after: 3, for: 1m}\n"
    "    exit_ip: {header: X-Exit-IP, probe: \"https://ip.example:8443/?a\"}\n";

static void set_environment(void)
{
        setenv("WEIR_TEST_PASSWORD", "se:cr@t/%41", 1);
        setenv("WEIR_TEST_URL", "socks5://u:p%41@[::1]:9", 1);
}

static void reads_every_kind(void **state)
{
        (void)state;
        struct config *c = load_good(all);
        assert_string_equal(c->listen[1], "unix:/run/weir \"x\".sock");
        assert_int_equal(c->workers, 3);
        assert_int_equal(c->clients.header_timeout, 1500 * USEC_PER_MSEC);
        assert_int_equal(c->clients.max_body, 0);
        assert_int_equal(c->destinations.allow.count, 1);
        assert_true(denied(c, "192.0.2.200"));
        assert_false(denied(c, "169.254.169.254")); /* the list takes the place of the default */
        assert_int_equal(c->destinations.connect_ports[1], 65535);
        assert_int_equal(c->log.level, LOG_LEVEL_DEBUG);
        assert_int_equal(c->log.format, LOG_FORMAT_JSON);
        assert_string_equal(c->log.series, "a\nb");
        assert_false(c->annotate);
        const struct policy *p = &c->defaults;
        assert_int_equal(p->scope_count, 8);
        assert_int_equal(p->scope[7].kind, SCOPE_ENDPOINT);
        assert_int_equal(p->scope[0].kind, SCOPE_CLIENT);
        assert_int_equal(p->scope[1].kind, SCOPE_PATH);
        assert_int_equal(p->scope[1].segments, 2);
        assert_int_equal(p->scope[4].kind, SCOPE_HEADER);
        assert_true(span_equal(p->scope[4].name, span_of("x-api-key")));
        assert_int_equal(p->lane.limit.algorithm, LIMITER_AIMD);
        assert_true(p->lane.limit.max_rate == 5000.0 / 3600);
        assert_int_equal(p->lane.limit.aimd.per, AIMD_PER_ROUND_TRIP);
        assert_true(p->lane.refuse_when_open);
        assert_int_equal(p->lane.queue_max, 0);
        assert_int_equal(p->retry.on.status_count, 1);
        assert_int_equal(p->retry.on.status[0], 599);
        assert_true(p->retry.on.reset && !p->retry.on.connect && !p->retry.on.timeout);
        assert_int_equal(p->retry.methods, RETRY_ALL_METHODS);
        assert_true(p->lane.retry_share == p->retry.budget);
        assert_int_equal(p->classify.count, 3);
        const struct classify_rule *rule = p->classify.list;
        assert_int_equal(rule[0].status_count, 2);
        assert_int_equal(rule[0].status[0], 403);
        assert_int_equal(rule[0].status[1], 999);
        assert_true(span_equal(rule[0].name, span_of("Server")));
        assert_true(span_equal(rule[0].value, span_of("cloudflare")));
        assert_true(span_equal(rule[0].body, span_of("slow \"down\"")));
        assert_int_equal(rule[0].as, ANSWER_THROTTLED);
        assert_int_equal(rule[1].status_count, 0);
        assert_true(span_equal(rule[1].name, span_of("x-robot")));
        assert_int_equal(rule[1].value.len, 0);
        assert_int_equal(rule[1].body.len, 0);
        assert_int_equal(rule[1].as, ANSWER_BLOCKED);
        assert_int_equal(rule[2].status[0], 200);
        assert_int_equal(rule[2].name.len, 0);
        assert_true(span_equal(rule[2].body, span_of("1015")));
        assert_string_equal(c->ca.certificate, "/etc/weir/ca.pem");
        assert_string_equal(c->ca.key, "ca.key");
        assert_int_equal(p->https, HTTPS_INTERCEPT);
        assert_false(p->tls.verify || p->http2);
        assert_string_equal(p->tls.ca_file, "/ca's.pem");
        assert_int_equal(p->tls.min_version, TLS_1_3);
        const struct policy *r = &c->rules[0];
        assert_string_equal(r->name, "first-one");
        assert_string_equal(r->hosts[0], "*.example.com");
        assert_string_equal(r->hosts[1], "2001:db8::1");
        assert_string_equal(r->hosts[3], "a");
        assert_null(r->hosts[4]);
        assert_int_equal(r->lane.limit.start, 3);
        assert_int_equal(r->lane.limit.ceiling, 9);
        assert_int_equal(r->lane.limit.aimd.per, AIMD_PER_SUCCESS);
        assert_true(r->lane.limit.aimd.increase == 0.25);
        assert_int_equal(r->retry.on.status_count, 0);
        assert_false(r->retry.on.reset);
        assert_int_equal(r->retry.attempts, 1);
        assert_int_equal(r->scope_count, 8);
        assert_string_equal(c->rules[1].name, "*");
        assert_false(c->rules[1].lane.refuse_when_open);
        assert_int_equal(c->rules[1].scope_count, 1);
        assert_int_equal(c->rules[1].https, HTTPS_UPGRADE);
        assert_true(c->rules[1].tls.verify && !c->rules[1].http2);
        assert_ptr_equal(r->classify.list, p->classify.list);
        assert_int_equal(c->rules[1].classify.count, 1); /* in the place of the defaults' */
        assert_int_equal(c->rules[1].classify.list[0].as, ANSWER_SUCCESS);
        assert_int_equal(c->pool_count, 2);
        assert_true(p->session_order && !c->rules[1].session_order);
        assert_ptr_equal(p->pool, &c->pools[1]);
        assert_ptr_equal(r->pool, p->pool);
        assert_null(c->rules[1].pool);
        config_unref(c);
}

static const struct egress_endpoint endpoints[] = {
    {"proxy1.example:8000", EGRESS_HTTP, "proxy1.example", 8000, "user", "se:cr@t/%41", NULL,
     "http://user:${WEIR_TEST_PASSWORD}@Proxy1.example:8000/", 7, 1, false},
    {"two", EGRESS_SOCKS5H, "proxy2.example", 1080, NULL, NULL, NULL,
     "socks5h://proxy2.example:1080", 2, 3, true},
    {"2001:db8::1", EGRESS_SOURCE, NULL, 0, NULL, NULL, "2001:db8::1", "2001:db8::1", 7, 1, false},
    {"direct", EGRESS_DIRECT, NULL, 0, NULL, NULL, NULL, "direct", 7, 1, false},
    {"proxy1.example:8000#5", EGRESS_HTTPS, "proxy1.example", 8000, "user", "pass", NULL,
     "https://user:***@proxy1.example:8000", 7, 1, false},
    {"#6", EGRESS_SOCKS5, "::1", 9, "u", "pA", NULL, "${WEIR_TEST_URL}", 7, 1, false},
    {"192.0.2.1", EGRESS_SOURCE, NULL, 0, NULL, NULL, "192.0.2.1", "192.0.2.1", 7, 1, false},
};

static void assert_text(const char *a, const char *b)
{
        if (a && b)
                assert_string_equal(a, b);
        else
                assert_ptr_equal(a, b);
}

static void reads_pools(void **state)
{
        (void)state;
        struct config *c = load_good(all);
        const struct egress_config *pool = config_pool(c, "fast");
        assert_null(config_pool(c, "fas"));
        assert_string_equal(pool->name, "fast");
        assert_int_equal(pool->policy.choose, EGRESS_ROUND_ROBIN);
        assert_int_equal(pool->sticky, EGRESS_STICKY_CLIENT);
        assert_int_equal(pool->policy.sticky_ttl, 3600 * USEC_PER_SEC);
        assert_int_equal(pool->policy.quarantine.after, 3);
        assert_int_equal(pool->policy.quarantine.time, 60 * USEC_PER_SEC);
        assert_string_equal(pool->exit_ip.header, "X-Exit-IP");
        assert_string_equal(pool->exit_ip.probe, "https://ip.example:8443/?a");
        assert_int_equal(pool->endpoints.count, COUNT_OF(endpoints));
        for (size_t i = 0; i < COUNT_OF(endpoints); i++) {
                const struct egress_endpoint *e = &pool->endpoints.list[i], *x = &endpoints[i];
                print_message("%s\n", x->name);
                assert_string_equal(e->name, x->name);
                assert_int_equal(e->kind, x->kind);
                assert_int_equal(e->port, x->port);
                assert_int_equal(e->max_in_flight, x->max_in_flight);
                assert_int_equal(e->weight, x->weight);
                assert_text(e->host, x->host);
                assert_text(e->user, x->user);
                assert_text(e->password, x->password);
                assert_text(e->source, x->source);
                assert_text(e->shown, x->shown);
        }
        const struct egress_config *slow = config_pool(c, "slow");
        assert_int_equal(slow->max_in_flight, 1);
        assert_int_equal(slow->endpoints.list[0].max_in_flight, 1);
        assert_int_equal(slow->policy.choose, EGRESS_LEAST_USED);
        assert_int_equal(slow->sticky, EGRESS_STICKY_SESSION);
        assert_int_equal(slow->policy.sticky_ttl, 1800 * USEC_PER_SEC);
        assert_int_equal(slow->policy.quarantine.after, 1);
        assert_int_equal(slow->policy.quarantine.time, 600 * USEC_PER_SEC);
        assert_string_equal(slow->exit_ip.header, "");
        assert_string_equal(slow->exit_ip.probe, "");
        assert_string_equal(pool->policy.name, "fast");
        assert_int_equal(pool->policy.generation, c->defaults.lane.generation);
        assert_int_equal(pool->policy.endpoint_count, COUNT_OF(endpoints));
        for (size_t i = 0; i < COUNT_OF(endpoints); i++) {
                assert_string_equal(pool->policy.endpoints[i].name, endpoints[i].name);
                assert_int_equal(pool->policy.endpoints[i].max_in_flight,
                                 endpoints[i].max_in_flight);
                assert_int_equal(pool->policy.endpoints[i].weight, endpoints[i].weight);
                assert_ptr_equal(pool->policy.endpoints[i].egress, &pool->endpoints.list[i]);
        }
        assert_true(c->defaults.lane.by_endpoint && c->defaults.lane.session_order);
        assert_false(c->rules[1].lane.by_endpoint || c->rules[1].lane.session_order);
        char *text = shown(c);
        assert_null(strstr(text, "se:cr@t"));
        assert_null(strstr(text, "user:pass"));
        assert_null(strstr(text, "p%41"));
        free(text);
        /* the governor may hold it for longer */
        pool->policy.hold(pool->policy.owner);
        config_unref(c);
        assert_string_equal(pool->policy.endpoints[0].name, endpoints[0].name);
        pool->policy.drop(pool->policy.owner);
}

static void shows_what_reads_back(void **state)
{
        (void)state;
        static const char *const texts[] = {
            "",
            all,
            "listen: \"0.0.0.0:8080\"\n",
            "destinations: {deny: []}\n",
            "log: {access: \"a\\u0001\\u0085\\u00fc\\u2028\\u20ac\\ufeff\\uffff\\U0001f600 b\"}\n",
            "defaults: {limit: {ceiling: 2}}\n"
            "rules: [{hosts: a, limit: {ceiling: 8}}, {hosts: b, limit: {floor: 2}}]\n",
            "defaults: {limit: {start: 10, ceiling: 20, max_rate: 0.7/min}, retry: {budget: 7%}}\n"
            "rules: [{name: x, hosts: [x], limit: {ceiling: 5}}]\n"};
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
                struct config *c = load_good(texts[i]);
                char *text = shown(c);
                struct config *back = load_good(text);
                assert_same(c, back);
                assert_int_equal(back->rule_count, c->rule_count);
                for (size_t k = 0; k < c->rule_count; k++) {
                        assert_string_equal(back->rules[k].name, c->rules[k].name);
                        assert_memory_equal(&back->rules[k].lane.limit, &c->rules[k].lane.limit,
                                            sizeof c->rules[k].lane.limit);
                }
                free(text);
                config_unref(back);
                config_unref(c);
        }
}

static void clamps_an_inherited_start(void **state)
{
        (void)state;
        struct config *c = load_good("defaults: {limit: {ceiling: 2}}\n"
                                     "rules:\n"
                                     "  - {hosts: a, limit: {ceiling: 8}}\n"
                                     "  - {hosts: b, limit: {ceiling: 8, floor: 6}}\n"
                                     "  - {hosts: c, limit: {ceiling: 1}}\n");
        assert_int_equal(c->defaults.lane.limit.start, 2);
        assert_int_equal(c->rules[0].lane.limit.start, 4);
        assert_int_equal(c->rules[1].lane.limit.start, 6);
        assert_int_equal(c->rules[2].lane.limit.start, 1);
        config_unref(c);
}

static void finds_the_rule(void **state)
{
        (void)state;
        struct config *c = load_good("rules:\n"
                                     "  - {name: exact, hosts: [www.Example.com, a.b.c]}\n"
                                     "  - {name: below, hosts: [\"*.example.com\", \"*.b.c\"]}\n"
                                     "  - {name: late, hosts: [x.example.com, example.com]}\n"
                                     "  - {name: address, hosts: [192.0.2.1, \"::1\"]}\n");
        static const struct {
                const char *host, *rule;
        } cases[] = {
            {"www.example.com", "exact"},
            {"www.example.com.", "exact"},
            {"a.b.c", "exact"},
            {"x.www.example.com", "below"},
            {"x.example.com", "below"}, /* the first that matches, not the closest */
            {"x.y.z.b.c", "below"},
            {"b.c", "default"},
            {"example.com", "late"},
            {"badexample.com", "default"},
            {".example.com", "default"},
            {"example.com.evil", "default"},
            {"192.0.2.1", "address"},
            {"::1", "address"},
            {"", "default"},
            {".", "default"},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                print_message("%s\n", cases[i].host);
                assert_string_equal(config_policy(c, span_of(cases[i].host))->name, cases[i].rule);
        }
        config_unref(c);
        c = load_good("rules: [{name: all, hosts: \"*\"}, {name: never, hosts: a}]\n");
        assert_string_equal(config_policy(c, span_of("a"))->name, "all");
        assert_string_equal(config_policy(c, span_of(""))->name, "all");
        config_unref(c);
}

static void generations_grow(void **state)
{
        (void)state;
        struct config *a = load_good("rules: [{hosts: a}]\n"), *b = load_defaults();
        assert_true(a->defaults.lane.generation > 0);
        assert_int_equal(a->rules[0].lane.generation, a->defaults.lane.generation);
        assert_true(b->defaults.lane.generation > a->defaults.lane.generation);
        assert_ptr_equal(config_ref(a), a);
        config_unref(a);
        assert_string_equal(config_policy(a, span_of("a"))->name, "a"); /* still there */
        config_unref(a);
        config_unref(b);
        config_unref(NULL);
}

static void guards_the_inside_from_outside(void **state)
{
        (void)state;
        static const struct {
                const char *text, *listen;
                bool loopback, private;
        } cases[] = {
            {"", NULL, false, false},
            {"listen: [\"127.9.9.9:1\", \"[::1]:1\", \"unix:/x\", \"[::ffff:127.0.0.1]:1\"]\n",
             NULL, false, false},
            {"listen: \"0.0.0.0:1\"\n", NULL, true, true},
            {"listen: [\"127.0.0.1:1\", \"[::]:1\"]\n", NULL, true, true},
            {"listen: \"192.168.1.1:1\"\n", NULL, true, true},
            {"listen: \"0.0.0.0:1\"\ndestinations: {deny: []}\n", NULL, true, true},
            {"destinations: {deny: [loopback]}\n", NULL, true, false},
            {"", "0.0.0.0:1", true, true},
            {"listen: \"0.0.0.0:1\"\n", "127.0.0.1:1", false, false},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct config *c;
                print_message("%s", cases[i].text);
                char *faults = load_text(cases[i].text, cases[i].listen, &c);
                assert_string_equal(faults, "");
                assert_int_equal(denied(c, "127.0.0.1"), cases[i].loopback);
                assert_int_equal(denied(c, "10.0.0.1"), cases[i].private);
                if (cases[i].listen) {
                        assert_string_equal(c->listen[0], cases[i].listen);
                        assert_null(c->listen[1]);
                }
                free(faults);
                config_unref(c);
        }
        struct config *c;
        char *faults = load_text("", "8080", &c);
        assert_string_equal(faults, "f: --listen: expected an address and port such as "
                                    "127.0.0.1:8080 or [::1]:8080, or unix:/PATH, got \"8080\"\n");
        free(faults);
}

/* A reload opens no other listeners, so what they are, and not what the file says, is guarded. */
static void guards_what_it_listens_on_after_a_reload(void **state)
{
        static const char closed[] = "listen: \"127.0.0.1:1\"\n",
                          open[] = "listen: \"0.0.0.0:1\"\n";
        (void)state;
        for (int public = 0; public < 2; public ++) {
                struct config *started = load_good(public ? open : closed), *c = NULL;
                struct config_faults faults = {0};
                char path[] = "/tmp/weir-test-config-XXXXXX";
                const char *now = public ? closed : open;
                int fd = mkstemp(path);
                assert_int_equal(write(fd, now, strlen(now)), (ssize_t)strlen(now));
                close(fd);
                assert_int_equal(config_reload(path, NULL, started, &c, &faults), 0);
                unlink(path);
                assert_int_equal(denied(c, "127.0.0.1"), public);
                assert_int_equal(denied(c, "10.0.0.1"), public);
                config_unref(started);
                config_unref(c);
        }
}

static void reads_the_service_settings(void **state)
{
        (void)state;
        struct config *c = load_good("admin: {listen: \"[::1]:1\", token: abc, max_scopes: 7}\n"
                                     "state: {dir: /x, save_every: 5s}\n");
        assert_string_equal(c->admin.listen, "[::1]:1");
        assert_string_equal(c->admin.token, "abc");
        assert_int_equal(c->admin.max_scopes, 7);
        assert_string_equal(c->state.dir, "/x");
        assert_int_equal(c->state.save_every, 5 * USEC_PER_SEC);
        config_unref(c);
}

static struct config *load_given(const char *below, const char *file, const char *above)
{
        const struct config_given given = {below, above};
        char path[] = "/tmp/weir-test-config-XXXXXX";
        int fd = mkstemp(path);
        struct config *c = NULL;
        struct config_faults faults = {0};
        assert_true(fd >= 0);
        assert_int_equal(write(fd, file, strlen(file)), (ssize_t)strlen(file));
        close(fd);
        assert_int_equal(config_load_given(path, &given, &c, &faults), 0);
        unlink(path);
        return c;
}

/* What a command brings along lies below the file, or above it; rules have it from the defaults. */
static void takes_what_a_command_brings(void **state)
{
        (void)state;
        static const char below[] = "log: {level: warn}\ndefaults: {https: intercept}\n";
        static const char above[] =
            "listen: [\"127.0.0.1:0\"]\nclients: {allow: [\"10.0.0.0/8\"]}\n"
            "defaults: {https: tunnel}\n";
        struct config *c = load_given(below, "rules: [{hosts: [a]}]\n", NULL);
        assert_int_equal(c->log.level, LOG_LEVEL_WARN);
        assert_int_equal(c->defaults.https, HTTPS_INTERCEPT);
        assert_int_equal(c->rules[0].https, HTTPS_INTERCEPT);
        assert_true(config_opens_https(c));
        config_unref(c);

        c = load_given(below, "log: {level: debug}\ndefaults: {https: upgrade}\n", NULL);
        assert_int_equal(c->log.level, LOG_LEVEL_DEBUG);
        assert_int_equal(c->defaults.https, HTTPS_UPGRADE);
        assert_false(config_opens_https(c));
        config_unref(c);

        c = load_given(below,
                       "listen: [\"[::]:1\"]\nclients: {allow: [\"::/0\"]}\n"
                       "rules: [{hosts: [a]}, {hosts: [b], https: intercept}]\n",
                       above);
        assert_string_equal(c->listen[0], "127.0.0.1:0");
        assert_null(c->listen[1]);
        assert_int_equal(c->clients.allow.count, 1);
        assert_int_equal(c->defaults.https, HTTPS_TUNNEL);
        assert_int_equal(c->rules[0].https, HTTPS_TUNNEL);
        assert_int_equal(c->rules[1].https, HTTPS_INTERCEPT); /* its own */
        assert_true(config_opens_https(c));
        struct config *plain = load_good("");
        /* Nobody outside reaches it any more, and so nothing is denied for their sake. */
        assert_int_equal(c->destinations.deny.count, plain->destinations.deny.count);
        config_unref(plain);
        config_unref(c);
}

static void note_key(void *arg, const char *key)
{
        fprintf(arg, "%s ", key);
}

static void assert_restart(const struct config *before, const struct config *after,
                           const char *expected)
{
        char *keys = NULL;
        size_t len;
        FILE *to = open_memstream(&keys, &len);
        config_needs_restart(before, after, note_key, to);
        fclose(to);
        assert_string_equal(keys, expected);
        free(keys);
}

static void says_what_takes_a_restart(void **state)
{
        (void)state;
        struct config *a = load_good("workers: 2\n"),
                      *b = load_good("workers: 3\nlisten: \"127.0.0.1:1\"\nannotate: false\n");
        assert_restart(a, a, "");
        assert_restart(a, b, "listen workers ");
        config_unref(a);
        config_unref(b);
}

/* Every row of the table makes sense by itself. */
static void table_is_sound(void **state)
{
        (void)state;
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                print_message("%s\n", s->path);
                assert_ptr_equal(setting_find(s->path), s);
                assert_true(s->help && s->help[strlen(s->help) - 1] == '.');
                assert_true(s->place == IN_RULE || s->fallback || s->kind == KIND_ENDPOINTS);
                assert_true(s->kind != KIND_NONE);
        }
}

/* The sample with the "#" taken from every line on which a setting follows it at once. */
static char *sample_in_force(void)
{
        char *out = NULL, *line = NULL;
        size_t len, room = 0;
        FILE *from = fopen(SAMPLE, "r"), *to = open_memstream(&out, &len);
        assert_non_null(from);
        while (getline(&line, &room, from) > 0) {
                size_t indent = strspn(line, " ");
                bool setting = line[indent] == '#' && !strchr(" \n", line[indent + 1]);
                fprintf(to, "%.*s%s", (int)indent, line, line + indent + setting);
        }
        free(line);
        fclose(from);
        fclose(to);
        return out;
}

static void sample_is_the_defaults(void **state)
{
        (void)state;
        struct config *defaults = load_defaults(), *c;
        struct config_faults faults = {0};
        struct node *root;
        char *text = sample_in_force();
        c = load_good(text);
        assert_same(defaults, c);
        config_unref(c);

        assert_int_equal(document_parse(span_of(text), &root, &faults), 0);
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                print_message("%s\n", s->path);
                const char *dot = strrchr(s->path, '.');
                if (s->place == IN_RULE || s->place == IN_POOL) /* of the example */
                        assert_non_null(strstr(text, dot + 1));
                else
                        assert_non_null(node_at(root, s->path));
        }
        node_free(root);
        free(text);

        /* as it is installed, with nothing taken from it, it changes nothing */
        assert_int_equal(config_load(SAMPLE, &c, &faults), 0);
        assert_same(defaults, c);
        config_unref(c);
        config_unref(defaults);
}

int main(void)
{
        set_environment();
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(has_defaults),
            cmocka_unit_test(reads_every_kind),
            cmocka_unit_test(reads_pools),
            cmocka_unit_test(shows_what_reads_back),
            cmocka_unit_test(clamps_an_inherited_start),
            cmocka_unit_test(finds_the_rule),
            cmocka_unit_test(generations_grow),
            cmocka_unit_test(guards_the_inside_from_outside),
            cmocka_unit_test(guards_what_it_listens_on_after_a_reload),
            cmocka_unit_test(reads_the_service_settings),
            cmocka_unit_test(takes_what_a_command_brings),
            cmocka_unit_test(says_what_takes_a_restart),
            cmocka_unit_test(table_is_sound),
            cmocka_unit_test(sample_is_the_defaults),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
