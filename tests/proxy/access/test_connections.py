"""As many connections as may be: more are told so at once, and what is under way goes on."""
import contextlib
import resource
import selectors
import socket
import threading
import time

import pytest

from harness.daemon import sanitized
from harness.wire import Client, get

REFUSED = b"HTTP/1.1 503 "


def cpu_seconds(proxy):
    return proxy.metrics().value("process_cpu_seconds_total")


def connect(port):
    sock = socket.create_connection(("127.0.0.1", port))
    sock.settimeout(60)
    return sock


def told(sock):
    """All that is said until the end."""
    with contextlib.suppress(ConnectionResetError):
        return b"".join(iter(lambda: sock.recv(4096), b""))
    return b""


@pytest.mark.threads
def test_one_too_many(weir, origin):
    proxy = weir("clients: {max_connections: 3}\n", workers=2)
    clients = [Client(proxy.port) for _ in range(3)]
    for client in clients:
        assert client.get(origin.url + "/").status == 200
    for _ in range(5):
        with Client(proxy.port) as other:  # told before it says anything
            answer = other.response()
            assert (answer.status, answer.get("connection")) == (503, "close")
            assert "connection_limit_reached" in answer.get("proxy-status")
            assert b"clients.max_connections" in answer.body and other.is_closed()
    assert clients[0].get(origin.url + "/").status == 200
    clients.pop().close()
    proxy.wait_metrics(lambda m: m.value("weir_client_connections") == 2)
    with Client(proxy.port) as other:
        assert other.get(origin.url + "/").status == 200
    for client in clients:
        client.close()


def test_a_lower_limit_closes_nobody(weir, origin):
    proxy = weir("clients: {max_connections: 3}\n")
    with Client(proxy.port) as first, Client(proxy.port) as second:
        assert first.get(origin.url + "/").status == second.get(origin.url + "/").status == 200
        proxy.write("clients: {max_connections: 1}\n")
        assert proxy.api("/api/v1/reload", "POST")["reloaded"]
        assert first.get(origin.url + "/").status == second.get(origin.url + "/").status == 200
        assert told(connect(proxy.port)).startswith(REFUSED)


FLOOD = 10_000


@pytest.mark.memory
def test_a_flood(weir, origin):
    """Ten thousand connections beyond what may be: each is told, memory stays bounded, and who is
    in goes on without a pause."""
    most = 200
    proxy = weir(f"clients: {{max_connections: {most}}}\n", workers=2)
    before = proxy.resident_kib()
    held, refused, slowest, done = [], [], [0.0], threading.Event()

    def stay():
        with Client(proxy.port) as client:
            while not done.is_set():
                start = time.monotonic()
                assert client.get(origin.url + "/").status == 200
                slowest[0] = max(slowest[0], time.monotonic() - start)
                done.wait(0.01)

    insider = threading.Thread(target=stay)
    insider.start()
    try:
        origin.wait_requests(1)
        start = time.monotonic()
        for _ in range(FLOOD // 500):  # as many at a time as this process may comfortably have open
            held += [connect(proxy.port) for _ in range(500)]
            refused += wait_refused(held, 500 - most)
            for sock in held:
                sock.close()
            held.clear()
        took = time.monotonic() - start
    finally:
        done.set()
        insider.join()
    m = proxy.wait_metrics(lambda m: m.value("weir_client_connections") == 0)
    grown = proxy.resident_kib() - before
    print(f"{FLOOD} connections in {took:.1f} s, {len(refused)} told; memory +{grown} KiB; slowest answer {slowest[0]:.3f} s")
    assert m.value("weir_responses_total", status="503") >= len(refused) >= FLOOD * (1 - most / 500)
    assert grown < 16 * 1024
    assert slowest[0] < 5


def wait_refused(socks, count):
    """What was said to those that were told so, once they are that many."""
    answers = []
    with selectors.DefaultSelector() as selector:
        for sock in socks:
            selector.register(sock, selectors.EVENT_READ)
        while len(answers) < count:
            ready = selector.select(60)
            assert ready, f"only {len(answers)} of {count} were told"
            for key, _ in ready:
                answers.append(key.fileobj.recv(4096))
                selector.unregister(key.fileobj)
    assert all(a.startswith(REFUSED) for a in answers)
    return answers


def test_many_that_say_nothing(weir, origin):
    """Idle connections within the limit cost memory, and nothing else."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 300 if sanitized() else min(FLOOD, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    proxy = weir(f"clients: {{max_connections: {count + 10}}}\n")
    idle = []
    try:
        before = proxy.resident_kib()
        idle = [connect(proxy.port) for _ in range(count)]
        proxy.wait_metrics(lambda m: m.value("weir_client_connections") == count)
        each = (proxy.resident_kib() - before) / count
        assert get(proxy.port, origin.url + "/").status == 200
        spent = cpu_seconds(proxy)
        threading.Event().wait(0.5)
        assert cpu_seconds(proxy) - spent < 0.25
        print(f"{each:.1f} KiB for each of {count} idle connections")
        assert sanitized() or each < 12
    finally:
        for sock in idle:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---- no descriptors left ------------------------------------------------------------------------

FEW = 100


def test_no_descriptors_left(weir, origin):
    """The listener does not spin, the log says it once, who is in goes on, and all is well again when
    some are free."""
    proxy = weir(workers=2, before=["prlimit", f"--nofile={FEW}:{FEW}"], ends_idle=False)
    waiting = []
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/").status == 200  # the connection behind stays open as well
        connection = keep_admin(proxy)
        try:
            waiting = [connect(proxy.port) for _ in range(2 * FEW)]
            proxy.log.wait("error cannot accept connections: .*LimitNOFILE")
            spent, start = cpu_of(connection), time.monotonic()
            for _ in range(20):
                assert client.get(origin.url + "/").status == 200
            threading.Event().wait(1)
            share = (cpu_of(connection) - spent) / (time.monotonic() - start)
            print(f"{share:.3f} of a processor while no descriptors are left")
            assert sanitized() or share < 0.3
            assert sum("cannot accept" in line for line in proxy.log.all) == 1
        finally:
            for sock in waiting:
                sock.close()
            connection.close()
        proxy.wait_metrics(lambda m: m.value("weir_client_connections") == 1)
    assert get(proxy.port, origin.url + "/").status == 200


def keep_admin(proxy):
    client = Client(proxy.admin_port)
    cpu_of(client)
    return client


def cpu_of(client):
    """By a connection to the admin listener that is open already."""
    client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    text = client.response().body.decode()
    return float(next(line for line in text.splitlines() if line.startswith("process_cpu_seconds_total")).split()[1])
