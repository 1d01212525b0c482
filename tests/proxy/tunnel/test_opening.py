"""CONNECT, until there is a tunnel or a refusal."""
import contextlib
import time

import pytest

from harness.tcp import answer, ask, connect, full_listener, ports, tunnel
from harness.wire import Client, get, raw

ONCE = "defaults: {retry: {attempts: 1}}\n"
FAST = "defaults: {retry: {attempts: 3, base: 0s}}\n"


def refusal(head, status, error):
    assert head.status == status, head.head
    assert f"error={error}" in head.get("proxy-status"), head.head
    return head


def test_the_answer(weir, listener):
    proxy = weir(ports(listener))
    client, host = tunnel(proxy, listener)
    with client:
        client.send(b"there")
        assert host.recv(100) == b"there"
        host.sendall(b"back")
        assert client.reader.exactly(4) == b"back"


def test_no_more_than_it_must_say(weir, listener):
    """Fields about a body would be wrong, and those of our own are switched off."""
    client, head = connect(weir("annotate: false\n" + ports(listener)).port, listener.authority)
    with client:
        assert head.head == b"HTTP/1.1 200 Connection established"


def test_annotated(weir, listener):
    client, head = connect(weir(ports(listener)).port, listener.authority)
    with client:
        assert head.names() == ["Weir-Attempts", "Weir-Queued", "Weir-Scope"]
        assert head.values("weir-scope") == [listener.authority]


def test_the_row_in_the_log(weir, listener):
    proxy = weir(ports(listener))
    client, host = tunnel(proxy, listener)
    client.send(b"x" * 1000)
    host.sendall(b"y" * 2000)
    client.reader.exactly(2000)
    client.close()
    assert len(host.makefile("rb").read()) == 1000
    host.close()
    row = proxy.access(listener.authority)
    assert (row["method"], row["url"], row["status"], row["class"]) == ("CONNECT", listener.authority, 200, "success")
    assert (row["bytes_in"], row["bytes_out"], row["outcome"]) == (1000, 2000, "served")
    assert row["upstream"]["address"] == listener.authority


def test_http_1_0(weir, listener):
    with Client(weir(ports(listener)).port) as client:
        client.send(f"CONNECT {listener.authority} HTTP/1.0\r\n\r\n".encode())
        assert client.head().line == "HTTP/1.0 200 Connection established"
        listener.accept().sendall(b"hello")
        assert client.reader.exactly(5) == b"hello"


def test_ipv6(weir, listeners):
    host = listeners("::1")
    client, head = connect(weir(ports(host)).port, host.authority)
    with client:
        assert head.status == 200
        assert head.get("weir-scope") == host.authority
        host.accept()


def test_a_name(weir, listener):
    client, head = connect(weir(ports(listener)).port, f"LocalHost:{listener.port}")
    with client:
        assert head.status == 200
        assert head.get("weir-scope") == f"localhost:{listener.port}"


BAD_AUTHORITIES = [
    "localhost", "localhost:", ":443", "localhost:0", "localhost:65536", "localhost:443x", "localhost:+443", "localhost:4 43",
    "localhost:443:443", "user@localhost:443", "user:password@localhost:443", "http://localhost:443", "http://localhost:443/",
    "localhost:443/", "localhost/:443", "localhost:443?x", "localhost:443#x", "local%68ost:443", "local host:443", "[::1:443",
    "::1:443", "[::1]", "[::1]443", "[localhost]:443", "[]:443", "/", "*", "local\x01host:443", "", ".:443", f"{'a' * 300}:443",
]  # fmt: skip


@pytest.mark.parametrize("authority", BAD_AUTHORITIES, ids=lambda a: repr(a)[:30])
def test_a_malformed_authority(weir, authority):
    proxy = weir("")
    said = raw(proxy.port, f"CONNECT {authority} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1"))
    assert said.startswith(b"HTTP/1.1 400 "), said
    assert b"\r\nProxy-Status: weir; error=http_request_error\r\n" in said
    assert said.count(b"HTTP/1.1 ") == 1
    assert proxy.access_rows(1)[0]["status"] == 400


@pytest.mark.parametrize("field", ["Content-Length: 5", "Transfer-Encoding: chunked"])
def test_a_body(weir, listener, field):
    said = raw(weir(ports(listener)).port, f"CONNECT {listener.authority} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n".encode())
    assert said.startswith(b"HTTP/1.1 400 "), said
    assert not listener.all


