"""What of an answer reaches the client, and how."""
import pytest

from harness.wire import Client, Closed, get

OWN = {"weir-attempts", "weir-queued", "weir-scope"}


@pytest.fixture
def proxy(weir):
    return weir()


def says(data, then_close=False):
    """A handler that answers with these bytes."""

    def handler(exchange):
        exchange.send(data)
        if then_close:
            exchange.close()

    return handler


def test_fields_keep_order_spelling_and_duplicates(proxy, origin):
    origin.default = says(
        b"HTTP/1.1 200 Fine Indeed\r\nDate: Wed, 21 Oct 2026 07:28:00 GMT\r\nX-B: 2\r\nx-a: 1\r\n"
        b"Set-Cookie: a=1\r\nX-Empty:\r\nset-cookie: b=2\r\nServer: o/1\r\nContent-Length: 2\r\n\r\nok"
    )
    answer = get(proxy.port, origin.url + "/x")
    assert answer.line == "HTTP/1.1 200 Fine Indeed"
    kept = [f for f in answer.fields if f[0].lower() not in OWN | {"via", "content-length"}]
    assert kept == [
        ("Date", "Wed, 21 Oct 2026 07:28:00 GMT"),
        ("X-B", "2"),
        ("x-a", "1"),
        ("Set-Cookie", "a=1"),
        ("X-Empty", ""),
        ("set-cookie", "b=2"),
        ("Server", "o/1"),
    ]
    assert answer.get("content-length") == "2" and answer.body == b"ok"


def test_only_date_via_and_annotations_are_added(proxy, origin):
    answer = get(proxy.port, origin.url + "/x")
    assert {n.lower() for n in answer.names()} == OWN | {"content-length", "date", "via"}
    assert answer.get("content-type") is None
    assert answer.get("via").startswith("1.1 ")


def test_annotations(proxy, origin):
    answer = get(proxy.port, origin.url + "/x")
    assert answer.values("weir-attempts") == ["1"]
    assert 0 <= float(answer.get("weir-queued")) < 5
    assert answer.values("weir-scope") == [origin.host]


def test_annotations_can_be_switched_off(weir, origin):
    answer = get(weir("annotate: false\n").port, origin.url + "/x")
    assert not OWN & {n.lower() for n in answer.names()}


def test_hop_by_hop_fields_stay_behind(proxy, origin):
    origin.default = says(
        b"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n"
        b"Proxy-Authenticate: Basic\r\nProxy-Connection: close\r\nUpgrade: h2c\r\nX-End: 1\r\n"
        b"Content-Length: 2\r\n\r\nok",
        then_close=True,
    )
    with Client(proxy.port) as client:
        answer = client.get(origin.url + "/x")
        assert client.get(origin.url + "/y").status == 200  # the origin's close is not ours
    names = {n.lower() for n in answer.names()}
    assert not names & {"x-hop", "keep-alive", "proxy-authenticate", "proxy-connection", "upgrade"}
    assert answer.get("connection", "keep-alive") == "keep-alive"
    assert answer.get("x-end") == "1"


STATUSES = [200, 201, 202, 203, 206, 226, 299, 300, 301, 302, 307, 308, 400, 401, 404, 410, 418, 451, 499, 599]


@pytest.mark.parametrize("status", STATUSES)
def test_status_and_reason_pass(proxy, origin, status):
    fields = [("Location", "http://127.0.0.1:1/"), ("WWW-Authenticate", "Basic")]
    origin.default = lambda e: e.reply(status, fields, b"body", reason="As It Is")
    answer = get(proxy.port, origin.url + "/x")
    assert answer.line == f"HTTP/1.1 {status} As It Is"
    assert answer.body == b"body"
    assert len(origin.requests) == 1


