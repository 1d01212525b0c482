"""Failures: 5xx, connections that break or never come about, answers that do not come."""
import socket
import time

import pytest

from harness.origin import Gate, in_turn
from harness.wire import Client, Closed, get

FAST = "defaults: {retry: {base: 10ms, max: 50ms}}\n"
ONCE = "defaults: {retry: {attempts: 1}}\n"


def reset(exchange):
    exchange.reset()


def hang_up(exchange):
    exchange.close()


def half_a_head(exchange):
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Le")
    exchange.close()


FAILURES = {"500": (500,), "502": (502,), "504": (504,), "reset": reset, "hang up": hang_up, "half a head": half_a_head}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_a_safe_method_goes_again(weir, origin, method, failure):
    origin.default = in_turn(FAILURES[failure], (200,))
    body = b"again" if method == "PUT" else None
    answer = get(weir(FAST).port, origin.url + "/x", method=method, body=body)
    assert answer.status == 200 and answer.get("weir-attempts") == "2"
    assert [e.request.body for e in origin.requests] == [body or b""] * 2


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_an_unsafe_method_is_sent_once(weir, origin, method, failure):
    origin.default = in_turn(FAILURES[failure], (200,))
    answer = get(weir(FAST).port, origin.url + "/x", method=method, body=b"once")
    assert answer.status == (int(failure) if failure.isdigit() else 502)
    assert len(origin.requests) == 1


def test_an_unsafe_method_is_sent_once_on_a_connection_that_died(weir, origin):
    """The origin resets a kept connection upon the second request: libcurl must not send it again
    by itself."""
    proxy = weir(FAST)
    origin.on("/break", reset)
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/x").status == 200
        assert client.get(origin.url + "/break", method="POST", body=b"once").status == 502
    assert origin.paths() == ["/x", "/break"]


def test_methods_all(weir, origin):
    origin.default = in_turn((500,), reset, (200,))
    config = "defaults: {retry: {base: 10ms, max: 50ms, methods: all}}\n"
    assert get(weir(config).port, origin.url + "/x", method="POST", body=b"b").status == 200
    assert [e.request.body for e in origin.requests] == [b"b"] * 3


def test_after_the_last_attempt_the_origins_own_answer_passes(weir, origin):
    origin.default = in_turn((500, [], b"first"), (502, [], b"second"), (504, [("X-N", "3")], b"third"))
    answer = get(weir("defaults: {retry: {attempts: 3, base: 10ms}}\n").port, origin.url + "/x")
    assert (answer.status, answer.body, answer.get("x-n")) == (504, b"third", "3")
    assert answer.get("weir-attempts") == "3"


def test_a_refused_answer_leaves_no_trace_in_the_next(weir, origin):
    origin.default = in_turn((500, [("X-Bad", "1"), ("Set-Cookie", "bad=1")], b"bad" * 100), (200, [("X-Good", "1")]))
    answer = get(weir(FAST).port, origin.url + "/x")
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.get("x-bad") is None and answer.get("set-cookie") is None and answer.get("x-good") == "1"


