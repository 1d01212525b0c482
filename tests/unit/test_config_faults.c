#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/config_text.h"

#define NO_PORT "the port is missing, as in \"http://proxy.example:8000\""
#define ENDPOINT "expected the URL of a proxy, direct, or keys such as {source: \"192.0.2.7\"}"
#define SCOPE "host, domain, port, rule, endpoint, client, session, path:N or header:NAME"
#define STATUS "a status from 200 to 999"
#define CLASS "throttled, overloaded, blocked, failed or success"
#define PATTERN "the name of a header field and a text in its value, as in \"server: cloudflare\""
#define CLASSIFY                                                                               \
        "a rule such as {status: [403], header: \"server: cloudflare\", body: \"slow down\", " \
        "as: throttled}"
#define FOR_ALL "status, header or body is missing: it would be for every answer"
#define SEGMENTS "path:N with a number of segments from 1 to 16, as in path:2"
#define FIELD "header:NAME with the name of a field, as in header:authorization"

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
    {"ceiling: 3\n", "f:1:1: ceiling: unknown key; did you mean \"defaults.limit.ceiling\"?\n"},
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
    {"defaults: {scope: [host, nothing, host, endpoint, [x]]}\n",
     "f:1:26: defaults.scope: expected " SCOPE ", got \"nothing\"\n"
     "f:1:35: defaults.scope: host is listed twice\n"
     "f:1:51: defaults.scope: expected " SCOPE ", got a list\n"},
    {"defaults: {scope: [\"path:0\", path, \"path:2\", \"path:3\", \"path:2\"]}\n",
     "f:1:20: defaults.scope: expected " SEGMENTS ", got \"path:0\"\n"
     "f:1:30: defaults.scope: expected " SEGMENTS ", got \"path\"\n"
     "f:1:56: defaults.scope: path:2 is listed twice\n"},
    {"defaults: {scope: [\"header:\", header, \"header:a b\", \"header:A\", "
     "\"header:a\"]}\n",
     "f:1:20: defaults.scope: expected " FIELD ", got \"header:\"\n"
     "f:1:31: defaults.scope: expected " FIELD ", got \"header\"\n"
     "f:1:39: defaults.scope: expected " FIELD ", got \"header:a b\"\n"
     "f:1:65: defaults.scope: header:a is listed twice\n"},
    {"defaults: {scope: [header: authorization, {path: 2}, {path: 2, host: x}]}\n",
     "f:1:20: defaults.scope: there is no space in header:authorization\n"
     "f:1:43: defaults.scope: there is no space in path:2\n"
     "f:1:54: defaults.scope: expected " SCOPE ", got keys\n"},
    {"defaults: {scope: [\"header:Proxy-Authorization\", \"header:Weir-Session\"]}\n",
     "f:1:20: defaults.scope: proxy-authorization is never sent to the host\n"
     "f:1:50: defaults.scope: weir-session is never sent to the host\n"},
    {"defaults: {scope: []}\n", "f:1:19: defaults.scope: expected from 1 to 8 parts, got 0\n"},
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
    {"defaults: {https: of}\n",
     "f:1:19: defaults.https: expected tunnel, intercept or upgrade, got \"of\"\n"},
    {"defaults: {tls: {verify: no, min_version: 1.1}}\nrules: [{hosts: x, tls: {ca_file: [x]}, "
     "http2: maybe}]\n",
     "f:1:26: defaults.tls.verify: expected true or false, got \"no\"\n"
     "f:1:43: defaults.tls.min_version: expected 1.2 or 1.3, got \"1.1\"\n"
     "f:2:35: rules[0].tls.ca_file: expected a text, got a list\n"
     "f:2:48: rules[0].http2: expected true or false, got \"maybe\"\n"},
    {"ca: {key: x}\n", "f:1:11: ca.key: ca.certificate is missing\n"},
    {"ca: {certificate: x, key: \"\"}\n", "f:1:19: ca.certificate: ca.key is missing\n"},
    {"ca: {certificate: x, key: [y]}\n", "f:1:27: ca.key: expected a text, got a list\n"},
    {"clients: {users: [x]}\n", "f:1:18: clients.users: expected a text, got a list\n"},
    {"pools: [x]\n", "f:1:8: pools: expected keys, got a list\n"},
    {"pools: {direct: {endpoints: direct}, \"a b\": {endpoints: direct}, c: x, d: {}}\n",
     "f:1:9: pools.direct: \"direct\" is the way out that is no pool\n"
     "f:1:38: pools.a b: expected a name of at most 64 letters, digits, dots, dashes and "
     "underscores\n"
     "f:1:69: pools.c: expected keys, got \"x\"\n"
     "f:1:75: pools.d: endpoints is missing\n"},
    {"defaults: {egress: [x], session_order: 1}\n",
     "f:1:20: defaults.egress: expected a name of at most 64 letters, digits, dots, dashes and "
     "underscores, got a list\n"
     "f:1:40: defaults.session_order: expected true or false, got \"1\"\n"},
    {"defaults: {egress: slwo}\nrules: [{hosts: x}, {hosts: y, egress: none}, {hosts: z, egress: "
     "drect}]\npools: {slow: {endpoints: direct}}\n",
     "f:1:20: defaults.egress: there is no pool \"slwo\"; did you mean \"slow\"?\n"
     "f:2:40: rules[1].egress: there is no pool \"none\"\n"
     "f:2:66: rules[2].egress: there is no pool \"drect\"; did you mean \"direct\"?\n"},
    {"pools: {a: {chose: x, choose: x, sticky: yes, sticky_ttl: 0s, max_in_flight: 0, "
     "endpoints: []}}\n",
     "f:1:13: pools.a.chose: unknown key; did you mean \"choose\"?\n"
     "f:1:31: pools.a.choose: expected least_used, round_robin or random, got \"x\"\n"
     "f:1:42: pools.a.sticky: expected none, session or client, got \"yes\"\n"
     "f:1:59: pools.a.sticky_ttl: expected 1s to 24h, got \"0s\"\n"
     "f:1:78: pools.a.max_in_flight: expected 1 to 100000, got \"0\"\n"
     "f:1:92: pools.a.endpoints: expected from 1 to 1000 endpoints, got 0\n"},
    {"pools: {a: {endpoints: direct, quarantine: {aftr: 1}, exit_ip: {header: \"a b\", probe: "
     "\"http://u@h/\"}}}\ndefaults: {sticky: none}\n",
     "f:1:45: pools.a.quarantine.aftr: unknown key; did you mean \"after\"?\n"
     "f:1:73: pools.a.exit_ip.header: expected the name of a header field, or \"\", got \"a b\"\n"
     "f:1:87: pools.a.exit_ip.probe: expected a URL of http or https without credentials, or "
     "\"\", got \"http://u@h/\"\n"
     "f:2:12: defaults.sticky: unknown key; did you mean \"pools.NAME.sticky\"?\n"},
    {"pools: {a: {endpoints: \"http://user:secret@host\"}}\n",
     "f:1:24: pools.a.endpoints[0]: " NO_PORT "\n"},
    {"pools:\n"
     "  a:\n"
     "    endpoints:\n"
     "      - user:secret@host:80\n"
     "      - [x]\n"
     "      - {}\n"
     "      - {url: [x], weight: 0, max_in_flight: many, name: \"\"}\n"
     "      - {url: direct, source: 192.0.2.1}\n"
     "      - {source: 0.0.0.0}\n"
     "      - {source: eth0, wait: 3}\n"
     "      - http://u:${WEIR_TEST_NONE}@h:1\n"
     "      - {source: 192.0.2.2, name: n}\n"
     "      - {source: 192.0.2.3, name: n}\n"
     "      - {source: 192.0.2.2}\n"
     "      - http://u:p@h:1\n"
     "      - http://u:q@h:1\n"
     "      - http://u:p@h:1/\n",
     "f:4:9: pools.a.endpoints[0]: expected the URL of a proxy, such as "
     "\"http://proxy.example:8000\", or {source: ADDRESS}, or direct\n"
     "f:5:9: pools.a.endpoints[1]: " ENDPOINT ", got a list\n"
     "f:6:9: pools.a.endpoints[2]: url or source is missing\n"
     "f:7:15: pools.a.endpoints[3].url: expected the URL of a proxy, or direct\n"
     "f:7:28: pools.a.endpoints[3].weight: expected 1 to 100000, got \"0\"\n"
     "f:7:46: pools.a.endpoints[3].max_in_flight: expected 1 to 100000, got \"many\"\n"
     "f:7:58: pools.a.endpoints[3].name: expected a name of at most 64 letters, digits, dots, "
     "dashes and underscores, got \"\"\n"
     "f:8:23: pools.a.endpoints[4].source: either url or source: each is a way out by itself\n"
     "f:9:18: pools.a.endpoints[5].source: expected an IP address of this machine, without a port, "
     "got \"0.0.0.0\"\n"
     "f:10:18: pools.a.endpoints[6].source: expected an IP address of this machine, without a "
     "port, got \"eth0\"\n"
     "f:10:24: pools.a.endpoints[6].wait: unknown key; an endpoint has url or source, name, "
     "max_in_flight and weight\n"
     "f:11:9: pools.a.endpoints[7]: the environment has no variable WEIR_TEST_NONE\n"
     "f:13:9: pools.a.endpoints[9]: \"n\" is the name of the one on line 12, already\n"
     "f:14:9: pools.a.endpoints[10]: the same as the one on line 12\n"
     "f:17:9: pools.a.endpoints[13]: the same as the one on line 15\n"},
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
    {"defaults: {classify: {status: 403, as: blocked}}\n",
     "f:1:22: defaults.classify: expected a list, got keys\n"},
    {"defaults:\n"
     "  classify:\n"
     "    - slow\n"
     "    - {status: 403}\n"
     "    - {as: blocked}\n"
     "    - {}\n",
     "f:3:7: defaults.classify[0]: expected " CLASSIFY ", got \"slow\"\n"
     "f:4:7: defaults.classify[1]: as is missing\n"
     "f:5:7: defaults.classify[2]: " FOR_ALL "\n"
     "f:6:7: defaults.classify[3]: as is missing\n"
     "f:6:7: defaults.classify[3]: " FOR_ALL "\n"},
    {"rules:\n"
     "- hosts: a\n"
     "  classify:\n"
     "  - {status: [], as: slow}\n"
     "  - {status: [199, x, [403], 1000], as: [blocked]}\n"
     "  - {header: \": cloudflare\", body: [x], as: blocked}\n"
     "  - {header: \"my server: x\", body: \"\", as: ~}\n"
     "  - {headers: x, body: y, as: blocked}\n",
     "f:4:14: rules[0].classify[0].status: expected " STATUS ", got an empty list\n"
     "f:4:22: rules[0].classify[0].as: expected " CLASS ", got \"slow\"\n"
     "f:5:15: rules[0].classify[1].status: expected " STATUS ", got \"199\"\n"
     "f:5:20: rules[0].classify[1].status: expected " STATUS ", got \"x\"\n"
     "f:5:23: rules[0].classify[1].status: expected " STATUS ", got a list\n"
     "f:5:30: rules[0].classify[1].status: expected " STATUS ", got \"1000\"\n"
     "f:5:41: rules[0].classify[1].as: expected " CLASS ", got a list\n"
     "f:6:14: rules[0].classify[2].header: expected " PATTERN ", got \": cloudflare\"\n"
     "f:6:36: rules[0].classify[2].body: expected a text in the body, got a list\n"
     "f:7:14: rules[0].classify[3].header: expected " PATTERN ", got \"my server: x\"\n"
     "f:7:36: rules[0].classify[3].body: expected a text in the body, got \"\"\n"
     "f:7:44: rules[0].classify[3].as: expected " CLASS ", got nothing\n"
     "f:8:6: rules[0].classify[4].headers: unknown key; a rule has status, header, body and as\n"},
    {"[listen]\n", "f:1:1: expected keys such as \"listen:\", got a list\n"},
    {"listen\n", "f:1:1: expected keys such as \"listen:\", got \"listen\"\n"},
    {"workers: &x 0\nannotate: *x\nlog: *x\n", "f:1:10: anchors (&name) are not supported\n"
                                               "f:1:10: workers: expected 1 to 64, got \"0\"\n"
                                               "f:2:11: aliases (*name) are not supported\n"
                                               "f:3:6: aliases (*name) are not supported\n"},
    /* sorted by place, whatever is read first */
    {"rules: [{hosts: a, limt: 1}]\nworkers: x\ndefaults: {limit: {start: x}}\n",
     "f:1:20: rules[0].limt: unknown key; did you mean \"limit\"?\n"
     "f:2:10: workers: expected a whole number or auto, got \"x\"\n"
     "f:3:27: defaults.limit.start: expected a whole number, got \"x\"\n"},
};

static void names_every_fault(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct config *c;
                print_message("%s", cases[i].text);
                char *faults = load_text(cases[i].text, NULL, &c);
                assert_string_equal(faults, cases[i].faults);
                free(faults);
        }
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

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(names_every_fault),
            cmocka_unit_test(says_when_it_cannot_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
