"""429 and its kin: the host said "slower"; the request goes again after the wait that it named."""
import email.utils
import time

import pytest

from harness.daemon import json_line
from harness.origin import in_turn, retry_after_fields
from harness.wire import Client, get

FAST = "defaults: {retry: {base: 10ms, max: 50ms}}\n"


def gap(origin):
    """Seconds between the two requests that reached the origin."""
    assert len(origin.requests) == 2, origin.paths()
    return origin.requests[1].time - origin.requests[0].time


def http_date(ahead, style):
    moment = time.time() + ahead
    day = time.gmtime(moment)
    return {
        "imf": email.utils.formatdate(moment, usegmt=True),
        "rfc850": time.strftime("%A, %d-%b-%y %H:%M:%S GMT", day),
        "asctime": time.strftime("%a %b %e %H:%M:%S %Y", day),
    }[style]


# name: fields of the 429, the least wait, the most (with jitter and a slow machine)
FORMS = {
    "whole seconds": (lambda: [("Retry-After", "1")], 1, 4),
    "spaces": (lambda: [("Retry-After", "  1  ")], 1, 4),
    "plus": (lambda: [("Retry-After", "+1")], 1, 4),
    "fraction": (lambda: [("Retry-After", "0.7")], 0.7, 3.5),
    "milliseconds unit": (lambda: [("Retry-After", "700ms")], 0.7, 3.5),
    "seconds unit": (lambda: [("Retry-After", "1s")], 1, 4),
    "Retry-After-Ms": (lambda: [("Retry-After", "30"), ("Retry-After-Ms", "600")], 0.6, 3.5),
    "two fields": (lambda: [("Retry-After", "0.2"), ("Retry-After", "1")], 1, 4),
    "a list": (lambda: [("Retry-After", "0.2, 1")], 1, 4),
    "date": (lambda: [("Retry-After", http_date(2, "imf"))], 1, 6),
    "old date": (lambda: [("Retry-After", http_date(2, "rfc850"))], 1, 6),
    "oldest date": (lambda: [("Retry-After", http_date(2, "asctime"))], 1, 6),
    "date by the origin's own clock": (
        lambda: [("Date", http_date(-7000, "imf")), ("Retry-After", http_date(-6999, "imf"))],
        1,
        4,
    ),
    "epoch": (lambda: [("Retry-After", str(int(time.time()) + 2))], 1, 6),
    "a date that has passed": (lambda: [("Retry-After", http_date(-60, "imf"))], 0.05, 3),
    "zero": (lambda: [("Retry-After", "0")], 0.05, 3),
    "none": (lambda: [], 0, 3),
    "garbage": (lambda: [("Retry-After", "soon")], 0, 3),
    "below zero": (lambda: [("Retry-After", "-43")], 0, 3),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_wait_is_kept(weir, origin, form):
    fields, least, most = FORMS[form]
    origin.default = in_turn(lambda e: e.reply(429, fields(), b"slow"), (200,))
    answer = get(weir(FAST).port, origin.url + "/x")
    assert answer.status == 200 and answer.body == b"ok"
    assert answer.get("weir-attempts") == "2"
    assert least - 0.01 <= gap(origin) <= most


@pytest.mark.parametrize("status", [429, 430, 420, 529])
def test_kin_of_429(weir, origin, status):
    config = f"defaults: {{retry: {{base: 10ms, max: 50ms, on: [{status}]}}}}\n"
    origin.default = in_turn((status, [("Retry-After", "1")]), (200,))
    assert get(weir(config).port, origin.url + "/x").status == 200
    assert gap(origin) >= 0.99


def test_the_whole_scope_waits(weir, origin):
    """One request is refused: whatever else asks that host waits as well."""
    proxy = weir(FAST)
    refusal = []

    def refuse(exchange):
        exchange.reply(429, [("Retry-After", "1")])
        refusal.append(time.monotonic())

    origin.on("/a", in_turn(refuse, (200,)))
    with Client(proxy.port) as one, Client(proxy.port) as two:
        one.request(origin.url + "/a")
        json_line(proxy.series_path, lambda row: True)  # the limiter has heard of it
        two.request(origin.url + "/b")
        assert two.response().status == 200
        assert one.response().status == 200
    assert all(e.time - refusal[0] > 0.95 for e in origin.requests[1:])


def test_another_host_does_not_wait(weir, origins):
    proxy = weir(FAST)
    shut, free = origins(), origins()
    shut.default = in_turn((429, [("Retry-After", "20")]), (200,))
    with Client(proxy.port) as waiting:
        waiting.request(shut.url + "/")
        shut.wait_requests(1)
        before = time.monotonic()
        assert get(proxy.port, free.url + "/").status == 200
        assert time.monotonic() - before < 10


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT"])
def test_a_refusal_was_not_processed_so_any_method_goes_again(weir, origin, method):
    origin.default = in_turn((429, [("Retry-After", "0.2")]), (503, [("Retry-After", "0.2")]), (200,))
    answer = get(weir(FAST).port, origin.url + "/x", method=method, body=b"once" * 1000)
    assert answer.status == 200
    assert [e.request.body for e in origin.requests] == [b"once" * 1000] * 3
    assert len({e.request.head for e in origin.requests}) == 1


def test_after_the_last_attempt_the_origins_own_answer_passes(weir, origin):
    fields = [("Retry-After", "0.2"), ("X-Reason", "quota"), ("Content-Type", "application/json")]
    origin.default = lambda e: e.reply(429, fields, b'{"error": "quota"}', reason="Slow Down")
    answer = get(weir("defaults: {retry: {attempts: 3}}\n").port, origin.url + "/x")
    assert answer.line == "HTTP/1.1 429 Slow Down"
    assert answer.body == b'{"error": "quota"}'
    assert [answer.get(n) for n, _ in fields] == [v for _, v in fields]
    assert answer.get("weir-attempts") == "3" and len(origin.requests) == 3
    assert answer.get("proxy-status") is None  # it is not weir that answers


def test_one_attempt_means_none_again(weir, origin):
    origin.default = lambda e: e.reply(429, [("Retry-After", "1")])
    answer = get(weir("defaults: {retry: {attempts: 1}}\n").port, origin.url + "/x")
    assert (answer.status, answer.get("weir-attempts"), len(origin.requests)) == (429, "1", 1)


def test_a_status_that_is_not_listed_passes_at_once(weir, origin):
    origin.default = lambda e: e.reply(429, [("Retry-After", "1")])
    answer = get(weir("defaults: {retry: {on: [500]}}\n").port, origin.url + "/x")
    assert (answer.status, len(origin.requests)) == (429, 1)


def test_a_longer_wait_than_max_wait_is_not_slept(weir, origin):
    """The answer passes at once; the scope stays shut, and who comes then is told for how long."""
    proxy = weir("defaults: {retry: {max_wait: 5s}, queue: {timeout: 3s}}\n")
    origin.default = lambda e: e.reply(429, retry_after_fields("9999", 0), b"later")
    before = time.monotonic()
    first = get(proxy.port, origin.url + "/x")
    second = get(proxy.port, origin.url + "/y")
    assert time.monotonic() - before < 3
    assert (first.status, first.body, first.get("retry-after")) == (429, b"later", "9999")
    assert second.status == 503
    assert second.get("proxy-status").startswith("weir")
    assert 60 < int(second.get("retry-after")) <= 9999
    assert len(origin.requests) == 1


def test_a_longer_wait_than_the_total_is_not_slept(weir, origin):
    origin.default = lambda e: e.reply(429, [("Retry-After", "60")], b"later")
    before = time.monotonic()
    answer = get(weir("defaults: {timeouts: {total: 2s}}\n").port, origin.url + "/x")
    assert answer.status == 429 and time.monotonic() - before < 2


def test_503_without_a_wait_goes_again_for_get_alone(weir, origin):
    origin.on("/get", in_turn((503,), (200,)))
    origin.on("/post", in_turn((503,), (200,)))
    proxy = weir(FAST)
    assert get(proxy.port, origin.url + "/get").status == 200
    assert get(proxy.port, origin.url + "/post", method="POST", body=b"x").status == 503
    assert origin.paths() == ["/get", "/get", "/post"]
