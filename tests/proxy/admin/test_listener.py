"""Who is let in to the admin listener, and what it says to what it does not know."""
import http.client
import json
import re
import socket

import pytest

from harness.daemon import run_weir
from harness.wire import Client, get, raw

PAGES = ["/", "/metrics", "/healthz", "/readyz", "/api/v1/scopes", "/api/v1/endpoints", "/api/v1/requests/recent"]


def listed(index):
    """The paths that the index tells of, with their methods."""
    return [tuple(m) for m in re.findall(r"^(GET|POST) +(/\S+)", index, re.M)]


@pytest.mark.threads
def test_every_page(weir, origin):
    proxy = weir()
    get(proxy.port, origin.url + "/")
    index = proxy.admin("/")[2]
    assert {path for method, path in listed(index) if method == "GET" and "KEY" not in path} == set(PAGES) - {"/"}
    for page in PAGES:
        status, fields, body = proxy.admin(page)
        assert status == 200 and body, page
        assert fields["Cache-Control"] == "no-store" and fields["X-Content-Type-Options"] == "nosniff"
        assert not [f for f in fields if f.lower().startswith("access-control-")], "no page of others may read it"
        if page.startswith("/api/"):
            assert fields["Content-Type"] == "application/json"
            json.loads(body)


@pytest.mark.parametrize(
    "path", ["/nothing", "/metrics/", "//metrics", "/api/v1/scopes/", "/api/v1/scopes/x", "/api/v1/scopes//reset", "/api/v2/scopes"]
)
def test_unknown_paths(weir, path):
    proxy = weir()
    for method in ("GET", "POST"):
        status, _, body = proxy.admin(path, method)
        assert status == 404 and json.loads(body)["error"]


def test_other_methods(weir):
    proxy = weir()
    for page in PAGES:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            status, fields, _ = proxy.admin(page, method)
            assert (status, fields["Allow"]) == (405, "GET, HEAD"), (method, page)
    for page in ("/api/v1/reload", "/api/v1/scopes/a/reset"):
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            status, fields, _ = proxy.admin(page, method)
            assert (status, fields["Allow"]) == (405, "POST"), (method, page)


def test_head_has_no_body(weir):
    proxy = weir()
    with Client(proxy.admin_port) as client:
        for _ in range(2):
            client.send(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.response(to="HEAD").get("content-length") == "6"
        client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.response().body == b"alive\n"


def ask(port, head):
    with Client(port) as client:
        client.send(head.encode("latin-1") + b"\r\n\r\n")
        return client.response()


@pytest.mark.parametrize(
    "host, status",
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:%d", 200),
        ("[::1]:%d", 200),
        ("localhost:%d", 200),
        ("evil.example", 403),
        ("evil.example:%d", 403),
        ("localhost.evil.example:%d", 403),
    ],
)
def test_names_that_lead_here(weir, host, status):
    """DNS rebinding: a page has its own name lead to this address, and reads what it is told."""
    proxy = weir()
    host = host.replace("%d", str(proxy.admin_port))
    for page in PAGES:
        assert ask(proxy.admin_port, f"GET {page} HTTP/1.1\r\nHost: {host}").status == status
    answer = ask(proxy.admin_port, f"POST /api/v1/reload HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0")
    assert answer.status == status


def test_without_a_host(weir):
    """HTTP/1.0 has none, and no browser speaks it."""
    assert ask(weir().admin_port, "GET /healthz HTTP/1.0").status == 200


def test_is_no_proxy(weir, origin):
    proxy = weir()
    for head in (f"GET {origin.url}/ HTTP/1.1\r\nHost: {origin.host}", "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1"):
        assert ask(proxy.admin_port, head).status in (403, 404)
    assert ask(proxy.admin_port, f"GET http://127.0.0.1:{proxy.admin_port}/metrics HTTP/1.1\r\nHost: 127.0.0.1").status == 404
    assert origin.requests == []


@pytest.mark.parametrize(
    "fields, status",
    [
        ([], 404),  # let in: there is no such scope
        ([("Origin", "http://127.0.0.1:%d")], 404),
        ([("Sec-Fetch-Site", "same-origin")], 404),
        ([("Origin", "http://evil.example")], 403),
        ([("Origin", "null")], 403),
        ([("Origin", "http://127.0.0.1:1")], 403),
        ([("Sec-Fetch-Site", "cross-site")], 403),
        ([("Content-Type", "text/plain"), ("Origin", "https://127.0.0.1:%d")], 403),
    ],
)
def test_pages_of_others_change_nothing(weir, fields, status):
    proxy = weir()
    fields = [(n, v.replace("%d", str(proxy.admin_port))) for n, v in fields]
    assert proxy.admin("/api/v1/scopes/a/reset", "POST", fields)[0] == status
    assert proxy.admin("/api/v1/reload", "POST", fields)[0] == (200 if status == 404 else 403)


# ---- the token ----------------------------------------------------------------------------------

TOKEN = 'admin: {listen: "127.0.0.1:0", token: "s3cret token"}\n'


def with_token(weir):
    return weir(TOKEN, ends_idle=False)


