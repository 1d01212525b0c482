"""`weir check`, and what `weir run` makes of a bad file: every fault with its place."""
import re

import pytest

from harness.daemon import run_weir

# text of the file; then for each fault: line, column of the key or of its value, what must be named
FAULTS = {
    "unknown key": ("workerz: 2\n", [(1, 1, "workerz", "workers")]),
    "unknown key in a section": ("defaults:\n  retry:\n    atempts: 2\n", [(3, 5, "atempts", "attempts")]),
    "unknown key in a rule": ("rules:\n  - name: a\n    hosts: [a.example]\n    limt: {start: 2}\n", [(4, 5, "limt", "limit")]),
    "duplicate key": ("workers: 1\nannotate: true\nworkers: 2\n", [(3, 1, "workers", None)]),
    "duplicate key in a section": ("clients:\n  max_body: 1KiB\n  max_body: 2KiB\n", [(3, 3, "max_body", None)]),
    "no boolean": ("annotate: perhaps\n", [(1, 11, "annotate", None)]),
    "no number": ("defaults: {retry: {attempts: many}}\n", [(1, 30, "attempts", None)]),
    "no duration": ("defaults: {queue: {timeout: 2 fortnights}}\n", [(1, 29, "timeout", None)]),
    "a duration without unit": ("shutdown_grace: 30\n", [(1, 17, "shutdown_grace", None)]),
    "no size": ("clients: {max_body: 16 elephants}\n", [(1, 21, "max_body", None)]),
    "no rate": ("defaults: {limit: {max_rate: fast}}\n", [(1, 30, "max_rate", None)]),
    "no choice": ("defaults: {limit: {algorithm: magic}}\n", [(1, 31, "algorithm", "adaptive")]),
    "below the least": ("defaults: {limit: {floor: 0}}\n", [(1, 27, "floor", None)]),
    "over the most": ("defaults: {retry: {budget: 200%}}\n", [(1, 28, "budget", None)]),
    "no network": ('destinations: {deny: ["10.0.0.0/33"]}\n', [(1, 23, "10.0.0.0/33", None)]),
    "no named set": ("destinations: {deny: [somewhere]}\n", [(1, 23, "somewhere", None)]),
    "no address": ('listen: ["nonsense"]\n', [(1, 10, "nonsense", None)]),
    "a list is wanted": ("rules: 5\n", [(1, 8, "rules", None)]),
    "a mapping is wanted": ("clients: [1]\n", [(1, 10, "clients", None)]),
    "a scalar is wanted": ("workers: [1]\n", [(1, 10, "workers", None)]),
    "no scope": ("defaults: {scope: [planet]}\n", [(1, 20, "planet", None)]),
    "no YAML": ("workers: [1\nannotate: true\n", [(2, None, "", None)]),
    "tabs": ("clients:\n\tmax_body: 1KiB\n", [(2, None, "", None)]),
    "two documents": ("workers: 1\n---\nworkers: 2\n", [(None, None, "", None)]),
    "no mapping at the top": ("- a\n- b\n", [(1, 1, "", None)]),
    "all at once": (
        "workers: none\nannotate: 7\nclients:\n  max_bdy: 1KiB\n  idle_timeout: soon\n",
        [(1, 10, "workers", None), (2, 11, "annotate", None), (4, 3, "max_bdy", "max_body"), (5, 17, "idle_timeout", None)],
    ),
}


def check_faults(text, path, wanted):
    lines = text.strip().splitlines()
    found = []
    for line in lines:
        match = re.match(rf"{re.escape(str(path))}:(\d+):(\d+): (.+)", line)
        assert match, line
        found.append((int(match[1]), int(match[2]), match[3]))
    assert len(found) == len(wanted), text
    for (line, column, said), (want_line, want_column, key, near) in zip(found, wanted):
        assert want_line in (None, line) and want_column in (None, column), text
        assert key in said, text
        assert near is None or near in said, text


@pytest.mark.parametrize("name", FAULTS)
def test_check_names_each_fault(tmp_path, name):
    text, wanted = FAULTS[name]
    path = tmp_path / "weir.yaml"
    path.write_text(text)
    done = run_weir(tmp_path, "check", "-c", path)
    assert done.returncode == 1
    check_faults(done.stdout + done.stderr, path, wanted)


