"""Start, drain, stop."""
import resource
import signal
import socket
import subprocess
import time

import pytest

from harness.daemon import PATIENCE, PROGRAM, Weir, clean_environment, run_weir
from harness.origin import Gate, in_halves, in_turn
from harness.wire import Client, Closed, get

ONE = "defaults: {limit: {algorithm: fixed, start: 1, ceiling: 1}}\n"


@pytest.mark.threads
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_running_ends_what_sleeps_is_told(weir, origin, number, workers):
    gate = Gate()
    origin.on("/running", lambda e: (gate.wait(), e.reply()))
    origin.on("/sleeping", in_turn((429, [("Retry-After", "100")]), (200,)))
    proxy = weir(workers=workers)
    with Client(proxy.port) as running, Client(proxy.port) as sleeping:
        running.request(origin.url + "/running")
        origin.wait_requests(1)
        sleeping.request(origin.url + "/sleeping")
        proxy.wait_metrics(lambda metrics: metrics.value("weir_sleeping") == 1)
        proxy.signal(number)
        answer = sleeping.response()
        assert answer.status == 503
        assert answer.get("proxy-status").startswith("weir")
        assert proxy.process.poll() is None
        gate.open()
        answer = running.response()
        assert (answer.status, answer.body) == (200, b"ok")
        assert running.is_closed() and sleeping.is_closed()
    assert proxy.wait_exit() == 0
    assert origin.paths() == ["/running", "/sleeping"]


