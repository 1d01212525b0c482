"""HTTP/2 with hosts that offer it."""
import threading

import pytest

from harness.http2 import Http2Origin
from harness.origin import Gate
from harness.tls import server_context
from harness.wire import PATIENCE, Client, get


@pytest.fixture
def host(authority, tls_origins):
    return tls_origins(authority.issue("localhost", "127.0.0.1"), kind=Http2Origin)


def config(authority, more=""):
    return f'defaults: {{https: upgrade, tls: {{ca_file: "{authority.path}"}}{more}}}\n'


def ask(proxy, url, count, **more):
    """So many at a time; their answers."""
    answers = [None] * count

    def one(number):
        answers[number] = get(proxy.port, f"{url}/{number}", **more)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


def test_messages(weir, authority, host):
    proxy = weir(config(authority))
    host.default = lambda s: s.reply(201, [("x-a", "1"), ("x-a", "2"), ("set-cookie", "c")], b"made")
    answer = get(proxy.port, host.plain_url + "/p?q", fields=[("X-Name", "v"), ("Connection", "X-Gone"), ("X-Gone", "1"), ("TE", "trailers")])
    assert answer.head.startswith(b"HTTP/1.1 201 Created\r\n")
    assert (answer.values("x-a"), answer.get("set-cookie"), answer.body) == (["1", "2"], "c", b"made")
    assert not [f for f in answer.names() if f.startswith(":")]
    assert answer.chunks == [b"made"]  # no length was told
    stream = host.streams[0]
    pseudo = {n: v for n, v in stream.fields if n.startswith(":")}
    assert pseudo == {":method": "GET", ":scheme": "https", ":authority": host.host, ":path": "/p?q"}
    names = [n for n, _ in stream.fields]
    assert stream.get("x-name") == "v" and "via" in names
    assert not {"host", "connection", "x-gone", "te", "user-agent", "accept"} & set(names)


BODILESS = [("HEAD", 200), ("GET", 204), ("GET", 304), ("HEAD", 404)]


def test_answers_without_a_body(weir, authority, host):
    proxy = weir(config(authority))
    with Client(proxy.port) as client:
        for method, status in BODILESS:
            length = [("content-length", "5")] if status != 204 else []
            host.default = lambda s, status=status, length=length: s.reply(status, length, None)
            client.request(host.plain_url + "/", method=method)
            answer = client.response(to=method)
            assert (answer.status, answer.get("content-length")) == (status, "5" if length else None)
        host.default = lambda s: s.reply(200, [], b"")
        assert client.get(host.plain_url + "/").body == b""
    assert host.connections == 1


def test_request_bodies(weir, authority, host):
    proxy = weir(config(authority))
    body = bytes(range(256)) * 4096  # more than one window
    for method, part in (("POST", b"abc"), ("PUT", body), ("POST", b"")):
        assert get(proxy.port, host.plain_url + "/", method=method, body=part).status == 200
        stream = host.streams[-1]
        assert (stream.get(":method"), stream.get("content-length"), stream.body) == (method, str(len(part)), part)


def test_large_answers(weir, authority, host):
    proxy = weir(config(authority))
    body = bytes(range(256)) * 20000
    host.default = lambda s: s.reply(200, [("content-length", str(len(body)))], body)
    assert get(proxy.port, host.plain_url + "/").body == body


def test_one_connection_carries_many(weir, authority, host):
    """Slots count requests as ever: no more are under way than the limit allows."""
    gate, changed = Gate(), threading.Condition()
    now = most = 0

    def handler(stream):
        nonlocal now, most
        with changed:
            now += 1
            most = max(most, now)
            changed.notify_all()
        gate.wait()
        with changed:
            now -= 1
        stream.reply()

    host.default = handler
    proxy = weir(config(authority, ", limit: {algorithm: fixed, start: 5, ceiling: 5}"))
    threads, answers = ask(proxy, host.plain_url, 12)
    with changed:
        assert changed.wait_for(lambda: now == 5, PATIENCE)
    gate.open()
    for thread in threads:
        thread.join()
    assert [a.status for a in answers] == [200] * 12
    assert (host.connections, most) == (1, 5)


def test_switched_off(weir, authority, tls_origins):
    origin = tls_origins(server_context(authority.issue("localhost"), ("h2", "http/1.1")))
    proxy = weir(config(authority, ", http2: false"))
    assert get(proxy.port, origin.plain_url + "/").status == 200
    assert origin.handshakes[0][1] == "http/1.1"


