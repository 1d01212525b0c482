"""`weir ca`: made once, shown, exported."""
import os
import re
import stat
import subprocess

import pytest

from harness.daemon import PROGRAM, clean_environment, run_weir


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout


def test_made_shown_exported(tmp_path):
    ca = tmp_path / "new" / "ca"
    made = run_weir(tmp_path, "ca", "init", "--dir", ca)
    assert (made.returncode, made.stderr) == (0, "")
    shown = run_weir(tmp_path, "ca", "show", "--dir", ca)
    assert (shown.returncode, shown.stdout) == (0, made.stdout)
    exported = run_weir(tmp_path, "ca", "export", "--dir", ca)
    assert (exported.returncode, exported.stdout) == (0, (ca / "ca.pem").read_text())

    facts = dict(line.split(None, 1) for line in made.stdout.splitlines())
    assert facts["certificate"] == f"{ca}/ca.pem"
    theirs = openssl("x509", "-in", str(ca / "ca.pem"), "-noout", "-fingerprint", "-sha256", "-enddate", "-dateopt", "iso_8601")
    assert facts["fingerprint"] == "SHA-256 " + re.search("Fingerprint=(.*)", theirs)[1]
    assert facts["expires"] == re.search(r"notAfter=(\d+-\d+-\d+)", theirs)[1]
    assert stat.S_IMODE((ca / "ca.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(ca.stat().st_mode) == 0o700


def test_never_overwritten(tmp_path):
    run_weir(tmp_path, "ca", "init", "--dir", tmp_path)
    before = (tmp_path / "ca.pem").read_text(), (tmp_path / "ca.key").read_text()
    again = run_weir(tmp_path, "ca", "init", "--dir", tmp_path)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"weir ca: {tmp_path}/ca.pem is there already: a CA is never overwritten\n"
    assert ((tmp_path / "ca.pem").read_text(), (tmp_path / "ca.key").read_text()) == before


def test_who_may_not_read_the_key_can_show_it(tmp_path):
    run_weir(tmp_path, "ca", "init", "--dir", tmp_path)
    (tmp_path / "ca.key").unlink()
    assert run_weir(tmp_path, "ca", "show", "--dir", tmp_path).returncode == 0
    assert run_weir(tmp_path, "ca", "export", "--dir", tmp_path).returncode == 0


@pytest.mark.parametrize("verb", ["show", "export"])
def test_none_is_there(tmp_path, verb):
    done = run_weir(tmp_path, "ca", verb, "--dir", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"weir ca: there is no CA in {tmp_path}: weir ca init --dir {tmp_path} makes one")


@pytest.mark.parametrize("verb", ["show", "export"])
def test_what_is_there_is_none(tmp_path, verb):
    (tmp_path / "ca.pem").write_text("nothing of the kind\n")
    done = run_weir(tmp_path, "ca", verb, "--dir", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"weir ca: {tmp_path}/ca.pem holds no certificate in PEM form")
    assert done.stderr.endswith(f" weir ca init --dir {tmp_path}\n")


@pytest.mark.parametrize(
    "variables, place",
    [
        ({"STATE_DIRECTORY": "{dir}/service"}, "service"),
        ({"XDG_STATE_HOME": "{dir}/xdg"}, "xdg/weir"),
        ({"HOME": "{dir}/home"}, "home/.local/state/weir"),
    ],
)
def test_without_a_directory_the_state_directory(tmp_path, variables, place):
    env = {k: v for k, v in clean_environment(tmp_path).items() if k not in ("STATE_DIRECTORY", "XDG_STATE_HOME", "HOME")}
    env.update({k: v.format(dir=tmp_path) for k, v in variables.items()})
    done = subprocess.run([PROGRAM, "ca", "init"], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / place / "ca.pem").exists()


def test_the_ca_of_a_file(tmp_path):
    """What a proxy with that file would use: the one in its state directory, or one that it names."""
    state, file = tmp_path / "state", tmp_path / "weir.yaml"
    file.write_text(f"state: {{dir: {state}}}\n")
    done = run_weir(tmp_path, "ca", "show", "-c", file)
    assert done.returncode == 1
    assert done.stderr.startswith(f"weir ca: there is no CA in {state}: weir ca init -c {file} makes one")
    made = run_weir(tmp_path, "ca", "init", "-c", file)
    assert made.returncode == 0 and f"certificate  {state}/ca.pem\n" in made.stdout
    run_weir(tmp_path, "ca", "init", "--dir", tmp_path / "other")
    (tmp_path / "other" / "ca.pem").rename(tmp_path / "own.pem")
    file.write_text(f"ca: {{certificate: {tmp_path}/own.pem, key: {tmp_path}/other/ca.key}}\n")
    exported = run_weir(tmp_path, "ca", "export", "--config", file)
    assert (exported.returncode, exported.stdout) == (0, (tmp_path / "own.pem").read_text())
    refused = run_weir(tmp_path, "ca", "init", "-c", file)
    assert refused.returncode == 1 and f"{tmp_path}/own.pem" in refused.stderr
    file.write_text("stat: {}\n")
    assert run_weir(tmp_path, "ca", "show", "-c", file).stderr.startswith(f"{file}:1:1: stat: unknown key")


def test_no_directory_at_all(tmp_path):
    env = {k: v for k, v in clean_environment(tmp_path).items() if k not in ("STATE_DIRECTORY", "XDG_STATE_HOME", "HOME")}
    done = subprocess.run([PROGRAM, "ca", "init"], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (1, "weir ca: HOME is not set: say with --dir where the CA is\n")


def test_an_output_that_takes_nothing(tmp_path):
    run_weir(tmp_path, "ca", "init", "--dir", tmp_path)
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "ca", "export", "--dir", str(tmp_path)], stdout=full, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert (done.returncode, done.stderr) == (1, "weir ca: cannot write: No space left on device\n")


@pytest.mark.parametrize("arguments", [[], ["make"], ["init", "x"], ["--dir"], ["show", "--dir", "x", "-c", "y"], ["show", "--nonsense"]])
def test_a_wrong_command_line(tmp_path, arguments):
    done = run_weir(tmp_path, "ca", *arguments)
    assert (done.returncode, done.stdout) == (2, "") and "usage: weir ca init|show|export" in done.stderr
