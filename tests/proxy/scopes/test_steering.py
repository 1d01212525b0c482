"""The Weir-* fields of a request: obeyed, checked, and kept from the host."""
import contextlib
import time

import pytest

from harness.origin import Gate, in_halves, in_turn
from harness.wire import Client, get

ONE = "limit: {algorithm: fixed, start: 1, floor: 1, ceiling: 1}"


def test_they_never_reach_the_host(weir, origin):
    proxy = weir()
    fields = [
        ("Weir-Session", "s1"),
        ("WEIR-PRIORITY", "9"),
        ("Weir-Deadline", "10s"),
        ("Weir-Retry", "no"),
        ("Weir-Attempts", "7"),
        ("Weird", "stays"),
        ("X-Weir-Session", "stays"),
        ("Connection", "weir-session"),
    ]
    assert get(proxy.port, origin.url + "/", fields=fields).status == 200
    names = [n.lower() for n in origin.requests[0].request.names()]
    assert not [n for n in names if n.startswith("weir-")]
    assert "weird" in names and "x-weir-session" in names


@pytest.mark.parametrize(
    "name, value",
    [
        ("Weir-Session", "a b"),
        ("Weir-Session", "x" * 129),
        ("Weir-Priority", "10"),
        ("Weir-Priority", "urgent"),
        ("Weir-Deadline", "soon"),
        ("Weir-Deadline", "0"),
        ("Weir-Retry", "perhaps"),
    ],
)
def test_a_bad_one_is_refused_with_a_sentence(weir, origin, name, value):
    proxy = weir()
    with Client(proxy.port) as client:
        answer = client.get(origin.url + "/", fields=[(name, value)])
        assert answer.status == 400
        assert answer.get("proxy-status").startswith("weir; error=http_request_error")
        assert answer.body.decode().startswith(f"weir: {name} ")
        assert answer.body.decode().rstrip().endswith(".")
        assert client.get(origin.url + "/good").status == 200  # on the same connection
    assert origin.paths() == ["/good"]


def test_one_given_twice_is_refused(weir, origin):
    answer = get(weir().port, origin.url + "/", fields=[("Weir-Priority", "1"), ("Weir-Priority", "1")])
    assert answer.status == 400 and b"more than one Weir-Priority" in answer.body
    assert origin.paths() == []


def queue_up(weir, origin, asked):
    """One slot: has all of (path, priority) wait for it, and then go. In which order did they?"""
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir(f"defaults: {{{ONE}, queue: {{max: {len(asked)}}}}}\n")
    with contextlib.ExitStack() as stack:
        stack.callback(gate.open)
        clients = [stack.enter_context(Client(proxy.port))]
        clients[0].request(origin.url + "/first")
        origin.wait_requests(1)
        for path, priority in asked:
            clients.append(stack.enter_context(Client(proxy.port)))
            clients[-1].request(origin.url + path, fields=[("Weir-Priority", priority)] if priority else ())
        assert get(proxy.port, origin.url + "/probe").status == 503  # all are queued
        gate.open()
        assert {client.response().status for client in clients} == {200}
    return origin.paths()


def test_higher_priorities_go_first(weir, origin):
    """Then by arrival; without the field it is 5."""
    asked = [("/none", None), ("/2", "2"), ("/9", "9"), ("/5", "5"), ("/0", "0"), ("/9-too", "9")]
    assert queue_up(weir, origin, asked) == ["/first", "/9", "/9-too", "/none", "/5", "/2", "/0"]


def test_a_low_priority_does_not_wait_for_ever(weir, origin):
    paths = queue_up(weir, origin, [("/low", "1")] + [(f"/high{i}", "8") for i in range(40)])
    assert paths.index("/low") == 17  # the first, and the sixteen that may pass


def test_a_deadline_ends_the_wait_for_a_turn(weir, origin):
    gate = Gate()
    origin.on("/first", lambda e: (gate.wait(), e.reply()))
    proxy = weir(f"defaults: {{{ONE}}}\n")
    with Client(proxy.port) as first:
        first.request(origin.url + "/first")
        origin.wait_requests(1)
        before = time.monotonic()
        answer = get(proxy.port, origin.url + "/second", fields=[("Weir-Deadline", "0.3")])
        assert 0.29 < time.monotonic() - before < 10
        assert answer.status == 503 and b"Weir-Deadline" in answer.body
        assert proxy.access("/second")["outcome"] == "too_long"
        gate.open()
        assert first.response().status == 200
    assert origin.paths() == ["/first"]


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 103 Hints\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: b\r\n"])
def test_a_deadline_ends_the_wait_for_an_answer(weir, origin, beginning):
    origin.default = lambda e: (e.send(beginning), e.wait_gone())
    proxy = weir()
    before = time.monotonic()
    answer = get(proxy.port, origin.url + "/", fields=[("Weir-Deadline", "300ms")])
    assert 0.29 < time.monotonic() - before < 10
    assert answer.status == 504
    assert answer.get("weir-attempts") == "1"
    assert len(origin.paths()) == 1


def test_a_deadline_lets_no_retry_begin_that_is_too_late(weir, origin):
    """The host names a wait beyond the deadline: its own answer goes to the client, at once."""
    origin.default = in_turn((429, [("Retry-After", "30")], b"slow down"), ())
    before = time.monotonic()
    answer = get(weir().port, origin.url + "/", fields=[("Weir-Deadline", "5s")])
    assert answer.status == 429 and answer.body == b"slow down"
    assert time.monotonic() - before < 4


def test_a_deadline_does_not_cut_the_body(weir, origin):
    gate = Gate()
    origin.default = in_halves(gate, b"abc", b"def")
    proxy = weir()
    with Client(proxy.port) as client:
        before = time.monotonic()
        client.request(origin.url + "/", fields=[("Weir-Deadline", "300ms")])
        assert client.head().status == 200
        # another one's deadline passes meanwhile: so has the first one's
        origin.on("/wait", lambda e: e.wait_gone())
        assert get(proxy.port, origin.url + "/wait", fields=[("Weir-Deadline", "350ms")]).status == 504
        assert time.monotonic() - before > 0.34
        gate.open()
        assert client.reader.exactly(6) == b"abcdef"


def test_a_deadline_lengthens_nothing(weir, origin):
    origin.default = lambda e: e.wait_gone()
    proxy = weir("defaults: {timeouts: {total: 300ms}, retry: {attempts: 1}}\n")
    before = time.monotonic()
    assert get(proxy.port, origin.url + "/", fields=[("Weir-Deadline", "1h")]).status == 504
    assert time.monotonic() - before < 10


@pytest.mark.parametrize("answer", [(429, [("Retry-After", "0")], b"slow down"), (500, [], b"broken")])
def test_no_retry_where_none_is_wanted(weir, origin, answer):
    origin.default = in_turn(answer, ())
    proxy = weir("defaults: {retry: {base: 1ms}}\n")
    got = get(proxy.port, origin.url + "/", fields=[("Weir-Retry", "no")])
    assert (got.status, got.body, got.get("weir-attempts")) == (answer[0], answer[2], "1")
    assert len(origin.paths()) == 1


def test_retries_where_they_are_not_unwanted(weir, origin):
    origin.default = in_turn((500, [], b"broken"), ())
    proxy = weir("defaults: {retry: {base: 1ms}}\n")
    got = get(proxy.port, origin.url + "/", fields=[("Weir-Retry", "yes")])
    assert (got.status, got.get("weir-attempts")) == (200, "2")
