"""`https: intercept`: what is asked inside of TLS is served as if it were HTTP."""
import contextlib
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import threading

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from harness.daemon import run_weir, sanitized
from harness.origin import Gate, Limited
from harness.tls import Tunnel, client_context, intercepted, server_context
from harness.wire import Client, get


def config(origin, authority, more="", top=""):
    return (
        f"destinations: {{connect_ports: [{origin.port}]}}\n{top}"
        f'defaults: {{https: intercept, tls: {{ca_file: "{authority.path}"}}{more}}}\n'
    )


@pytest.fixture
def secure(authority, tls_origins):
    return tls_origins(server_context(authority.issue("localhost", "127.0.0.1")))


def test_requests_and_answers(weir, authority, secure):
    proxy = weir(config(secure, authority))
    secure.default = lambda e: e.reply(201, [("X-B", "c")], b"made")
    with intercepted(proxy, secure.url) as tunnel:
        assert tunnel.answer.status == 200
        assert tunnel.sock.selected_alpn_protocol() == "http/1.1"
        answer = tunnel.fetch("/a?b=c", method="POST", fields=[("X-A", "b"), ("Weir-Session", "s")], body=b"data")
    assert (answer.status, answer.get("x-b"), answer.body) == (201, "c", b"made")
    assert (answer.get("weir-attempts"), answer.get("weir-scope")) == ("1", secure.host)
    request = secure.requests[0].request
    assert request.line == "POST /a?b=c HTTP/1.1"
    assert (request.get("host"), request.get("x-a"), request.body) == (secure.host, "b", b"data")
    assert request.get("weir-session") is None
    row = proxy.access("/a?b=c")
    assert (row["method"], row["url"], row["scope"]) == ("POST", secure.url + "/a?b=c", secure.host)
    assert (row["bytes_in"], row["bytes_out"], row["outcome"]) == (4, 4, "served")
    row = proxy.access(secure.host)
    assert (row["method"], row["url"], row["status"], row["outcome"]) == ("CONNECT", secure.host, 200, "opened")


def test_many_requests_on_one_connect(weir, authority, secure):
    proxy = weir(config(secure, authority))
    secure.on("/big", lambda e: e.reply(body=bytes(3 << 20)))
    secure.on("/empty", lambda e: e.reply(204))
    secure.on("/chunks", lambda e: e.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
    with intercepted(proxy, secure.url) as tunnel:
        for _ in range(3):
            assert tunnel.fetch("/").body == b"ok"
            assert tunnel.fetch("/big").body == bytes(3 << 20)
            assert tunnel.fetch("/empty").status == 204
            assert tunnel.fetch("/chunks").body == b"abc"
            assert tunnel.fetch("/", method="HEAD").status == 200
            assert tunnel.fetch("/", method="PUT", body=bytes(1 << 20)).status == 200
    assert secure.connections == 1
    assert len(secure.requests[5].request.body) == 1 << 20


def test_refusals_are_absorbed(weir, authority, secure):
    """What a blind tunnel would hide."""
    limited = secure.default = Limited("fixed", rate=20, window=0.5)
    proxy = weir(config(secure, authority, ", retry: {base: 50ms}"))
    answers = []

    def work():
        with intercepted(proxy, secure.url) as tunnel:
            for _ in range(12):
                answers.append(tunnel.fetch("/").status)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 48
    assert limited.refused > 0


def test_requests_that_come_together(weir, authority, secure):
    """Pipelined: answered one after the other."""
    proxy = weir(config(secure, authority))
    secure.default = lambda e: e.reply(body=e.request.target.encode())
    with intercepted(proxy, secure.url) as tunnel:
        for number in range(5):
            tunnel.ask(f"/{number}")
        assert [tunnel.response().body for _ in range(5)] == [b"/%d" % n for n in range(5)]
        tunnel.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: %s\r\n\r\n" % (n, secure.host.encode()) for n in range(200)))
        assert [tunnel.response().body for _ in range(200)] == [b"/%d" % n for n in range(200)]


def run_client(proxy, *command):
    kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    told = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": proxy.ca, "CURL_CA_BUNDLE": proxy.ca}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env={**kept, **told})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_curl_uses_one_connect(weir, authority, secure):
    proxy = weir(config(secure, authority))
    urls = f"{secure.url}/[1-20]"
    out = run_client(proxy, "curl", "-sS", "-w", "%{http_code} %{num_connects}\n", "-o", "/dev/null", urls)
    assert out.split("\n") == ["200 1", *["200 0"] * 19, ""]
    assert secure.connections == 1


def test_a_client_that_would_rather_speak_http2(weir, authority, secure):
    proxy = weir(config(secure, authority))
    script = f"import httpx; print(httpx.Client(http2=True).get({secure.url!r}).http_version)"
    assert run_client(proxy, "/usr/bin/python3", "-c", script) == "HTTP/1.1\n"


def test_a_connect_that_steers(weir, authority, secure):
    """What is said beside CONNECT holds for each request inside that does not say it itself."""
    proxy = weir(config(secure, authority, ", scope: [session]"))
    for fields, expected in (([], "s-1"), ([("Weir-Session", "s-2")], "s-2")):
        with Tunnel(proxy.port, secure.url, [("Weir-Session", "s-1")]) as tunnel:
            tunnel.open_tls(client_context(proxy.ca))
            for _ in range(2):
                assert tunnel.fetch("/", fields=fields).get("weir-scope") == f"session={expected}"


# ---- certificates -------------------------------------------------------------------------------


def shown(proxy, url, **more):
    with Tunnel(proxy.port, url) as tunnel:
        context = client_context(proxy.ca)
        tunnel.open_tls(context, **more)
        return x509.load_der_x509_certificate(tunnel.sock.getpeercert(binary_form=True))


def names_of(certificate):
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(n.value) for n in names]


