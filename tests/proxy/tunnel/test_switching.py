"""Requests that ask for another protocol, and what follows a 101."""
import asyncio
import contextlib
import os
import socket
import threading

import pytest

websockets = pytest.importorskip("websockets")

from harness.origin import in_turn
from harness.tcp import ports
from harness.tls import client_context, server_context
from harness.wire import PATIENCE, Client, Reader, get

ASK = [("Connection", "Upgrade"), ("Upgrade", "echo")]
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Own: 1\r\n\r\n"


def echo(early=b"", ended=None):
    """A handler that switches, and then says back whatever it hears; `ended` is an Event."""

    def handler(exchange):
        exchange.send(SWITCH + early)
        with contextlib.suppress(OSError):
            while data := exchange.sock.recv(1 << 16):
                exchange.send(data)
        if ended:
            ended.set()
        exchange.close()

    return handler


def switch(client, url, fields=ASK):
    client.request(url, fields=fields)
    return client.head()


def test_bytes_go_both_ways(weir, origin):
    origin.default = echo(b"hello")
    proxy = weir()
    with Client(proxy.port) as client:
        head = switch(client, origin.url + "/x")
        assert (head.status, head.reason) == (101, "Switching Protocols")
        assert (head.get("upgrade"), head.get("connection"), head.get("x-own")) == ("echo", "Upgrade", "1")
        assert head.get("weir-attempts") == "1"
        assert head.get("via")
        assert client.reader.exactly(5) == b"hello"
        for data in (b"a", b"b" * 100000, b"GET / HTTP/1.1\r\n\r\n"):
            client.send(data)
            assert client.reader.exactly(len(data)) == data
    request = origin.requests[0].request
    assert (request.values("upgrade"), request.values("connection")) == (["echo"], ["Upgrade"])
    assert request.get("content-length") is None and request.get("transfer-encoding") is None
    row = proxy.access("/x")
    assert (row["status"], row["method"], row["class"], row["outcome"]) == (101, "GET", "success", "served")
    assert (row["bytes_in"], row["bytes_out"]) == (100019, 100024)


def test_the_client_ends_its_side(weir, origin):
    heard = []

    def handler(exchange):
        exchange.send(SWITCH)
        heard.append(Reader(exchange.sock).to_end())
        exchange.send(b"the answer to it all")
        exchange.close()

    origin.default = handler
    with Client(weir().port) as client:
        switch(client, origin.url + "/x")
        client.send(b"that is all")
        client.sock.shutdown(socket.SHUT_WR)
        assert client.reader.to_end() == b"the answer to it all"
    assert heard == [b"that is all"]


@pytest.mark.parametrize("how", ["close", "reset"])
def test_the_host_ends_it(weir, origin, how):
    def handler(exchange):
        exchange.send(SWITCH + b"good-bye")
        exchange.reader.exactly(1)
        getattr(exchange, how)()

    origin.default = handler
    proxy = weir()
    with Client(proxy.port) as client:
        switch(client, origin.url + "/x")
        assert client.reader.exactly(8) == b"good-bye"
        client.send(b"!")
        assert client.reader.at_end()
    assert proxy.access("/x")["outcome"] == ("served" if how == "close" else "cut_short")


@pytest.mark.parametrize("how", ["close", "reset"])
def test_the_client_leaves(weir, origin, how):
    ended = threading.Event()
    origin.default = echo(b"hello", ended)
    proxy = weir()
    client = Client(proxy.port)
    switch(client, origin.url + "/x")
    assert client.reader.exactly(5) == b"hello"
    getattr(client, how)()
    assert ended.wait(PATIENCE)
    assert proxy.access("/x")["outcome"] == ("served" if how == "close" else "client_gone")


def test_idle(weir, origin):
    origin.default = echo()
    proxy = weir("defaults: {timeouts: {tunnel: 200ms, read: 50ms}}\n")
    with Client(proxy.port) as client:
        switch(client, origin.url + "/x")
        client.send(b"x")
        assert client.reader.to_end() == b"x"
    assert proxy.access("/x")["outcome"] == "idle"
    assert proxy.access("/x")["duration"] >= 0.2