def test_not_offered(weir, authority, tls_origins):
    """Then each request at a time has a connection of its own, as ever."""
    origin = tls_origins(server_context(authority.issue("localhost")))
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir(config(authority, ", limit: {algorithm: fixed, start: 3, ceiling: 3}"))
    threads, answers = ask(proxy, origin.plain_url, 3)
    origin.wait_requests(3)
    gate.open()
    for thread in threads:
        thread.join()
    assert [a.status for a in answers] == [200] * 3
    assert origin.connections == 3


def test_refusals_are_absorbed(weir, authority, host):
    answers = iter([429, 503, 200])
    host.default = lambda s: s.reply(next(answers), [("retry-after", "0")], b"x" * 100)
    proxy = weir(config(authority, ", retry: {base: 10ms}"))
    answer = get(proxy.port, host.plain_url + "/")
    assert (answer.status, answer.get("weir-attempts")) == (200, "3")
    assert host.connections == 1


def test_a_stream_that_is_reset(weir, authority, host):
    """Is a connection that broke, for this request alone."""
    gate, half = Gate(), Gate()
    host.on("/other", lambda s: (gate.wait(), s.reply()))
    host.on("/once", lambda s: s.reset() if len(host.streams) < 3 else s.reply())
    host.on("/always", lambda s: s.reset())
    host.on("/half", lambda s: (s.head(200, [("content-length", "9")]), s.send(b"half"), half.wait(), s.reset()))
    proxy = weir(config(authority, ", retry: {base: 1ms, budget: 100%}"))
    threads, answers = ask(proxy, host.plain_url + "/other?", 1)
    host.wait_streams(1)
    assert get(proxy.port, host.plain_url + "/once").status == 200
    always = get(proxy.port, host.plain_url + "/always")
    assert (always.status, always.get("weir-attempts")) == (502, "4")
    assert "error=connection_terminated" in always.get("proxy-status")
    with Client(proxy.port) as client:
        client.request(host.plain_url + "/half")
        assert client.head().status == 200
        assert client.reader.exactly(4) == b"half"
        half.open()
        assert client.is_closed()
    gate.open()
    threads[0].join()
    assert answers[0].status == 200
    assert host.connections == 1


def test_a_host_that_goes_away(weir, authority, host):
    """A request that it has not taken is sent again on a new connection."""
    host.default = lambda s: s.link.go_away(0) if s.link.number == 0 else s.reply()
    proxy = weir(config(authority, ", retry: {base: 1ms}"))
    assert get(proxy.port, host.plain_url + "/").status == 200
    assert host.connections == 2


def test_a_client_that_leaves(weir, authority, host):
    """Ends its own stream, and no other."""
    gate = Gate()
    host.on("/kept", lambda s: (gate.wait(), s.reply()))
    host.on("/left", lambda s: s.head())
    proxy = weir(config(authority))
    threads, answers = ask(proxy, host.plain_url + "/kept?", 1)
    host.wait_streams(1)
    with Client(proxy.port) as client:
        client.request(host.plain_url + "/left")
        assert client.head().status == 200
    assert proxy.access("/left")["outcome"] == "client_gone"
    gate.open()
    threads[0].join()
    assert answers[0].status == 200
    assert host.connections == 1


def test_one_who_does_not_read_holds_up_nobody(weir, authority, host):
    """libcurl reads a connection as a whole: others go beside it until it is free again."""
    size = 12 << 20
    host.on("/big", lambda s: s.reply(200, [("content-length", str(size))], bytes(size)))
    proxy = weir(config(authority))
    with Client(proxy.port, receive_buffer=1 << 14) as slow:
        slow.request(host.plain_url + "/big")
        assert slow.head().status == 200
        for number in range(3):
            assert get(proxy.port, f"{host.plain_url}/{number}").status == 200
        while host.connections < 2:  # until the pause has come, all went along with it
            assert get(proxy.port, host.plain_url + "/more").status == 200
        slow.reader.drain(size)
    before = host.connections
    for number in range(3):
        assert get(proxy.port, f"{host.plain_url}/{number}").status == 200
    assert host.connections == before


@pytest.mark.threads
def test_load(weir, authority, host):
    proxy = weir(config(authority), workers=2)
    for _ in range(3):
        threads, answers = ask(proxy, host.plain_url, 40)
        for thread in threads:
            thread.join()
        assert [a.status for a in answers] == [200] * 40
    assert host.connections <= 2