def test_the_certificate(weir, authority, secure):
    proxy = weir(config(secure, authority))
    certificate = shown(proxy, secure.url)
    assert names_of(certificate) == ["localhost"]
    assert (certificate.not_valid_after - certificate.not_valid_before).days <= 90
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    again = shown(proxy, secure.url)
    assert again.serial_number == certificate.serial_number  # it is kept
    assert certificate.serial_number.bit_length() > 100


def test_addresses_and_names_of_sni(weir, authority, secure):
    proxy = weir(config(secure, authority))
    by_address = secure.url.replace("localhost", "127.0.0.1")
    assert names_of(shown(proxy, by_address)) == ["127.0.0.1"]
    assert names_of(shown(proxy, by_address, name="localhost")) == ["localhost"]
    assert names_of(shown(proxy, by_address, name="a.very.long." * 10 + "example")) == ["a.very.long." * 10 + "example"]
    keys = {shown(proxy, url).public_key().public_numbers().x for url in (by_address, secure.url)}
    assert len(keys) == 1  # one key for the process


def test_the_ca_is_made_once(weir, authority, secure, tmp_path):
    state = tmp_path / "state"
    text = config(secure, authority, top=f'state: {{dir: "{state}"}}\n')
    first = weir(text)
    assert first.log.wait(rf"made the CA {state}/ca\.pem .*\(weir ca export --dir {state}\)")
    assert stat.S_IMODE(os.stat(state / "ca.key").st_mode) == 0o600
    pem = (state / "ca.pem").read_bytes()
    second = weir(text)
    assert "made the CA" not in second.log.text()
    assert (state / "ca.pem").read_bytes() == pem
    # a certificate of the one is trusted by who trusts the other
    second.ca = first.ca = str(state / "ca.pem")
    assert names_of(shown(second, secure.url)) == names_of(shown(first, secure.url))


def test_the_ca_of_ones_own(weir, authority, secure):
    """One's own CA takes the place of ours; the one above it is shown as well."""
    files = f'ca: {{certificate: "{authority.path}", key: "{authority.key_path}"}}\n'
    proxy = weir(config(secure, authority, top=files))
    assert not os.path.exists(proxy.ca)
    proxy.ca = authority.path
    assert names_of(shown(proxy, secure.url)) == ["localhost"]


