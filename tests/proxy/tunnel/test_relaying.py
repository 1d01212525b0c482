"""What goes through an open tunnel, and how it ends."""
import contextlib
import hashlib
import os
import random
import signal
import socket
import subprocess
import threading

import pytest

from harness import clients
from harness.daemon import sanitized
from harness.tcp import ports, tunnel
from harness.tls import TlsOrigin, server_context
from harness.wire import Closed, Reader

MIB = 1 << 20


def row_of(proxy, outcome):
    row = proxy.access_row(lambda row: row["method"] == "CONNECT")
    assert row["outcome"] == outcome, row
    return row


@pytest.fixture
def pair(weir, listener):
    """pair(CONFIG): the proxy and the two ends of a tunnel through it, the client's first."""
    with contextlib.ExitStack() as stack:

        def start(config="", **more):
            proxy = weir(config + ports(listener), **more)
            client, host = tunnel(proxy, listener)
            stack.enter_context(client)
            return proxy, client.sock, host

        yield start


# ---- ends ----


def test_the_client_ends_its_side(pair):
    proxy, client, host = pair()
    client.sendall(b"that is all")
    client.shutdown(socket.SHUT_WR)
    assert Reader(host).to_end() == b"that is all"
    host.sendall(b"the answer to it all")
    host.close()
    assert Reader(client).to_end() == b"the answer to it all"
    row = row_of(proxy, "served")
    assert (row["bytes_in"], row["bytes_out"]) == (11, 20)


def test_the_host_ends_its_side(pair):
    proxy, client, host = pair()
    host.sendall(b"that is all")
    host.shutdown(socket.SHUT_WR)
    assert Reader(client).to_end() == b"that is all"
    client.sendall(b"the answer to it all")
    client.close()
    assert Reader(host).to_end() == b"the answer to it all"
    row_of(proxy, "served")


@pytest.mark.threads
def test_both_at_once(pair):
    proxy, client, host = pair(workers=2)
    client.close()
    host.close()
    row_of(proxy, "served")


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


def test_the_host_breaks_off(pair):
    """What it had sent before arrives."""
    proxy, client, host = pair()
    host.sendall(b"so far")
    assert Reader(client).exactly(6) == b"so far"
    reset(host)
    assert Reader(client).to_end() == b""
    row_of(proxy, "cut_short")


def test_the_client_breaks_off(pair):
    proxy, client, host = pair()
    client.sendall(b"so far")
    assert Reader(host).exactly(6) == b"so far"
    reset(client)
    assert Reader(host).to_end() == b""
    row_of(proxy, "client_gone")


def test_idle(pair):
    proxy, client, host = pair("defaults: {timeouts: {tunnel: 300ms}}\n")
    for _ in range(5):  # none of these is as long as that, all together are
        client.sendall(b"x")
        assert host.recv(1) == b"x"
        host.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            host.recv(1)
        host.settimeout(30)
    assert Reader(client).to_end() == b"" and Reader(host).to_end() == b""
    row = row_of(proxy, "idle")
    assert (row["status"], row["bytes_in"]) == (200, 5)
    assert row["duration"] >= 0.3


# ---- bytes ----


def pump(sock, data, failures):
    try:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
    except OSError as fault:
        failures.append(fault)


