"""TLS with hosts: what is verified, and what is said where that fails."""
import contextlib
import pathlib
import socket
import ssl
import threading

import pytest

from harness.daemon import run_weir
from harness.tls import DAY, Authority, server_context
from harness.wire import get

ONCE = ", retry: {attempts: 1}"


def config(ca="", more=ONCE):
    return f'defaults: {{https: upgrade, tls: {{ca_file: "{ca}"}}{more}}}\n'


def refused(answer, error, *words):
    status = answer.get("proxy-status")
    assert answer.status == 502 and f"error={error};" in status, status
    assert all(word in status for word in words), status
    assert all(word.encode() in answer.body for word in words if '"' not in word)


# what is wrong; how the certificate is made; what is said of it
BAD = {
    "expired": (dict(names=["localhost"], since=-9 * DAY, until=-DAY), "has expired"),
    "not yet": (dict(names=["localhost"], since=DAY), "is not valid yet"),
    "other host": (dict(names=["example.com", "*.localhost"]), "is for another host"),
    "other address": (dict(names=["127.0.0.1"]), "is for another host"),
    "self-signed": (dict(names=["localhost"], self_signed=True), "is signed by itself"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_certificates(weir, authority, tls_origins, what):
    how, said = BAD[what]
    origin = tls_origins(server_context(authority.issue(*how.pop("names"), **how)))
    proxy = weir(config(authority.path))
    refused(get(proxy.port, origin.plain_url + "/"), "tls_certificate_error", said)
    assert not origin.requests
    row = proxy.access(origin.plain_url)
    assert (row["status"], row["outcome"]) == (502, "upstream_failed")


def test_unknown_issuer(weir, authority, tls_origins, tmp_path):
    origin = tls_origins(server_context(authority.issue("localhost")))
    others = [Authority(tmp_path / "other", "other CA").path, Authority(tmp_path / "like", "test CA").path]
    for ca in ["", *others]:
        refused(get(weir(config(ca)).port, origin.plain_url + "/"), "tls_certificate_error", "is not known here")
    assert not origin.requests


def test_revoked(weir, authority, tls_origins, tmp_path):
    """Where the file of CAs holds their lists: of two hosts the one is taken, the other is not."""
    certificates = [authority.issue("localhost") for _ in range(2)]
    good, bad = (tls_origins(server_context(path)) for path in certificates)
    both = tmp_path / "both.pem"
    both.write_text(pathlib.Path(authority.path).read_text() + authority.revoke(certificates[1]))
    proxy = weir(config(both))
    for _ in range(2):
        assert get(proxy.port, good.plain_url + "/").status == 200
        refused(get(proxy.port, bad.plain_url + "/"), "tls_certificate_error", "has been revoked")


def test_bad_certificates_are_not_retried(weir, authority, tls_origins):
    """Nothing would change; and nothing is learned of the host's limit."""
    origin = tls_origins(server_context(authority.issue("example.com")))
    answer = get(weir(config(authority.path, "")).port, origin.plain_url + "/")
    assert answer.get("weir-attempts") == "1"


def test_verify_false_takes_any(weir, authority, tls_origins):
    origin = tls_origins(server_context(authority.issue("example.com", since=-9 * DAY, until=-DAY)))
    proxy = weir("defaults: {https: upgrade, tls: {verify: false}}\n")
    assert get(proxy.port, origin.plain_url + "/").status == 200


def test_rules_do_not_share_what_they_trust(weir, authority, tls_origins, tmp_path):
    """Also not a connection, or a TLS session, of another rule's."""
    context = server_context(authority.issue("localhost", "127.0.0.1"))
    origin = tls_origins(context)
    proxy = weir(
        "rules:\n"
        f'  - {{hosts: localhost, https: upgrade, tls: {{ca_file: "{authority.path}"}}}}\n'
        "  - {hosts: 127.0.0.1, https: upgrade}\n"
    )
    by_address = origin.plain_url.replace("localhost", "127.0.0.1")
    for _ in range(2):
        assert get(proxy.port, origin.plain_url + "/").status == 200
        refused(get(proxy.port, by_address + "/"), "tls_certificate_error")
    text = proxy.config_path.read_text()
    proxy.config_path.write_text(text.replace(authority.path, Authority(tmp_path / "other").path))
    proxy.reload()
    refused(get(proxy.port, origin.plain_url + "/"), "tls_certificate_error")


def test_address_in_the_certificate(weir, authority, tls_origins):
    origin = tls_origins(server_context(authority.issue("127.0.0.1")), name="127.0.0.1")
    assert get(weir(config(authority.path)).port, origin.plain_url + "/").status == 200
    assert origin.names == [None]  # no name is sent for an address (RFC 6066, 3)


def old_context(authority, version):
    context = server_context(authority.issue("localhost"))
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = version
    return context


@pytest.mark.parametrize("version, least", [("TLSv1", "1.2"), ("TLSv1_1", "1.2"), ("TLSv1_2", "1.3")])
def test_old_versions(weir, authority, tls_origins, version, least):
    origin = tls_origins(old_context(authority, ssl.TLSVersion[version]))
    proxy = weir(
        f'defaults: {{https: upgrade, tls: {{ca_file: "{authority.path}", min_version: "{least}"}}{ONCE}}}\n'
    )
    refused(get(proxy.port, origin.plain_url + "/"), "tls_protocol_error", "version of TLS", "tls.min_version")


def test_tls_1_2_will_do(weir, authority, tls_origins):
    origin = tls_origins(old_context(authority, ssl.TLSVersion.TLSv1_2))
    assert get(weir(config(authority.path)).port, origin.plain_url + "/").status == 200
    assert origin.handshakes[0][0] == "TLSv1.2"


def test_alerts(weir, authority, tls_origins):
    context = server_context(authority.issue("localhost"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")  # which the key is not for
    origin = tls_origins(context)
    answer = get(weir(config(authority.path)).port, origin.plain_url + "/")
    refused(answer, "tls_alert_received", "handshake failure")


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_host_that_wants_a_certificate(weir, authority, tls_origins, version):
    """With TLS 1.3 it says so only when the request is under way."""
    context = server_context(authority.issue("localhost"))
    context.maximum_version = ssl.TLSVersion[version]
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.path)
    origin = tls_origins(context)
    answer = get(weir(config(authority.path)).port, origin.plain_url + "/")
    if version == "TLSv1_3" and "connection_terminated" in answer.get("proxy-status"):
        assert answer.status == 502  # its reset overtook the alert
    else:
        refused(answer, "tls_alert_received", "alert")


@pytest.fixture
def plain_host():
    """A host that greets with plain text."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet():
            with contextlib.suppress(OSError):
                sock, _ = listener.accept()
                with sock:
                    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
                    while sock.recv(4096):
                        pass

        thread = threading.Thread(target=greet)
        thread.start()
        yield f"http://localhost:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_not_tls_at_all(weir, authority, plain_host):
    answer = get(weir(config(authority.path)).port, plain_host + "/")
    refused(answer, "tls_protocol_error", "TLS with the host failed")


def test_sessions_are_taken_up_again(weir, authority, tls_origins):
    """A new connection to a host that is known costs it no new signature."""
    origin = tls_origins(server_context(authority.issue("localhost")))
    origin.default = lambda e: e.reply(fields=[("Connection", "close")])
    proxy = weir(config(authority.path))
    for _ in range(3):
        assert get(proxy.port, origin.plain_url + "/").status == 200
    assert [reused for _, _, reused in origin.wait_handshakes(3)] == [False, True, True]


def test_missing_ca_file_on_reload(weir, authority, tls_origins):
    origin = tls_origins(server_context(authority.issue("localhost")))
    proxy = weir(config(authority.path))
    proxy.write(config("/nowhere/ca.pem"))
    assert "was not reloaded" in proxy.reload()
    assert "tls.ca_file of the defaults: cannot read /nowhere/ca.pem: No such file or directory" in proxy.log.text()
    assert get(proxy.port, origin.plain_url + "/").status == 200


def test_bad_ca_file_at_the_start(tmp_path):
    path = tmp_path / "weir.yaml"
    for text, said in ((None, "No such file"), ("no certificate\n", "holds no certificate in PEM form")):
        ca = tmp_path / "ca.pem"
        if text:
            ca.write_text(text)
        path.write_text(f'listen: "127.0.0.1:0"\nrules: [{{name: r, hosts: x, tls: {{ca_file: "{ca}"}}}}]\n')
        done = run_weir(tmp_path, "run", "-c", path)
        assert done.returncode == 1
        assert f"tls.ca_file of rule r: " in done.stderr and said in done.stderr and str(ca) in done.stderr