BAD_CAS = {
    "not a CA": ("{leaf}", "{leaf}", "is not that of a CA"),
    "another key": ("{ca}", "{leaf}", "is not the one of the certificate"),
    "no certificate": ("{key}", "{key}", "holds no certificate"),
    "missing": ("/nowhere/ca.pem", "/nowhere/ca.key", "cannot read the CA's certificate /nowhere/ca.pem"),
}


@pytest.mark.parametrize("what", BAD_CAS)
def test_bad_cas_at_the_start(authority, tmp_path, what):
    certificate, key, said = BAD_CAS[what]
    names = dict(ca=authority.path, key=authority.key_path, leaf=authority.issue("localhost"))
    path = tmp_path / "weir.yaml"
    path.write_text(
        'listen: "127.0.0.1:0"\ndefaults: {https: intercept}\n'
        f'ca: {{certificate: "{certificate.format(**names)}", key: "{key.format(**names)}"}}\n'
    )
    done = run_weir(tmp_path, "run", "-c", path)
    assert done.returncode == 1 and said in done.stderr
    assert "listening" not in done.stderr


def test_switched_on_by_a_reload(weir, authority, secure):
    proxy = weir(config(secure, authority).replace("intercept", "tunnel"))
    trusting = client_context(authority.path)
    with Tunnel(proxy.port, secure.url) as tunnel:
        tunnel.open_tls(trusting)
        assert not os.path.exists(proxy.ca)
        proxy.write(config(secure, authority))
        assert "not reloaded" not in proxy.reload()
        with intercepted(proxy, secure.url) as opened:
            assert opened.fetch("/").get("weir-attempts") == "1"
        assert tunnel.fetch("/").get("weir-attempts") is None
    proxy.write(config(secure, authority).replace("intercept", "tunnel"))
    proxy.reload()
    with Tunnel(proxy.port, secure.url).open_tls(trusting) as tunnel:
        assert tunnel.fetch("/").get("weir-attempts") is None


def test_nothing_stays_of_a_reload_that_was_refused(weir, authority, secure):
    """Its CA neither, where it is the users' file that is missing."""
    proxy = weir(config(secure, authority).replace("intercept", "tunnel"))
    files = f'ca: {{certificate: "{authority.path}", key: "{authority.key_path}"}}\n'
    proxy.write(config(secure, authority, top=files + 'clients: {users: "/nowhere"}\n'))
    assert "not reloaded" in proxy.reload()
    proxy.write(config(secure, authority))
    assert "not reloaded" not in proxy.reload()
    with intercepted(proxy, secure.url) as opened:  # by who trusts the CA of the state directory alone
        assert opened.fetch("/").status == 200


# ---- TLS with clients ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_versions_and_sessions(weir, authority, secure, version):
    """A session is taken up again on another connection, whichever worker has that."""
    proxy = weir(config(secure, authority), workers=2)
    context = client_context(proxy.ca)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    session, reused = None, []
    for _ in range(6):
        with Tunnel(proxy.port, secure.url) as tunnel:
            tunnel.open_tls(context, session=session)
            assert tunnel.fetch("/").status == 200
            session = tunnel.sock.session
            reused.append(tunnel.sock.session_reused)
    assert reused == [False] + [True] * 5


def test_old_versions_are_refused(weir, authority, secure):
    proxy = weir(config(secure, authority))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with Tunnel(proxy.port, secure.url) as tunnel, pytest.raises(ssl.SSLError):
        tunnel.open_tls(context)


def test_http2_alone_is_not_spoken(weir, authority, secure):
    proxy = weir(config(secure, authority))
    with Tunnel(proxy.port, secure.url) as tunnel, pytest.raises(ssl.SSLError, match="(?i)application.protocol"):
        tunnel.open_tls(client_context(proxy.ca, ("h2",)))
    with Tunnel(proxy.port, secure.url) as tunnel:
        tunnel.open_tls(client_context(proxy.ca, ("h2", "http/1.1")))
        assert tunnel.sock.selected_alpn_protocol() == "http/1.1"
    with Tunnel(proxy.port, secure.url) as tunnel:
        tunnel.open_tls(client_context(proxy.ca, None))
        assert tunnel.fetch("/").status == 200