@pytest.mark.threads
def test_much_both_ways(pair):
    _, client, host = pair(workers=2)
    size = (2 if sanitized() else 8) * MIB
    there, back = random.Random(1).randbytes(size), random.Random(2).randbytes(size + 1)
    failures, got = [], {}
    threads = [
        threading.Thread(target=pump, args=(client, there, failures)),
        threading.Thread(target=pump, args=(host, back, failures)),
        threading.Thread(target=lambda: got.update(there=Reader(host).to_end())),
        threading.Thread(target=lambda: got.update(back=Reader(client).to_end())),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert hashlib.sha256(got["there"]).digest() == hashlib.sha256(there).digest()
    assert hashlib.sha256(got["back"]).digest() == hashlib.sha256(back).digest()


@pytest.mark.parametrize("slow", ["client", "host"])
def test_a_slow_reader(pair, slow):
    """The fast side is held back, and memory stays where it is."""
    proxy, client, host = pair()
    fast, slow = (host, client) if slow == "client" else (client, host)
    before = proxy.resident_kib()
    fast.settimeout(0.5)
    sent = 0
    with pytest.raises(TimeoutError):
        while sent < 256 * MIB:
            sent += fast.send(bytes(MIB))
    if not sanitized():
        assert proxy.resident_kib() - before < 4096
    fast.settimeout(30)
    fast.shutdown(socket.SHUT_WR)
    got = 0
    while data := slow.recv(MIB):
        got += len(data)
    assert got == sent
    slow.close()
    row = row_of(proxy, "served")
    assert sent in (row["bytes_in"], row["bytes_out"])


def test_a_reader_that_leaves(pair):
    """Who has sent more than could be passed on must not be waited for."""
    proxy, client, host = pair()
    client.settimeout(0.5)
    with pytest.raises(TimeoutError):
        while True:
            client.send(bytes(MIB))
    reset(host)
    client.settimeout(30)
    assert Reader(client).to_end() == b""
    row_of(proxy, "cut_short")


# ---- the daemon's own end ----


@pytest.mark.threads
def test_draining_waits_for_it(pair):
    proxy, client, host = pair(workers=2)
    proxy.signal(signal.SIGTERM)
    proxy.log.wait("stopping: 1 requests open")
    client.sendall(b"still there?")
    assert host.recv(100) == b"still there?"
    host.sendall(b"yes")
    assert client.recv(100) == b"yes"
    client.close()
    assert host.recv(1) == b""
    host.close()
    assert proxy.wait_exit() == 0
    row_of(proxy, "served")


@pytest.mark.threads
def test_draining_does_not_wait_for_ever(pair):
    proxy, client, host = pair("shutdown_grace: 200ms\n", workers=2)
    proxy.signal(signal.SIGTERM)
    assert Reader(client).to_end() == b"" and Reader(host).to_end() == b""
    assert proxy.wait_exit() == 0
    row_of(proxy, "closing")


def test_a_reload_does_not_touch_it(pair):
    proxy, client, host = pair()
    proxy.write("destinations: {connect_ports: [], deny: [loopback]}\n")
    proxy.reload()
    client.sendall(b"x")
    assert host.recv(1) == b"x"


def test_connections_are_counted(weir, listener):
    """A tunnel is a client's connection like any other: clients.max_connections holds."""
    proxy = weir("clients: {max_connections: 2}\n" + ports(listener))
    with tunnel(proxy, listener)[0], tunnel(proxy, listener)[0], pytest.raises((Closed, AssertionError)) as refused:
        tunnel(proxy, listener)
    assert b"503" in getattr(refused.value, "data", str(refused.value).encode())


# ---- clients ----


def environment(proxy, authority):
    kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    variables = ("http_proxy", "https_proxy", "HTTPS_PROXY")
    files = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    return {**kept, **dict.fromkeys(variables, proxy.url), **dict.fromkeys(files, authority.path)}


@pytest.mark.parametrize("client", ["curl", "requests", "httpx", "aiohttp", "urllib"])
def test_clients(weir, authority, tls_origins, client):
    """Requests one after the other need one CONNECT, where the client keeps its connection."""
    origin = tls_origins(server_context(authority.issue("localhost")), TlsOrigin)
    proxy = weir(ports(origin))
    urls = [f"{origin.url}/{i}" for i in range(5)]
    done = subprocess.run(
        clients.command(client, urls), env=environment(proxy, authority), capture_output=True, text=True, timeout=60
    )
    assert clients.statuses(client, done) == [200] * 5
    assert len(origin.requests) == 5
    assert len(proxy.access_rows(origin.connections)) == origin.connections
    if client == "curl":
        assert origin.connections == 1


def test_curl_through_a_tunnel_to_plain_http(weir, origin):
    proxy = weir(ports(origin))
    urls = [f"{origin.url}/{i}" for i in range(3)]
    kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    done = subprocess.run(["curl", "-sS", "-p", "-x", proxy.url, *urls], env=kept, capture_output=True, timeout=60)
    assert done.stdout == b"ok" * 3, done.stderr
    assert origin.connections == 1
    assert proxy.access_rows(1)[0]["method"] == "CONNECT"
    assert origin.requests[0].request.get("via") is None  # nobody has read it on its way
