"""What answers mean: the built-in table, as far as it shows from outside."""
import gzip
import json
import time

import pytest

from harness.daemon import json_line, json_rows
from harness.origin import Gate, in_halves, in_turn
from harness.wire import Client, get

ONCE = "defaults: {retry: {attempts: 1}}\n"
FAST = "defaults: {retry: {base: 10ms, max: 50ms}}\n"
TEXT = ("Content-Type", "text/html")
JSON = ("Content-Type", "application/json")

# name: status, fields, body, class
ANSWERS = {
    "fine": (200, [], b"ok", "success"),
    "not found": (404, [TEXT], b"rate limit", "success"),
    "429": (429, [], b"slow", "throttled"),
    "529": (529, [], b"slow", "throttled"),
    "503": (503, [], b"busy", "overloaded"),
    "500": (500, [], b"oops", "failed"),
    "401": (401, [TEXT], b"who are you", "blocked"),
    "403": (403, [], b"no", "blocked"),
    "403, a page": (403, [TEXT], b"<h1>Forbidden</h1>", "blocked"),
    "403, an empty page": (403, [TEXT], b"", "blocked"),
    "403 with a wait": (403, [("Retry-After", "1")], b"no", "throttled"),
    "403 with no quota left": (
        403,
        [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1")],
        b"no",
        "throttled",
    ),
    "403 with quota left": (
        403,
        [JSON, ("X-RateLimit-Remaining", "7"), ("X-RateLimit-Reset", "1")],
        b'{"message": "no"}',
        "blocked",
    ),
    "403 that speaks of it": (403, [JSON], b'{"message": "API rate limit exceeded"}', "throttled"),
    "403, secondary": (403, [JSON], b'{"message": "You exceeded a secondary rate limit"}', "throttled"),
    "403, late in the page": (403, [TEXT], b" " * 2036 + b"Rate Limited", "throttled"),
    "403, too late in the page": (403, [TEXT], b" " * 2039 + b"Rate Limited", "blocked"),
    "403, packed": (
        403,
        [TEXT, ("Content-Encoding", "gzip")],
        gzip.compress(b"<p>" + bytes(range(200)) * 5 + b"Rate Limit</p>"),
        "throttled",
    ),
    "403, not text": (403, [("Content-Type", "image/png")], b"rate limit", "blocked"),
    "challenge": (403, [("cf-mitigated", "challenge")], b"<script>", "blocked"),
    "challenge with 429": (
        429,
        [("cf-mitigated", "challenge"), ("Retry-After", "60")],
        b"<script>",
        "blocked",
    ),
    "Vercel": (429, [("x-vercel-mitigated", "challenge")], b"", "blocked"),
    "AWS": (202, [("x-amzn-waf-action", "challenge")], b"", "blocked"),
    "AWS, captcha": (405, [("x-amzn-waf-action", "captcha")], b"", "blocked"),
    "DataDome": (403, [("x-datadome", "1")], b"", "blocked"),
    "1015": (429, [("Server", "cloudflare")], b"error code: 1015", "throttled"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_answer_has_its_class(weir, origin, name):
    status, fields, body, kind = ANSWERS[name]
    origin.default = lambda e: e.reply(status, fields, body)
    proxy = weir(ONCE)
    answer = get(proxy.port, origin.url + "/x")
    assert (answer.status, answer.body) == (status, body)
    assert [answer.get(n) for n, _ in fields] == [v for _, v in fields]
    assert proxy.access("/x")["class"] == kind


def test_a_block_slows_nothing_down(weir, origin):
    """Challenges with a Retry-After, and pages that forbid: none of them holds the scope."""
    kinds = [
        (429, [("cf-mitigated", "challenge"), ("Retry-After", "60")], b""),
        (403, [TEXT], b"no"),
        (401, [], b""),
    ]
    origin.on("/blocked", lambda e: e.reply(*kinds[len(origin.requests) % 3]))
    proxy = weir(FAST)
    for i in range(12):
        assert get(proxy.port, f"{origin.url}/blocked").get("weir-attempts") == "1"
    before = time.monotonic()
    assert get(proxy.port, origin.url + "/fine").status == 200
    assert time.monotonic() - before < 5
    assert not [r for r in json_rows(proxy.series_path) if r["event"] in ("cut", "closed", "circuit_open")]


def test_a_refusal_told_in_the_body_goes_again(weir, origin):
    origin.default = in_turn(lambda e: e.reply(403, [JSON], b'{"message": "rate limit"}'), (200,))
    proxy = weir(FAST)
    answer = get(proxy.port, origin.url + "/x", method="POST", body=b"data")
    assert (answer.status, answer.body, answer.get("weir-attempts")) == (200, b"ok", "2")
    assert [e.request.body for e in origin.requests] == [b"data"] * 2


@pytest.mark.parametrize("wait, least", [("1.2", 1.2), ("1200", 1.2)])
def test_a_wait_named_in_json_is_kept(weir, origin, wait, least):
    body = json.dumps({"message": "You are being rate limited.", "retry_after": 0}).replace("0}", wait + "}")
    origin.default = in_turn(lambda e: e.reply(429, [JSON], body.encode()), (200,))
    assert get(weir(FAST).port, origin.url + "/x").status == 200
    assert least - 0.01 <= origin.requests[1].time - origin.requests[0].time < least + 3


def test_a_wait_in_the_header_wins_over_json(weir, origin):
    refusal = lambda e: e.reply(429, [JSON, ("Retry-After", "1")], b'{"retry_after": 60}')
    origin.default = in_turn(refusal, (200,))
    assert get(weir(FAST).port, origin.url + "/x").status == 200
    assert origin.requests[1].time - origin.requests[0].time < 5


def test_a_refusal_that_no_wait_ends_is_a_block(weir, origin):
    """Alone, and each time as late as it was told: it is not about the rate."""
    origin.default = lambda e: e.reply(429, [("Retry-After", "0.3")], b"no")
    proxy = weir("defaults: {retry: {attempts: 9}}\n")
    answer = get(proxy.port, origin.url + "/x")
    assert (answer.status, answer.body, answer.get("weir-attempts")) == (429, b"no", "4")
    assert proxy.access("/x")["class"] == "blocked"


# ---- quotas -------------------------------------------------------------------------------------


def quota(remaining, reset, limit=100):
    return [
        ("X-RateLimit-Limit", str(limit)),
        ("X-RateLimit-Remaining", str(remaining)),
        ("X-RateLimit-Reset", str(reset)),
    ]


def test_a_spent_quota_holds_before_any_refusal(weir, origin):
    origin.default = in_turn(lambda e: e.reply(200, quota(0, 1)), (200,))
    proxy = weir()
    get(proxy.port, origin.url + "/a")
    get(proxy.port, origin.url + "/b")
    assert origin.requests[1].time - origin.requests[0].time >= 0.99
    json_line(proxy.series_path, lambda row: row["event"] == "closed")


def test_a_quota_sets_the_pace(weir, origin):
    """40 left for 10 s: 4 in each second, however many ask."""
    left = iter(range(40, 0, -1))
    started = time.monotonic()
    origin.default = lambda e: e.reply(200, quota(next(left), round(10 - time.monotonic() + started, 3)))
    proxy = weir()
    clients = [Client(proxy.port) for _ in range(9)]
    for client in clients:
        client.request(origin.url + "/x")
    assert [client.response().status for client in clients] == [200] * 9
    for client in clients:
        client.close()
    assert origin.requests[8].time - origin.requests[0].time >= 0.7  # the first 4 go at once


def test_a_refusal_for_what_others_did_cuts_nothing(weir, origin):
    shared = [("X-RateLimit-Scope", "shared"), ("Retry-After", "0.5")]
    origin.default = in_turn((200,), (429, shared), (200,))
    proxy = weir(FAST)
    for path in "ab":
        assert get(proxy.port, f"{origin.url}/{path}").status == 200
    assert origin.requests[2].time - origin.requests[1].time >= 0.49
    json_line(proxy.series_path, lambda row: row["event"] == "reopened")
    assert "cut" not in [row["event"] for row in json_rows(proxy.series_path)]


# ---- the look at the body -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 2049, 16384, 500_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_what_was_held_back_is_forwarded_as_it_came(weir, origin, size, chunked):
    body = bytes(i * 7 % 256 for i in range(size))

    def reply(exchange):
        if not chunked:
            return exchange.reply(403, [TEXT], body)
        exchange.send(b"HTTP/1.1 403 No\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, size, 1000):
            piece = body[at : at + 1000]
            exchange.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        exchange.send(b"0\r\n\r\n")

    origin.default = reply
    proxy = weir()
    with Client(proxy.port) as client:
        for _ in range(2):
            answer = client.get(origin.url + "/x")
            assert (answer.status, answer.body) == (403, body)
    assert origin.connections == 1
    assert proxy.access("/x")["bytes_out"] == size


def test_an_answer_to_head_has_none(weir, origin):
    origin.default = lambda e: e.reply(403, [TEXT], b"rate limit")
    proxy = weir()
    with Client(proxy.port) as client:
        for _ in range(2):
            answer = client.get(origin.url + "/x", method="HEAD")
            assert (answer.status, answer.get("content-length")) == (403, "10")
    assert proxy.access("/x")["class"] == "blocked"


def test_a_body_that_comes_in_drops_is_not_waited_for(weir, origin):
    gate = Gate()
    origin.default = in_halves(gate, b"rate", b" limit!", b"HTTP/1.1 403 No\r\nContent-Type: text/html")
    proxy = weir()
    with Client(proxy.port) as client:
        client.request(origin.url + "/x")
        answer = client.head()
        assert answer.status == 403
        assert client.reader.exactly(4) == b"rate"
        gate.open()
        assert client.reader.exactly(7) == b" limit!"
    assert proxy.access("/x")["class"] == "blocked"


def test_a_body_that_always_breaks_off_while_looked_at_is_a_failure(weir, origin):
    """Nothing of it has reached the client yet."""
    def reply(exchange):
        exchange.send(b"HTTP/1.1 403 No\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nshort")
        exchange.close()

    origin.default = reply
    proxy = weir(FAST)
    answer = get(proxy.port, origin.url + "/x")
    assert answer.status == 502 and "http_response_incomplete" in answer.get("proxy-status")
    row = proxy.access("/x")
    assert (row["class"], row["outcome"], row["attempts"]) == ("failed", "upstream_failed", len(origin.requests))
    assert row["attempts"] > 1


def test_a_refusal_that_breaks_off_goes_again(weir, origin):
    def refuse(exchange):
        exchange.send(b"HTTP/1.1 403 No\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nrate limit")
        exchange.close()

    origin.default = in_turn(refuse, (200,))
    answer = get(weir(FAST).port, origin.url + "/x")
    assert (answer.status, answer.get("weir-attempts")) == (200, "2")


@pytest.mark.threads
def test_a_client_that_leaves_meanwhile(weir, origin):
    gate = Gate()

    def reply(exchange):
        exchange.send(b"HTTP/1.1 403 No\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nshort")
        gate.wait()

    origin.default = reply
    proxy = weir(workers=2)
    clients = [Client(proxy.port) for _ in range(8)]
    for client in clients:
        client.request(origin.url + "/x")
    origin.wait_requests(4)  # limit.start
    for client in clients:
        client.close()
    assert proxy.access("/x")["outcome"] == "client_gone"
    gate.open()


def test_stops_in_the_midst_of_a_look(weir, origin):
    gate = Gate()
    origin.default = in_halves(gate, b"wa", b"it", b"HTTP/1.1 403 No\r\nContent-Type: text/html")
    proxy = weir()
    with Client(proxy.port) as client:
        client.request(origin.url + "/x")
        origin.wait_requests(1)
        proxy.signal(15)
        proxy.log.wait("stopping")
        gate.open()
        assert client.response().body == b"wait"
