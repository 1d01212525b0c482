"""/metrics: well formed whatever the scopes are called, true, and back to zero when all is over."""
import json
import pathlib
import re
import threading

import pytest
import yaml

from harness.origin import Gate, Limited, in_turn
from harness.prometheus import still_open
from harness.wire import Client, get

CONF = pathlib.Path(__file__).resolve().parents[3] / "conf"
FAST = "retry: {base: 1ms}"


def counters(metrics):
    """What must never fall."""
    return {
        key: value
        for key, value in metrics.samples.items()
        if metrics.types[metrics.family(key[0])] in ("counter", "histogram")
    }


def test_nothing_has_happened(weir):
    metrics = weir().metrics()
    assert not still_open(metrics) and metrics.series("weir_scope_rate") == []
    assert metrics.value("weir_scopes") == 0
    assert metrics.total("weir_requests_total") == 0
    assert metrics.value("weir_requests_total", **{"class": "success", "outcome": "served"}) == 0
    for status in ("200", "429", "503"):  # a series that begins with its first count misses that in a rate
        assert (("status", status),) in [k[1] for k in metrics.samples if k[0] == "weir_upstream_responses_total"]


def test_what_it_says_of_the_process(weir):
    metrics = weir(workers=2).metrics()
    assert metrics.value("process_threads") == 4  # two workers, the main one and this listener's
    assert 1e6 < metrics.value("process_resident_memory_bytes") <= metrics.value("process_virtual_memory_bytes")
    assert 0 < metrics.value("process_open_fds") < metrics.value("process_max_fds")
    assert metrics.value("process_cpu_seconds_total") > 0
    age = pathlib.Path("/proc/uptime").read_text().split()[0]
    assert metrics.value("process_start_time_seconds") > 1.6e9 and float(age) > 0
    (labels, value), = metrics.series("weir_build_info")
    assert value == 1 and re.fullmatch(r"\d+\.\d+\.\d+", labels["version"])


def test_the_start_is_when_it_was(weir):
    import time

    before = time.time()
    started = weir().metrics().value("process_start_time_seconds")
    assert before - 1 < started < time.time() + 1


@pytest.mark.threads
def test_what_came_of_requests(weir, origin):
    origin.on("/slow", in_turn((429, [("Retry-After", "0")]), (503,), (200, (), b"12345")))
    origin.on("/bad", in_turn((500,)))
    origin.on("/blocked", lambda e: e.reply(403))
    origin.on("/gone", lambda e: e.reset())
    proxy = weir("defaults: {retry: {base: 1ms, attempts: 3, budget: 100%}}\n", workers=2)
    for path in ("/", "/slow", "/bad", "/blocked", "/gone"):
        get(proxy.port, origin.url + path)
    get(proxy.port, origin.url + "/", method="POST", body=b"123")
    m = proxy.wait_metrics(lambda m: m.total("weir_requests_total") == 6)

    def ended(class_, outcome):
        return m.value("weir_requests_total", **{"class": class_, "outcome": outcome})

    assert ended("success", "served") == 3
    assert ended("failed", "gave_up") == 1 and ended("failed", "upstream_failed") == 1
    assert ended("blocked", "served") == 1
    assert m.value("weir_responses_total", status="200") == 3
    assert m.value("weir_responses_total", status="500") == 1
    assert m.value("weir_responses_total", status="502") == 1
    assert m.value("weir_upstream_responses_total", status="429") == 1
    assert m.value("weir_upstream_responses_total", status="500") == 3
    assert m.value("weir_absorbed_responses_total", status="429") == 1
    assert m.value("weir_absorbed_responses_total", status="503") == 1
    assert m.value("weir_absorbed_responses_total", status="500") == 2
    assert m.value("weir_retries_total", reason="throttled") == 1
    assert m.value("weir_retries_total", reason="overloaded") == 1
    assert m.value("weir_retries_total", reason="status") == 2
    assert m.value("weir_retries_total", reason="reset") == 2
    assert m.value("weir_upstream_failures_total", reason="reset") == 3
    assert m.value("weir_blocked_total") == 1
    assert m.value("weir_attempts_total", **{"class": "throttled"}) == 1
    assert m.value("weir_attempts_total", **{"class": "failed"}) == 6
    assert m.value("weir_request_body_bytes_total") == 3
    assert m.value("weir_response_body_bytes_total") >= 5
    assert m.value("weir_request_duration_seconds_count") == 6
    assert m.value("weir_queue_wait_seconds_count") == 6
    assert m.value("weir_request_duration_seconds_sum") > m.value("weir_queue_wait_seconds_sum") >= 0
    assert not still_open(m)


