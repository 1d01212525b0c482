"""Bodies stream through: never whole in memory, no faster than the client reads."""
import hashlib
import select
import threading

import pytest

from harness.daemon import sanitized
from harness.origin import Gate, in_halves
from harness.wire import Client, get

MIB = 1 << 20
BLOCK = bytes(range(256)) * 256  # 64 KiB


def large(exchange, mib, chunked=False):
    head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % (mib * MIB)
    exchange.send(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
    for _ in range(mib * 16):
        exchange.send(b"10000\r\n" + BLOCK + b"\r\n" if chunked else BLOCK)
    if chunked:
        exchange.send(b"0\r\n\r\n")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_arrives_whole(weir, origin, chunked):
    origin.default = lambda e: large(e, 48, chunked)
    answer = get(weir().port, origin.url + "/x")
    want = hashlib.sha256()
    for _ in range(48 * 16):
        want.update(BLOCK)
    assert hashlib.sha256(answer.body).digest() == want.digest()


def test_the_first_bytes_come_before_the_last_are_sent(weir, origin):
    gate = Gate()
    origin.default = in_halves(gate, b"hello", b"world")
    with Client(weir().port) as client:
        client.request(origin.url + "/x")
        assert client.head().status == 200
        assert client.reader.exactly(5) == b"hello"
        gate.open()
        assert client.reader.exactly(5) == b"world"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_does_not_read_holds_up_the_origin(weir, origin, chunked):
    """What is under way is bounded by the buffers between, which are far smaller than the body."""
    stalled = threading.Event()
    sent = [0]

    def push(exchange):
        head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % (128 * MIB)
        exchange.send(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        for _ in range(128 * 16):
            if not stalled.is_set() and not select.select([], [exchange.sock], [], 1.5)[1]:
                stalled.set()
            exchange.send(b"10000\r\n" + BLOCK + b"\r\n" if chunked else BLOCK)
            sent[0] += len(BLOCK)
            if sent[0] > 64 * MIB and not stalled.is_set():
                raise AssertionError("64 MiB went into a client that reads nothing")
        if chunked:
            exchange.send(b"0\r\n\r\n")

    origin.on("/x", push)
    proxy = weir()
    before = proxy.resident_kib()
    with Client(proxy.port, receive_buffer=65536) as client:
        client.request(origin.url + "/x")
        head = client.head()
        assert stalled.wait(30), origin.faults
        if not sanitized():
            assert proxy.resident_kib() - before < 16 * 1024
        assert get(proxy.port, origin.url + "/y").status == 200  # nobody else is held up
        assert head.status == 200
        got = 0
        if chunked:
            while True:
                size = int(client.reader.until(b"\r\n"), 16)
                if size == 0:
                    break
                client.reader.drain(size + 2)
                got += size
            assert got == 128 * MIB
        else:
            client.reader.drain(128 * MIB)


def test_memory_stays_flat(weir, origin):
    origin.on("/x", lambda e: large(e, 200))
    proxy = weir()
    get(proxy.port, origin.url + "/warm")
    before = peak = proxy.resident_kib()
    with Client(proxy.port) as client:
        client.request(origin.url + "/x")
        assert client.head().status == 200
        for _ in range(50):
            client.reader.drain(4 * MIB)
            peak = max(peak, proxy.resident_kib())
    if not sanitized():  # a sanitizer's memory is not weir's
        assert peak - before < 16 * 1024


def test_large_uploads_arrive_whole(weir, origin):
    body = BLOCK * 16 * 15  # just under the default bound
    assert get(weir().port, origin.url + "/x", method="PUT", body=body).status == 200
    assert hashlib.sha256(origin.requests[0].request.body).digest() == hashlib.sha256(body).digest()


def test_an_origin_that_answers_before_the_body_is_read(weir, origin):
    """It refuses a large upload from its head alone, and closes."""
    import socket

    listener = socket.create_server(("127.0.0.1", 0))

    def early():
        sock, _ = listener.accept()
        with sock:
            while b"\r\n\r\n" not in sock.recv(65536):
                pass
            sock.sendall(b"HTTP/1.1 413 Too Much\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass

    thread = threading.Thread(target=early)
    thread.start()
    answer = get(weir().port, f"http://127.0.0.1:{listener.getsockname()[1]}/x", method="POST", body=BLOCK * 16 * 8)
    thread.join(30)
    listener.close()
    assert (answer.status, answer.body) == (413, b"big")


@pytest.mark.threads
def test_many_at_once(weir, origin):
    """Bodies of all sizes at once over two workers, each whole and its own."""
    origin.default = lambda e: e.reply(body=e.request.target.encode() * (1 + hash(e.request.target) % 5000))
    proxy = weir("defaults: {limit: {start: 32}}\n", workers=2)
    faults = []

    def worker(number):
        with Client(proxy.port) as client:
            for i in range(25):
                path = f"/{number}/{i}"
                answer = client.get(origin.url + path)
                if answer.status != 200 or answer.body.replace(path.encode(), b""):
                    faults.append((path, answer.status, len(answer.body)))

    threads = [threading.Thread(target=worker, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len(origin.requests) == 16 * 25
