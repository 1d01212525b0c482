"""What does not fit waits its turn, within bounds, and leaves when its client does."""
import time

import pytest

from harness.daemon import json_line
from harness.origin import Gate, in_turn
from harness.wire import Client, get

ONE = "limit: {algorithm: fixed, start: 1, floor: 1, ceiling: 1}"


class Held:
    """An origin that answers nothing until told to, behind a limit of one request in flight."""

    def __init__(self, weir, origin, queue_max, more="", **daemon):
        self.gate = Gate()
        self.origin = origin
        origin.default = self.answer
        self.proxy = weir(f"defaults: {{{ONE}, queue: {{max: {queue_max}, timeout: 60s}}{more}}}\n", **daemon)
        self.clients = []

    def answer(self, exchange):
        self.gate.wait()
        exchange.reply()

    def ask(self, path, source=None):
        client = Client(self.proxy.port, source)
        self.clients.append(client)
        client.request(self.origin.url + path)
        return client

    def fill(self):
        """One request in flight."""
        client = self.ask("/first")
        self.origin.wait_requests(1)
        return client

    def wait_full(self):
        """Returns once the queue is full: a request more is refused then. (With one worker what was
        sent before is read before.)"""
        answer = get(self.proxy.port, self.origin.url + "/probe")
        assert answer.status == 503, answer.head
        return answer

    def close(self):
        self.gate.open()
        for client in self.clients:
            client.close()


@pytest.fixture
def held(weir, origin):
    made = []

    def make(queue_max, more="", **daemon):
        made.append(Held(weir, origin, queue_max, more, **daemon))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_full_queue_refuses_at_once(held, origin):
    h = held(2)
    first = h.fill()
    second, third = h.ask("/2"), h.ask("/3")
    answer = h.wait_full()
    assert answer.get("proxy-status").startswith("weir") and "error=" in answer.get("proxy-status")
    assert int(answer.get("retry-after")) >= 1
    assert answer.get("weir-attempts") == "0"
    h.gate.open()
    assert [c.response().status for c in (first, second, third)] == [200] * 3
    assert origin.paths() == ["/first", "/2", "/3"]


def test_the_queue_is_for_each_host(held, origins):
    h = held(1)
    h.fill()
    h.ask("/2")
    h.wait_full()
    assert get(h.proxy.port, origins().url + "/").status == 200


def test_waiting_longer_than_the_timeout_is_refused(weir, origin):
    gate = Gate()
    origin.on("/first", lambda e: (gate.wait(), e.reply()))
    proxy = weir(f"defaults: {{{ONE}, queue: {{timeout: 300ms}}}}\n")
    with Client(proxy.port) as first:
        first.request(origin.url + "/first")
        origin.wait_requests(1)
        before = time.monotonic()
        answer = get(proxy.port, origin.url + "/second")
        assert answer.status == 503 and answer.get("proxy-status").startswith("weir")
        assert 0.29 < time.monotonic() - before < 10
        assert int(answer.get("retry-after")) >= 1
        gate.open()
        assert first.response().status == 200
    assert origin.paths() == ["/first"]


def test_by_arrival_within_a_client(held, origin):
    h = held(20)
    clients = [h.fill()] + [h.ask(f"/{i}") for i in range(20)]
    h.wait_full()
    h.gate.open()
    assert {c.response().status for c in clients} == {200}
    assert origin.paths() == ["/first"] + [f"/{i}" for i in range(20)]


def test_in_turn_between_clients(held, origin):
    """Twenty of one client wait; another one's three do not wait behind all of them."""
    h = held(23)
    clients = [h.fill()] + [h.ask(f"/many{i}") for i in range(20)]
    clients += [h.ask(f"/few{i}", source="127.0.0.2") for i in range(3)]
    h.wait_full()
    h.gate.open()
    assert {c.response().status for c in clients} == {200}
    places = [i for i, path in enumerate(origin.paths()) if path.startswith("/few")]
    assert places[-1] <= 7, origin.paths()


