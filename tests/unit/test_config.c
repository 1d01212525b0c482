#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"
#include "config/document.h"
#include "config/setting.h"

/* Writes a file and loads it; the faults as they are printed, to be freed. */
static char *load_text(const char *text, const char *listen, struct config **ret)
{
        char path[] = "/tmp/weir-test-config-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
        struct config_faults faults = {0};
        char *out = NULL;
        size_t len;
        *ret = NULL;
        int r = config_load_listen(path, listen, ret, &faults);
        unlink(path);
        assert_int_equal(r, faults.count ? -EINVAL : 0);
        assert_int_equal(*ret != NULL, r == 0);
        FILE *to = open_memstream(&out, &len);
        config_faults_print(&faults, "f", to);
        fclose(to);
        config_faults_done(&faults);
        return out;
}

static struct config *load_good(const char *text)
{
        struct config *c;
        char *faults = load_text(text, NULL, &c);
        assert_string_equal(faults, "");
        free(faults);
        return c;
}

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
        assert_int_equal(p->https, HTTPS_TUNNEL);
        assert_int_equal(c->rule_count, 0);
        assert_null(c->inert[0]);

        static const char *const empty[] = {"", "# nothing\n", "defaults:\nclients: ~\nrules:\n",
                                            "defaults: {limit: {aimd: }}\nrules: []\n"};
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
    "log:\n"
    "  level: debug\n"
    "  format: json\n"
    "  file: /var/log/weir/'x\"\\.log\n"
    "  access: \"-\"\n"
    "  series: \"a\\nb\"\n"
    "annotate: false\n"
    "defaults:\n"
    "  scope: [client, rule, port]\n"
    "  limit: {algorithm: aimd, start: 7, floor: 2, ceiling: 9, max_rate: 5000/h, min_delay: 5ms,\n"
    "    max_hold: 24h, aimd: {increase: 0.25, per: round_trip, decrease: 0.75}}\n"
    "  breaker: {trip: 100, cooldown: 0, when_open: refuse}\n"
    "  queue: {max: 0, timeout: 0s}\n"
    "  retry: {attempts: 1, on: [599, reset], methods: all, base: 0s, max: 24h, max_wait: 1s,\n"
    "    budget: 33.3%}\n"
    "  timeouts: {connect: 1ms, first_byte: 2ms, read: 3ms, total: 4ms}\n"
    "  https: tunnel\n"
    "rules:\n"
    "  - name: first-one\n"
    "    hosts: [\"*.Example.COM\", \"[2001:DB8:0::1]\", 192.0.2.7, a.]\n"
    "    limit: {start: 3, aimd: {per: success}}\n"
    "    retry: {on: []}\n"
    "  - hosts: \"*\"\n"
    "    breaker: {when_open: wait}\n"
    "    scope: host\n";

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
        assert_int_equal(p->scope_count, 3);
        assert_int_equal(p->scope[0].kind, SCOPE_CLIENT);
        assert_int_equal(p->scope[1].kind, SCOPE_RULE);
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
        assert_int_equal(r->scope_count, 3);
        assert_string_equal(c->rules[1].name, "*");
        assert_false(c->rules[1].lane.refuse_when_open);
        assert_int_equal(c->rules[1].scope_count, 1);
        config_unref(c);
}