def test_what_is_queued_is_told(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir(f"{ONE[:-2]}, queue: {{max: 1}}}}\n")
    with Client(proxy.port) as running, Client(proxy.port) as queued:
        running.request(origin.url + "/running")
        origin.wait_requests(1)
        queued.request(origin.url + "/queued")
        assert get(proxy.port, origin.url + "/probe").status == 503  # the queue is full: it is in
        proxy.signal(signal.SIGTERM)
        assert queued.response().status == 503
        gate.open()
        assert running.response().status == 200
    assert proxy.wait_exit() == 0
    assert origin.paths() == ["/running"]


@pytest.mark.threads
def test_no_new_connections_while_draining(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir(workers=2)
    with Client(proxy.port) as running:
        running.request(origin.url + "/running")
        origin.wait_requests(1)
        seen = len(proxy.log.all)
        proxy.signal(signal.SIGTERM)
        proxy.log.wait(r"stopping: ", seen)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", proxy.port), 5).close()
            except ConnectionResetError:
                continue  # it was in the backlog when the listener closed
            except ConnectionRefusedError:
                break
        else:
            raise AssertionError("still accepts")
        gate.open()
        assert running.response().status == 200
    assert proxy.wait_exit() == 0


def test_idle_connections_do_not_hold_it_up(weir, origin):
    proxy = weir("shutdown_grace: 60s\n")
    with Client(proxy.port) as idle, Client(proxy.port) as fresh:
        assert idle.get(origin.url + "/x").status == 200
        proxy.signal(signal.SIGTERM)
        assert idle.is_closed() and fresh.is_closed()
    assert proxy.wait_exit() == 0


def test_a_body_under_way_is_finished(weir, origin):
    gate = Gate()
    origin.default = in_halves(gate, b"hello", b"world")
    proxy = weir()
    with Client(proxy.port) as client:
        client.request(origin.url + "/x")
        client.head()
        seen = len(proxy.log.all)
        proxy.signal(signal.SIGTERM)
        proxy.log.wait(r"stopping: ", seen)
        gate.open()
        assert client.reader.exactly(10) == b"helloworld"
        assert client.is_closed()
    assert proxy.wait_exit() == 0


@pytest.mark.threads
def test_after_the_grace_the_rest_is_cut(weir, origin):
    gate = Gate()
    origin.default = lambda e: gate.wait()
    proxy = weir("shutdown_grace: 300ms\n", workers=2)
    with Client(proxy.port) as client:
        client.request(origin.url + "/x")
        origin.wait_requests(1)
        proxy.signal(signal.SIGTERM)
        try:
            assert client.response().status in (502, 503, 504)
        except Closed:
            pass
    assert proxy.wait_exit() == 0
    gate.open()


@pytest.mark.threads
def test_a_second_signal_stops_at_once(tmp_path, origin):
    gate = Gate()
    origin.default = lambda e: gate.wait()
    proxy = Weir(tmp_path / "weir", "shutdown_grace: 10m\n", workers=2)
    with proxy, Client(proxy.port) as client:
        client.request(origin.url + "/x")
        origin.wait_requests(1)
        seen = len(proxy.log.all)
        proxy.signal(signal.SIGTERM)
        proxy.log.wait(r"stopping: ", seen)
        proxy.signal(signal.SIGTERM)
        proxy.wait_exit()
    gate.open()


def test_the_port_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        config = tmp_path / "weir.yaml"
        config.write_text(f'listen: ["{address}"]\nadmin: {{listen: ""}}\nstate: {{dir: "{tmp_path}"}}\n')
        done = run_weir(tmp_path, "run", "-c", config)
    assert done.returncode == 1
    assert address in done.stderr and "in use" in done.stderr


def test_another_weir_has_the_port(tmp_path, weir):
    """SO_REUSEPORT would let two daemons share it, and each would know half of the truth."""
    first = weir()
    config = tmp_path / "weir.yaml"
    config.write_text(f'listen: ["127.0.0.1:{first.port}"]\nadmin: {{listen: ""}}\nstate: {{dir: "{tmp_path}"}}\n')
    done = run_weir(tmp_path, "run", "-c", config)
    assert done.returncode == 1 and "in use" in done.stderr


def test_listen_on_the_command_line(tmp_path):
    """--listen wins over the file."""
    config = tmp_path / "weir.yaml"
    config.write_text(f'listen: ["192.0.2.1:1"]\nadmin: {{listen: ""}}\nstate: {{dir: "{tmp_path}"}}\n')
    process = subprocess.Popen(
        [PROGRAM, "run", "-c", config, "--listen", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(tmp_path),
    )
    try:
        assert any("listening on 127.0.0.1:" in line for line in process.stderr)
    finally:
        process.terminate()
        process.stderr.read()
        assert process.wait(30) == 0


def test_more_than_one_listener(weir, origin):
    proxy = weir(listen='127.0.0.1:0", "127.0.0.2:0')
    match, _ = proxy.log.wait(r"listening on 127\.0\.0\.2:(\d+)")
    assert get(proxy.port, origin.url + "/1").status == 200
    with socket.create_connection(("127.0.0.2", int(match[1]))) as s:
        s.settimeout(30)
        s.sendall(f"GET {origin.url}/2 HTTP/1.0\r\n\r\n".encode())
        assert s.recv(65536).split()[1] == b"200"
    origin.wait_requests(2)


def test_a_unix_socket(weir, origin, tmp_path):
    path = tmp_path / "proxy.sock"
    proxy = weir(listen=f'127.0.0.1:0", "unix:{path}')
    proxy.log.wait(r"listening on unix:")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(str(path))
        s.sendall(f"GET {origin.url}/x HTTP/1.0\r\n\r\n".encode())
        assert s.recv(65536).split()[1] == b"200"


def test_a_unix_socket_is_removed_at_the_end_if_it_is_still_ours(weir, tmp_path):
    ours, others = tmp_path / "ours.sock", tmp_path / "others.sock"
    proxy = weir(listen=f'127.0.0.1:0", "unix:{ours}", "unix:{others}')
    proxy.log.wait(r"listening on unix:.*others")
    others.unlink()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(others))
        proxy.signal(signal.SIGTERM)
        assert proxy.wait_exit() == 0
        assert not ours.exists()
        assert others.exists()


def test_many_files_are_allowed(weir, origin):
    """Hundreds of connections: the soft limit of open files is raised to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 4096, "the machine's own limit is too low to tell"
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        proxy = weir()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    clients = [Client(proxy.port) for _ in range(400)]
    assert get(proxy.port, origin.url + "/x").status == 200
    for client in clients:
        client.close()
