"""Connections are kept and reused on both sides."""
import socket

import pytest

from harness.wire import Client


@pytest.fixture
def proxy(weir):
    return weir()


def test_both_sides_are_kept(proxy, origin):
    with Client(proxy.port) as client:
        for i in range(5):
            assert client.get(f"{origin.url}/{i}").status == 200
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/again").status == 200
    assert origin.connections == 1


@pytest.mark.parametrize("field", [("Proxy-Connection", "keep-alive"), ("Connection", "keep-alive")], ids=lambda f: f[0])
def test_an_old_client_may_ask_for_it(proxy, origin, field):
    with Client(proxy.port) as client:
        one = f"GET {origin.url}/x HTTP/1.0\r\n{field[0]}: {field[1]}\r\n\r\n".encode()
        client.send(one)
        assert client.response().status == 200
        if field[0] == "Connection":
            client.send(one)
            assert client.response().status == 200


def test_close_is_obeyed(proxy, origin):
    with Client(proxy.port) as client:
        answer = client.get(origin.url + "/x", fields=[("Connection", "close")])
        assert answer.status == 200 and answer.get("connection") == "close"
        assert client.is_closed()
    assert origin.requests[0].request.get("connection") is None
    with Client(proxy.port) as client:
        client.get(origin.url + "/y")
    assert origin.connections == 1


def test_a_connection_that_died_while_idle_costs_nothing(proxy, origin):
    """The origin closes its side between two requests: the next one goes over a new connection."""
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/x").status == 200
        origin.requests[0].close()
        answer = client.get(origin.url + "/y")
        assert answer.status == 200
    assert len([p for p in origin.paths() if p == "/y"]) == 1


def test_a_client_may_ask_different_hosts_on_one_connection(proxy, origins):
    many = [origins() for _ in range(3)]
    with Client(proxy.port) as client:
        for origin in many * 2:
            assert client.get(origin.url + "/x").status == 200
    assert [o.connections for o in many] == [1, 1, 1]


def test_half_closed_client_still_gets_its_answer(proxy, origin):
    """curl and others do not, but `printf … | nc` does: the end of sending is not the end of waiting.
    Both are allowed here; what is not allowed is a request without any trace."""
    with Client(proxy.port) as client:
        client.request(origin.url + "/x")
        client.sock.shutdown(socket.SHUT_WR)
        text = client.reader.to_end()
    assert text == b"" or text.startswith(b"HTTP/1.1 200")
    assert proxy.access("/x")


def test_idle_clients_are_let_go(weir, origin):
    proxy = weir("clients: {idle_timeout: 200ms}\n")
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/x").status == 200
        assert client.is_closed()


def test_a_head_that_drips_is_cut_off(weir):
    proxy = weir("clients: {header_timeout: 300ms}\n")
    with Client(proxy.port) as client:
        client.sock.settimeout(0.05)
        text = b""
        for _ in range(400):
            client.send(b"G")
            try:
                data = client.sock.recv(4096)
            except TimeoutError:
                continue
            except ConnectionResetError:
                data = b""
            text += data
            if not data:
                break
        else:
            raise AssertionError("still open after 400 bytes")
    assert text == b"" or text.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400"))


def test_too_many_connections(weir, origin):
    proxy = weir("clients: {max_connections: 3}\n")
    held = [Client(proxy.port) for _ in range(3)]
    for client in held:
        assert client.get(origin.url + "/x").status == 200
    with Client(proxy.port) as extra:
        extra.request(origin.url + "/extra")
        text = extra.reader.to_end()
    assert text == b"" or text.startswith(b"HTTP/1.1 503")
    assert "/extra" not in origin.paths()
    held.pop().close()
    for client in held:
        client.close()