def test_a_refusal_is_absorbed(weir, origin):
    """The handshake is a request: it waits, and goes again."""
    origin.default = in_turn((429, [("Retry-After", "1")]), (503,), echo(b"hello"))
    proxy = weir("defaults: {retry: {base: 10ms}}\n")
    with Client(proxy.port) as client:
        head = switch(client, origin.url + "/x")
        assert (head.status, head.get("weir-attempts")) == (101, "3")
        client.send(b"x")
        assert client.reader.exactly(6) == b"hellox"


@pytest.mark.parametrize("status", [200, 204, 301, 400, 404, 426, 500])
def test_any_other_answer(weir, origin, status):
    """The host does not want to, and the connection goes on."""
    origin.default = in_turn((status, [("X-Own", "1")], b"" if status == 204 else b"no thanks"))
    proxy = weir("defaults: {retry: {attempts: 1}}\n")
    with Client(proxy.port) as client:
        for _ in range(2):
            answer = client.get(origin.url + "/x", fields=ASK)
            assert (answer.status, answer.get("x-own")) == (status, "1")
            assert answer.body == (b"" if status == 204 else b"no thanks")
        assert client.get(origin.url + "/y").status == status


def test_a_host_that_is_not_there(weir, origin):
    origin.close()
    answer = get(weir("defaults: {retry: {attempts: 2, base: 0s}}\n").port, origin.url + "/x", fields=ASK)
    assert (answer.status, answer.get("weir-attempts")) == (502, "2")


def test_no_answer(weir, origin):
    origin.default = lambda e: e.reader.exactly(1)
    proxy = weir("defaults: {retry: {attempts: 1}, timeouts: {first_byte: 100ms}}\n")
    answer = get(proxy.port, origin.url + "/x", fields=ASK)
    assert answer.status == 504 and "http_response_timeout" in answer.get("proxy-status")


