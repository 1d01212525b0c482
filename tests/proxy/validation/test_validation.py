"""Malformed and forbidden requests: a clear refusal, nothing forwarded, the daemon in good health."""
import pytest

from harness.daemon import Weir
from harness.wire import Client, Closed, get

# name: request (%d is the origin's port), statuses that are right; 0: closed without an answer.
# Where the framing or the whole is in doubt the connection must be closed.
U = b"http://127.0.0.1:%d"
BAD = {
    "space in the target": (b"GET " + U + b"/a b HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "two spaces": (b"GET  " + U + b"/ HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "tab in the target": (b"GET " + U + b"/a\tb HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "control character": (b"GET " + U + b"/a\x01b HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "delete character": (b"GET " + U + b"/a\x7fb HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "nul in the target": (b"GET " + U + b"/a\0b HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "length and coding": (
        b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        {400},
    ),
    "coding and length": (
        b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        {400},
    ),
    "length and coding on GET": (
        b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        {400},
    ),
    "lengths that differ": (
        b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        {400},
    ),
    "lengths in a list that differ": (
        b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\nhello!",
        {400},
    ),
    "length with a plus": (b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", {400}),
    "length below zero": (b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello", {400}),
    "length in hex": (b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello", {400}),
    "length with letters": (b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5a\r\n\r\nhello", {400}),
    "empty length": (b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", {400}),
    "length beyond any number": (
        b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        {400, 413},
    ),
    "bad length on GET": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", {400}),
    "unknown coding": (b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "coding is not last": (b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", {400, 501}),
    "coding twice": (
        b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        {400, 501},
    ),
    "coding identity": (b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\nGET / HTTP/1.1\r\n\r\n", {400, 501}),
    "coding on HTTP/1.0": (b"POST " + U + b"/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    "chunk size is no number": (
        b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
        {400, 413, 0},
    ),
    "chunk size below zero": (
        b"POST " + U + b"/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        {400, 413, 0},
    ),
    "space in a name": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n", {400}),
    "space before the colon": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", {400}),
    "no colon": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", {400}),
    "empty name": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", {400}),
    "name with a slash": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nA/B: y\r\n\r\n", {400}),
    "name beyond ascii": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nCaf\xe9: y\r\n\r\n", {400}),
    "fold first of all": (b"GET " + U + b"/ HTTP/1.1\r\n Host: a\r\n\r\n", {400}),
    "nul in a value": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", {400}),
    "lone CR in a value": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", {400}),
    "hosts that differ": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", {400}),
    "userinfo": (b"GET http://user:pw@127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "empty userinfo": (b"GET http://@127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "other scheme": (b"GET ftp://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n\r\n", {400, 501}),
    "file scheme": (b"GET file:///etc/passwd%d HTTP/1.1\r\nHost: a\r\n\r\n", {400, 501}),
    "no host in the target": (b"GET http:///x%d HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "only a port in the target": (b"GET http://:%d/ HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "origin form": (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", {400, 404}),
    "asterisk form": (b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", {400, 404}),
    "port too high": (b"GET http://127.0.0.1:99999/%d HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "port zero": (b"GET http://127.0.0.1:0/%d HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "port is no number": (b"GET http://127.0.0.1:8x/%d HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "port below zero": (b"GET http://127.0.0.1:-%d/ HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "open bracket": (b"GET http://[::1/%d HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "host with a fault": (b"GET http://a%%20b:%d/ HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "unknown method": (b"BREW " + U + b"/ HTTP/1.1\r\nHost: a\r\n\r\n", {501, 400, 405}),
    "method in small letters": (b"get " + U + b"/ HTTP/1.1\r\nHost: a\r\n\r\n", {501, 400, 405}),
    "connect": (b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: a\r\n\r\n", {403, 501}),
    "connect to nonsense": (b"CONNECT nonsense HTTP/1.1\r\nHost: a%d\r\n\r\n", {400, 403, 501}),
    "unknown version": (b"GET " + U + b"/ HTTP/9.9\r\n\r\n", {400, 505, 0}),
    "http/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%d", {400, 405, 501, 505, 0}),
    "no version": (b"GET " + U + b"/\r\n\r\n", {400, 505, 0}),
    "tls hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 %d\r\n\r\n", {400, 0}),
    "line noise": (b"\xff\xfe\xfd%d\r\n\r\n", {400, 0}),
    "one long field": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100000 + b"\r\n\r\n", {400, 431, 413}),
    "many fields": (b"GET " + U + b"/ HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 20000 + b"\r\n", {400, 431, 413}),
    "a long target": (b"GET " + U + b"/" + b"a" * 100000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", {400, 414, 431, 413}),
}


# The bounds of these requests are plain, whatever else is wrong with them: the connection may stay.
SOUND = {
    "hosts that differ",
    "userinfo",
    "empty userinfo",
    "other scheme",
    "file scheme",
    "no host in the target",
    "only a port in the target",
    "origin form",
    "asterisk form",
    "port too high",
    "port zero",
    "port is no number",
    "port below zero",
    "open bracket",
    "host with a fault",
    "unknown method",
    "method in small letters",
    "connect",
    "connect to nonsense",
}

# The server library refuses these by itself, plainly but in its own words.
BEFORE_WEIR = {
    "chunk size is no number",
    "chunk size below zero",
    "port too high",
    "port is no number",
    "port below zero",
    "open bracket",
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("weir")) as daemon:
        yield daemon


@pytest.mark.parametrize("name", BAD)
def test_refused(proxy, origin, name):
    request, right = BAD[name]
    request = request.replace(b"%d", str(origin.port).encode()).replace(b"%%", b"%")
    with Client(proxy.port) as client:
        client.send(request)
        try:
            answer = client.response()
        except Closed as closed:
            assert closed.data == b"" and 0 in right
        else:
            assert answer.status in right, answer.head
            if name not in BEFORE_WEIR:
                assert (answer.get("proxy-status") or "").startswith("weir"), answer.head
            assert origin.connections == 0
            client.request(origin.url + "/next")
            if client.reader.at_end():
                assert origin.connections == 0
            else:
                assert name in SOUND
                assert client.response().status == 200
    assert get(proxy.port, origin.url + "/fine").status == 200


def test_a_folded_line_is_refused_or_unfolded(proxy, origin):
    """RFC 9112, 5.2 allows either; a line break must not go on."""
    with Client(proxy.port) as client:
        client.send(f"GET {origin.url}/x HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n".encode())
        status = client.response().status
    assert status in (200, 400)
    if status == 200:
        assert origin.requests[0].request.values("x") == ["y z"]


def test_body_over_the_bound(weir, origin):
    proxy = weir("clients: {max_body: 64KiB}\n")
    with Client(proxy.port) as client:
        client.request(origin.url + "/x", method="POST", body=b"x" * (64 << 10))
        assert client.response().status == 200
    with Client(proxy.port) as client:
        client.request(origin.url + "/big", method="POST", body=b"x" * ((64 << 10) + 1))
        assert client.response().status == 413
    assert "/big" not in origin.paths()


def test_chunked_body_over_the_bound(weir, origin):
    proxy = weir("clients: {max_body: 64KiB}\n")
    with Client(proxy.port) as client:
        client.send(f"POST {origin.url}/big HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(100):
            client.send(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        text = client.reader.to_end()
    assert text == b"" or text.startswith(b"HTTP/1.1 413"), text[:200]
    assert "/big" not in origin.paths()
    assert get(proxy.port, origin.url + "/fine").status == 200


def test_body_over_the_bound_is_not_invited(weir, origin):
    proxy = weir("clients: {max_body: 64KiB}\n")
    with Client(proxy.port) as client:
        client.send(
            f"POST {origin.url}/big HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert client.head().status in (413, 417)
    assert origin.connections == 0


def test_head_over_the_bound(weir, origin):
    proxy = weir("clients: {max_header: 8KiB}\n")
    with Client(proxy.port) as client:
        client.send(f"GET {origin.url}/x HTTP/1.1\r\nHost: a\r\nX: {'a' * 9000}\r\n\r\n".encode())
        answer = client.response()
        assert answer.status == 431
        assert (answer.get("proxy-status") or "").startswith("weir")
        assert client.is_closed()
    assert origin.connections == 0
    assert get(proxy.port, origin.url + "/x", fields=[("X", "a" * 6000)]).status == 200


def test_what_follows_a_refused_request_is_not_read_as_one(weir, origin):
    """The second request hides in what one side takes for a body (request smuggling)."""
    proxy = weir()
    inner = f"GET {origin.url}/smuggled HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    for coding in ("gzip", "chunked, gzip", "xchunked", "chunked\x0b", "identity"):
        with Client(proxy.port) as client:
            client.send(f"POST {origin.url}/outer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n".encode() + inner)
            text = client.reader.to_end()
        assert text.count(b"HTTP/1.1 ") == 1 and text.split()[1] in (b"400", b"501"), (coding, text)
    assert origin.paths() == []


def test_the_same_length_twice_is_one(weir, origin):
    """RFC 9110, 8.6 allows either: one value or a refusal; never two bodies."""
    proxy = weir()
    with Client(proxy.port) as client:
        client.send(f"POST {origin.url}/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello".encode())
        status = client.response().status
    assert status in (200, 400)
    if status == 200:
        assert origin.requests[0].request.values("content-length") == ["5"]


def test_refusals_are_plain_sentences(weir, origin):
    answer = get(weir().port, f"http://user:pw@{origin.host}/")
    assert answer.status == 400
    assert answer.get("content-type", "").startswith("text/plain")
    text = answer.body.decode()
    assert "<" not in text and text.count("\n") <= 1 and len(text) > 10
