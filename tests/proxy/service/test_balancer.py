"""conf/haproxy.cfg: several weirs, of which each has hosts of its own."""
import pathlib
import re
import shutil
import signal
import subprocess
import threading

import pytest

from harness.daemon import PATIENCE, json_rows
from harness.systemd import listening_socket
from harness.wire import Client, get

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "conf" / "haproxy.cfg"
pytestmark = pytest.mark.skipif(not shutil.which("haproxy"), reason="there is no haproxy")


@pytest.fixture
def hosts(origins):
    return [origins(f"127.0.1.{n}") for n in range(1, 11)]


@pytest.fixture
def weirs(weir, hosts):
    ports = [host.port for host in hosts]
    return [weir(f"destinations: {{connect_ports: {ports}}}\n") for _ in range(3)]


@pytest.fixture
def balancer(weirs, tmp_path):
    """The example with these weirs in it and a port of its own; returns the port."""
    text, changes = EXAMPLE.read_text(), 0
    with listening_socket() as front:
        replacements = [
            (r"bind 127\.0\.0\.1:3128", f"bind fd@{front.fileno()}"),
            (r"(check inter 2s .*) port 8081", r"\1"),
        ]
        for number, proxy in enumerate(weirs, 1):
            server = f"server weir{number} 127.0.0.1:{proxy.port} port {proxy.admin_port}"
            replacements.append((rf"server weir{number} 127\.0\.0\.{number}:8080", server))
        for pattern, replacement in replacements:
            text, count = re.subn(pattern, replacement, text)
            changes += count
        assert changes == len(replacements)
        path = tmp_path / "haproxy.cfg"
        path.write_text(text)
        process = subprocess.Popen(["haproxy", "-db", "-f", path], pass_fds=[front.fileno()])
        port = front.getsockname()[1]
    yield port
    process.terminate()
    process.wait(PATIENCE)


def via(port, host, path):
    answer = get(port, host.url + path)
    assert (answer.status, answer.body) == (200, b"ok")
    return answer.get("via")


def connect(port, host):
    with Client(port) as client:
        client.send(f"CONNECT {host.host} HTTP/1.1\r\nHost: {host.host}\r\n\r\n".encode())
        assert client.head().status == 200
        client.send(f"GET /inside HTTP/1.1\r\nHost: {host.host}\r\n\r\n".encode())
        assert client.response().status == 200


def in_log_of(weirs, method, host):
    """The weirs in whose access logs the host is, once it is in one."""
    tick = threading.Event()
    for _ in range(PATIENCE * 50):
        found = [
            n
            for n, proxy in enumerate(weirs)
            if any(row["method"] == method and host.host in row["url"] for row in json_rows(proxy.access_path))
        ]
        if found:
            return found
        tick.wait(0.02)
    raise AssertionError(f"no {method} for {host.host} in any log")


def test_the_example_is_valid():
    done = subprocess.run(["haproxy", "-c", "-f", EXAMPLE], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "warning" not in (done.stdout + done.stderr).lower()


def test_a_host_is_one_weirs(balancer, weirs, hosts):
    """Over one connection, over several, and with HTTPS."""
    by_host = {host: via(balancer, host, "/first") for host in hosts}
    assert len(set(by_host.values())) > 1
    with Client(balancer) as client:
        for host in hosts:
            answer = client.get(host.url + "/second")
            assert (answer.status, answer.get("via")) == (200, by_host[host])
    for host in hosts:
        connect(balancer, host)
        assert in_log_of(weirs, "CONNECT", host) == in_log_of(weirs, "GET", host)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_when_a_weir_goes_the_hosts_of_the_others_stay(balancer, weirs, hosts, number):
    before = {host: via(balancer, host, "/x") for host in hosts}
    gone = in_log_of(weirs, "GET", hosts[0])[0]
    weirs[gone].expect_exit = 0 if number == signal.SIGTERM else -number
    weirs[gone].signal(number)
    weirs[gone].wait_exit()
    after = {host: via(balancer, host, "/y") for host in hosts}
    for host in hosts:
        assert (before[host] == after[host]) == (before[host] != before[hosts[0]])
