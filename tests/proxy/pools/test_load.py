"""Pools under load: who gets which endpoint when, as the endpoints and the host see it."""
import base64
import collections
import concurrent.futures
import threading

import pytest

from harness.origin import Gate, Limited
from harness.wire import Client, get


def came_from(exchange):
    return exchange.sock.getpeername()[0]


class Busiest:
    """A handler that knows how many requests it had at a time, at most, from each address."""

    def __init__(self, key=came_from):
        self.key = key
        self.lock = threading.Lock()
        self.open = collections.Counter()
        self.most = collections.Counter()

    def __call__(self, exchange):
        key = self.key(exchange)
        with self.lock:
            self.open[key] += 1
            self.most[key] = max(self.most[key], self.open[key])
        threading.Event().wait(0.002)  # so that others would meet it
        with self.lock:  # before the answer: what weir sends once it has that is no second one
            self.open[key] -= 1
        exchange.reply()


class LimitedByAddress:
    """A handler with a hidden limit for each address (harness.origin.Limited)."""

    def __init__(self, **limit):
        self.limit = limit
        self.lock = threading.Lock()
        self.by_address = {}

    def __call__(self, exchange):
        with self.lock:
            limited = self.by_address.setdefault(came_from(exchange), Limited(**self.limit))
        limited(exchange)

    def total(self, what):
        return sum(getattr(limited, what) for limited in self.by_address.values())


def crawl(proxy, clients, requests):
    """Each client asks for its part of what `requests` yields: (url, fields) each. The answers."""
    lock = threading.Lock()
    left = iter(requests)
    answers = []

    def work():
        with Client(proxy.port) as client:
            while True:
                with lock:
                    one = next(left, None)
                if one is None:
                    return
                url, fields = one
                answer = client.get(url, fields=fields)
                with lock:
                    answers.append((one, answer))

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(work) for _ in range(clients)]:
            done.result()
    return answers


def sources(*last):
    return ", ".join(f"{{source: 127.0.0.{n}}}" for n in last)


@pytest.mark.threads
def test_never_two_at_a_time(weir, origins, proxies):
    """Local addresses and proxies of each kind, several hosts, sessions and none, two workers."""
    hosts = [origins("127.0.0.1") for _ in range(3)]
    busiest = Busiest()
    for host in hosts:
        host.default = busiest
    ways = [proxies("tinyproxy", "127.0.0.5"), proxies("microsocks", "127.0.0.6"), proxies("squid", "127.0.0.7")]
    listed = ", ".join([f'"{w.url}"' for w in ways] + [sources(2, 3)])
    proxy = weir(f"defaults: {{egress: pool}}\npools: {{pool: {{endpoints: [{listed}]}}}}\n", workers=2)
    wanted = []
    for n in range(400):
        fields = [("Weir-Session", str(n % 7))] if n % 2 else []
        wanted.append((f"{hosts[n % 3].url}/{n}", fields))
    answers = crawl(proxy, 20, wanted)
    assert [a.status for _, a in answers] == [200] * 400
    assert busiest.most == {f"127.0.0.{n}": 1 for n in (2, 3, 5, 6, 7)}  # each was used, and by one at a time
    proxy.wait_metrics(lambda m: m.total("weir_endpoint_in_flight") == 0)
    assert proxy.metrics().total("weir_endpoint_requests_total") == 400