def test_a_port_that_is_not_allowed(weir, listeners):
    """The connection is none the worse for it."""
    allowed, forbidden = listeners(), listeners()
    proxy = weir(ports(allowed))
    with Client(proxy.port) as client:
        ask(client, forbidden.authority)
        head = refusal(answer(client), 403, "http_request_denied")
        assert b"connect_ports" in head.body
        assert 'details="the port is none of destinations.connect_ports"' in head.get("proxy-status")
        ask(client, allowed.authority)
        assert answer(client).status == 200
        allowed.accept()
    assert not forbidden.all
    assert proxy.access(forbidden.authority)["outcome"] == "denied"


def test_a_port_that_is_not_allowed_is_told_of_once(weir):
    """Clients show little of what CONNECT is answered; the log says which setting it was."""
    proxy = weir(ports())
    for port in (7001, 7002):
        refusal(connect(proxy.port, f"localhost:{port}")[1], 403, "http_request_denied")
    proxy.access_rows(2)
    told = [line for line in proxy.log.all if " warn " in line]
    assert len(told) == 1, told
    assert "localhost:7001" in told[0] and "port 7001 is none of destinations.connect_ports" in told[0]


def test_the_ports_follow_a_reload(weir, listener):
    proxy = weir(ports())
    refusal(connect(proxy.port, listener.authority)[1], 403, "http_request_denied")
    proxy.write(ports(listener))
    proxy.reload()
    client, head = connect(proxy.port, listener.authority)
    with client:
        assert head.status == 200


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_an_address_that_is_denied(weir, listener, name):
    proxy = weir(f"destinations: {{deny: [loopback], connect_ports: [{listener.port}]}}\n")
    head = refusal(connect(proxy.port, f"{name}:{listener.port}")[1], 403, "destination_ip_prohibited")
    assert head.get("weir-attempts") == "1"
    assert not listener.all
    assert proxy.access(f"{name}:{listener.port}")["outcome"] == "denied"


# ---- failures ----


def test_refused(weir, listener):
    listener.close()
    proxy = weir(FAST + ports(listener))
    head = refusal(connect(proxy.port, listener.authority)[1], 502, "connection_refused")
    assert head.get("weir-attempts") == "3"
    row = proxy.access(listener.authority)
    assert (row["class"], row["outcome"], row["attempts"]) == ("failed", "upstream_failed", 3)


def test_not_again_where_the_client_says_so(weir, listener):
    listener.close()
    head = connect(weir(FAST + ports(listener)).port, listener.authority, [("Weir-Retry", "no")])[1]
    assert refusal(head, 502, "connection_refused").get("weir-attempts") == "1"


def test_the_name_is_unknown(weir):
    head = connect(weir(ONCE).port, "no-such-name.invalid:443")[1]
    assert head.status in (502, 504)
    assert "error=dns_" in head.get("proxy-status")


def test_no_answer_in_time(weir):
    with full_listener() as port:
        proxy = weir(f"defaults: {{retry: {{attempts: 2, base: 0s}}, timeouts: {{connect: 100ms}}}}\n{ports(port)}")
        head = refusal(connect(proxy.port, f"127.0.0.1:{port}")[1], 504, "connection_timeout")
        assert head.get("weir-attempts") == "2"


def test_an_open_circuit(weir, origin):
    """A host that refuses everything is not connected to either: the scope is the same."""
    origin.default = lambda e: e.reply(429)
    proxy = weir(f"defaults: {{retry: {{attempts: 1}}, breaker: {{trip: 2, cooldown: 1h, when_open: refuse}}}}\n{ports(origin)}")
    while get(proxy.port, origin.url + "/x").status == 429:
        pass
    head = refusal(connect(proxy.port, origin.host)[1], 503, "destination_unavailable")
    assert head.get("retry-after")
    assert proxy.access_row(lambda row: row["method"] == "CONNECT")["outcome"] == "circuit_open"


def test_a_steering_field_that_makes_no_sense(weir, listener):
    head = connect(weir(ports(listener)).port, listener.authority, [("Weir-Priority", "first")])[1]
    assert head.status == 400
    assert not listener.all


# ---- turns ----

PACED = "defaults: {limit: {algorithm: fixed, min_delay: 1h}, queue: {timeout: 3h}, timeouts: {total: 3h}}\n"


def test_the_slot_is_for_the_opening(weir, listener):
    """Open tunnels do not keep others from being opened."""
    proxy = weir("defaults: {limit: {algorithm: fixed, start: 1, ceiling: 1}}\n" + ports(listener))
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(tunnel(proxy, listener)[0])