def test_a_client_that_does_not_trust_us(weir, authority, secure):
    """The log says so once in a while, and what to do."""
    proxy = weir(config(secure, authority))
    for _ in range(3):
        with Tunnel(proxy.port, secure.url) as tunnel, pytest.raises(ssl.SSLError):
            tunnel.open_tls(client_context(authority.path))
    line, index = proxy.log.wait("does not trust")
    assert re.search(r"warn .*127\.0\.0\.1 does not trust .* for localhost \(unknown CA\)", line.string)
    assert f"trust the CA in {proxy.ca}, or" in line.string and "https: tunnel" in line.string
    assert proxy.access(secure.host)["outcome"] == "untrusted"
    proxy.access_rows(3)
    assert not [text for text in proxy.log.all[index + 1 :] if "does not trust" in text]
    assert not secure.connections


def test_a_handshake_that_stalls(weir, authority, secure):
    proxy = weir(config(secure, authority, top="clients: {header_timeout: 300ms}\n"))
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    for said in (b"", hello, b"GE"):
        with Tunnel(proxy.port, secure.url) as tunnel:
            tunnel.send(said)
            assert tunnel.is_closed()
    assert [row["outcome"] for row in proxy.access_rows(3)] == ["idle"] * 3


def test_a_client_that_leaves_in_the_handshake(weir, authority, secure):
    proxy = weir(config(secure, authority))
    for said, leave in ((b"", "close"), (b"\x16\x03\x01", "close"), (b"\x16\x03\x01", "reset"), (b"G", "close")):
        tunnel = Tunnel(proxy.port, secure.url)
        tunnel.send(said)
        getattr(tunnel, leave)()
    assert [row["outcome"] for row in proxy.access_rows(4)] == ["client_gone"] * 4


def test_garbage_in_tls(weir, authority, secure):
    proxy = weir(config(secure, authority))
    with Tunnel(proxy.port, secure.url) as tunnel:
        tunnel.send(b"\x16" + b"garbage" * 100)
        tunnel.reader.to_end()
    with Tunnel(proxy.port, secure.url) as tunnel:
        raw = tunnel.sock.dup()
        tunnel.open_tls(client_context(proxy.ca))
        assert tunnel.fetch("/").status == 200
        raw.sendall(b"garbage" * 100)
        with pytest.raises((ssl.SSLError, OSError)):
            while tunnel.sock.recv(1000):
                pass
            raise OSError("closed")
        raw.close()
    assert get(proxy.port, secure.url.replace("https", "http") + "/x") is not None


# ---- what is asked inside -----------------------------------------------------------------------

