"""The JSON API: scopes, how their limits changed, the last requests, a reset, a reload."""
import datetime
import json
import signal
import threading
import time
import urllib.parse

import pytest

from harness.daemon import json_line
from harness.origin import Gate, in_turn
from harness.wire import Client, get


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def only_scope(proxy, requests=1):
    """Of which so many requests have been reported: that is done after they were answered."""
    tick = threading.Event()
    for _ in range(500):
        (scope,) = proxy.api("/api/v1/scopes")["scopes"]
        if scope["requests"] >= requests:
            return scope
        tick.wait(0.02)
    raise AssertionError(f"not {requests} requests: {scope}")


def path_of(scope, what):
    return f"/api/v1/scopes/{urllib.parse.quote(scope, safe='')}/{what}"


# ---- scopes -------------------------------------------------------------------------------------


def test_a_scope(weir, origin):
    origin.on("/slow", in_turn((429, [("Retry-After", "0")]), (200,)))
    origin.on("/missing", lambda e: e.reply(404))
    proxy = weir("defaults: {retry: {base: 1ms}}\n")
    for path in ("/", "/slow", "/missing", "/missing"):
        get(proxy.port, origin.url + path)
    proxy.wait_idle()
    s = only_scope(proxy, 4)
    assert s["scope"] == origin.host
    assert (s["requests"], s["attempts"]) == (4, 5)
    assert s["statuses"] == {"200": 2, "404": 2} and "429" not in s["statuses"]
    assert (s["status_429"], s["status_429_absorbed"]) == (1, 1)
    assert s["successes"] == s["successes_per_minute"] == 4
    assert s["duration"]["count"] == 4
    assert 0 < s["duration"]["p50"] <= s["duration"]["p95"] <= s["duration"]["p99"] < 20
    assert (s["in_flight"], s["queued"], s["sleeping"]) == (0, 0, 0)
    assert s["rate"] > 0 and s["concurrency_limit"] >= 1
    assert abs(moment(s["last_used"]) - time.time()) < 60
    assert not s["circuit_open"]


def test_the_last_429_is_the_clients(weir, origin):
    origin.default = lambda e: e.reply(429, [("Retry-After", "60")])
    proxy = weir("defaults: {retry: {max_wait: 1s}}\n")
    assert get(proxy.port, origin.url + "/").status == 429
    proxy.wait_idle()
    s = only_scope(proxy)
    assert (s["status_429"], s["status_429_absorbed"]) == (1, 0)
    assert s["statuses"] == {} and s["successes"] == 0
    assert 50 < moment(s["closed_until"]) - time.time() < 70


def test_looking_for_scopes(weir, origin):
    proxy = weir("defaults: {scope: [host, session]}\n")
    for name in ("red", "Green", "blue", 'x"y'):
        get(proxy.port, origin.url + "/", fields=[("Weir-Session", name)])

    def found(query):
        answer = proxy.api("/api/v1/scopes" + query)
        assert answer["known"] == 4 and answer["found"] >= len(answer["scopes"])
        return [s["scope"].rpartition("session=")[2] for s in answer["scopes"]]

    assert found("") == ['x"y', "blue", "Green", "red"]  # used last, first
    assert found("?q=green") == ["Green"] == found("?q=GREEN")
    assert found("?q=session%3Dr") == ["red"]
    assert found("?q=x%22") == ['x"y']
    assert found("?q=nobody") == []
    assert found("?q=") == found("")
    assert found("?limit=2") == ['x"y', "blue"]
    assert proxy.api("/api/v1/scopes?limit=1&q=re")["found"] == 2


def test_busy_scopes_come_first(weir, origin):
    gate = Gate()
    origin.on("/held", lambda e: (gate.wait(), e.reply()))
    proxy = weir("defaults: {scope: [session]}\n")
    with Client(proxy.port) as client:
        client.request(origin.url + "/held", fields=[("Weir-Session", "busy")])
        origin.wait_requests(1)
        get(proxy.port, origin.url + "/", fields=[("Weir-Session", "later")])
        names = [s["scope"] for s in proxy.api("/api/v1/scopes")["scopes"]]
        gate.open()
        client.response()
    assert names == ["session=busy", "session=later"]


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=x", "limit=", "limit=1x", "limit=99999999999999999999"])
def test_limits_that_make_no_sense(weir, query):
    proxy = weir()
    for page in ("/api/v1/scopes", "/api/v1/requests/recent"):
        status, _, body = proxy.admin(f"{page}?{query}")
        assert status == 400 and "limit" in json.loads(body)["error"]


