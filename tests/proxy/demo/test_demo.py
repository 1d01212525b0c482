"""`weir demo`: the host, the proxy and the clients in one process."""
import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from harness.daemon import PATIENCE, PROGRAM, clean_environment, run_weir, sanitizer_reports


class Figures:
    def __init__(self, text):
        self.text = text
        self.served = int(re.search(r"served by the origin +(\d+)", text)[1])
        self.refused = int(re.search(r"refused by the origin +(\d+)", text)[1])
        self.ok, self.refusals = map(
            int, re.search(r"seen by the clients +(\d+) times 200, (\d+) refusals", text).groups()
        )


@pytest.mark.threads
@pytest.mark.parametrize(
    "arguments, least",
    [
        (["--latency", "50ms"], 30),
        (["--policy", "sliding:40/1s", "--latency", "20ms"], 30),
        (["--policy", "token:40/s:5", "--latency", "20ms", "--retry-after", "exact"], 30),
        (["--policy", "concurrency:5", "--latency", "50ms", "--retry-after", "none"], 30),
        (["--policy", "none", "--latency", "50ms", "--workers", "8"], 30),
    ],
    ids=["fixed", "sliding", "token", "concurrency", "none"],
)
def test_the_clients_see_no_refusal(tmp_path, arguments, least):
    done = run_weir(tmp_path, "demo", "--plain", "--seconds", "3", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    figures = Figures(done.stdout)
    assert len(re.findall(r"^ +\d+ s  limit ", done.stdout, re.M)) == 3
    assert figures.served >= least
    assert figures.refusals == 0
    # what the origin has answered is with its client, or on its way there
    assert 0 <= figures.served - figures.ok <= 40
    if "none" not in arguments[1]:
        assert re.search(r"served by the origin +\d+ of \d+ tolerated \(\d+\.\d %\)", done.stdout)
    assert "the clients saw nothing but answers with 200.\n" in done.stdout


def test_without_a_terminal_it_is_plain(tmp_path):
    done = run_weir(tmp_path, "demo", "--seconds", "1", "--latency", "50ms")
    assert done.returncode == 0
    assert "\033" not in done.stdout and "   1 s  limit " in done.stdout


@pytest.fixture
def start(tmp_path):
    """start(ARGUMENTS, stdout): a demo that runs until the test ends it."""
    running = []

    def go(*arguments, stdout=subprocess.PIPE, environment=()):
        running.append(
            subprocess.Popen(
                [PROGRAM, "demo", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                text=True,
                env={**clean_environment(tmp_path), **dict(environment)},
            )
        )
        return running[-1]

    yield go
    for one in running:
        with contextlib.suppress(ProcessLookupError):
            one.kill()
        one.wait()
        if one.stdout:
            one.stdout.close()
    assert not sanitizer_reports(tmp_path), sanitizer_reports(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_early_with_its_figures(start, number):
    demo = start("--plain", "--seconds", "600", "--latency", "20ms")
    for line in demo.stdout:
        if " s  limit " in line:
            break
    demo.send_signal(number)
    rest, _ = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 0
    assert Figures(rest).ok > 0


def test_it_ends_when_nobody_reads_any_more(start):
    demo = start("--plain", "--seconds", "600")
    demo.stdout.readline()
    demo.stdout.close()
    assert demo.wait(PATIENCE) == 1


def on_a_terminal(start, columns, rows, *arguments, **environment):
    """What a demo writes to a terminal of that size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before = termios.tcgetattr(theirs)
    demo = start(*arguments, stdout=theirs, environment={"TERM": "xterm", **environment})
    output = b""
    while b"the clients saw" not in output and b"No client" not in output:
        output += os.read(ours, 65536)
    assert demo.wait(PATIENCE) == 0
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    os.close(ours)
    return output.decode()


@pytest.mark.parametrize("columns, rows", [(80, 24), (40, 12), (200, 50)])
def test_draws_within_the_terminal(start, columns, rows):
    text = on_a_terminal(start, columns, rows, "--seconds", "1", LC_ALL="C.UTF-8", NO_COLOR="")
    frames = text.split("\r\033[")
    assert len(frames) >= 9
    for frame in frames[:-1]:
        lines = re.sub(r"\033\[\d+m", "", re.sub(r"^\d+A", "", frame)).split("\r\n")
        assert lines.pop() == ""
        assert len(lines) < rows
        assert {len(line) for line in lines} == {columns}
    ups = {int(frame.split("A")[0]) for frame in frames[1:]}
    assert ups == {len(frames[0].split("\r\n")) - 1}
    assert "\033[32m" in text and "█" in text
    assert not re.search(r"\033\[(?!\d+[mA])", text)  # nothing else is asked of the terminal


def test_no_color_and_no_utf8(start):
    text = on_a_terminal(start, 80, 24, "--seconds", "1", LC_ALL="C", NO_COLOR="1")
    assert not re.search(r"\033\[\d+m", text)
    assert text.isascii()


@pytest.mark.parametrize(
    "columns, rows, more, term",
    [(39, 24, [], "xterm"), (80, 11, [], "xterm"), (80, 24, ["--plain"], "xterm"), (80, 24, [], "dumb")],
)
def test_plain_where_there_is_no_room_or_no_wish(start, columns, rows, more, term):
    text = on_a_terminal(start, columns, rows, "--seconds", "1", *more, TERM=term)
    assert "\033" not in text and "   1 s  limit " in text


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        ("--rate", "--rate wants a value"),
        ("--rate 0", "--rate 0: "),
        ("--rate 30/s", "--rate 30/s: "),
        ("--rate 5 --policy none", "--rate and --policy exclude each other"),
        ("--workers 0", "--workers 0: "),
        ("--workers 1001", "--workers 1001: "),
        ("--seconds 3601", "--seconds: at most an hour"),
        ("--seconds -1", "--seconds -1: "),
        ("--latency 1d", "--latency 1d: "),
        ("--policy gcra:1/s", "--policy gcra:1/s: "),
        ("--retry-after 1.5", "--retry-after 1.5: "),
        ("--plain=1", "--plain=1: that option takes no value"),
        ("--fast", "unknown option --fast"),
        ("fast", "unexpected argument fast"),
    ],
)
def test_bad_command_lines(tmp_path, arguments, complaint):
    done = run_weir(tmp_path, "demo", *arguments.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and complaint in done.stderr, done.stderr
    assert done.stderr.startswith("weir demo: ")
