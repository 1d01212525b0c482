"""Real clients under `weir exec`, told of nothing but by their environment, ask over https."""
import re
import subprocess

import pytest

from harness import clients
from harness.daemon import PROGRAM, clean_environment, sanitizer_reports
from harness.origin import Limited
from harness.tls import server_context

REQUESTS = 24


@pytest.fixture
def host(authority, tls_origins):
    return tls_origins(server_context(authority.issue("localhost", "127.0.0.1")))


@pytest.fixture
def run(tmp_path, authority, host):
    """run(COMMAND, MODE, VARIABLES): the command under `weir exec`, for the test's host."""
    tmp = tmp_path / "tmp"
    tmp.mkdir()

    def go(command, mode="intercept", **variables):
        file = tmp_path / "weir.yaml"
        file.write_text(
            f'workers: 2\nstate: {{dir: "{tmp_path}/state"}}\n'
            f"destinations: {{connect_ports: [{host.port}]}}\n"
            f'defaults: {{tls: {{ca_file: "{authority.path}"}}}}\n'
        )
        done = subprocess.run(
            [PROGRAM, "exec", "-c", str(file), "--https", mode, "--", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            env={**clean_environment(tmp_path), "NO_PROXY": "", "TMPDIR": str(tmp), **variables},
        )
        assert not sanitizer_reports(tmp_path), sanitizer_reports(tmp_path)
        assert list(tmp.iterdir()) == []
        return done

    return go


@pytest.mark.parametrize("client", clients.ALL)
def test_interception(run, host, client):
    """The refusals of the host inside TLS never reach the client."""
    limit = host.default = Limited("fixed", rate=20, window=1.0)
    done = run(clients.command(client, [f"{host.url}/{i}" for i in range(REQUESTS)]))
    assert clients.statuses(client, done) == [200] * REQUESTS, done.stderr
    assert limit.served == REQUESTS
    assert f"weir: {REQUESTS} requests in " in done.stderr, done.stderr
    assert f"\n  statuses        200: {REQUESTS}\n" in done.stderr
    assert f"{limit.refused} absorbed, 0 passed on" in done.stderr


@pytest.mark.parametrize("client", clients.ALL)
def test_tunnel(run, host, authority, client, tmp_path):
    """weir is not in it: the client trusts the host by itself."""
    own = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
    wgetrc = tmp_path / "wgetrc"
    wgetrc.write_text(f"ca_certificate = {authority.path}\n")
    variables = {**{name: authority.path for name in own}, "WGETRC": str(wgetrc)}
    done = run(clients.command(client, [f"{host.url}/{i}" for i in range(6)]), mode="tunnel", **variables)
    assert clients.statuses(client, done) == [200] * 6, done.stderr
    assert len(host.requests) == 6
    assert re.search(r"\n  relayed         \d connections?, unread", done.stderr), done.stderr


def test_a_client_that_does_not_trust_the_proxy(run, host):
    """It fails by itself, and the summary does not hide that."""
    done = run(["curl", "-sS", "--cacert", "/etc/ssl/certs/ca-certificates.crt", host.url])
    assert done.returncode == 60
    assert not host.requests
    assert "not served      untrusted: 1" in done.stderr
    assert "does not trust the certificate that it is shown for localhost" in done.stderr


def test_the_host_is_verified(run, authority, host, tmp_path):
    """What the client cannot see any more, weir looks at: a bad certificate is no page."""
    bad = authority.issue("other.example")
    host.context.load_cert_chain(bad)
    done = run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", host.url])
    assert done.stdout == "502"
