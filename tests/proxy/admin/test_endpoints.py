"""Pools of local addresses: which request goes by which, and what the admin listener tells of it."""
from harness.origin import Gate
from harness.wire import Client, get

POOL = """
defaults: {egress: pool, retry: {base: 1ms, max: 1ms, attempts: %d}%s}
pools:
  pool:
    endpoints: [{source: 127.0.0.2, name: two}, {source: 127.0.0.3, name: three}, {source: 127.0.0.4, name: four}]
    %s
"""


def pool(policy="", more="", attempts=4):
    return POOL % (attempts, ", " + policy if policy else "", more)


def came_from(exchange):
    return exchange.sock.getpeername()[0]


def where(origin):
    """The origin tells in its answers where requests come from."""
    origin.default = lambda e: e.reply(body=came_from(e).encode())


def session(name):
    return [("Weir-Session", name)]


def endpoints(proxy):
    return {e["name"]: e for e in proxy.api("/api/v1/endpoints")["endpoints"]}


def test_one_at_a_time_by_each(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir(pool(), workers=2)
    clients = [Client(proxy.port) for _ in range(5)]
    for client in clients:
        client.request(origin.url + "/")
    first = origin.wait_requests(3)
    proxy.wait_metrics(lambda m: m.value("weir_queued") == 2)
    assert sorted(map(came_from, first)) == ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    listed = endpoints(proxy)
    assert [listed[n]["in_flight"] for n in ("two", "three", "four", "direct")] == [1, 1, 1, 0]
    assert listed["two"]["kind"] == "source" and listed["two"]["max_in_flight"] == 1
    m = proxy.metrics()
    assert m.value("weir_endpoint_in_flight", pool="pool", endpoint="two") == 1
    assert m.value("weir_endpoint_up", pool="pool", endpoint="two") == 1
    assert len(origin.requests) == 3
    gate.open()
    for client in clients:
        assert client.response().status == 200
    m = proxy.wait_metrics(lambda m: m.total("weir_endpoint_in_flight") == 0)
    assert m.total("weir_endpoint_requests_total") == 5


def test_a_session_keeps_its_address(weir, origin):
    where(origin)
    proxy = weir(pool(), workers=2)
    seen = {}
    for _ in range(4):
        for name in ("a", "b", "c"):
            answer = get(proxy.port, origin.url + "/", fields=session(name))
            assert answer.get("Weir-Session-Moved") is None
            seen.setdefault(name, set()).add(answer.body)
    assert all(len(addresses) == 1 for addresses in seen.values())
    assert len(set.union(*seen.values())) == 3  # least used: each its own
    told = {s["session"]: s for s in proxy.api("/api/v1/endpoints")["sessions"]}
    names = {"two": b"127.0.0.2", "three": b"127.0.0.3", "four": b"127.0.0.4"}
    assert {n: {names[s["endpoint"]]} for n, s in told.items()} == seen
    assert told["a"]["pool"] == "pool" and told["a"]["last_used"]
    assert proxy.metrics().value("weir_endpoint_sessions", pool="pool", endpoint="two") == 1
    assert len(proxy.api("/api/v1/endpoints?limit=2")["sessions"]) == 2


def test_a_blocked_address_gets_no_more_of_that_host(weir, origin, origins):
    other = origins()
    where(other)
    blocked = []
    origin.default = lambda e: e.reply(403 if came_from(e) in blocked else 200, body=came_from(e).encode())
    proxy = weir(pool(more="quarantine: {after: 1, for: 10m}"), workers=2)
    home = get(proxy.port, origin.url + "/", fields=session("s")).body.decode()
    blocked.append(home)
    count = len(origin.requests)
    answer = get(proxy.port, origin.url + "/", fields=session("s"))
    assert answer.status == 200 and answer.body.decode() != home
    assert answer.get("Weir-Session-Moved") == "1" and answer.get("Weir-Attempts") == "2"
    for _ in range(6):
        again = get(proxy.port, origin.url + "/", fields=session("s"))
        assert again.body == answer.body and again.get("Weir-Session-Moved") is None
        assert get(proxy.port, origin.url + "/").body.decode() != home
    assert [came_from(e) for e in origin.requests[count:]].count(home) == 1
    # another host has nothing to do with it
    assert home in {get(proxy.port, other.url.replace("127.0.0.1", "localhost") + "/").body.decode() for _ in range(9)}
    host = origin.host.split(":")[0]
    name = {"127.0.0.2": "two", "127.0.0.3": "three", "127.0.0.4": "four"}[home]
    quarantines = endpoints(proxy)[name]["quarantines"]
    assert [q["host"] for q in quarantines] == [host] and quarantines[0]["until"]
    m = proxy.metrics()
    assert m.value("weir_endpoint_quarantines", pool="pool", endpoint=name) == 1
    assert m.value("weir_endpoint_blocked_total", pool="pool", endpoint=name) == 1
    assert m.value("weir_retries_total", reason="blocked") == 1


def test_what_must_not_be_repeated_is_not(weir, origin):
    origin.default = lambda e: e.reply(403)
    proxy = weir(pool())
    with Client(proxy.port) as client:
        client.request(origin.url + "/", method="POST", body=b"x")
        assert client.response().status == 403
    assert len(origin.requests) == 1


def test_the_log_tells_what_is_wrong_with_an_endpoint(weir, origin):
    proxy = weir(
        "defaults: {egress: pool}\npools: {pool: {endpoints: [{url: 'http://127.0.0.1:1', name: gone}, direct]}}\n"
    )
    for _ in range(3):
        assert get(proxy.port, origin.url + "/").status == 200
    proxy.log.wait(r"warn +endpoint pool/gone: the upstream proxy cannot be reached")
    assert endpoints(proxy)["gone"]["faults"] >= 1


def test_blocked_by_all(weir, origin):
    origin.default = lambda e: e.reply(403)
    proxy = weir(pool("queue: {timeout: 5s}", "quarantine: {after: 1, for: 10m}"))
    assert get(proxy.port, origin.url + "/").status == 403  # the last one's answer, after all three
    assert len(origin.requests) == 3
    answer = get(proxy.port, origin.url + "/")
    assert answer.status == 503
    assert "error=destination_unavailable" in answer.get("Proxy-Status")
    assert 590 <= int(answer.get("Retry-After")) <= 600
    assert len(origin.requests) == 3
    assert proxy.access_rows(2)[1]["outcome"] == "no_endpoint"


def test_blocks_by_one_endpoint_after_the_other_open_the_circuit(weir, origin):
    origin.default = lambda e: e.reply(403)
    more = "quarantine: {after: 5, for: 10m}"
    proxy = weir(pool("breaker: {trip: 3, cooldown: 5m}, queue: {timeout: 5s}", more, attempts=1))
    for _ in range(3):
        assert get(proxy.port, origin.url + "/").status == 403
    answer = get(proxy.port, origin.url + "/")
    assert answer.status == 503 and int(answer.get("Retry-After")) > 200
    assert len(origin.requests) == 3
    scope = proxy.api("/api/v1/scopes")["scopes"][0]
    assert scope["circuit_open"] and scope["scope"].endswith(" pool=pool")


def test_a_session_in_order(weir, origin):
    gate, aside = Gate(), Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    origin.on("/other", lambda e: (aside.wait(), e.reply()))
    for egress in ("pool", "direct"):
        count = len(origin.requests)
        proxy = weir(pool("session_order: true, egress: " + egress).replace("egress: pool,", "", 1), workers=2)
        clients = [Client(proxy.port) for _ in range(4)]
        for number, client in enumerate(clients):
            client.request(f"{origin.url}/{number}", fields=session("s"))
            if number == 0:
                origin.wait_requests(count + 1)
            else:
                proxy.wait_metrics(lambda m: m.value("weir_queued") == number)
        with Client(proxy.port) as other:
            other.request(origin.url + "/other", fields=session("t"))
            origin.wait_requests(count + 2)  # another session waits for none of these
            assert len(origin.requests) == count + 2
            aside.open(1)
            gate.open(1)
            other.response()
        for number, client in enumerate(clients):
            if number:
                origin.wait_requests(count + number + 2)
                assert len(origin.requests) == count + number + 2
                gate.open(1)
            assert client.response().status == 200
        assert [p for p in origin.paths()[count:] if p != "/other"] == ["/0", "/1", "/2", "/3"]


def test_a_session_whose_address_a_reload_takes_away(weir, origin):
    where(origin)
    proxy = weir(pool())
    home = get(proxy.port, origin.url + "/", fields=session("s")).body.decode()
    left = [f"{{source: 127.0.0.{n}}}" for n in (2, 3, 4) if home != f"127.0.0.{n}"]
    proxy.write(pool().replace(POOL.split("endpoints: ")[1].split("\n")[0], f"[{', '.join(left)}]"))
    assert "was not" not in proxy.reload()
    moved = get(proxy.port, origin.url + "/", fields=session("s"))
    assert moved.body.decode() != home and moved.get("Weir-Session-Moved") == "1"
    assert get(proxy.port, origin.url + "/", fields=session("s")).get("Weir-Session-Moved") is None
    assert len(proxy.api("/api/v1/endpoints")["endpoints"]) == 3


def test_an_address_of_its_own_limit_for_each(weir, origin):
    refusing = []
    origin.default = lambda e: e.reply(429 if came_from(e) in refusing else 200, [("Retry-After", "300")])
    proxy = weir(pool("scope: [host, endpoint]", attempts=1))
    refusing.append("127.0.0.3")
    statuses = [get(proxy.port, origin.url + "/").status for _ in range(9)]
    assert statuses.count(429) == 1  # it is left alone, and the others go on
    scopes = {s["scope"]: s for s in proxy.api("/api/v1/scopes")["scopes"]}
    key = f"{origin.host} endpoint=pool"
    assert scopes[key + "/three"]["closed_until"] and not scopes[key + "/two"]["closed_until"]
    assert proxy.api("/api/v1/scopes/" + key.replace(" ", "%20") + "/three/reset", "POST")["reset"]
    assert not {s["scope"]: s for s in proxy.api("/api/v1/scopes")["scopes"]}[key + "/three"]["closed_until"]