def test_a_large_refused_body_does_not_hold_up_the_next_attempt(weir, origin):
    """An error page without end: the next attempt does not wait for it."""
    gate = Gate()

    def endless(exchange):
        exchange.send(b"HTTP/1.1 500 Bad\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100000)
        gate.wait()

    origin.default = in_turn(endless, (200,))
    answer = get(weir(FAST).port, origin.url + "/x")
    assert answer.status == 200
    gate.open()


def test_the_wait_grows_but_is_bounded(weir, origin):
    origin.default = lambda e: e.reply(500)
    before = time.monotonic()
    answer = get(weir("defaults: {retry: {attempts: 8, base: 20ms, max: 100ms, budget: 100%}}\n").port, origin.url + "/x")
    assert answer.get("weir-attempts") == str(len(origin.requests))
    assert time.monotonic() - before < 7 * 0.1 + 3


def test_the_budget_bounds_the_retries(weir, origin):
    """20 % of the requests, and at least 3: not one retry for each request of a host that is down."""
    origin.default = lambda e: e.reply(500)
    proxy = weir("defaults: {retry: {attempts: 2, base: 1ms, max: 1ms, budget: 20%}, breaker: {trip: 1000}}\n")
    with Client(proxy.port) as client:
        for _ in range(50):
            assert client.get(origin.url + "/x").status == 500
    assert 50 + 3 <= len(origin.requests) <= 50 + 3 + 10 + 1


# ---- what weir answers itself -----------------------------------------------------------------------


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def check_own(answer, status, error):
    assert answer.status == status, answer.head
    text = answer.get("proxy-status")
    assert text.startswith("weir") and f"error={error}" in text, text
    assert answer.get("content-type", "").startswith("text/plain")
    assert len(answer.body) > 10 and answer.body.count(b"\n") <= 1


def test_connection_refused(weir):
    proxy = weir(FAST)
    answer = get(proxy.port, f"http://127.0.0.1:{closed_port()}/x")
    check_own(answer, 502, "connection_refused")
    assert answer.get("weir-attempts") == "4"


def test_connection_refused_goes_again_for_any_method(weir):
    """Nothing was sent, so nothing can be done twice."""
    answer = get(weir(FAST).port, f"http://127.0.0.1:{closed_port()}/x", method="POST", body=b"x")
    check_own(answer, 502, "connection_refused")
    assert answer.get("weir-attempts") == "4"


def test_the_name_is_unknown(weir):
    answer = get(weir(ONCE).port, "http://no-such-name.invalid/x")
    assert answer.status in (502, 504)
    assert "error=dns_" in answer.get("proxy-status")


@pytest.mark.parametrize("failure", ["reset", "hang up", "half a head"])
def test_the_connection_broke(weir, origin, failure):
    origin.default = FAILURES[failure]
    answer = get(weir(ONCE).port, origin.url + "/x")
    assert answer.status == 502
    assert answer.get("proxy-status").startswith("weir")
    assert "error=connection_terminated" in answer.get("proxy-status") or "error=http_response_incomplete" in answer.get("proxy-status")


def test_no_answer_in_time(weir, origin):
    gate = Gate()
    origin.default = lambda e: gate.wait()
    proxy = weir("defaults: {retry: {attempts: 1}, timeouts: {first_byte: 200ms}}\n")
    check_own(get(proxy.port, origin.url + "/x"), 504, "http_response_timeout")
    assert origin.requests[0].wait_gone()
    gate.open()


def test_an_answer_that_is_late_goes_again(weir, origin):
    gate = Gate()
    origin.default = in_turn(lambda e: gate.wait(), (200,))
    proxy = weir("defaults: {retry: {base: 10ms}, timeouts: {first_byte: 200ms}}\n")
    answer = get(proxy.port, origin.url + "/x")
    assert (answer.status, answer.get("weir-attempts")) == (200, "2")
    gate.open()


def test_the_total_deadline(weir, origin):
    gate = Gate()
    origin.default = lambda e: gate.wait()
    proxy = weir("defaults: {timeouts: {total: 300ms}}\n")
    before = time.monotonic()
    answer = get(proxy.port, origin.url + "/x")
    assert answer.status == 504 and answer.get("proxy-status").startswith("weir")
    assert 0.29 < time.monotonic() - before < 10
    assert origin.requests[0].wait_gone()
    gate.open()


def test_a_body_that_stalls_is_cut(weir, origin):
    gate = Gate()

    def stall(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        gate.wait()

    origin.default = stall
    proxy = weir("defaults: {timeouts: {read: 300ms}}\n")
    with Client(proxy.port) as client:
        client.request(origin.url + "/x")
        assert client.head().status == 200
        with pytest.raises(Closed) as cut:
            client.reader.exactly(10)
        assert cut.value.data == b"hello"
    assert len(origin.requests) == 1
    gate.open()


def test_a_slow_but_steady_body_is_not_cut(weir, origin):
    """The read timeout is between bytes, not for the whole."""
    import threading

    def drip(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        for _ in range(10):
            threading.Event().wait(0.15)
            exchange.send(b"x")

    origin.default = drip
    proxy = weir("defaults: {timeouts: {read: 1s, first_byte: 1s}}\n")
    assert get(proxy.port, origin.url + "/x").body == b"x" * 10


# ---- cut short after the head: never again, and the client must be able to tell ------------------------


@pytest.mark.parametrize(
    "part",
    [b"Content-Length: 1000\r\n\r\n" + b"x" * 100, b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"],
    ids=["of its length", "between chunks"],
)
def test_cut_short(weir, origin, part):
    origin.default = lambda e: (e.send(b"HTTP/1.1 200 OK\r\n" + part), e.close())
    with Client(weir(FAST).port) as client:
        client.request(origin.url + "/x")
        with pytest.raises(Closed):
            client.response()
    assert len(origin.requests) == 1


def test_reset_in_the_body(weir, origin):
    def cut(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 100)
        origin.wait(lambda: origin.seen)
        exchange.reset()

    origin.seen = False
    origin.default = cut
    with Client(weir(FAST).port) as client:
        client.request(origin.url + "/x")
        assert client.head().status == 200
        with origin.changed:
            origin.seen = True
            origin.changed.notify_all()
        with pytest.raises(Closed):
            client.reader.exactly(1000)
