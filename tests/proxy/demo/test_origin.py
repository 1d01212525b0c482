"""`weir origin`: a host with a hidden limit, to practise against."""
import contextlib
import email.utils
import re
import select
import signal
import subprocess
import threading
import time

import pytest

from harness.daemon import PATIENCE, PROGRAM, clean_environment, run_weir, sanitizer_reports
from harness.wire import Client


class Practice:
    """A running origin, ended by a signal or by itself; its figures are its last line."""

    def __init__(self, directory, *arguments):
        self.directory = directory
        self.process = subprocess.Popen(
            [PROGRAM, "origin", "--listen", "127.0.0.1:0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environment(directory),
        )
        self.first_line = self.process.stdout.readline()
        self.port = int(re.search(r"port (\d+)", self.first_line)[1])

    def end(self, number=None):
        if number is not None:
            self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0
        assert not sanitizer_reports(self.directory), sanitizer_reports(self.directory)
        assert len(output.splitlines()) == 1, output
        return output

    def answers(self, count):
        with Client(self.port) as client:
            return [client.get(f"http://127.0.0.1:{self.port}/") for _ in range(count)]


@pytest.fixture
def practice(tmp_path):
    running = []

    def start(*arguments):
        running.append(Practice(tmp_path, *arguments))
        return running[-1]

    yield start
    for one in running:
        with contextlib.suppress(ProcessLookupError):
            one.process.kill()
        one.process.wait()
        one.process.stdout.close()


@pytest.mark.parametrize("policy", ["fixed:3/60s", "sliding:3/1m", "token:1/60s:3", "token:1/min:3"])
def test_takes_no_more_than_its_limit(practice, policy):
    origin = practice("--policy", policy)
    assert [a.status for a in origin.answers(5)] == [200] * 3 + [429] * 2
    assert origin.end(signal.SIGTERM).startswith("served 3, refused 2, ")


def test_without_a_limit_takes_all(practice):
    origin = practice("--policy", "none")
    assert [a.status for a in origin.answers(50)] == [200] * 50
    assert origin.end(signal.SIGINT).startswith("served 50, refused 0, ")


def test_counts_those_at_a_time(practice):
    origin = practice("--policy", "concurrency:2", "--latency", "60s")
    clients = {client.sock: client for client in (Client(origin.port) for _ in range(3))}
    for client in clients.values():
        client.request(f"http://127.0.0.1:{origin.port}/")
    answered, _, _ = select.select(list(clients), [], [], PATIENCE)
    assert [clients[sock].response().status for sock in answered] == [429]
    for client in clients.values():
        client.close()
    assert origin.end(signal.SIGTERM).startswith("served 0, refused 1, at most 2 at a time, ")


def test_answers_after_its_latency_and_refuses_at_once(practice):
    origin = practice("--policy", "fixed:1/60s", "--latency", "300ms")
    begun = time.monotonic()
    assert origin.answers(1)[0].status == 200
    assert time.monotonic() - begun >= 0.29
    assert origin.answers(1)[0].status == 429


@pytest.mark.parametrize(
    "hint, pattern",
    [("1", "1"), ("0", "0"), ("120", "120"), ("exact", r"(5\d|60)\.\d{3}"), ("none", None)],
)
def test_retry_after(practice, hint, pattern):
    origin = practice("--policy", "fixed:1/60s", "--retry-after", hint)
    ok, refused = origin.answers(2)
    assert ok.get("retry-after") is None
    if pattern is None:
        assert refused.get("retry-after") is None
    else:
        assert re.fullmatch(pattern, refused.get("retry-after"))


def test_retry_after_as_a_date(practice):
    origin = practice("--policy", "fixed:1/60s", "--retry-after", "date")
    before = time.time()
    value = origin.answers(2)[1].get("retry-after")
    assert value.endswith(" GMT")
    assert before + 55 <= email.utils.parsedate_to_datetime(value).timestamp() <= time.time() + 61


def test_the_exact_wait_is_enough(practice):
    origin = practice("--policy", "fixed:1/500ms", "--retry-after", "exact")
    wait = float(origin.answers(2)[1].get("retry-after"))
    threading.Event().wait(wait)
    assert origin.answers(1)[0].status == 200


def test_methods_and_bodies_count_alike(practice):
    origin = practice("--policy", "fixed:4/60s")
    with Client(origin.port) as client:
        for method in (b"POST", b"PUT", b"PATCH", b"DELETE", b"POST"):
            client.send(method + b" /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
            last = client.response()
    assert last.status == 429
    assert origin.end(signal.SIGTERM).startswith("served 4, refused 1, ")


def test_a_client_that_leaves_costs_nothing_else(practice):
    origin = practice("--latency", "200ms")
    with Client(origin.port) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert origin.answers(1)[0].status == 200
    assert origin.end(signal.SIGTERM).startswith("served 2, refused 0, ")


def test_ends_by_itself(practice):
    assert practice("--seconds", "1").end() == "served 0, refused 0, at most 0 at a time\n"


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        ("", "--listen ADDR is missing"),
        ("--listen", "--listen wants a value"),
        ("--listen 127.0.0.1", "--listen 127.0.0.1: "),
        ("--listen localhost:80", "--listen localhost:80: "),
        ("--listen unix:/tmp/x", "--listen unix:/tmp/x: "),
        ("--listen 127.0.0.1:0 --policy 30/s", "--policy 30/s: "),
        ("--listen 127.0.0.1:0 --policy fixed:30", "--policy fixed:30: "),
        ("--listen 127.0.0.1:0 --latency soon", "--latency soon: "),
        ("--listen 127.0.0.1:0 --retry-after -1", "--retry-after -1: "),
        ("--listen 127.0.0.1:0 --seconds 0", "--seconds 0: "),
        ("--listen 127.0.0.1:0 --colour", "unknown option --colour"),
        ("--listen 127.0.0.1:0 -xh", "unknown option -x"),
        ("--listen 127.0.0.1:0 now", "unexpected argument now"),
    ],
)
def test_bad_command_lines(tmp_path, arguments, complaint):
    done = run_weir(tmp_path, "origin", *arguments.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and complaint in done.stderr, done.stderr
    assert done.stderr.startswith("weir origin: ")


def test_a_port_that_is_taken(tmp_path, practice):
    port = practice().port
    done = run_weir(tmp_path, "origin", "--listen", f"127.0.0.1:{port}", "--seconds", "1")
    assert done.returncode == 1
    assert done.stderr == f"weir origin: cannot listen on port {port}: Address already in use\n"
