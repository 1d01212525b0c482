"""What is looked at before a request is read: who asks, how its bytes are cut, how many may come."""
import re
import resource
import signal
import socket

from harness.origin import Gate
from harness.wire import Client, get


def test_a_stranger_is_refused_before_anything_is_read(weir, origin):
    proxy = weir('clients: {allow: ["127.0.0.2/32"]}\n')
    with Client(proxy.port) as client:
        assert client.reader.to_end().startswith(b"HTTP/1.1 403 ")
    assert origin.connections == 0


def test_a_size_line_without_end_is_refused(weir, origin):
    proxy = weir()
    with Client(proxy.port) as client:
        client.send(f"POST {origin.url}/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        client.send(b"0" * 100)
        text = client.reader.to_end()
    assert text.startswith(b"HTTP/1.1 400 ") and b"Proxy-Status: weir" in text
    assert origin.connections == 0


def test_a_pipelined_head_in_many_pieces_is_checked_whole(weir, origin):
    gate = Gate()
    origin.on("/first", lambda e: (gate.wait(), e.reply()))
    proxy = weir()
    bad = f"GET {origin.url}/second HTTP/1.1\r\nHost: a\r\n".encode()
    bad += b"".join(b"X-%05d: %s\r\n" % (i, b"y" * 900) for i in range(40)) + b"Transfer-Encoding: gzip\r\n\r\n"
    with Client(proxy.port) as client:
        client.request(origin.url + "/first")
        origin.wait_requests(1)
        client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(bad), 700):
            client.send(bad[at : at + 700])
        gate.open()
        assert client.response().status == 200
        assert client.reader.to_end().startswith(b"HTTP/1.1 400 ")
    assert origin.paths() == ["/first"]


def test_a_large_head_of_an_answer_does_not_stop_its_body(weir, origin):
    fields = b"".join(b"X-%05d:%s\r\n" % (i, b"y" * 80) for i in range(2800))  # they grow on the way
    body = b"z" * (1 << 20)
    head = b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: %d\r\n\r\n" % len(body)
    assert len(head) < 256 << 10
    origin.default = lambda e: e.send(head + body)
    answer = get(weir().port, origin.url + "/x")
    assert answer.status == 200 and answer.body == body


def test_two_connection_fields_of_http_1_0(weir, origin):
    origin.default = lambda e: e.send(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    )
    with Client(weir().port) as client:
        client.send(
            f"GET {origin.url}/x HTTP/1.0\r\nConnection: keep-alive\r\nConnection: keep-alive\r\n\r\n".encode()
        )
        text = client.reader.to_end()
    assert text.endswith(b"\r\n\r\nhello") and b"content-length" not in text.lower()


def test_a_request_that_has_begun_is_told_of_the_end(weir, origin):
    proxy = weir()
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/x").status == 200
        client.send(f"POST {origin.url}/y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe".encode())
        proxy.signal(signal.SIGTERM)
        text = client.reader.to_end()
    assert text.startswith(b"HTTP/1.1 503 ") and b"Proxy-Status: weir" in text
    assert proxy.wait_exit() == 0
    assert origin.paths() == ["/x"]


def test_without_descriptors_it_waits_and_goes_on(weir, origin):
    proxy = weir()
    proxy.log.wait("ready: ")  # it needs a few more descriptors until then
    limit = 40
    resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    clients = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(limit)]
    proxy.log.wait("cannot accept connections")
    for client in clients:
        client.close()
    assert get(proxy.port, origin.url + "/x").status == 200
    assert len(re.findall("cannot accept connections", proxy.log.text())) == 1