def test_queued_time_is_told(held, origin):
    h = held(1)
    h.fill()
    second = h.ask("/2")
    h.wait_full()
    before = time.monotonic()
    while time.monotonic() - before < 0.3:  # a wait that can be told from none
        get(h.proxy.port, origin.url + "/probe")
    h.gate.open()
    assert float(second.response().get("weir-queued")) >= 0.29


@pytest.mark.threads
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_the_queue_is_not_served(held, origin, how):
    h = held(1)
    first = h.fill()
    leaving = h.ask("/leaving")
    h.wait_full()
    getattr(leaving, how)()
    row = h.proxy.access("/leaving")
    assert row["status"] in (0, None, 499) and row["attempts"] == 0
    third = h.ask("/third")  # its place is free again
    h.wait_full()
    h.gate.open()
    assert [first.response().status, third.response().status] == [200, 200]
    assert origin.paths() == ["/first", "/third"]


@pytest.mark.threads
def test_clients_that_leave_with_their_requests_are_not_served(held, origin):
    """The request and the end of its connection are there at once."""
    h = held(60)
    first = h.fill()
    for number in range(50):
        h.ask(f"/leaving{number}").close()
    h.proxy.wait_metrics(lambda m: m.total("weir_requests_total") == 50 and m.value("weir_queued") == 0)
    h.gate.open()
    assert first.response().status == 200
    assert origin.paths() == ["/first"]
    assert {row["outcome"] for row in h.proxy.access_rows(51)} == {"client_gone", "served"}


@pytest.mark.threads
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_in_flight_frees_its_slot(held, origin, how):
    h = held(5)
    first = h.fill()
    second = h.ask("/second")
    getattr(first, how)()
    assert origin.requests[0].wait_gone()  # the attempt is given up, not left to run
    origin.wait_requests(2)
    h.gate.open()
    assert second.response().status == 200
    assert h.proxy.access("/first")["attempts"] == 1


@pytest.mark.threads
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_while_its_retry_sleeps(weir, origin, how):
    origin.on("/x", in_turn((429, [("Retry-After", "100")]), (200,)))
    proxy = weir()
    client = Client(proxy.port)
    client.request(origin.url + "/x")
    json_line(proxy.series_path, lambda row: True)  # the limiter has heard of the refusal
    getattr(client, how)()
    assert proxy.access("/x")["attempts"] == 1
    assert origin.paths() == ["/x"]


@pytest.mark.threads
def test_a_client_that_leaves_during_the_body(weir, origin):
    gate = Gate()

    def half(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
        gate.wait()

    origin.on("/half", half)
    proxy = weir()
    client = Client(proxy.port)
    client.request(origin.url + "/half")
    assert client.head().status == 200
    client.close()
    assert origin.requests[0].wait_gone()
    gate.open()
    assert proxy.access("/half")["status"] == 200
    assert get(proxy.port, origin.url + "/next").status == 200


def test_when_open_refuse(weir, origin):
    """The circuit is open after its count of refusals: who comes then is told at once."""
    origin.default = lambda e: e.reply(429, [("Retry-After", "0.1")])
    proxy = weir("defaults: {retry: {attempts: 1}, breaker: {trip: 2, cooldown: 60s, when_open: refuse}}\n")
    seen = []
    for _ in range(30):
        answer = get(proxy.port, origin.url + "/x")
        seen.append(answer.status)
        if answer.status == 503:
            break
    assert answer.status == 503, seen
    assert answer.get("proxy-status").startswith("weir")
    assert 1 <= int(answer.get("retry-after")) <= 67  # the pause has up to a tenth more, so that not all come back at once
    assert len(origin.requests) == seen.count(429)


@pytest.mark.threads
def test_two_workers_share_one_limit(held, origin):
    """However the connections fall on the workers, one request is in flight at a time."""
    h = held(100, workers=2)
    h.gate.open(0)
    most = []
    lock = Gate()

    def answer(exchange):
        with lock.changed:
            lock.open_for += 1
            most.append(lock.open_for)
        get_away = time.monotonic() + 0.002
        while time.monotonic() < get_away:
            pass
        with lock.changed:
            lock.open_for -= 1
        exchange.reply()

    origin.default = answer
    clients = [h.ask(f"/{i}") for i in range(80)]
    assert {c.response().status for c in clients} == {200}
    assert max(most) == 1