@pytest.mark.parametrize("name", ["unknown key", "all at once", "no YAML"])
def test_run_does_not_start_with_a_bad_file(tmp_path, name):
    text, wanted = FAULTS[name]
    path = tmp_path / "weir.yaml"
    path.write_text(text)
    done = run_weir(tmp_path, "run", "-c", path)
    assert done.returncode == 1
    faults = [line for line in done.stderr.splitlines() if str(path) + ":" in line]
    assert len(faults) == len(wanted), done.stderr


GOOD = {
    "empty": "",
    "a comment": "# nothing\n",
    "everything once": (
        'listen: ["127.0.0.1:8080", "[::1]:8080"]\nworkers: 2\nshutdown_grace: 1m30s\n'
        'clients: {allow: ["127.0.0.0/8", "::1/128"], max_connections: 10, header_timeout: 10s,'
        " idle_timeout: 75s, max_header: 64KiB, max_body: 16MiB}\n"
        'destinations: {deny: [link-local, private, "192.0.2.0/24"], allow: [], connect_ports: [443]}\n'
        'log: {level: info, format: text, file: "-", access: "", series: ""}\nannotate: true\n'
        "defaults:\n  scope: [host]\n  limit: {algorithm: aimd, start: 4, floor: 1, ceiling: 32, max_rate: 10/s,"
        " min_delay: 250ms, max_hold: 15m, aimd: {increase: 1, per: success, decrease: 0.5}}\n"
        "  breaker: {trip: 6, cooldown: 30s, when_open: wait}\n  queue: {max: 1000, timeout: 2m}\n"
        "  retry: {attempts: 4, on: [429, 500, connect, timeout, reset], methods: safe, base: 500ms, max: 30s,"
        " max_wait: 2m, budget: 20%}\n  timeouts: {connect: 10s, first_byte: 30s, read: 30s, total: 5m, tunnel: 10m}\n"
        'rules:\n  - name: one\n    hosts: ["a.example", "*.b.example"]\n    scope: [rule]\n    limit: {ceiling: 8, max_rate: 5000/h}\n'
        '  - name: rest\n    hosts: ["*"]\n'
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_check_passes_what_is_right(tmp_path, name):
    path = tmp_path / "weir.yaml"
    path.write_text(GOOD[name])
    done = run_weir(tmp_path, "check", "-c", path)
    assert (done.returncode, done.stderr) == (0, "")


def test_check_tells_of_a_pool_that_nothing_goes_by(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text("defaults: {egress: used}\npools: {used: {endpoints: direct}, left: {endpoints: direct}}\n")
    done = run_weir(tmp_path, "check", "-c", path)
    assert done.returncode == 0 and done.stdout.endswith(": ok\n")
    assert done.stderr == f"{path}: no request goes by the pool left: no egress names it\n"


@pytest.mark.parametrize("name", GOOD)
def test_what_show_config_prints_reads_back_to_the_same(tmp_path, name):
    path = tmp_path / "weir.yaml"
    path.write_text(GOOD[name])
    first = run_weir(tmp_path, "run", "-c", path, "--show-config")
    assert first.returncode == 0, first.stderr
    again = tmp_path / "again.yaml"
    again.write_text(first.stdout)
    assert run_weir(tmp_path, "check", "-c", again).returncode == 0
    second = run_weir(tmp_path, "run", "-c", again, "--show-config")
    assert second.stdout == first.stdout


def test_show_config_shows_what_is_in_force(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text("defaults: {retry: {attempts: 7}}\n")
    text = run_weir(tmp_path, "run", "-c", path, "--show-config").stdout
    assert re.search(r"attempts: 7\b", text) and "max_wait: 2m" in text


def test_a_file_that_is_not_there(tmp_path):
    path = tmp_path / "none.yaml"
    for command in ("check", "run"):
        done = run_weir(tmp_path, command, "-c", path)
        assert done.returncode == 1
        assert str(path) in done.stderr and "No such file" in done.stderr


COMMAND_LINES = [[], ["nonsense"], ["run", "--nonsense"], ["check", "-c"], ["run", "extra"], ["--nonsense"]]


@pytest.mark.parametrize("arguments", COMMAND_LINES, ids=" ".join)
def test_a_wrong_command_line(tmp_path, arguments):
    done = run_weir(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr and not done.stdout


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["help", "run"], ["version"], ["--version"]], ids=" ".join)
def test_help_and_version(tmp_path, arguments):
    done = run_weir(tmp_path, *arguments)
    assert done.returncode == 0 and "weir" in done.stdout and not done.stderr