def test_hosts_take_turns_at_one_endpoint(weir, origins):
    """It has one place: whichever host gets it next, none is passed over."""
    hosts = [origins() for _ in range(3)]
    order, gate = [], Gate()
    for host in hosts:
        host.default = lambda e: (order.append(e.origin), gate.wait(), e.reply())
    proxy = weir(
        "defaults: {egress: pool, limit: {algorithm: fixed, start: 9}}\n"  # no pace has a say in it
        "pools: {pool: {endpoints: [{source: 127.0.0.2}]}}\n",
        workers=2,
    )
    clients = []

    def ask(host, queued):
        clients.append(Client(proxy.port))
        clients[-1].request(host.url + "/")
        proxy.wait_metrics(lambda m: m.value("weir_queued") == queued)

    ask(hosts[0], 0)
    hosts[0].wait_requests(1)
    for n in range(12):
        ask(hosts[n // 4], n + 1)
    gate.open()
    assert [c.response().status for c in clients] == [200] * 13
    for n in range(1, 13, 3):
        assert {hosts.index(o) for o in order[n : n + 3]} == {0, 1, 2}, [hosts.index(o) for o in order]


# ---- whose limit it is ----


def account(name):
    return [("Authorization", name)]


def test_one_limit_for_an_account_with_many_addresses(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir(
        'defaults: {egress: pool, scope: ["header:authorization"], limit: {algorithm: fixed, start: 2, ceiling: 2}}\n'
        f"pools: {{pool: {{endpoints: [{sources(2, 3, 4, 5)}]}}}}\n",
        workers=2,
    )
    clients = [Client(proxy.port) for _ in range(8)]
    for number, client in enumerate(clients[:5]):
        client.request(origin.url + "/", fields=account("a"))
        proxy.wait_metrics(lambda m: m.value("weir_queued") == max(0, number - 1))
    for client in clients[5:]:
        client.request(origin.url + "/", fields=account("b"))
    proxy.wait_metrics(lambda m: m.value("weir_queued") == 4)
    sent = [(e.request.get("Authorization"), came_from(e)) for e in origin.wait_requests(4)]
    assert sorted(name for name, _ in sent) == ["a", "a", "b", "b"]
    assert len({address for _, address in sent}) == 4  # whom endpoints are free for is their account's affair
    gate.open()
    assert [c.response().status for c in clients] == [200] * 8


def test_a_refused_account_rests_at_all_addresses(weir, origin):
    refused = []
    origin.default = lambda e: e.reply(429 if e.request.get("Authorization") in refused else 200, [("Retry-After", "300")])
    proxy = weir(
        'defaults: {egress: pool, scope: ["header:authorization"], retry: {attempts: 1}, queue: {timeout: 5s}}\n'
        f"pools: {{pool: {{endpoints: [{sources(2, 3)}]}}}}\n"
    )
    refused.append("a")
    assert get(proxy.port, origin.url + "/", fields=account("a")).status == 429
    count = len(origin.requests)
    for _ in range(3):
        answer = get(proxy.port, origin.url + "/", fields=account("a"))
        assert answer.status == 503 and int(answer.get("Retry-After")) > 200
    assert len(origin.requests) == count
    assert {get(proxy.port, origin.url + "/", fields=account("b")).status for _ in range(4)} == {200}


@pytest.mark.threads
def test_a_limit_for_each_address_is_found(weir, origin):
    limit = origin.default = LimitedByAddress(policy="fixed", rate=30, window=0.5)
    proxy = weir(
        "defaults: {egress: pool, scope: [host, endpoint]}\n"
        f"pools: {{pool: {{endpoints: [{sources(2, 3, 4, 5)}]}}}}\n",
        workers=2,
    )
    answers = crawl(proxy, 12, [(f"{origin.url}/{n}", []) for n in range(200)])
    assert [a.status for _, a in answers] == [200] * 200
    assert limit.total("served") == 200
    # Blindly on, each would be refused every time until its next half second.
    assert limit.total("refused") < 30
    assert {limited.served > 200 / 4 / 2 for limited in limit.by_address.values()} == {True}
    keys = {s["scope"] for s in proxy.api("/api/v1/scopes")["scopes"]}
    assert {f"{origin.host} endpoint=pool/127.0.0.{n}" for n in (2, 3, 4, 5)} <= keys


# ---- blocks ----


@pytest.mark.threads
def test_a_blocked_address_is_left_at_once(weir, origins):
    """In the midst of it all; and by the host alone that blocks it."""
    host, other = origins("127.0.0.1"), origins("127.0.0.9")
    seen, lock = [], threading.Lock()

    def blocks(exchange):
        address = came_from(exchange)
        with lock:
            blocked = address == "127.0.0.3" and seen.count(address) >= 10
            seen.append("blocked" if blocked else address)
        exchange.reply(403 if blocked else 200)

    host.default = blocks
    proxy = weir(
        "defaults: {egress: pool}\n"
        f"pools: {{pool: {{quarantine: {{for: 1h}}, endpoints: [{sources(2, 3, 4)}]}}}}\n",
        workers=2,
    )
    wanted = [(f"{(host, other)[n % 2].url}/{n}", []) for n in range(300)]
    answers = crawl(proxy, 12, wanted)
    assert [a.status for _, a in answers] == [200] * 300
    after = seen[seen.index("blocked") + 1 :]
    assert len(after) > 30 and set(after) == {"127.0.0.2", "127.0.0.4"}
    assert sum(a.get("Weir-Attempts") == "2" for _, a in answers) == 1
    listed = {e["name"]: e for e in proxy.api("/api/v1/endpoints")["endpoints"]}["127.0.0.3"]
    assert [q["host"] for q in listed["quarantines"]] == ["127.0.0.1"]
    last = {came_from(e) for e in other.requests[-60:]}
    assert "127.0.0.3" in last


# ---- sessions ----


@pytest.mark.threads
def test_sessions_keep_their_addresses(weir, origins):
    """Two requests of each at a time, more sessions than endpoints, two hosts."""
    hosts = [origins("127.0.0.1"), origins("127.0.0.9")]
    seen, lock = collections.defaultdict(set), threading.Lock()

    def note(exchange):
        with lock:
            seen[exchange.request.get("X-Session")].add(came_from(exchange))
        exchange.reply()

    for host in hosts:
        host.default = note
    proxy = weir(f"defaults: {{egress: pool}}\npools: {{pool: {{endpoints: [{sources(2, 3, 4)}]}}}}\n", workers=2)
    wanted = []
    for n in range(300):
        name = f"s{n % 10}"
        wanted.append((f"{hosts[n // 10 % 2].url}/{n}", [("Weir-Session", name), ("X-Session", name)]))
    answers = crawl(proxy, 20, wanted)
    assert [a.status for _, a in answers] == [200] * 300
    assert not [a for _, a in answers if a.get("Weir-Session-Moved")]
    assert len(seen) == 10 and {len(addresses) for addresses in seen.values()} == {1}
    told = {s["session"]: {s["endpoint"]} for s in proxy.api("/api/v1/endpoints")["sessions"]}
    assert told == seen
    assert len(set.union(*seen.values())) == 3


@pytest.mark.threads
@pytest.mark.parametrize("order", [True, False])
def test_a_sessions_requests_one_after_the_other(weir, origin, order):
    """Where that is wanted: the endpoint would take more at a time."""
    busiest = origin.default = Busiest(key=lambda e: e.request.get("X-Session"))
    proxy = weir(
        f"defaults: {{egress: pool, session_order: {str(order).lower()}, limit: {{start: 16}}}}\n"
        f"pools: {{pool: {{max_in_flight: 8, endpoints: [{sources(2, 3)}]}}}}\n",
        workers=2,
    )
    wanted = [(f"{origin.url}/{n}", [("Weir-Session", f"s{n % 3}"), ("X-Session", f"s{n % 3}")]) for n in range(150)]
    answers = crawl(proxy, 12, wanted)
    assert [a.status for _, a in answers] == [200] * 150
    assert len(busiest.most) == 3
    assert (set(busiest.most.values()) == {1}) == order


def test_a_session_moves_once_when_its_proxy_dies(weir, where, proxies):
    ways = [proxies("tinyproxy", "127.0.0.5"), proxies("microsocks", "127.0.0.6"), proxies("tinyproxy", "127.0.0.7")]
    listed = ", ".join(f'"{w.url}"' for w in ways)
    proxy = weir(f"defaults: {{egress: pool}}\npools: {{pool: {{endpoints: [{listed}]}}}}\n", workers=2)
    names = [f"s{n}" for n in range(6)]

    def ask(name):
        """As it can be said where no header can be set."""
        who = base64.b64encode(f"user-session-{name}:".encode()).decode()
        answer = get(proxy.port, where.url + "/", fields=[("Proxy-Authorization", "Basic " + who)])
        assert answer.status == 200
        return answer

    before = {name: ask(name).body for name in names}
    assert sorted(before.values()) == sorted([b"127.0.0.5", b"127.0.0.6", b"127.0.0.7"] * 2)
    ways[0].stop()
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        answers = dict(zip(names, pool.map(ask, names)))
    lost = {name for name in names if before[name] == b"127.0.0.5"}
    assert {name for name in names if answers[name].get("Weir-Session-Moved") == "1"} == lost
    after = {name: answer.body for name, answer in answers.items()}
    assert all(after[name] != b"127.0.0.5" if name in lost else after[name] == before[name] for name in names)
    ways[0].start()
    for _ in range(2):  # and do not go back
        again = {name: ask(name) for name in names}
        assert {name: answer.body for name, answer in again.items()} == after
        assert not [a for a in again.values() if a.get("Weir-Session-Moved")]
    told = {s["session"]: s["endpoint"] for s in proxy.api("/api/v1/endpoints")["sessions"]}
    places = {w.place: w.exit.encode() for w in ways}
    assert {name: places[place] for name, place in told.items()} == after


# ---- while all of it changes ----


@pytest.mark.threads
def test_nothing_is_lost_or_leaked_when_pools_change(weir, origin):
    """Endpoints come and go, and clients leave, in the midst of load: still one at a time by each."""
    busiest = origin.default = Busiest()
    origin.on("/ip", lambda e: e.reply(body=came_from(e).encode()))

    def text(*last, probe=""):
        pool = f"{{endpoints: [{sources(*last)}], exit_ip: {{probe: '{probe}'}}}}"
        return f"defaults: {{egress: pool, queue: {{timeout: 60s}}}}\npools: {{pool: {pool}, other: {{endpoints: [direct]}}}}\n"

    proxy = weir(text(2, 3, 4), workers=2)
    stop = threading.Event()

    def leave():
        """Clients that do not wait for their answers."""
        while not stop.wait(0.005):
            with Client(proxy.port) as client:
                client.request(f"{origin.url}/left", fields=[("Weir-Session", "left")])

    def change():
        for last in ((2,), (3, 4), (4, 5, 6), (2, 3, 4)) * 2:
            proxy.write(text(*last, probe=f"{origin.url}/ip"))
            assert "was not" not in proxy.reload()

    others = [threading.Thread(target=f) for f in (leave, change)]
    for other in others:
        other.start()
    answers = crawl(proxy, 12, [(f"{origin.url}/{n}", [("Weir-Session", f"s{n % 5}")] if n % 2 else []) for n in range(400)])
    stop.set()
    for other in others:
        other.join()
    assert not [(a.head, a.body) for _, a in answers if a.status != 200]
    asked = [e.request.target for e in origin.requests]
    assert len(asked) - asked.count("/left") - asked.count("/ip") == 400
    proxy.wait_metrics(lambda m: m.total("weir_endpoint_in_flight") + m.total("weir_queued") == 0)
    assert set(busiest.most) <= {f"127.0.0.{n}" for n in range(2, 7)}
    listed = {e["name"]: e for e in proxy.api("/api/v1/endpoints")["endpoints"]}
    assert set(listed) == {"direct", "127.0.0.2", "127.0.0.3", "127.0.0.4"}
