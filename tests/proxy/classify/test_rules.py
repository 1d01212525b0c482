"""The rules of `classify:`, for hosts that have ways of their own."""
import gzip
import zlib

import pytest

from harness.origin import in_turn
from harness.wire import get

RULES = """
defaults:
  retry: {base: 10ms, max: 50ms, attempts: 2}
  classify:
    - {status: [403], header: "server: cloudflare", body: "slow down", as: throttled}
    - {status: 200, body: "are you a robot", as: blocked}
    - {header: "x-state: busy", as: overloaded}
    - {header: x-cached, as: success}
    - {status: [200, 404], body: "try again", as: failed}
"""

# name: status, fields, body, class, attempts
ANSWERS = {
    "all of it": (403, [("Server", "CloudFlare-nginx")], b"Please SLOW DOWN!", "throttled", 2),
    "another status": (404, [("Server", "cloudflare")], b"slow down", "success", 1),
    "another server": (403, [("Server", "nginx")], b"slow down", "blocked", 1),
    "another text": (403, [("Server", "cloudflare")], b"go away", "blocked", 1),
    "a page of success": (200, [("Content-Type", "text/html")], b"<h1>Are you a robot?</h1>", "blocked", 1),
    "a header alone": (500, [("X-State", "very Busy")], b"", "overloaded", 2),
    "a header that is there": (503, [("X-Cached", "")], b"old", "success", 1),
    "the first counts": (503, [("X-Cached", "1"), ("X-State", "busy")], b"", "overloaded", 2),
    "a failure": (200, [], b"Try again in a moment", "failed", 2),
    "before a challenge": (403, [("cf-mitigated", "challenge"), ("X-Cached", "1")], b"", "success", 1),
    "none applies": (429, [], b"slow down", "throttled", 2),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_rules(weir, origin, name):
    status, fields, body, kind, attempts = ANSWERS[name]
    origin.default = lambda e: e.reply(status, fields, body)
    proxy = weir(RULES)
    answer = get(proxy.port, origin.url + "/x")
    assert (answer.status, answer.body) == (status, body)
    row = proxy.access("/x")
    assert (row["class"], row["attempts"]) == (kind, attempts)


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODINGS = {
    "gzip": (gzip.compress, True),
    "x-gzip": (gzip.compress, True),
    "deflate": (zlib.compress, True),
    "Deflate": (raw_deflate, True),
    "identity": (bytes, True),
    "br": (bytes, False),  # looked at by nobody, whatever it is
    "gzip, gzip": (gzip.compress, False),
}


@pytest.mark.parametrize("size", [0, 1500, 100_000])
@pytest.mark.parametrize("coding", CODINGS)
def test_coded_bodies_are_read_and_forwarded_as_they_came(weir, origin, coding, size):
    code, readable = CODINGS[coding]
    filler = bytes(i * i % 251 for i in range(size))
    body = code(b"<p>" + filler[:1500] + b"Are you a robot?" + filler)
    origin.default = lambda e: e.reply(200, [("Content-Encoding", coding)], body)
    proxy = weir(RULES)
    answer = get(proxy.port, origin.url + "/x")
    assert (answer.status, answer.body, answer.get("content-encoding")) == (200, body, coding)
    assert proxy.access("/x")["class"] == ("blocked" if readable else "success")


def test_a_refused_success_goes_again(weir, origin):
    config = 'defaults: {retry: {base: 10ms}, classify: [{status: 200, body: "slow down", as: throttled}]}\n'
    page = gzip.compress(b"<h1>Slow down</h1>")
    refusal = lambda e: e.reply(200, [("Content-Encoding", "gzip"), ("Retry-After", "0.5")], page)
    origin.default = in_turn(refusal, (200,))
    answer = get(weir(config).port, origin.url + "/x", method="POST", body=b"data")
    assert (answer.body, answer.get("weir-attempts")) == (b"ok", "2")
    assert origin.requests[1].time - origin.requests[0].time >= 0.49


def test_a_rule_for_hosts_has_its_own(weir, origin):
    config = (
        "defaults: {classify: [{status: 404, as: blocked}]}\n"
        "rules: [{hosts: 127.0.0.1, classify: [{status: 410, as: blocked}]}]\n"
    )
    origin.on("/404", lambda e: e.reply(404))
    origin.on("/410", lambda e: e.reply(410))
    proxy = weir(config)
    for path, kind in (("/404", "success"), ("/410", "blocked")):
        get(proxy.port, origin.url + path)
        assert proxy.access(path)["class"] == kind


def test_a_reload_changes_them(weir, origin):
    origin.default = lambda e: e.reply(404)
    proxy = weir("defaults: {classify: [{status: 404, as: blocked}]}\n")
    get(proxy.port, origin.url + "/before")
    proxy.write("")
    proxy.reload()
    get(proxy.port, origin.url + "/after")
    assert proxy.access("/before")["class"] == "blocked"
    assert proxy.access("/after")["class"] == "success"


def cut(exchange):
    """The head of an answer that a rule wants to look into, and no more than a part of its body."""
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nare you")
    exchange.close()


def test_an_answer_that_breaks_off_while_looked_at_goes_again(weir, origin):
    origin.default = in_turn(cut, (200,))
    answer = get(weir(RULES).port, origin.url + "/x")
    assert (answer.status, answer.body, answer.get("weir-attempts")) == (200, b"ok", "2")


def test_one_that_may_not_go_again_ends_in_a_502(weir, origin):
    origin.default = cut
    proxy = weir(RULES)
    answer = get(proxy.port, origin.url + "/x", method="POST", body=b"once")
    assert answer.status == 502 and "http_response_incomplete" in answer.get("proxy-status")
    assert len(origin.requests) == 1
    assert proxy.access("/x")["class"] == "failed"