UNASKED = {
    "not asked for": [],
    "no Connection": [("Upgrade", "echo")],
    "no Upgrade": [("Connection", "Upgrade")],
    "h2c": [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABkAAQAAP__")],
    "h2c too": [("Connection", "Upgrade"), ("Upgrade", "echo, h2c")],
    "TLS": [("Connection", "Upgrade"), ("Upgrade", "TLS/1.2")],
}


@pytest.mark.parametrize("fields", UNASKED.values(), ids=UNASKED)
def test_what_is_not_passed_on(weir, origin, fields):
    """And a host that switches all the same is at fault."""
    origin.default = in_turn((200,), lambda e: e.send(SWITCH))
    proxy = weir("defaults: {retry: {attempts: 1}}\n")
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/x", fields=fields).status == 200
        answer = client.get(origin.url + "/x", fields=fields)
        assert answer.status == 502 and "http_protocol_error" in answer.get("proxy-status")
    for exchange in origin.requests:
        for name in ("connection", "upgrade", "http2-settings"):
            assert exchange.request.get(name) is None


def test_not_with_a_body(weir, origin):
    """Nor for HTTP/1.0: the request goes as one that asks for nothing."""
    proxy = weir()
    assert get(proxy.port, origin.url + "/x", method="POST", body=b"x", fields=ASK).status == 200
    with Client(proxy.port) as client:
        client.send(f"GET {origin.url}/x HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode())
        assert client.response().status == 200
    assert [e.request.get("upgrade") for e in origin.requests] == [None, None]


def test_bytes_before_the_101(weir, origin):
    """They are for the host to judge: nothing of them is taken for a request here."""
    seen = []

    def handler(exchange):
        exchange.send(SWITCH)
        seen.append(exchange.reader.exactly(18))
        exchange.close()

    origin.default = handler
    with Client(weir().port) as client:
        head = f"GET {origin.url}/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
        client.send(head.encode() + b"GET / HTTP/1.1\r\n\r\n")
        assert client.reader.to_end().count(b"HTTP/1.1 ") == 1
    assert seen == [b"GET / HTTP/1.1\r\n\r\n"]
    assert len(origin.requests) == 1


@pytest.mark.threads
def test_a_slow_reader(weir, origin):
    """The host is held back, and loses nothing."""
    size = 48 << 20
    done = threading.Event()

    def handler(exchange):
        exchange.send(SWITCH)
        exchange.send(bytes(size))
        done.set()
        exchange.close()

    origin.default = handler
    proxy = weir(workers=2)
    with Client(proxy.port) as client:
        switch(client, origin.url + "/x")
        assert not done.wait(0.5)
        assert proxy.resident_kib() < 200 * 1024
        client.reader.drain(size)
        assert client.reader.to_end() == b""
    assert done.wait(30)


# ---- WebSocket ----


@pytest.fixture
def server(authority):
    """server(TLS): a WebSocket server that says back what it hears; its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    running = []

    async def serve(socket_):
        async for message in socket_:
            await socket_.send(message)

    async def begin(context):
        running.append(await websockets.serve(serve, "127.0.0.1", 0, ssl=context, max_size=None))
        return running[-1].sockets[0].getsockname()[1]

    async def end():
        for one in running:
            one.close()
            await one.wait_closed()

    def start(tls):
        context = server_context(authority.issue("localhost")) if tls else None
        return asyncio.run_coroutine_threadsafe(begin(context), loop).result(30)

    yield start
    asyncio.run_coroutine_threadsafe(end(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


class AbsoluteForm(websockets.WebSocketClientProtocol):
    """Names the whole URL, as it is done to a proxy."""

    def write_http_request(self, path, headers):
        super().write_http_request(f"http://{headers['Host']}{path}", headers)


async def talk(url, sock, **more):
    """A conversation; returns the last word's length."""
    async with websockets.connect(url, sock=sock, max_size=None, open_timeout=30, **more) as client:
        for size in (0, 1, 125, 70000, 1 << 20):
            data = os.urandom(size)
            await client.send(data)
            assert await client.recv() == data
        await client.send("a word")
        assert await client.recv() == "a word"
        await (await client.ping())
        return client.response_headers


def test_websocket_by_upgrade(weir, server):
    port = server(tls=False)
    proxy = weir()
    sock = socket.create_connection(("127.0.0.1", proxy.port))
    headers = asyncio.run(talk(f"ws://127.0.0.1:{port}/chat", sock, create_protocol=AbsoluteForm))
    assert headers["Weir-Attempts"] == "1"
    assert proxy.access("/chat")["outcome"] == "served"


@pytest.mark.parametrize("tls", [False, True])
def test_websocket_through_a_tunnel(weir, server, authority, tls):
    port = server(tls)
    proxy = weir(ports(port))
    client = Client(proxy.port)
    client.send(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    assert client.head().status == 200
    more = {"ssl": client_context(authority.path), "server_hostname": "localhost"} if tls else {}
    asyncio.run(talk(f"ws{'s' if tls else ''}://localhost:{port}/chat", client.sock, **more))
    assert proxy.access(str(port))["outcome"] == "served"


def test_websocket_through_interception(weir, server, authority):
    """Opened by us, and by us again to the host; what is asked inside is seen."""
    port = server(tls=True)
    proxy = weir(f'{ports(port)}defaults: {{https: intercept, tls: {{ca_file: "{authority.path}"}}}}\n')
    client = Client(proxy.port)
    client.send(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    assert client.head().status == 200
    more = {"ssl": client_context(proxy.ca), "server_hostname": "localhost"}
    headers = asyncio.run(talk(f"wss://localhost:{port}/chat", client.sock, **more))
    assert headers["Weir-Attempts"] == "1"
    row = proxy.access("/chat")
    assert (row["status"], row["outcome"]) == (101, "served")


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_host_over_tls_hears_of_the_end(weir, tls_origins, authority, how):
    """TLS has no way to end one direction alone through libcurl: it ends whole."""
    origin = tls_origins(server_context(authority.issue("localhost")))
    ended = threading.Event()
    origin.default = echo(b"hello", ended)
    proxy = weir(f'defaults: {{https: upgrade, tls: {{ca_file: "{authority.path}"}}}}\n')
    client = Client(proxy.port)
    assert switch(client, origin.plain_url + "/x").status == 101
    client.send(b"x")
    assert client.reader.exactly(6) == b"hellox"
    getattr(client, how)()
    assert ended.wait(PATIENCE)


@pytest.mark.memory
def test_what_is_silent_again_keeps_little(weir, origin):
    """Of a burst that went both ways nothing much is left behind in each of many connections."""
    origin.default = echo()
    proxy = weir("defaults: {limit: {algorithm: fixed, start: 1000, ceiling: 1000}}\n")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(proxy.port)) for _ in range(120)]
        for number, client in enumerate(clients):
            if number == 20:
                before = proxy.resident_kib()
            assert switch(client, origin.url).status == 101
            client.send(b"x" * 60000)
            client.reader.exactly(60000)
        assert (proxy.resident_kib() - before) / 100 < 90