static void shows_what_reads_back(void **state)
{
        (void)state;
        static const char *const texts[] = {
            "",
            all,
            "listen: \"0.0.0.0:8080\"\n",
            "destinations: {deny: []}\n",
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

static void names_every_fault(void **state)
{
        (void)state;
        static const struct {
                const char *text, *faults;
        } cases[] = {
            {"defaults: {limit: {ceilling: 3}}\n",
             "f:1:20: defaults.limit.ceilling: unknown key; did you mean \"ceiling\"?\n"},
            {"defaults:\n  limt: {start: 3}\n",
             "f:2:3: defaults.limt: unknown key; did you mean \"limit\"?\n"},
            {"worker: 3\nlsiten: x\nrule: []\ndefault: {}\n",
             "f:1:1: worker: unknown key; did you mean \"workers\"?\n"
             "f:2:1: lsiten: unknown key; did you mean \"listen\"?\n"
             "f:3:1: rule: unknown key; did you mean \"rules\"?\n"
             "f:4:1: default: unknown key; did you mean \"defaults\"?\n"},
            {"ceiling: 3\n",
             "f:1:1: ceiling: unknown key; did you mean \"defaults.limit.ceiling\"?\n"},
            {"colour: blue\n'': 1\n\"x\\ny\": 1\n", "f:1:1: colour: unknown key\n"
                                                    "f:2:1: : unknown key\n"
                                                    "f:3:1: x?y: unknown key\n"},
            {"clients: {name: x, hosts: y}\n", "f:1:11: clients.name: unknown key; did you mean "
                                               "\"rules[].name\"?\n"
                                               "f:1:20: clients.hosts: unknown key; did you mean "
                                               "\"rules[].hosts\"?\n"},
            {"defaults: {name: x}\n",
             "f:1:12: defaults.name: unknown key; did you mean \"rules[].name\"?\n"},
            {"limit.start: 3\n", "f:1:1: limit.start: unknown key; did you mean "
                                 "\"defaults.limit.start\"?\n"},
            {"log.level: debug\n",
             "f:1:1: log.level: unknown key; write its parts as keys one below the other\n"},
            {"workers: 4\nworkers: 5\n", "f:2:1: workers: given twice, first on line 1\n"},
            {"workers: 0\n", "f:1:10: workers: expected 1 to 64, got \"0\"\n"},
            {"workers: many\n", "f:1:10: workers: expected a whole number or auto, got \"many\"\n"},
            {"workers:\n", "f:1:9: workers: expected a whole number or auto, got nothing\n"},
            {"workers: [1]\n", "f:1:10: workers: expected a whole number or auto, got a list\n"},
            {"defaults: {limit: {start: -1}}\n",
             "f:1:27: defaults.limit.start: expected a whole number, got \"-1\"\n"},
            {"defaults: {limit: {start: 0}}\n",
             "f:1:27: defaults.limit.start: expected 1 to 100000, got \"0\"\n"},
            {"defaults: {limit: {start: 99999999999999999999}}\n",
             "f:1:27: defaults.limit.start: expected 1 to 100000, got \"99999999999999999999\"\n"},
            {"shutdown_grace: 2h\n", "f:1:17: shutdown_grace: expected 0s to 1h, got \"2h\"\n"},
            {"shutdown_grace: 30\n", "f:1:17: shutdown_grace: expected a duration such as 250ms, "
                                     "30s or 1h30m, got \"30\"\n"},
            {"clients: {max_body: 2GiB, max_header: big}\n",
             "f:1:21: clients.max_body: expected 0B to 1GiB, got \"2GiB\"\n"
             "f:1:39: clients.max_header: expected a size such as 64KiB or 16MiB, got \"big\"\n"},
            {"defaults: {limit: {max_rate: 10}}\n",
             "f:1:30: defaults.limit.max_rate: expected a rate such as 10/s, 600/min or 5000/h, or "
             "none, got \"10\"\n"},
            {"defaults: {limit: {max_rate: 0.5/h}}\n",
             "f:1:30: defaults.limit.max_rate: expected 1/h to 1000000/s, got \"0.5/h\"\n"},
            {"defaults: {retry: {budget: 0.2}}\n",
             "f:1:28: defaults.retry.budget: expected a percentage such as 20%, got \"0.2\"\n"},
            {"defaults: {retry: {budget: 101%}}\n",
             "f:1:28: defaults.retry.budget: expected 0% to 100%, got \"101%\"\n"},
            {"defaults: {limit: {aimd: {decrease: 1}}}\n",
             "f:1:37: defaults.limit.aimd.decrease: expected 0.01 to 0.99, got \"1\"\n"},
            {"annotate: yes\n", "f:1:11: annotate: expected true or false, got \"yes\"\n"},
            {"log: {level: loud, file: [x]}\n",
             "f:1:14: log.level: expected error, warn, info or debug, got \"loud\"\n"
             "f:1:26: log.file: expected a text, got a list\n"},
            {"log: debug\n", "f:1:6: log: expected keys, got \"debug\"\n"},
            {"defaults: {limit: [start]}\n", "f:1:19: defaults.limit: expected keys, got a list\n"},
            {"listen: []\n", "f:1:9: listen: expected at least one address, got an empty list\n"},
            {"listen: {a: b}\n", "f:1:9: listen: expected a list, got keys\n"},
            {"listen: [localhost:80, [x], ~, \"127.0.0.1:1\", \"127.0.0.1:1\"]\n",
             "f:1:10: listen: expected an address and port such as 127.0.0.1:8080 or [::1]:8080, "
             "or unix:/PATH, got \"localhost:80\"\n"
             "f:1:24: listen: expected an address and port such as 127.0.0.1:8080 or [::1]:8080, "
             "or unix:/PATH, got a list\n"
             "f:1:29: listen: expected an address and port such as 127.0.0.1:8080 or [::1]:8080, "
             "or unix:/PATH, got nothing\n"
             "f:1:47: listen: 127.0.0.1:1 is listed twice\n"},
            {"clients: {allow: [\"300.1.1.1/8\", \"::1\"]}\n",
             "f:1:19: clients.allow: expected a network such as 10.0.0.0/8 or 2001:db8::/32, an "
             "address, loopback, private, link-local or multicast, got \"300.1.1.1/8\"\n"},
            {"destinations: {connect_ports: [0, 443, 65536]}\n",
             "f:1:32: destinations.connect_ports: expected a port from 1 to 65535, got \"0\"\n"
             "f:1:40: destinations.connect_ports: expected a port from 1 to 65535, got "
             "\"65536\"\n"},
            {"defaults: {scope: [host, nothing, host, \"header:x\", session]}\n",
             "f:1:26: defaults.scope: expected host, port, rule or client, got \"nothing\"\n"
             "f:1:35: defaults.scope: host is listed twice\n"
             "f:1:41: defaults.scope: header:x is not available in this version\n"
             "f:1:53: defaults.scope: session is not available in this version\n"},
            {"defaults: {scope: []}\n",
             "f:1:19: defaults.scope: expected from 1 to 7 parts, got 0\n"},
            {"defaults: {retry: {on: [399, 600, 429.0, conect, 429]}}\n",
             "f:1:25: defaults.retry.on: expected a status from 400 to 599, connect, timeout or "
             "reset, got \"399\"\n"
             "f:1:30: defaults.retry.on: expected a status from 400 to 599, connect, timeout or "
             "reset, got \"600\"\n"
             "f:1:35: defaults.retry.on: expected a status from 400 to 599, connect, timeout or "
             "reset, got \"429.0\"\n"
             "f:1:42: defaults.retry.on: expected a status from 400 to 599, connect, timeout or "
             "reset, got \"conect\"\n"},
            {"defaults: {retry: {on: [500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511, "
             "512, 513, 514, 515, 515, 516]}}\n",
             "f:1:110: defaults.retry.on: more than 16 statuses\n"},
            {"defaults: {https: intercept}\nrules: [{hosts: x, https: upgrade}]\n",
             "f:1:19: defaults.https: intercept is not available in this version\n"
             "f:2:27: rules[0].https: upgrade is not available in this version\n"},
            {"defaults: {https: of}\n", "f:1:19: defaults.https: expected tunnel, got \"of\"\n"},
            {"ca: {key: x}\nclients: {users: x}\npools: {}\ndefaults: {tls: {verify: false}, "
             "egress: direct}\nrules: [{hosts: x, http2: false}]\n",
             "f:1:1: ca: not available in this version\n"
             "f:2:11: clients.users: not available in this version\n"
             "f:3:1: pools: not available in this version\n"
             "f:4:12: defaults.tls: not available in this version\n"
             "f:4:34: defaults.egress: not available in this version\n"
             "f:5:20: rules[0].http2: not available in this version\n"},
            {"admin: {listen: here, max_scopes: x, tokn: y}\nstate: {save_every: 0s}\n",
             "f:1:17: admin.listen: expected an address and port such as 127.0.0.1:8081 or "
             "[::1]:8081, or \"\", got \"here\"\n"
             "f:1:35: admin.max_scopes: expected a whole number, got \"x\"\n"
             "f:1:38: admin.tokn: unknown key; did you mean \"token\"?\n"
             "f:2:21: state.save_every: expected 1s to 24h, got \"0s\"\n"},
            {"defaults: {limit: {floor: 9, ceiling: 3}}\n",
             "f:1:27: defaults.limit.floor: 9 is more than limit.ceiling (3)\n"},
            {"defaults: {limit: {floor: 40}}\n",
             "f:1:27: defaults.limit.floor: 40 is more than limit.ceiling (32)\n"},
            {"defaults: {limit: {floor: 40, ceiling: many}}\n",
             "f:1:40: defaults.limit.ceiling: expected a whole number, got \"many\"\n"},
            {"defaults: {limit: {floor: 5}}\nrules: [{hosts: a, limit: {ceiling: 4}}, {hosts: "
             "b}]\n",
             "f:2:37: rules[0].limit.ceiling: 4 is less than limit.floor (5)\n"},
            {"defaults: {limit: {start: 40}}\n",
             "f:1:27: defaults.limit.start: 40 is more than limit.ceiling (32)\n"},
            {"rules: [{hosts: a, limit: {start: 2, floor: 3}}]\n",
             "f:1:35: rules[0].limit.start: 2 is less than limit.floor (3)\n"},
            {"rules: {a: b}\n", "f:1:8: rules: expected a list, got keys\n"},
            {"rules: [x, ~, {name: a}, {hosts: []}, {hosts: }]\n",
             "f:1:9: rules[0]: expected keys, got \"x\"\n"
             "f:1:12: rules[1]: expected keys, got nothing\n"
             "f:1:15: rules[2]: hosts is missing\n"
             "f:1:34: rules[3].hosts: expected at least one host, got an empty list\n"
             "f:1:47: rules[4].hosts: expected a list, got nothing\n"},
            {"rules: [{hosts: [\"*bad\", a.*.b, a b, \"*.\", .a, a..b, \"a:80\", \"\", \"é\"]}]\n",
             "f:1:18: rules[0].hosts: expected a host name or address, *.HOST, or *, got \"*bad\"\n"
             "f:1:26: rules[0].hosts: expected a host name or address, *.HOST, or *, got "
             "\"a.*.b\"\n"
             "f:1:33: rules[0].hosts: expected a host name or address, *.HOST, or *, got \"a b\"\n"
             "f:1:38: rules[0].hosts: expected a host name or address, *.HOST, or *, got \"*.\"\n"
             "f:1:44: rules[0].hosts: expected a host name or address, *.HOST, or *, got \".a\"\n"
             "f:1:48: rules[0].hosts: expected a host name or address, *.HOST, or *, got \"a..b\"\n"
             "f:1:54: rules[0].hosts: expected a host name or address, *.HOST, or *, got \"a:80\"\n"
             "f:1:62: rules[0].hosts: expected a host name or address, *.HOST, or *, got \"\"\n"
             "f:1:66: rules[0].hosts: expected a host name or address, *.HOST, or *, got \"é\"\n"},
            {"rules:\n- {name: a, hosts: x}\n- {name: b, hosts: y}\n- {name: a, hosts: z}\n"
             "- {hosts: b}\n",
             "f:4:10: rules[2].name: \"a\" is the name of rules[0], on line 2, already\n"
             "f:5:3: rules[3].name: \"b\" is the name of rules[1], on line 3, already\n"},
            {"rules: [{name: default, hosts: x}, {name: \"a b\", hosts: y}, {name: \"\", hosts: "
             "z}]\n",
             "f:1:16: rules[0].name: \"default\" is the name of what no rule is for\n"
             "f:1:43: rules[1].name: expected a name of at most 64 letters, digits, dots, dashes "
             "and underscores, got \"a b\"\n"
             "f:1:68: rules[2].name: expected a name of at most 64 letters, digits, dots, dashes "
             "and underscores, got \"\"\n"},
            {"rules: [{hosts: a, strat: 3, start: 4, limit: {strat: 5}, rules: []}]\n",
             "f:1:20: rules[0].strat: unknown key\n"
             "f:1:30: rules[0].start: unknown key; did you mean \"limit.start\"?\n"
             "f:1:48: rules[0].limit.strat: unknown key; did you mean \"start\"?\n"
             "f:1:59: rules[0].rules: unknown key\n"},
            {"[listen]\n", "f:1:1: expected keys such as \"listen:\", got a list\n"},
            {"listen\n", "f:1:1: expected keys such as \"listen:\", got \"listen\"\n"},
            {"workers: &x 0\nannotate: *x\nlog: *x\n",
             "f:1:10: anchors (&name) are not supported\n"
             "f:1:10: workers: expected 1 to 64, got \"0\"\n"
             "f:2:11: aliases (*name) are not supported\n"
             "f:3:6: aliases (*name) are not supported\n"},
            /* sorted by place, whatever is read first */
            {"rules: [{hosts: a, limt: 1}]\nworkers: x\ndefaults: {limit: {start: x}}\n",
             "f:1:20: rules[0].limt: unknown key; did you mean \"limit\"?\n"
             "f:2:10: workers: expected a whole number or auto, got \"x\"\n"
             "f:3:27: defaults.limit.start: expected a whole number, got \"x\"\n"},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct config *c;
                print_message("%s", cases[i].text);
                char *faults = load_text(cases[i].text, NULL, &c);
                assert_string_equal(faults, cases[i].faults);
                free(faults);
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

static void lists_what_has_no_effect(void **state)
{
        (void)state;
        struct config *c = load_good("admin: {listen: \"127.0.0.1:1\", token: \"\"}\n"
                                     "state: {dir: /x, save_every: 5s}\n");
        assert_string_equal(c->inert[0], "admin.listen");
        assert_string_equal(c->inert[1], "state.dir");
        assert_string_equal(c->inert[2], "state.save_every");
        assert_null(c->inert[3]);
        config_unref(c);
}

static void note_key(void *arg, const char *key)
{
        char *keys = arg;
        strcat(strcat(keys, key), " ");
}

static void says_what_takes_a_restart(void **state)
{
        (void)state;
        char keys[256] = "";
        struct config *a = load_good("workers: 2\n"),
                      *b = load_good("workers: 3\nlisten: \"127.0.0.1:1\"\nannotate: false\n");
        config_needs_restart(a, a, note_key, keys);
        assert_string_equal(keys, "");
        config_needs_restart(a, b, note_key, keys);
        assert_string_equal(keys, "listen workers ");
        config_unref(a);
        config_unref(b);
}

static void says_when_it_cannot_read(void **state)
{
        (void)state;
        struct config *c = NULL;
        struct config_faults faults = {0};
        assert_int_equal(config_load("/nonexistent/weir.yaml", &c, &faults), -ENOENT);
        assert_null(c);
        assert_int_equal(faults.count, 1);
        assert_int_equal(faults.list[0].line, 0);
        config_faults_done(&faults);
}

/* Every row of the table makes sense by itself. */
static void table_is_sound(void **state)
{
        (void)state;
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                print_message("%s\n", s->path);
                assert_ptr_equal(setting_find(s->path), s);
                if (s->state == SETTING_LATER)
                        continue;
                assert_true(s->help && s->help[strlen(s->help) - 1] == '.');
                assert_true(s->place == IN_RULE || s->fallback);
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
        assert_null(c->inert[0]);
        config_unref(c);

        assert_int_equal(document_parse(span_of(text), &root, &faults), 0);
        for (size_t i = 0; i < setting_count; i++) {
                const struct setting *s = &settings[i];
                print_message("%s\n", s->path);
                if (s->place == IN_RULE)
                        assert_non_null(strstr(text, setting_relative(s))); /* of the example */
                else
                        assert_int_equal(node_at(root, s->path) != NULL,
                                         s->state == SETTING_IN_FORCE);
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
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(has_defaults),
            cmocka_unit_test(reads_every_kind),
            cmocka_unit_test(shows_what_reads_back),
            cmocka_unit_test(names_every_fault),
            cmocka_unit_test(clamps_an_inherited_start),
            cmocka_unit_test(finds_the_rule),
            cmocka_unit_test(generations_grow),
            cmocka_unit_test(guards_the_inside_from_outside),
            cmocka_unit_test(lists_what_has_no_effect),
            cmocka_unit_test(says_what_takes_a_restart),
            cmocka_unit_test(says_when_it_cannot_read),
            cmocka_unit_test(table_is_sound),
            cmocka_unit_test(sample_is_the_defaults),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
