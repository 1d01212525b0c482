"""Sockets that systemd opened take the place of `listen`."""
import contextlib
import os
import shutil
import socket
import subprocess
import threading

import pytest

from harness.daemon import PROGRAM, Lines, clean_environment, run_weir
from harness.origin import Gate
from harness.systemd import StoppedThread, hand_over, listening_socket, threads_named
from harness.wire import Client, get


def test_they_replace_listen(weir, origin):
    """What `listen` says, and --listen, stays closed."""
    with listening_socket() as ours, listening_socket() as free:
        taken = free.getsockname()[1]  # would be a fault, were it opened
        proxy = weir(**hand_over([ours]), listen=f"127.0.0.1:{taken}")
        assert proxy.port == ours.getsockname()[1]
        assert get(proxy.port, origin.url + "/x").status == 200
        assert "was not" not in proxy.reload()
        assert get(proxy.port, origin.url + "/x").status == 200


@pytest.mark.threads
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("sockets", [1, 2, 5])
def test_each_connection_finds_a_worker(weir, origin, workers, sockets):
    """The kernel spreads the connections over all sockets of one address: none is left alone."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(listening_socket(reuse=True))]
        port = opened[0].getsockname()[1]
        for _ in range(sockets - 1):
            opened.append(stack.enter_context(listening_socket(port=port, reuse=True)))
        proxy = weir(**hand_over(opened), workers=workers)
        for s in opened:
            s.close()  # only the daemon's are left
        clients = [stack.enter_context(Client(port)) for _ in range(30)]
        for client in clients:
            client.request(origin.url + "/x")
        assert [client.response().status for client in clients] == [200] * 30


def test_one_socket_is_shared_by_all_workers(weir, origin):
    with listening_socket() as ours:
        proxy = weir(**hand_over([ours]), workers=2)
    for worker in threads_named(proxy.process.pid, "worker "):
        with StoppedThread(worker):
            assert get(proxy.port, origin.url + "/x").status == 200


def test_a_local_socket_is_not_removed(weir, origin, tmp_path):
    path = tmp_path / "given.sock"
    with socket.socket(socket.AF_UNIX) as local, listening_socket() as tcp:
        local.bind(str(path))
        local.listen(10)
        proxy = weir(**hand_over([local, tcp], ["local", "tcp"]))
        proxy.log.wait(rf"listening on unix:{path}, opened by systemd")
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(str(path))
            s.sendall(f"GET {origin.url}/x HTTP/1.0\r\n\r\n".encode())
            assert s.recv(65536).split()[1] == b"200"
        proxy.__exit__(None, None, None)
        assert path.exists()


@pytest.mark.parametrize("config", ["", 'admin: {listen: ""}\n'])
def test_one_named_admin_is_for_admin(weir, origin, config):
    """Also where the configuration has it off."""
    with listening_socket() as front, listening_socket() as admin:
        proxy = weir(config, **hand_over([admin, front], ["admin", "weir.socket"]))
        assert proxy.port == front.getsockname()[1]
        proxy.admin_port = admin.getsockname()[1]
    status, _, body = proxy.admin("/readyz")
    assert (status, body) == (200, "ready\n")
    assert get(proxy.port, origin.url + "/x").status == 200


def test_one_for_admin_alone_leaves_listen_in_force(weir, origin):
    with listening_socket() as admin:
        proxy = weir(**hand_over([admin], ["admin"]))
    proxy.log.wait("admin on .*, opened by systemd")
    assert "opened by systemd" not in proxy.log.wait("listening on")[0].string
    assert get(proxy.port, origin.url + "/x").status == 200


def test_one_that_is_not_on_loopback_closes_the_inside(weir, origin):
    """As it would be with `listen`: who reaches the proxy from outside must not get further in."""
    with listening_socket("0.0.0.0") as outside, listening_socket() as inside:
        proxy = weir(**hand_over([inside, outside]), listen="127.0.0.1:0")
        assert get(proxy.port, origin.url + "/x").status == 403
        proxy.reload()
        assert get(proxy.port, origin.url + "/x").status == 403


@pytest.mark.parametrize("kind", ["datagram", "not listening", "a file"])
def test_what_is_no_listening_socket_is_refused(tmp_path, kind):
    config = tmp_path / "weir.yaml"
    config.write_text(f'admin: {{listen: ""}}\nstate: {{dir: "{tmp_path}"}}\n')
    with contextlib.ExitStack() as stack:
        if kind == "a file":
            bad = stack.enter_context(open(config))
        else:
            bad = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM))
            bad.bind(("127.0.0.1", 0))
        given = hand_over([bad], ["front.socket"])
        done = subprocess.run(
            [*given["before"], PROGRAM, "run", "-c", config],
            pass_fds=given["pass_fds"],
            env={**clean_environment(tmp_path), **given["environment"]},
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "front.socket" in done.stderr and "ListenStream=" in done.stderr


def test_those_of_another_process_are_not_ours(tmp_path):
    """A parent's environment that was passed on by mistake."""
    done = subprocess.run(
        [PROGRAM, "run", "--show-config"],
        env={**clean_environment(tmp_path), "LISTEN_FDS": "1", "LISTEN_PID": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0 and '"127.0.0.1:8080"' in done.stdout


@pytest.mark.skipif(not shutil.which("systemd-socket-activate"), reason="is in Debian's package systemd")
def test_systemd_socket_activate(tmp_path, origin):
    """Started by the first connection, which it then serves."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = tmp_path / "weir.yaml"
    config.write_text(f'admin: {{listen: ""}}\nstate: {{dir: "{tmp_path}"}}\nworkers: 2\n')
    passed = [f"--setenv={name}" for name in clean_environment(tmp_path)]
    process = subprocess.Popen(
        ["systemd-socket-activate", *passed, "-l", f"127.0.0.1:{port}", "--fdname=front", PROGRAM, "run", "-c", config],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(tmp_path),
    )
    lines = Lines()
    reader = threading.Thread(target=lines.follow, args=(process.stderr,))
    reader.start()
    try:
        lines.wait(rf"Listening on 127\.0\.0\.1:{port}")
        assert get(port, origin.url + "/x").status == 200
        lines.wait(rf"listening on 127\.0\.0\.1:{port}, opened by systemd")
    finally:
        process.terminate()
        assert process.wait(30) == 0
        reader.join(30)
