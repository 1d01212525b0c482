"""What of a request reaches the origin, and how."""
import pytest

from harness.wire import Client, get

METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"]


@pytest.fixture
def proxy(weir):
    return weir()


def forwarded(proxy, origin, fields, method="GET", path="/x"):
    """The fields that the origin gets when a client sends these, as they are on the wire."""
    with Client(proxy.port) as client:
        client.request(origin.url + path, method=method, fields=fields)
        assert client.response(to=method).status == 200
    return origin.wait_requests(1)[-1].request


@pytest.mark.parametrize("method", METHODS)
def test_method_passes(proxy, origin, method):
    answer = get(proxy.port, origin.url + "/x", method=method)
    assert answer.status == 200
    assert answer.body == (b"" if method == "HEAD" else b"ok")
    assert origin.requests[0].request.line == f"{method} /x HTTP/1.1"


TARGETS = [
    "/",
    "/a/../b/./c//d",
    "/%2e%2e/%2F?q=%zz&&",
    "/?",
    "/x?a=1?b=2",
    '/|{}"<>^`\\[]',
    "/caf\xe9?\xff=\x80",
    "/;p=1,2!$'()*+@:~-_.",
    "/" + "long" * 4000,
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t[:20])
def test_target_is_kept_byte_for_byte(proxy, origin, target):
    assert get(proxy.port, origin.url + target).status == 200
    assert origin.requests[0].request.target == target


def test_an_authority_without_a_path_asks_for_the_root(proxy, origin):
    assert get(proxy.port, origin.url).status == 200
    assert origin.requests[0].request.target == "/"


def test_a_query_without_a_path_gets_one(proxy, origin):
    assert get(proxy.port, origin.url + "?q=1").status == 200
    assert origin.requests[0].request.target == "/?q=1"


def test_scheme_and_host_have_no_case(proxy, origin):
    with Client(proxy.port) as client:
        client.send(f"GET HTTP://LocalHost:{origin.port}/Path HTTP/1.1\r\nHost: LocalHost:{origin.port}\r\n\r\n".encode())
        assert client.response().status == 200
    assert origin.requests[0].request.target == "/Path"


def test_fields_keep_order_spelling_and_duplicates(proxy, origin):
    sent = [
        ("X-Second", "2"),
        ("x-FIRST", "1"),
        ("Accept", "a/b"),
        ("X-Twice", "one"),
        ("X-Between", "b"),
        ("x-twice", "two"),
        ("User-Agent", "test/1"),
        ("Cookie", "a=1; b=2"),
        ("X-Empty", ""),
        ("X-Latin", "caf\xe9"),
        ("X-Inner", 'a  b\t"c"'),
    ]
    request = forwarded(proxy, origin, sent)
    assert [f for f in request.fields if f[0] not in ("Host", "Via")] == sent


def test_nothing_is_added_but_via(proxy, origin):
    request = forwarded(proxy, origin, [])
    assert sorted(request.names()) == ["Host", "Via"]


def test_host_is_kept_as_it_came(proxy, origin):
    assert forwarded(proxy, origin, []).get("host") == origin.host


def test_the_target_wins_over_host(proxy, origin):
    with Client(proxy.port) as client:
        client.send(f"GET {origin.url}/x HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n".encode())
        assert client.response().status == 200
    assert origin.requests[0].request.values("host") == [origin.host]


def test_an_old_request_without_host_gets_one(proxy, origin):
    with Client(proxy.port) as client:
        client.send(f"GET {origin.url}/x HTTP/1.0\r\n\r\n".encode())
        assert client.response().status == 200
        assert client.is_closed()
    assert origin.requests[0].request.values("host") == [origin.host]
    assert origin.requests[0].request.version == "HTTP/1.1"


HOP_BY_HOP = [
    ("Connection", "keep-alive"),
    ("Proxy-Connection", "keep-alive"),
    ("Keep-Alive", "timeout=5"),
    ("TE", "trailers"),
    ("Trailer", "X-Sum"),
    ("Upgrade", "websocket"),
    ("Proxy-Authorization", "Basic dTpw"),
]


@pytest.mark.parametrize("field", HOP_BY_HOP, ids=lambda f: f[0])
def test_hop_by_hop_field_stays_here(proxy, origin, field):
    request = forwarded(proxy, origin, [field, ("X-Kept", "yes")])
    assert request.get(field[0]) is None
    assert request.get("x-kept") == "yes"


def test_what_connection_names_stays_here(proxy, origin):
    request = forwarded(
        proxy,
        origin,
        [
            ("X-One", "1"),
            ("Connection", "x-ONE , keep-alive"),
            ("x-two", "2"),
            ("Connection", "X-Two"),
            ("X-Three", "3"),
        ],
    )
    assert sorted(request.names()) == ["Host", "Via", "X-Three"]