def test_an_empty_reason(proxy, origin):
    origin.default = says(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok")
    answer = get(proxy.port, origin.url + "/x")
    assert (answer.status, answer.body) == (200, b"ok")


@pytest.mark.parametrize("status", [204, 304])
def test_status_without_a_body(proxy, origin, status):
    origin.default = says(b"HTTP/1.1 %d None\r\nETag: \"1\"\r\n\r\n" % status)
    with Client(proxy.port) as client:
        for _ in range(2):
            answer = client.get(origin.url + "/x")
            assert answer.status == status
            assert answer.get("etag") == '"1"'
            assert answer.get("transfer-encoding") is None
    assert origin.connections == 1


def test_304_keeps_the_length_of_what_it_leaves_out(proxy, origin):
    origin.default = says(b"HTTP/1.1 304 Same\r\nContent-Length: 12345\r\n\r\n")
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/x").values("content-length") in (["12345"], [])
        assert client.get(origin.url + "/x").status == 304


def test_head_keeps_the_length_and_has_no_body(proxy, origin):
    origin.default = says(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n")
    with Client(proxy.port) as client:
        for _ in range(2):
            answer = client.get(origin.url + "/x", method="HEAD")
            assert answer.values("content-length") == ["12345"]
    assert origin.connections == 1


def test_head_of_a_chunked_answer(proxy, origin):
    origin.default = says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    with Client(proxy.port) as client:
        for _ in range(2):
            assert client.get(origin.url + "/x", method="HEAD").status == 200
    assert len(origin.requests) == 2


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n5;a=b\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n"


def test_chunked(proxy, origin):
    origin.default = says(CHUNKED)
    with Client(proxy.port) as client:
        for _ in range(2):
            answer = client.get(origin.url + "/x")
            assert answer.is_chunked() and answer.get("content-length") is None
            assert answer.body == b"hello, world"
    assert origin.connections == 1


def test_chunked_to_an_old_client_ends_with_the_connection(proxy, origin):
    origin.default = says(CHUNKED)
    with Client(proxy.port) as client:
        client.send(f"GET {origin.url}/x HTTP/1.0\r\n\r\n".encode())
        answer = client.response()
        assert answer.get("transfer-encoding") is None
        assert answer.body == b"hello, world"


def test_an_empty_chunked_body(proxy, origin):
    origin.default = says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    with Client(proxy.port) as client:
        for _ in range(2):
            assert client.get(origin.url + "/x").body == b""


def test_trailers_end_the_body(proxy, origin):
    """Trailer fields may be dropped (RFC 9110, 6.5.1); they must not become part of anything else."""
    origin.default = says(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 9\r\n\r\n"
    )
    with Client(proxy.port) as client:
        for _ in range(2):
            answer = client.get(origin.url + "/x")
            assert answer.body == b"ok"
            assert answer.get("x-sum") is None
            assert answer.trailers in ([], [("X-Sum", "9")])
    assert origin.connections == 1


def test_a_body_until_close(proxy, origin):
    origin.default = says(b"HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n" + b"z" * 300000, then_close=True)
    with Client(proxy.port) as client:
        for _ in range(2):
            assert client.get(origin.url + "/x").body == b"z" * 300000


def test_an_old_origin(proxy, origin):
    origin.default = says(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", then_close=True)
    with Client(proxy.port) as client:
        for _ in range(2):
            answer = client.get(origin.url + "/x")
            assert (answer.version, answer.body) == ("HTTP/1.1", b"ok")


@pytest.mark.parametrize("interim", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"])
def test_interim_answers_are_not_the_answer(proxy, origin, interim):
    origin.default = says(interim + interim + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    answer = get(proxy.port, origin.url + "/x")
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.get("link") is None


def test_an_encoded_body_passes_as_it_is(proxy, origin):
    packed = b"\x1f\x8b\x08not really gzip"
    origin.default = lambda e: e.reply(200, [("Content-Encoding", "gzip")], packed)
    answer = get(proxy.port, origin.url + "/x", fields=[("Accept-Encoding", "gzip")])
    assert answer.body == packed and answer.get("content-encoding") == "gzip"


def test_redirects_and_cookies_are_the_clients_business(proxy, origin):
    origin.on("/from", lambda e: e.reply(302, [("Location", origin.url + "/to"), ("Set-Cookie", "a=1")]))
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/from").status == 302
        client.get(origin.url + "/other")
    assert origin.paths() == ["/from", "/other"]
    assert origin.requests[1].request.get("cookie") is None


BAD_ANSWERS = {
    "no http": b"SSH-2.0-OpenSSH_9.2\r\n",
    "no status": b"HTTP/1.1 abc OK\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
    "odd coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_an_answer_that_is_none_becomes_502(weir, origin, name):
    proxy = weir("defaults: {retry: {attempts: 1}}\n")
    origin.on("/bad", says(BAD_ANSWERS[name], then_close=True))
    with Client(proxy.port) as client:
        answer = client.get(origin.url + "/bad")
        assert answer.status == 502
        assert "weir" in answer.get("proxy-status") and "error=" in answer.get("proxy-status")
        assert client.get(origin.url + "/good").status == 200


def test_bad_chunks_cut_the_answer_short(weir, origin):
    proxy = weir("defaults: {retry: {attempts: 1}}\n")
    origin.default = says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nxyz\r\n", then_close=True)
    try:
        assert get(proxy.port, origin.url + "/x").status == 502
    except Closed:
        pass


HUGE = b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"v" * 1000) for i in range(2000)) + b"\r\n"


def test_a_head_without_end_is_refused(weir, origin):
    proxy = weir("defaults: {retry: {attempts: 1}}\n")
    origin.default = says(HUGE)
    answer = get(proxy.port, origin.url + "/x")
    assert answer.status == 502 and "weir" in answer.get("proxy-status")