def test_what_weir_says_itself(weir, origin):
    proxy = weir("destinations: {deny: [loopback]}\n")
    assert get(proxy.port, origin.url + "/").status == 403
    with Client(proxy.port) as client:
        client.send(b"GET http://a/ HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n")
        assert client.response().status == 400
    m = proxy.wait_metrics(lambda m: m.total("weir_requests_total") == 2)
    assert m.total("weir_requests_total", outcome="denied") == 1
    assert m.value("weir_requests_total", **{"class": "none", "outcome": "refused"}) == 1
    assert m.value("weir_responses_total", status="403") == m.value("weir_responses_total", status="400") == 1
    assert m.total("weir_upstream_responses_total") == 0


def test_durations_are_in_seconds(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir("defaults: {limit: {algorithm: fixed, start: 1, ceiling: 1}}\n")
    with Client(proxy.port) as first, Client(proxy.port) as second:
        first.request(origin.url + "/")
        origin.wait_requests(1)
        second.request(origin.url + "/")
        proxy.wait_metrics(lambda m: m.value("weir_queued") == 1)
        threading.Event().wait(0.3)
        gate.open()
        first.response(), second.response()
    m = proxy.wait_metrics(lambda m: m.total("weir_requests_total") == 2)
    assert 0.3 <= m.value("weir_queue_wait_seconds_sum") < 20
    assert m.value("weir_queue_wait_seconds_bucket", le="0.131072") == 1  # the first did not wait
    assert m.value("weir_queue_wait_seconds_bucket", le="134.217728") == 2
    assert 0.6 <= m.value("weir_request_duration_seconds_sum") < 40


def test_gauges_of_a_scope(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir("defaults: {limit: {algorithm: fixed, start: 2, ceiling: 2, max_rate: 100/s}}\n")
    clients = [Client(proxy.port) for _ in range(5)]
    for client in clients:
        client.request(origin.url + "/")
    m = proxy.wait_metrics(lambda m: m.value("weir_queued") == 3)
    scope = {"scope": origin.host}
    assert m.value("weir_scope_in_flight", **scope) == m.value("weir_in_flight") == 2
    assert m.value("weir_scope_queued", **scope) == 3
    assert m.value("weir_scope_concurrency_limit", **scope) == 2
    assert m.value("weir_scope_rate", **scope) == 100
    assert m.value("weir_scope_closed_until_seconds", **scope) == 0
    assert m.value("weir_requests_open") == 5 and m.value("weir_client_connections") == 5
    clients.pop().reset()
    proxy.wait_metrics(lambda m: m.value("weir_queued") == 2)
    gate.open()
    for client in clients:
        client.response()
        client.close()
    proxy.wait_metrics(lambda m: not still_open(m) and m.value("weir_client_connections") == 0)


def test_a_closed_scope(weir, origin):
    import time

    origin.default = lambda e: e.reply(429, [("Retry-After", "60")])
    proxy = weir("defaults: {retry: {max_wait: 1s}}\n")
    assert get(proxy.port, origin.url + "/").status == 429
    until = proxy.metrics().value("weir_scope_closed_until_seconds", scope=origin.host)
    assert time.time() + 50 < until < time.time() + 70


# ---- names of scopes ----------------------------------------------------------------------------

HOSTILE = ['"', "\\", '\\"', "}", "a=b,c={d}", '"} 1', "\\n", "#", "# TYPE x", "%0a", "\u00e9\u00ff", "'", "a" * 128, "NaN"]


def test_hostile_names_of_scopes(weir, origin):
    proxy = weir("defaults: {scope: [session, 'path:1']}\n")
    for name in HOSTILE:
        with Client(proxy.port) as client:
            if name.isascii() and " " not in name:
                client.request(origin.url + "/", fields=[("Weir-Session", name)])
            else:
                client.request(origin.url + "/" + name.replace(" ", "%20"))
            assert client.response().status == 200, name
    m = proxy.metrics()
    scopes = [labels["scope"] for labels, _ in m.series("weir_scope_rate")]
    assert len(scopes) == len(set(scopes)) == len(HOSTILE)
    assert {s["scope"] for s in proxy.api("/api/v1/scopes")["scopes"]} == set(scopes)
    assert any('"' in s for s in scopes) and any("\\" in s for s in scopes)


@pytest.mark.parametrize("most", [0, 3])
def test_scopes_are_bounded(weir, origin, most):
    """The rest are summed, so that what is in flight adds up."""
    gate = Gate()
    origin.on("/held", lambda e: (gate.wait(), e.reply()))
    proxy = weir(
        f'admin: {{listen: "127.0.0.1:0", max_scopes: {most}}}\n'
        "defaults: {scope: [session], limit: {algorithm: fixed, start: 2, ceiling: 2}}\n"
    )
    for n in range(10):
        get(proxy.port, origin.url + "/", fields=[("Weir-Session", str(n))])
    held = [Client(proxy.port) for _ in range(5)]
    for n, client in enumerate(held):
        client.request(origin.url + "/held", fields=[("Weir-Session", str(n))])
    m = proxy.wait_metrics(lambda m: m.value("weir_in_flight") == 5)
    for name in ("rate", "concurrency_limit", "in_flight", "queued", "closed_until_seconds"):
        assert len(m.series("weir_scope_" + name)) == most + 1
    assert m.total("weir_scope_in_flight") == 5
    assert m.value("weir_scope_in_flight", scope="other") == 5 - most  # those that are busy come first
    assert m.total("weir_scope_concurrency_limit") == 20
    assert m.value("weir_scopes") == 10
    gate.open()
    for client in held:
        client.response()
        client.close()


# ---- over time ----------------------------------------------------------------------------------


@pytest.mark.threads
def test_counters_never_fall(weir, origin):
    """Neither between two looks while requests pass, nor over a reload."""
    origin.default = Limited("fixed", rate=50, window=0.3)
    proxy = weir(f"defaults: {{{FAST}}}\n", workers=2)
    done = threading.Event()

    def worker():
        with Client(proxy.port) as client:
            while not done.is_set():
                assert client.get(origin.url + "/").status in (200, 429)

    threads = [threading.Thread(target=worker) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        before = counters(proxy.metrics())
        for n in range(12):
            if n % 4 == 3:
                assert proxy.api("/api/v1/reload", "POST")["reloaded"]
            now = counters(proxy.metrics())
            fallen = {k: (v, now.get(k)) for k, v in before.items() if now.get(k, -1) < v}
            assert not fallen
            before = now
    finally:
        done.set()
        for thread in threads:
            thread.join()
    m = proxy.wait_idle()
    ended = m.total("weir_requests_total")
    assert m.value("weir_request_duration_seconds_count") == ended == m.total("weir_responses_total")
    assert m.total("weir_attempts_total") == m.total("weir_upstream_responses_total")
    assert m.total("weir_upstream_responses_total") - m.total("weir_absorbed_responses_total") == ended
    assert m.value("weir_config_reloads_total", result="done") == 3
    assert m.value("weir_reports_dropped_total") == 0


@pytest.mark.threads
def test_gauges_return_after_cancellation(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir("defaults: {limit: {algorithm: fixed, start: 3, ceiling: 3}}\n", workers=2)
    clients = [Client(proxy.port) for _ in range(20)]
    for client in clients:
        client.request(origin.url + "/")
    proxy.wait_metrics(lambda m: m.value("weir_queued") == 17)
    for client in clients:
        client.reset()
    m = proxy.wait_idle()
    assert m.total("weir_requests_total", outcome="client_gone") == 20
    assert m.value("weir_scope_in_flight", scope=origin.host) == 0
    gate.open()


def test_bad_reloads_are_counted(weir):
    proxy = weir()
    proxy.write("nonsense: 1\n")
    proxy.reload()
    assert proxy.metrics().value("weir_config_reloads_total", result="failed") == 1


# ---- what is made of them -----------------------------------------------------------------------


def named_metrics(expression):
    return set(re.findall(r"\b(?:weir|process)_[a-z0-9_]+", expression))


def expressions_of_dashboard():
    dashboard = json.loads((CONF / "grafana-dashboard.json").read_text())
    panels = dashboard["panels"]
    assert len({p["id"] for p in panels}) == len(panels) > 10
    found = [t["expr"] for p in panels for t in p.get("targets", [])]
    return found + [v["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]


def expressions_of_alerts():
    rules = [r for g in yaml.safe_load((CONF / "prometheus-alerts.yaml").read_text())["groups"] for r in g["rules"]]
    assert len({r["alert"] for r in rules}) == len(rules) > 5
    for rule in rules:
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys() and rule["labels"]["severity"]
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]
    return [r["expr"] for r in rules]


@pytest.mark.parametrize("expressions", [expressions_of_dashboard, expressions_of_alerts])
def test_metrics_that_are_named_exist(weir, origin, expressions):
    proxy = weir()
    get(proxy.port, origin.url + "/")
    m = proxy.metrics()
    there = {name for name, _ in m.samples}
    named = {name for e in expressions() for name in named_metrics(e)}
    assert len(named) > 5 and named <= there, named - there
    for expression in expressions():
        assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")
        for name, labels in re.findall(r"\b(weir_[a-z0-9_]+)\{([^}]*)\}", expression):
            own = {label for series, _ in m.series(name) for label in series} | {"instance", "job"}
            assert set(re.findall(r"(\w+)=", labels)) <= own, (name, labels)
