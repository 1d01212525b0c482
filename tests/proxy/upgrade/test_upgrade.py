"""`https: upgrade`: clients ask for http, hosts are asked for https."""
import subprocess

import pytest

from harness.daemon import run_weir
from harness.tls import TlsOrigin, server_context
from harness.wire import Client, get


@pytest.fixture
def secure(authority, tls_origins):
    return tls_origins(server_context(authority.issue("localhost", "127.0.0.1")))


def config(authority, more=""):
    return f'defaults: {{https: upgrade, tls: {{ca_file: "{authority.path}"}}{more}}}\n'


def test_the_host_is_asked_over_https(weir, authority, secure):
    proxy = weir(config(authority))
    answer = get(proxy.port, secure.plain_url + "/a?b=c", fields=[("X-A", "b")])
    assert (answer.status, answer.body) == (200, b"ok")
    request = secure.requests[0].request
    assert request.line == "GET /a?b=c HTTP/1.1"
    assert (request.get("host"), request.get("x-a")) == (secure.host, "b")
    assert secure.handshakes[0][0] == "TLSv1.3"
    assert secure.names == ["localhost"]
    assert answer.get("weir-scope") == secure.host
    row = proxy.access("/a")
    assert (row["url"], row["outcome"]) == (secure.plain_url + "/a?b=c", "served")


def test_connections_are_kept(weir, authority, secure):
    proxy = weir(config(authority))
    with Client(proxy.port) as client:
        for number in range(5):
            assert client.get(f"{secure.plain_url}/{number}").status == 200
    assert secure.connections == 1


# the host's Location; what the client sees. H is the host with its port, N the name alone
LOCATIONS = [
    ("https://H/next?a=b#c", "http://H/next?a=b#c"),
    ("https://LOCALHOST:P/x", "http://LOCALHOST:P/x"),
    ("https://N/x", "http://N/x"),
    ("https://N:443/x", "http://N/x"),
    ("https://N", "http://N"),
    ("https://N?q", "http://N?q"),
    ("https://N.:8443/x", "http://N.:8443/x"),
    ("HTTPS://N/x", "http://N/x"),
    ("https://N:80/x", "https://N:80/x"),
    ("https://other.example/x", "https://other.example/x"),
    ("https://sub.N/x", "https://sub.N/x"),
    ("http://N/x", "http://N/x"),
    ("//N/x", "//N/x"),
    ("/next", "/next"),
    ("https://user@N/x", "https://user@N/x"),
    ("https://", "https://"),
    ("", ""),
]


def test_redirects_stay_inside(weir, authority, secure):
    proxy = weir(config(authority))

    def said(text):
        return text.replace("H/", secure.host + "/").replace("N", "localhost").replace("P/", f"{secure.port}/")

    with Client(proxy.port) as client:
        for theirs, ours in LOCATIONS:
            secure.default = lambda e, value=said(theirs): e.reply(301, [("Location", value)])
            answer = client.get(secure.plain_url + "/")
            assert (theirs, answer.values("location")) == (theirs, [said(ours)])


def test_other_fields_are_left_alone(weir, authority, secure):
    proxy = weir(config(authority))
    url = secure.url + "/x"
    secure.default = lambda e: e.reply(200, [("Link", f"<{url}>"), ("Content-Location", url)], url.encode())
    answer = get(proxy.port, secure.plain_url + "/")
    assert (answer.get("link"), answer.get("content-location"), answer.body.decode()) == (f"<{url}>", url, url)


def test_cookies_come_back(weir, authority, secure, tmp_path):
    """A client that asks by http keeps a Secure cookie to itself: it is not told that it is one."""
    proxy = weir(config(authority))
    secure.default = lambda e: e.reply(200, [("Set-Cookie", "a=b; Secure; HttpOnly"), ("Set-Cookie", "c=d")])
    script = (
        "import requests\ns = requests.Session()\n"
        f"for _ in range(2): s.get('{secure.plain_url}/', proxies={{'http': '{proxy.url}'}})"
    )
    subprocess.run(["/usr/bin/python3", "-c", script], check=True, timeout=60)
    assert [e.request.get("cookie") for e in secure.requests] == [None, "a=b; c=d"]
    answer = get(proxy.port, secure.plain_url + "/")
    assert answer.values("set-cookie") == ["a=b; HttpOnly", "c=d"]


def test_only_where_the_rule_says_so(weir, authority, secure, origin):
    proxy = weir('rules: [{hosts: localhost, https: upgrade, tls: {ca_file: "%s"}}]\n' % authority.path)
    assert get(proxy.port, secure.plain_url + "/").status == 200
    origin.default = lambda e: e.reply(302, [("Location", f"https://{origin.host}/x")])
    answer = get(proxy.port, origin.url + "/")
    assert (answer.status, answer.get("location")) == (302, f"https://{origin.host}/x")


def test_port_80_becomes_443(weir, authority):
    """Nothing listens there: what was tried tells."""
    proxy = weir(config(authority, ", retry: {attempts: 1}"))
    for url in ("http://127.0.0.9/", "http://127.0.0.9:80/"):
        answer = get(proxy.port, url)
        assert (answer.status, answer.get("weir-scope")) == (502, "127.0.0.9:443")


def test_refusals_are_absorbed(weir, authority, secure):
    answers = iter([429, 429])
    secure.default = lambda e: e.reply(next(answers, 200), [("Retry-After", "0")])
    proxy = weir(config(authority, ", retry: {base: 10ms}"))
    answer = get(proxy.port, secure.plain_url + "/")
    assert (answer.status, answer.get("weir-attempts")) == (200, "3")


def test_https_targets(weir, authority, secure):
    """Who asks a proxy for https:// without a tunnel gets it, whatever the rule."""
    proxy = weir(f'defaults: {{tls: {{ca_file: "{authority.path}"}}}}\n')
    answer = get(proxy.port, secure.url + "/a")
    assert (answer.status, answer.get("weir-scope")) == (200, secure.host)
    assert secure.requests[0].request.get("host") == secure.host


def test_explain_says_so(weir, authority, tmp_path):
    path = tmp_path / "explain.yaml"
    path.write_text(config(authority))
    done = run_weir(tmp_path, "explain", "-c", path, "http://www.example.com/")
    assert "www.example.com:443" in done.stdout