@pytest.mark.parametrize(
    "value", [None, "", "Bearer", "Bearer s3cret", "Bearer s3cret tokenn", "Basic s3cret token", "s3cret token"]
)
def test_wrong_tokens(weir, value):
    proxy = with_token(weir)
    fields = [] if value is None else [("Authorization", value)]
    for page in [*PAGES, "/nothing"]:
        status, answer, _ = proxy.admin(page, fields=fields)
        assert status == 401 and answer["WWW-Authenticate"].startswith("Bearer")
    assert proxy.admin("/api/v1/reload", "POST", fields)[0] == 401
    assert "reloaded" not in proxy.log.text()


def test_the_right_token(weir):
    """It is what counts then: any name will do as Host, and any origin."""
    proxy = with_token(weir)
    fields = [("Authorization", "Bearer s3cret token")]
    for page in PAGES:
        assert proxy.admin(page, fields=fields)[0] == 200
    assert proxy.admin("/metrics", fields=fields + [("Host", "weir.example:8081")])[0] == 200
    assert proxy.admin("/api/v1/reload", "POST", fields + [("Origin", "http://x.example")])[0] == 200


def test_a_new_token(weir):
    proxy = with_token(weir)
    old, new = [("Authorization", "Bearer s3cret token")], [("Authorization", "Bearer other")]
    proxy.write(TOKEN.replace("s3cret token", "other"))
    assert proxy.admin("/api/v1/reload", "POST", old)[0] == 200
    assert proxy.admin("/healthz", fields=old)[0] == 401
    assert proxy.admin("/healthz", fields=new)[0] == 200


# ---- the socket ---------------------------------------------------------------------------------


def start_beside(tmp_path, port, admin_port):
    config = tmp_path / "weir.yaml"
    config.write_text(
        f'listen: ["127.0.0.1:{port}"]\nadmin: {{listen: "127.0.0.1:{admin_port}"}}\nstate: {{dir: "{tmp_path}"}}\n'
    )
    return run_weir(tmp_path, "run", "-c", config)


def test_the_port_is_taken(weir, tmp_path):
    """Nothing is served then: one line that says where and what to do."""
    first = weir()
    done = start_beside(tmp_path, 0, first.admin_port)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert f"127.0.0.1:{first.admin_port}" in done.stderr and "in use" in done.stderr and "admin.listen" in done.stderr


def test_it_does_not_open_before_all_can(weir, tmp_path):
    """Where the proxy's own port is taken, nobody could connect to this one for a moment."""
    first = weir()
    done = start_beside(tmp_path, first.port, 0)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "admin on" not in done.stderr


def test_switched_off(weir):
    proxy = weir('admin: {listen: ""}\n')
    assert proxy.admin_port is None and "admin on" not in proxy.log.text()


@pytest.mark.parametrize("token, warned", [("", True), ("x", False)])
def test_warns_where_it_is_open(weir, token, warned):
    proxy = weir(f'admin: {{listen: "0.0.0.0:0", token: "{token}"}}\n')
    proxy.log.wait("ready: ")
    assert bool(re.search("warn +admin.listen .*admin.token", proxy.log.text())) == warned


def test_a_local_socket(weir, tmp_path):
    path = tmp_path / "admin.sock"
    proxy = weir(f'admin: {{listen: "unix:{path}"}}\n')
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"alive\n")
    proxy.signal(15)
    proxy.wait_exit()
    assert not path.exists()


def test_large_and_malformed_requests(weir):
    proxy = weir()
    port = proxy.admin_port
    assert raw(port, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100000 + b"\r\n\r\n")[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 413")
    for junk in (b"\0\1\2\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET /%zz%00 HTTP/1.1\r\n\r\n"):
        with Client(port) as client:
            client.send(junk)
            client.sock.shutdown(socket.SHUT_WR)
            client.reader.to_end()
    body = b"POST /api/v1/reload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999\r\n\r\n" + b"a" * 99999
    assert raw(port, body)[:12] in (b"", b"HTTP/1.1 413")
    assert proxy.admin("/healthz")[0] == 200 and "reloaded" not in proxy.log.text()


def test_many_at_once(weir):
    """Connections that ask nothing do not keep others from asking."""
    proxy = weir()
    idle = [Client(proxy.admin_port) for _ in range(100)]
    try:
        assert proxy.admin("/healthz")[0] == 200
        assert proxy.metrics().value("process_open_fds") > 100
    finally:
        for client in idle:
            client.close()


def test_lives_while_the_proxy_is_full(weir, origin):
    """What clients use up is not what the admin listener lives on."""
    proxy = weir("clients: {max_connections: 1}\n", ends_idle=False)
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/").status == 200
        assert get(proxy.port, origin.url + "/").status == 503
        proxy.wait_metrics(lambda m: m.value("weir_client_connections") == 1)


def test_keep_alive(weir):
    proxy = weir()
    connection = http.client.HTTPConnection("127.0.0.1", proxy.admin_port)
    sockets = set()
    for page in PAGES:
        connection.request("GET", page)
        sockets.add(connection.sock)
        assert connection.getresponse().read()
    connection.close()
    assert len(sockets) == 1