# ---- series -------------------------------------------------------------------------------------


def test_a_series(weir, origin):
    origin.on("/slow", in_turn((429, [("Retry-After", "1")]), (200,)))
    proxy = weir()
    get(proxy.port, origin.url + "/slow")
    path = path_of(origin.host, "series")
    answer = proxy.api(path)
    assert answer["scope"] == origin.host
    events = [c["event"] for c in answer["changes"]]
    assert events[0] == "cut" and "reopened" in events
    cut = answer["changes"][0]
    assert 0.5 < moment(cut["closed_until"]) - moment(cut["time"]) < 2
    assert cut["rate"] > 0 and cut["concurrency_limit"] >= 1 and cut["in_flight"] == 1
    # what the log of changes says as well
    row = json_line(proxy.series_path, lambda r: r["event"] == "cut")
    assert abs(moment(row["time"]) - moment(cut["time"])) < 0.1

    assert proxy.api(path + "?since=" + answer["next"])["changes"] == []
    assert proxy.api(path + "?since=0")["changes"][0]["event"] == "cut"
    after = moment(cut["time"]) + 0.05
    assert "cut" not in [c["event"] for c in proxy.api(f"{path}?since={after:.6f}")["changes"]]
    text = datetime.datetime.fromtimestamp(after, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert "cut" not in [c["event"] for c in proxy.api(f"{path}?since={text}")["changes"]]
    early = moment(cut["time"]) - 5
    assert proxy.api(f"{path}?since={early:.6f}")["changes"][0]["event"] == "cut"


def test_following_a_series(weir, origin):
    """Each answer's "next" leads to the next one: nothing comes twice, and nothing is left out."""
    proxy = weir()
    get(proxy.port, origin.url + "/")
    path, seen, since = path_of(origin.host, "series"), [], "0"
    for _ in range(5):
        proxy.api(path_of(origin.host, "reset"), "POST")
        answer = proxy.api(f"{path}?since={since}")
        seen += [c["event"] for c in answer["changes"]]
        since = answer["next"]
    assert seen == [c["event"] for c in proxy.api(path)["changes"]]
    assert seen.count("reset") == 5


def test_unknown_scopes(weir):
    proxy = weir()
    for what, method in (("series", "GET"), ("reset", "POST")):
        status, _, body = proxy.admin(path_of("nobody:80", what), method)
        assert status == 404 and "no such scope" in json.loads(body)["error"]


@pytest.mark.parametrize("since", ["yesterday", "-1", "1e9", "2026-11-30", "@", "@x", "1 "])
def test_moments_that_make_no_sense(weir, origin, since):
    proxy = weir()
    get(proxy.port, origin.url + "/")
    status, _, body = proxy.admin(path_of(origin.host, "series") + "?since=" + urllib.parse.quote(since))
    assert status == 400 and "since" in json.loads(body)["error"]


@pytest.mark.parametrize("session", ['a"b', "a/b", "a%b", "a\\b", "?x=1", "series", "a/series", "..", "#"])
def test_keys_of_all_kinds(weir, origin, session):
    proxy = weir("defaults: {scope: [session]}\n")
    get(proxy.port, origin.url + "/", fields=[("Weir-Session", session)])
    scope = only_scope(proxy)["scope"]
    assert proxy.api(path_of(scope, "series"))["scope"] == scope
    assert proxy.api(path_of(scope, "reset"), "POST")["scope"] == scope


# ---- reset --------------------------------------------------------------------------------------


@pytest.mark.threads
def test_a_reset_opens_a_closed_scope(weir, origin):
    origin.on("/slow", in_turn((429, [("Retry-After", "600")]), (200,)))
    proxy = weir("defaults: {retry: {max_wait: 1s}, queue: {timeout: 15m}, timeouts: {total: 15m}}\n", workers=2)
    assert get(proxy.port, origin.url + "/slow").status == 429
    with Client(proxy.port) as client:
        client.request(origin.url + "/")
        proxy.wait_metrics(lambda m: m.value("weir_queued") == 1)
        assert proxy.api(path_of(origin.host, "reset"), "POST") == {"scope": origin.host, "reset": True}
        assert client.response().status == 200  # what waited goes at once
    assert only_scope(proxy)["closed_until"] is None
    assert proxy.api(path_of(origin.host, "series"))["changes"][1]["event"] == "reset"


def test_a_reset_outlives_a_restart(weir, origin, tmp_path):
    state = f'state: {{dir: "{tmp_path}/state"}}\ndefaults: {{retry: {{max_wait: 1s}}}}\n'
    origin.default = lambda e: e.reply(429, [("Retry-After", "600")])
    first = weir(state)
    get(first.port, origin.url + "/")
    first.signal(signal.SIGTERM)
    assert first.wait_exit() == 0
    second = weir(state)
    assert only_scope(second, 0)["closed_until"]
    second.api(path_of(origin.host, "reset"), "POST")
    assert second.api("/api/v1/scopes")["scopes"] == []  # nothing but its memory was there
    second.signal(signal.SIGTERM)
    assert second.wait_exit() == 0
    assert weir(state).api("/api/v1/scopes")["scopes"] == []


# ---- requests -----------------------------------------------------------------------------------


def test_the_last_requests(weir, origin):
    origin.on("/slow", in_turn((429, [("Retry-After", "0")]), (200, (), b"12345")))
    proxy = weir("defaults: {retry: {base: 1ms}}\n")
    get(proxy.port, origin.url + "/slow?page=1&api_key=abc")
    get(proxy.port, origin.url + "/post", method="POST", body=b"123")
    with Client(proxy.port) as client:
        client.send(b"GET http://user:pw@a/ HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.response().status == 400
    proxy.wait_metrics(lambda m: m.total("weir_requests_total") == 3)
    bad, post, slow = proxy.api("/api/v1/requests/recent")["requests"]
    assert slow["url"] == origin.url + "/slow?page=1&api_key=***"
    assert (slow["method"], slow["status"], slow["outcome"], slow["class"]) == ("GET", 200, "served", "success")
    assert (slow["attempts"], slow["status_429"], slow["bytes_out"]) == (2, 1, 5)
    assert (slow["client"], slow["scope"], slow["address"]) == ("127.0.0.1", origin.host, origin.host)
    assert (slow["endpoint"], slow["exit_address"]) == ("direct", "127.0.0.1")
    assert slow["queued"] <= slow["duration"] < 20 and abs(moment(slow["time"]) - time.time()) < 60
    assert (post["method"], post["bytes_in"]) == ("POST", 3)
    assert (bad["status"], bad["outcome"], bad["class"], bad["scope"], bad["exit_address"]) == (400, "refused", None, None, None)
    assert "pw" not in bad["url"]


def test_the_last_requests_are_bounded(weir, origin):
    proxy = weir()
    with Client(proxy.port) as client:
        for n in range(250):
            assert client.get(f"{origin.url}/{n}").status == 200
    proxy.wait_idle()
    newest = proxy.api("/api/v1/requests/recent?limit=200")["requests"]
    assert [r["url"].rpartition("/")[2] for r in newest] == [str(n) for n in range(249, 49, -1)]
    assert proxy.api("/api/v1/requests/recent?limit=3")["requests"] == newest[:3]
    assert len(proxy.api("/api/v1/requests/recent")["requests"]) == 50
    assert proxy.admin("/api/v1/requests/recent?limit=201")[0] == 400


@pytest.mark.threads
def test_the_last_requests_of_several_workers(weir, origin):
    """More than what waits for somebody to ask: the workers ring in between."""
    proxy = weir(workers=2)

    def worker():
        with Client(proxy.port) as client:
            for _ in range(300):
                client.get(origin.url + "/")

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    m = proxy.wait_metrics(lambda m: m.total("weir_requests_total") == 1200 and not m.value("weir_requests_open"))
    assert only_scope(proxy, 1200)["requests"] == 1200
    requests = proxy.api("/api/v1/requests/recent?limit=200")["requests"]
    ends = [moment(r["time"]) + r["duration"] for r in requests]
    assert all(a > b - 0.01 for a, b in zip(ends, ends[1:]))
    assert m.value("weir_reports_dropped_total") == 0


def test_the_ways_out(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir()
    with Client(proxy.port) as client:
        client.request(origin.url + "/")
        origin.wait_requests(1)
        answer = proxy.api("/api/v1/endpoints")
        gate.open()
        client.response()
    assert answer["endpoints"] == [{"name": "direct", "kind": "direct", "in_flight": 1, "max_in_flight": None}]
    assert answer["sessions"] == []


# ---- reload, and the end ------------------------------------------------------------------------


@pytest.mark.threads
def test_a_reload(weir, origin):
    proxy = weir(workers=2)
    assert get(proxy.port, origin.url + "/").status == 200
    proxy.write("destinations: {deny: [loopback]}\n")
    assert proxy.api("/api/v1/reload", "POST") == {"reloaded": True, "needs_restart": []}
    assert get(proxy.port, origin.url + "/").status == 403
    proxy.workers = 1
    proxy.write("")
    assert proxy.api("/api/v1/reload", "POST") == {"reloaded": True, "needs_restart": ["workers"]}
    first = proxy.log.wait("configuration reloaded")[1]
    proxy.log.wait("configuration reloaded", first + 1)


def test_a_bad_file(weir, origin):
    """The answer says what is wrong with it; the old one stays in force."""
    proxy = weir()
    proxy.write("defaults: {limit: {ceilling: 3}}\nworkers: 7\n")
    status, _, body = proxy.admin("/api/v1/reload", "POST")
    answer = json.loads(body)
    assert status == 422 and answer["reloaded"] is False and "old one" in answer["error"]
    ceiling = next(f for f in answer["faults"] if "ceilling" in f["text"])
    assert ceiling["file"] == str(proxy.config_path) and 'did you mean "ceiling"?' in ceiling["text"]
    assert (ceiling["line"], ceiling["column"]) > (1, 1)
    assert any("workers" in f["text"] for f in answer["faults"])
    assert get(proxy.port, origin.url + "/").status == 200
    proxy.config_path.unlink()
    status, _, body = proxy.admin("/api/v1/reload", "POST")
    assert status == 422 and "No such file" in json.loads(body)["faults"][0]["text"]


@pytest.mark.threads
def test_many_reloads_at_once(weir):
    proxy = weir(workers=2)
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(proxy.api("/api/v1/reload", "POST"))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for _ in range(5):
        proxy.signal(signal.SIGHUP)
    for thread in threads:
        thread.join()
    assert answers == [{"reloaded": True, "needs_restart": []}] * 20


def test_who_asks_for_a_reload_and_leaves(weir):
    proxy = weir()
    for _ in range(10):
        with Client(proxy.admin_port) as client:
            client.send(b"POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            client.reset()
    assert proxy.api("/api/v1/reload", "POST")["reloaded"]


@pytest.mark.threads
def test_the_end(weir, origin):
    """While requests end, it lives but is not ready, and nothing is reloaded."""
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir(workers=2)
    assert proxy.admin("/readyz")[::2] == (200, "ready\n")
    with Client(proxy.port) as client:
        client.request(origin.url + "/")
        origin.wait_requests(1)
        proxy.signal(signal.SIGTERM)
        proxy.log.wait("stopping: ")
        proxy.wait_metrics(lambda m: proxy.admin("/readyz")[0] == 503)
        assert proxy.admin("/healthz")[0] == 200
        assert proxy.admin("/api/v1/reload", "POST")[0] == 503
        assert proxy.metrics().value("weir_in_flight") == 1
        gate.open()
        assert client.response().status == 200
    assert proxy.wait_exit() == 0


def test_nobody_waits_for_an_admin_client(weir):
    """One that is connected, and one in the midst of its head, do not hold up the end."""
    proxy = weir()
    with Client(proxy.admin_port) as idle, Client(proxy.admin_port) as half:
        half.send(b"GET /metrics HTT")
        assert proxy.admin("/healthz")[0] == 200
        proxy.signal(signal.SIGTERM)
        assert proxy.wait_exit() == 0
        assert idle.is_closed() and half.is_closed()
