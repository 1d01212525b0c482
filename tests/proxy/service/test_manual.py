"""The manual pages: without a fault, and with what an operator looks for."""
import pathlib
import re
import shutil
import subprocess

import pytest

from harness.daemon import PROGRAM, run_weir

PAGES = pathlib.Path(PROGRAM).parent / "man"
pytestmark = pytest.mark.skipif(not shutil.which("man"), reason="there is no man")


def shown(page):
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", PAGES / page],
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "MANROFFOPT": "-c", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return re.sub(".\b", "", done.stdout)


def test_commands():
    text = shown("weir.8")
    for command in ("run", "exec", "env", "ca", "check", "explain", "demo", "origin", "version", "help"):
        assert re.search(rf"^   weir +{command}\b", text, re.MULTILINE), command
    assert "--show-config" in text and not re.search("@[A-Za-z]+@", text)


def test_what_clients_are_told():
    text = shown("weir.8")
    table = (pathlib.Path(__file__).parents[3] / "src/cli/client_env.def").read_text()
    names = re.findall(r'^CLIENT_ENV\("(\w+)"', table, re.MULTILINE)
    assert len(names) > 15
    assert [name for name in names if not re.search(rf"^ +{name}\b", text, re.MULTILINE)] == []


def test_outcomes():
    """What the access log says in one word."""
    text = re.sub(r"\s+", " ", re.sub(r"\u2010\n +", "", shown("weir.8")))
    table = (pathlib.Path(__file__).parents[3] / "src/core/outcome.def").read_text()
    rows = re.findall(r'^OUTCOME\(\w+, "(\w+)", "(.*)"\)', table, re.MULTILINE)
    assert len(rows) > 10
    assert [name for name, said in rows if f" {name} {said[0].upper()}{said[1:]}." not in text] == []


def test_settings(tmp_path):
    """Each that `weir run --show-config` prints."""
    text = re.sub(r"\s+", " ", shown("weir.yaml.5"))
    above, names = [], []
    for line in run_weir(tmp_path, "run", "--show-config").stdout.splitlines():
        match = re.match(r"^( *)([a-z_0-9]+):(.*)$", line)
        if match:
            above = above[: len(match[1]) // 2] + [match[2]]
            names += [".".join(above).removeprefix("defaults.")] if match[3] else []
    assert len(names) > 50
    assert not [name for name in names if f" {name}: " not in text and name not in ("rules", "pools")]
    assert not re.search("@[A-Za-z]+@", text)


@pytest.mark.parametrize("command", ["run", "exec", "env", "ca", "check", "explain", "demo", "origin"])
def test_help_says_the_same_either_way(tmp_path, command):
    one, other = run_weir(tmp_path, "help", command), run_weir(tmp_path, command, "--help")
    assert one.returncode == other.returncode == 0
    assert one.stdout == other.stdout and one.stdout.startswith(f"usage: weir {command} ")
    assert one.stderr == other.stderr == ""