# what is sent; the status. H is the host with its port
INSIDE = {
    "other host": ("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", 421),
    "other port": ("GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 421),
    "no port": ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
    "no host": ("GET / HTTP/1.1\r\n\r\n", 400),
    "bad host": ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    "two hosts": ("GET / HTTP/1.1\r\nHost: H\r\nHost: H\r\n\r\n", 400),
    "upper case": ("GET /ok HTTP/1.1\r\nHost: LOCALHOST:P\r\n\r\n", 200),
    "dot at the end": ("GET /ok HTTP/1.1\r\nHost: localhost.:P\r\n\r\n", 200),
    "HTTP/1.0": ("GET /ok HTTP/1.0\r\n\r\n", 200),
    "whole URL": ("GET https://H/ok HTTP/1.1\r\nHost: H\r\n\r\n", 200),
    "whole URL, other Host": ("GET https://H/ok HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    "whole URL, other host": ("GET https://other.example/ HTTP/1.1\r\nHost: H\r\n\r\n", 421),
    "whole URL, http": ("GET http://H/ HTTP/1.1\r\nHost: H\r\n\r\n", 421),
    "CONNECT": ("CONNECT H HTTP/1.1\r\nHost: H\r\n\r\n", 400),
    "star": ("OPTIONS * HTTP/1.1\r\nHost: H\r\n\r\n", 200),
    "star for GET": ("GET * HTTP/1.1\r\nHost: H\r\n\r\n", 400),
    "not a target": ("GET ok HTTP/1.1\r\nHost: H\r\n\r\n", 400),
    "bad framing": ("POST / HTTP/1.1\r\nHost: H\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    "bare LF in a field": ("GET / HTTP/1.1\r\nHost: H\r\nA: b\rc\r\n\r\n", 400),
    "too large": ("GET / HTTP/1.1\r\nHost: H\r\nA: " + "b" * 70000 + "\r\n\r\n", 431),
}


@pytest.mark.parametrize("what", INSIDE)
def test_validation(weir, authority, secure, what):
    proxy = weir(config(secure, authority))
    text, status = INSIDE[what]
    text = text.replace("H\r", secure.host + "\r").replace("//H", "//" + secure.host).replace("T H", "T " + secure.host)
    with intercepted(proxy, secure.url) as tunnel:
        tunnel.send(text.replace("P\r", f"{secure.port}\r").encode())
        answer = tunnel.response()
        assert answer.status == status
        if status != 200:
            assert answer.get("proxy-status").startswith("weir; error=http_request_error")
    assert len(secure.requests) == (status == 200)
    if status == 200:
        assert secure.requests[0].request.target == ("*" if what == "star" else "/ok")


def test_default_port_in_host(weir, authority, secure):
    """Of a tunnel to 443 Host names no port. Nothing listens there: what was tried tells."""
    proxy = weir(f'defaults: {{https: intercept, retry: {{attempts: 1}}}}\n')
    with intercepted(proxy, "https://127.0.0.9:443") as tunnel:
        for host in ("127.0.0.9", "127.0.0.9:443"):
            answer = tunnel.fetch("/x", host=host)
            assert (answer.status, answer.get("weir-scope")) == (502, "127.0.0.9:443")
    assert proxy.access("/x")["url"] == "https://127.0.0.9/x"


def test_untrusted_hosts(weir, authority, secure):
    """The proxy stands for what the client can not see any more."""
    proxy = weir(f"destinations: {{connect_ports: [{secure.port}]}}\ndefaults: {{https: intercept}}\n")
    with intercepted(proxy, secure.url) as tunnel:
        answer = tunnel.fetch("/")
        assert answer.status == 502
        assert "error=tls_certificate_error" in answer.get("proxy-status")


def test_ports_and_denied_addresses(weir, authority, secure):
    proxy = weir(config(secure, authority, top="").replace("]}", '], deny: ["127.0.0.0/8", "::1"]}'))
    with Tunnel(proxy.port, "https://localhost:1") as tunnel:
        assert tunnel.answer.status == 403
    with intercepted(proxy, secure.url) as tunnel:
        answer = tunnel.fetch("/")
        assert (answer.status, "destination_ip_prohibited" in answer.get("proxy-status")) == (403, True)
    assert not secure.connections


def test_bytes_before_the_answer(weir, authority, secure):
    proxy = weir(config(secure, authority))
    with Client(proxy.port) as client:
        client.send(f"CONNECT {secure.host} HTTP/1.1\r\nHost: {secure.host}\r\n\r\n\x16\x03".encode())
        assert client.head().status == 400


def test_rules_choose(weir, authority, secure, tls_origins):
    other = tls_origins(server_context(authority.issue("127.0.0.1")), name="127.0.0.1")
    proxy = weir(
        f"destinations: {{connect_ports: [{secure.port}, {other.port}]}}\n"
        f'rules: [{{hosts: localhost, https: intercept, tls: {{ca_file: "{authority.path}"}}}}]\n'
    )
    with intercepted(proxy, secure.url) as tunnel:
        assert tunnel.fetch("/").get("weir-attempts") == "1"
    with Tunnel(proxy.port, other.url).open_tls(client_context(authority.path)) as tunnel:
        assert tunnel.fetch("/").get("weir-attempts") is None


def test_http_1_0_connect(weir, authority, secure):
    """The connection is kept, although HTTP/1.0 would close it."""
    proxy = weir(config(secure, authority))
    with Client(proxy.port) as client:
        client.send(f"CONNECT {secure.host} HTTP/1.0\r\nConnection: close\r\n\r\n".encode())
        assert client.head().status == 200
        client.sock = client_context(proxy.ca).wrap_socket(client.sock, server_hostname="localhost")
        client.reader.sock = client.sock
        for _ in range(2):
            client.send(f"GET / HTTP/1.1\r\nHost: {secure.host}\r\n\r\n".encode())
            assert client.response().status == 200


# ---- not TLS ------------------------------------------------------------------------------------


def test_plain_http_in_a_tunnel(weir, authority, origin):
    proxy = weir(config(origin, authority))
    with Tunnel(proxy.port, origin.url) as tunnel:
        for number in range(3):
            answer = tunnel.fetch(f"/n{number}", method="POST", body=b"x" * 100)
            assert (answer.status, answer.get("weir-scope")) == (200, origin.host)
        assert tunnel.fetch("/", host="other.example").status == 421
    assert [e.request.target for e in origin.requests] == ["/n0", "/n1", "/n2"]
    assert proxy.access("/n1")["url"] == f"{origin.url}/n1"


def test_a_method_byte_by_byte(weir, authority, origin):
    proxy = weir(config(origin, authority))
    with Tunnel(proxy.port, origin.url) as tunnel:
        for byte in f"OPTIONS /x HTTP/1.1\r\nHost: {origin.host}\r\n\r\n":
            tunnel.send(byte.encode())
        assert tunnel.response().status == 200


@pytest.fixture
def echo():
    """A host that says back whatever it hears; its port."""
    threads = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(sock):
            with sock, contextlib.suppress(OSError):
                while data := sock.recv(1 << 16):
                    sock.sendall(data)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threads.append(threading.Thread(target=serve, args=listener.accept()[:1]))
                    threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
    for thread in threads:
        thread.join()


OTHER = [b"SSH-2.0-x\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00\x01\x02", b"GETTY\r\n", b"POP3", b"\n"]


def test_anything_else_goes_through_unread(weir, echo):
    """SSH, HTTP/2 without TLS, whatever: as in a tunnel."""
    proxy = weir(f"destinations: {{connect_ports: [{echo}]}}\ndefaults: {{https: intercept}}\n")
    more = bytes(range(256)) * 1000
    for hello in OTHER:
        with Tunnel(proxy.port, f"https://127.0.0.1:{echo}") as tunnel:
            for byte in hello:
                tunnel.send(bytes([byte]))
            assert tunnel.reader.exactly(len(hello)) == hello
            tunnel.send(more)
            assert tunnel.reader.exactly(len(more)) == more
            tunnel.sock.shutdown(socket.SHUT_WR)
            assert tunnel.is_closed()
    rows = proxy.access_rows(len(OTHER))
    assert {(row["method"], row["scope"], row["outcome"]) for row in rows} == {("CONNECT", f"127.0.0.1:{echo}", "served")}
    assert [row["bytes_in"] for row in rows] == [len(hello + more) for hello in OTHER]


def test_unread_and_out_of_reach(weir, authority, origins):
    """The client was told that the tunnel stands: all that is left is to close it."""
    origin = origins()
    port = origin.port
    proxy = weir(config(origin, authority, ", retry: {attempts: 1}"))
    origin.close()
    with Tunnel(proxy.port, f"https://127.0.0.1:{port}") as tunnel:
        assert tunnel.answer.status == 200
        tunnel.send(b"SSH-2.0-x\r\n")
        assert tunnel.is_closed()
    assert proxy.access_rows(1)[0]["outcome"] == "upstream_failed"


# ---- leaving, waiting, ending -------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "reset", "half", "goodbye"])
def test_a_client_that_leaves_while_it_waits(weir, authority, secure, how):
    gone = []
    secure.default = lambda e: gone.append(e.wait_gone())
    proxy = weir(config(secure, authority))
    tunnel = intercepted(proxy, secure.url)
    tunnel.ask("/left")
    secure.wait_requests(1)
    if how == "reset":
        tunnel.reset()
    elif how == "half":
        tunnel.sock.shutdown(socket.SHUT_WR)
    elif how == "goodbye":
        with contextlib.suppress(OSError):
            tunnel.sock.unwrap()  # close_notify, and the connection stays
    else:
        tunnel.close()
    assert proxy.access("/left")["outcome"] == "client_gone"
    secure.close()
    assert gone == [True]
    tunnel.close()


def test_idle_connections_are_closed(weir, authority, secure):
    proxy = weir(config(secure, authority, top="clients: {idle_timeout: 300ms}\n"))
    with intercepted(proxy, secure.url) as tunnel:
        assert tunnel.fetch("/").status == 200
        assert tunnel.is_closed()


def test_a_head_that_drips(weir, authority, secure):
    proxy = weir(config(secure, authority, top="clients: {header_timeout: 500ms}\n"))
    with intercepted(proxy, secure.url) as tunnel:
        tunnel.send(b"GET / HTTP/1.1\r\n")
        assert tunnel.response().status == 408
        assert tunnel.is_closed()


def test_an_answer_slower_than_the_idle_timeout(weir, authority, secure):
    """Nobody is idle while an answer is awaited."""
    secure.default = lambda e: (threading.Event().wait(0.8), e.reply())
    proxy = weir(config(secure, authority, top="clients: {idle_timeout: 300ms}\n"))
    with intercepted(proxy, secure.url) as tunnel:
        assert tunnel.fetch("/").status == 200


def test_a_slow_reader_pauses_the_host(weir, authority, secure):
    """What it does not read is not piled up here."""
    size = 64 << 20
    secure.default = lambda e: e.reply(body=bytes(size))
    proxy = weir(config(secure, authority))
    with Tunnel(proxy.port, secure.url, receive_buffer=1 << 16) as tunnel:
        tunnel.open_tls(client_context(proxy.ca))
        tunnel.ask("/")
        assert tunnel.head().status == 200
        before = proxy.resident_kib()
        tunnel.reader.drain(size)
        assert sanitized() or proxy.resident_kib() - before < 16 << 10


def test_an_answer_that_breaks_off(weir, authority, secure):
    gate = Gate()
    secure.default = lambda e: (e.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), gate.wait(), e.close())
    proxy = weir(config(secure, authority))
    with intercepted(proxy, secure.url) as tunnel:
        tunnel.ask("/")
        assert tunnel.head().status == 200
        assert tunnel.reader.exactly(4) == b"half"
        gate.open()
        assert tunnel.is_closed()


def test_connection_close(weir, authority, secure):
    proxy = weir(config(secure, authority))
    with intercepted(proxy, secure.url) as tunnel:
        answer = tunnel.fetch("/", fields=[("Connection", "close")])
        assert (answer.status, answer.get("connection")) == (200, "close")
        assert tunnel.sock.recv(1) == b""  # with a close_notify: else this is an error


def test_draining(weir, authority, secure):
    """What waits for its answer gets it; who is idle, or still in the handshake, is let go."""
    gate = Gate()
    secure.on("/slow", lambda e: (gate.wait(), e.reply()))
    proxy = weir(config(secure, authority))
    with intercepted(proxy, secure.url) as busy, intercepted(proxy, secure.url) as idle:
        with Tunnel(proxy.port, secure.url) as opening, Tunnel(proxy.port, secure.url) as shaking:
            assert idle.fetch("/").status == 200
            shaking.send(b"\x16\x03\x01")
            busy.ask("/slow")
            secure.wait_requests(1, "/slow")
            proxy.signal(signal.SIGTERM)
            assert idle.is_closed()
            assert opening.is_closed()
            assert shaking.is_closed()
            gate.open()
            answer = busy.response()
            assert (answer.status, answer.get("connection")) == (200, "close")
            assert busy.is_closed()
    assert proxy.wait_exit() == 0


@pytest.mark.threads
def test_load(weir, authority, secure):
    """Two workers, connections that come and go, a reload, clients that leave."""
    proxy = weir(config(secure, authority, ", limit: {algorithm: fixed, start: 8, ceiling: 8}"), workers=2)
    context = client_context(proxy.ca)
    answers = []

    def work(number):
        for turn in range(4):
            with Tunnel(proxy.port, secure.url) as tunnel:
                tunnel.open_tls(context)
                for _ in range(5):
                    answers.append(tunnel.fetch("/").status)
                if turn == 1:
                    tunnel.ask("/left")
                if turn == number % 4:
                    tunnel.reset()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    proxy.reload()
    for thread in threads:
        thread.join()
    assert answers == [200] * 240


@pytest.mark.threads
def test_sudden_end(weir, authority, secure):
    """Stopped at once, with everything still under way."""
    gate = Gate()
    secure.default = lambda e: (gate.wait(), e.reply())
    proxy = weir(config(secure, authority, top="shutdown_grace: 0s\n"), workers=2, expect_exit=0)
    busy = [intercepted(proxy, secure.url) for _ in range(4)]
    opening = [Tunnel(proxy.port, secure.url) for _ in range(4)]
    for tunnel in busy:
        tunnel.ask("/")
    secure.wait_requests(4)
    proxy.signal(signal.SIGTERM)
    proxy.wait_exit()
    gate.open()
    for tunnel in busy + opening:
        tunnel.close()


# ---- HTTP no longer -----------------------------------------------------------------------------


def switch(exchange):
    """101, and then an echo in upper case, until the client has ended."""
    exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\nhello ")
    reader = exchange.reader
    while True:
        reader.more() if not reader.buffer else None
        exchange.send(reader.take(len(reader.buffer)).upper())


SHOUT = [("Upgrade", "shout"), ("Connection", "Upgrade")]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_upgrades(weir, authority, secure, version):
    """What follows a 101 goes both ways, also what was sent at once with the request."""
    secure.default = switch
    proxy = weir(config(secure, authority))
    context = client_context(proxy.ca)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    with Tunnel(proxy.port, secure.url).open_tls(context) as tunnel:
        head = f"GET /up HTTP/1.1\r\nHost: {secure.host}\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\n"
        tunnel.send(head.encode() + b"early ")
        answer = tunnel.head()
        assert (answer.status, answer.get("upgrade")) == (101, "shout")
        assert tunnel.reader.exactly(12) == b"hello EARLY "
        tunnel.send(b"a" * 3_000_000 + b"b")
        assert tunnel.reader.exactly(3_000_001) == b"A" * 3_000_000 + b"B"
        tunnel.send(b"last")
        assert tunnel.reader.exactly(4) == b"LAST"
    row = proxy.access("/up")
    assert (row["status"], row["bytes_in"], row["bytes_out"]) == (101, 6 + 3_000_001 + 4, 12 + 3_000_001 + 4)


def test_the_end_after_an_upgrade(weir, authority, secure):
    """The host's end reaches the client as the end of TLS, in order; and the client's the host."""
    proxy = weir(config(secure, authority))
    secure.default = lambda e: (e.send(b"HTTP/1.1 101 X\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\nbye"), e.close())
    with intercepted(proxy, secure.url) as tunnel:
        tunnel.ask("/host", fields=SHOUT)
        assert tunnel.head().status == 101
        assert tunnel.reader.exactly(3) == b"bye"
        assert tunnel.sock.recv(1) == b""
    gone = []
    secure.default = lambda e: (e.send(b"HTTP/1.1 101 X\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\n"), gone.append(e.wait_gone()))
    with intercepted(proxy, secure.url) as tunnel:
        tunnel.ask("/client", fields=SHOUT)
        assert tunnel.head().status == 101
    proxy.access("/client")
    secure.close()
    assert gone == [True]


def test_upgrades_and_http2(weir, authority, tls_origins):
    """Only HTTP/1.1 knows it: that is asked for, whatever the host offers besides."""
    origin = tls_origins(server_context(authority.issue("localhost"), ("h2", "http/1.1")))
    origin.default = switch
    proxy = weir(config(origin, authority))
    with intercepted(proxy, origin.url) as tunnel:
        tunnel.ask("/", fields=SHOUT)
        assert tunnel.head().status == 101
    assert origin.handshakes[0][1] == "http/1.1"