STEERING = [("Weir-Session", "a1"), ("weir-priority", "1"), ("Weir-Deadline", "10"), ("WEIR-RETRY", "no")]


@pytest.mark.parametrize("field", STEERING, ids=lambda f: f[0])
def test_steering_field_stays_here(proxy, origin, field):
    assert forwarded(proxy, origin, [field]).get(field[0]) is None


def test_via_names_this_hop_after_the_others(proxy, origin):
    request = forwarded(proxy, origin, [("Via", "1.0 first")])
    hops = [hop.strip() for value in request.values("via") for hop in value.split(",")]
    assert hops[0] == "1.0 first"
    assert len(hops) == 2 and hops[1].startswith("1.1 ")


BODIES = {"small": b"hello=1", "empty": b"", "binary": bytes(range(256)) * 5, "large": b"x" * (5 << 20)}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_body_passes(proxy, origin, method, name):
    body = BODIES[name]
    answer = get(proxy.port, origin.url + "/x", method=method, body=body, fields=[("Content-Type", "a/b")])
    assert answer.status == 200
    request = origin.requests[0].request
    assert request.body == body
    assert request.values("content-length") == [str(len(body))]
    assert request.get("content-type") == "a/b"


def test_a_body_without_a_type_gets_none(proxy, origin):
    get(proxy.port, origin.url + "/x", method="POST", body=b"abc")
    assert origin.requests[0].request.get("content-type") is None


def test_post_without_a_body(proxy, origin):
    assert get(proxy.port, origin.url + "/x", method="POST").status == 200
    assert origin.requests[0].request.body == b""


def test_get_with_a_body(proxy, origin):
    assert get(proxy.port, origin.url + "/x", body=b'{"query": 1}').status == 200
    assert origin.requests[0].request.body == b'{"query": 1}'


def test_chunked_upload(proxy, origin):
    with Client(proxy.port) as client:
        client.send(
            f"POST {origin.url}/x HTTP/1.1\r\nHost: {origin.host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            + b"5\r\nhello\r\n"
        )
        client.send(b"1\r\n \r\n6\r\nworld!\r\n0\r\n\r\n")
        assert client.response().status == 200
        assert client.get(origin.url + "/y").status == 200
    request = origin.requests[0].request
    assert request.body == b"hello world!"
    assert request.is_chunked() or request.get("content-length") == "12"
    assert not (request.is_chunked() and request.get("content-length"))


def test_chunk_extensions_are_passed_over_or_refused(proxy, origin):
    """RFC 9112, 7.1.1 wants them passed over; the server library refuses them, which does no harm."""
    with Client(proxy.port) as client:
        client.send(
            f"POST {origin.url}/x HTTP/1.1\r\nHost: {origin.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5;a=b\r\nhello\r\n0\r\n\r\n".encode()
        )
        status = client.response().status
    assert status in (200, 400, 413)
    assert [e.request.body for e in origin.requests] == ([b"hello"] if status == 200 else [])


def test_expect_continue_is_answered(proxy, origin):
    with Client(proxy.port) as client:
        client.send(
            f"POST {origin.url}/x HTTP/1.1\r\nHost: {origin.host}\r\nContent-Length: 5\r\n"
            "Expect: 100-continue\r\n\r\n".encode()
        )
        assert client.head().status == 100
        assert not origin.requests
        client.send(b"hello")
        assert client.response().status == 200
    request = origin.requests[0].request
    assert request.body == b"hello"
    assert request.get("expect") is None


def test_two_requests_in_one_write(proxy, origin):
    origin.default = lambda e: e.reply(body=e.request.target.encode())
    with Client(proxy.port) as client:
        one = f"GET {origin.url}/%d HTTP/1.1\r\nHost: {origin.host}\r\n\r\n"
        client.send((one % 1 + one % 2).encode())
        assert client.response().body == b"/1"
        assert client.response().body == b"/2"


def test_a_request_in_many_pieces(proxy, origin):
    with Client(proxy.port) as client:
        whole = f"POST {origin.url}/x HTTP/1.1\r\nHost: {origin.host}\r\nContent-Length: 3\r\n\r\nabc".encode()
        for i in range(len(whole)):
            client.send(whole[i : i + 1])
        assert client.response().status == 200
    assert origin.requests[0].request.body == b"abc"


def test_empty_lines_before_the_request_are_passed_over(proxy, origin):
    """RFC 9112, 2.2: some clients end a body with a line too many."""
    with Client(proxy.port) as client:
        for _ in range(2):
            client.send(b"\r\n\n")
            assert client.get(origin.url + "/x").status == 200