def test_the_pace_holds(weir, listener):
    proxy = weir("defaults: {limit: {algorithm: fixed, start: 9, ceiling: 9, min_delay: 100ms}}\n" + ports(listener))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(proxy.port)) for _ in range(5)]
        started = time.monotonic()
        for client in clients:
            ask(client, listener.authority)
        heads = [answer(client) for client in clients]
        assert [h.status for h in heads] == [200] * 5
        assert time.monotonic() - started >= 0.39
        assert max(float(h.get("weir-queued")) for h in heads) >= 0.39


def test_a_deadline(weir, listener):
    proxy = weir(PACED + ports(listener))
    with tunnel(proxy, listener)[0]:
        head = connect(proxy.port, listener.authority, [("Weir-Deadline", "1s")])[1]
        refusal(head, 503, "destination_unavailable")
        assert proxy.access_rows(1)[0]["outcome"] == "too_long"


def queued(proxy, listener):
    """A client whose CONNECT waits for its turn: it is known to, since the queue holds one alone."""
    client = Client(proxy.port)
    ask(client, listener.authority)
    for _ in range(200):
        head = connect(proxy.port, listener.authority, [("Weir-Deadline", "1s")])[1]
        assert head.status == 503, head.head
        if "connection_limit_reached" in head.get("proxy-status"):
            return client
    raise AssertionError("it never joined the queue")


ONE_WAITS = PACED.replace("queue: {", "queue: {max: 1, ")


@pytest.mark.threads
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_while_it_is_queued(weir, listener, how):
    proxy = weir(ONE_WAITS + ports(listener))
    with tunnel(proxy, listener)[0]:
        getattr(queued(proxy, listener), how)()
        row = proxy.access_row(lambda row: row["outcome"] == "client_gone")
        assert (row["attempts"], row["status"]) == (0, 0)
        queued(proxy, listener).close()  # there is room in the queue again
    assert len(listener.all) == 1


@pytest.mark.threads
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_while_it_is_dialled_for(weir, how):
    with full_listener() as port:
        proxy = weir("defaults: {timeouts: {connect: 1h, total: 2h}}\n" + ports(port))
        client = Client(proxy.port)
        ask(client, f"127.0.0.1:{port}")
        proxy.wait_sockets(port, 1)
        getattr(client, how)()
        proxy.wait_sockets(port, 0)
        row = proxy.access(f"127.0.0.1:{port}")
        assert (row["outcome"], row["attempts"]) == ("client_gone", 1)


# ---- bytes that come too early ----


def refused_early(said):
    assert said.startswith(b"HTTP/1.1 400 "), said
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"before CONNECT was answered" in said


EARLY = {
    "a byte": b"x",
    "TLS": b"\x16\x03\x01\x02\x00",
    "a request": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a lot": b"x" * 200000,
}


@pytest.mark.parametrize("early", EARLY.values(), ids=EARLY)
def test_bytes_with_the_request(weir, listener, early):
    proxy = weir(ports(listener))
    head = f"CONNECT {listener.authority} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    refused_early(raw(proxy.port, head + early))
    assert not listener.all
    assert proxy.access_rows(1)[0]["outcome"] == "refused"


def test_bytes_while_it_waits(weir, listener):
    proxy = weir("defaults: {limit: {algorithm: fixed, min_delay: 300ms}}\n" + ports(listener))
    with tunnel(proxy, listener)[0], Client(proxy.port) as early:
        ask(early, listener.authority)
        early.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        refused_early(early.reader.to_end())
    assert proxy.access_row(lambda row: row["status"] == 400)["outcome"] == "refused"
    for sock in listener.all[1:]:
        assert sock.recv(1) == b""  # nothing of it reached the host


def test_a_request_after_a_refusal(weir, listener, origin):
    """What follows a CONNECT that came to nothing is a request as any other."""
    listener.close()
    proxy = weir(ONCE + ports(listener))
    with Client(proxy.port) as client:
        ask(client, listener.authority)
        assert answer(client).status == 502
        assert client.get(origin.url + "/x").status == 200


@pytest.mark.threads
def test_many_at_once(weir, listener):
    proxy = weir(ports(listener), workers=2)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(proxy.port)) for _ in range(60)]
        for client in clients:
            ask(client, listener.authority)
        assert [answer(client).status for client in clients] == [200] * 60
        for host in [listener.accept() for _ in range(60)]:
            host.sendall(str(host.getpeername()[1]).encode())
        said = {client.reader.sock.recv(10) for client in clients}
        assert said == {str(sock.getpeername()[1]).encode() for sock in listener.all}


def test_one_host_for_another(weir, listeners):
    """The scope is the authority: one that is slow does not hold another up."""
    one, two = listeners(), listeners()
    proxy = weir(PACED + ports(one, two))
    with tunnel(proxy, one)[0], tunnel(proxy, two)[0]:
        pass
