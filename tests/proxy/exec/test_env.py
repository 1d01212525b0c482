"""`weir env`: what a shell reads of it, for a proxy that runs."""
import os
import pathlib
import re
import subprocess

import pytest

from harness.daemon import PROGRAM, clean_environment, run_weir

TABLE = re.findall(
    r'^CLIENT_ENV\("(\w+)", (\w+), ', (pathlib.Path(__file__).parents[3] / "src/cli/client_env.def").read_text(), re.M
)
NAMES = [name for name, _ in TABLE]


def evaluated(text, directory):
    """The variables of the table as they are in a command of a shell that has evaluated the text."""
    done = subprocess.run(
        ["sh", "-eu", "-c", 'eval "$1"; exec env -0', "sh", text],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    rows = dict(row.split("=", 1) for row in done.stdout.rstrip("\0").split("\0"))
    return {name: value for name, value in rows.items() if name not in ("PATH", "PWD", "_")}


@pytest.fixture
def env(tmp_path):
    """env(CONFIG): what a shell makes of `weir env`'s output."""

    def run(config):
        file = tmp_path / "weir.yaml"
        file.write_text(config + f'state: {{dir: "{tmp_path}/state"}}\n')
        done = run_weir(tmp_path, "env", "-c", file)
        assert (done.returncode, done.stderr) == (0, "")
        return evaluated(done.stdout, tmp_path)

    return run


@pytest.mark.parametrize(
    "listen, url",
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("192.0.2.1:3128", "http://192.0.2.1:3128"),
        ("0.0.0.0:3128", "http://127.0.0.1:3128"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("[::]:8080", "http://[::1]:8080"),
        ('unix:/run/weir.sock", "127.0.0.1:81', "http://127.0.0.1:81"),
        ('127.0.0.1:0", "127.0.0.1:81', "http://127.0.0.1:81"),
    ],
)
def test_the_address_is_that_of_listen(env, listen, url):
    told = env(f'listen: ["{listen}"]\n')
    proxies = {name for name, kind in TABLE if kind == "PROXY"}
    assert {told[name] for name in proxies} == {url}
    assert told["NO_PROXY"] == told["no_proxy"] == "localhost,127.0.0.1,::1"
    port = url.rsplit(":", 1)[1]
    host = url[len("http://") :].rsplit(":", 1)[0].strip("[]")
    assert f"-Dhttps.proxyHost={host} -Dhttps.proxyPort={port} " in told["JAVA_TOOL_OPTIONS"]


def test_without_interception_no_ca_is_told(env):
    told = env("")
    assert set(told) == {name for name, kind in TABLE if kind not in ("BUNDLE", "WGETRC")}


def test_with_interception(env, tmp_path):
    state = tmp_path / "state"
    assert run_weir(tmp_path, "ca", "init", "--dir", state).returncode == 0
    told = env("defaults: {https: intercept}\n")
    assert set(told) == {name for name, kind in TABLE if kind != "WGETRC"}
    assert {told[name] for name, kind in TABLE if kind == "BUNDLE"} == {f"{state}/bundle.pem"}
    assert f'"-Djavax.net.ssl.trustStore={state}/bundle.p12"' in told["JAVA_TOOL_OPTIONS"]
    bundle = (state / "bundle.pem").read_text()
    assert bundle.endswith((state / "ca.pem").read_text()) and bundle.count("BEGIN CERTIFICATE") > 50
    before = [(p.name, p.stat().st_ino) for p in sorted(state.iterdir())]
    env("defaults: {https: intercept}\n")
    assert [(p.name, p.stat().st_ino) for p in sorted(state.iterdir())] == before


def test_a_ca_of_ones_own(env, tmp_path):
    """Named in the file; a rule that opens HTTPS is enough."""
    assert run_weir(tmp_path, "ca", "init", "--dir", tmp_path / "ca").returncode == 0
    told = env(
        f'ca: {{certificate: "{tmp_path}/ca/ca.pem", key: "{tmp_path}/ca/ca.key"}}\n'
        "rules: [{hosts: [a.example], https: intercept}]\n"
    )
    ca = (tmp_path / "ca" / "ca.pem").read_text()
    assert pathlib.Path(told["SSL_CERT_FILE"]).read_text().endswith(ca)


def test_where_the_cas_directory_belongs_to_others(tmp_path):
    """The bundle goes to the user's own; the key is not looked at."""
    ca, home = tmp_path / "ca", tmp_path / "home"
    assert run_weir(tmp_path, "ca", "init", "--dir", ca).returncode == 0
    (ca / "ca.key").unlink()
    (ca / "bundle.pem").mkdir()  # what is there cannot be replaced, by nobody
    file = tmp_path / "weir.yaml"
    file.write_text(f'state: {{dir: "{ca}"}}\ndefaults: {{https: intercept}}\n')
    done = subprocess.run(
        [PROGRAM, "env", "-c", str(file)],
        capture_output=True,
        text=True,
        env={**clean_environment(tmp_path), "HOME": str(home), "XDG_STATE_HOME": ""},
    )
    assert (done.returncode, done.stderr) == (0, "")
    own = home / ".local/state/weir/bundle.pem"
    assert evaluated(done.stdout, tmp_path)["SSL_CERT_FILE"] == str(own)
    assert own.read_text().endswith((ca / "ca.pem").read_text())


@pytest.mark.parametrize(
    "config, message",
    [
        ('listen: ["unix:/run/weir.sock"]\n', "weir env: listen has no address of TCP "),
        ('listen: ["127.0.0.1:0"]\n', "weir env: listen has no address of TCP "),
        ("defaults: {https: intercept}\n", "weir env: there is no CA in {dir}/state as yet: start weir run "),
        ('ca: {certificate: "/no/ca", key: "/no/key"}\ndefaults: {https: intercept}\n', "weir env: cannot read the CA's certificate /no/ca: "),
        ("nonsense: 1\n", "{dir}/weir.yaml:1:1: nonsense: unknown key"),
    ],
)  # fmt: skip
def test_what_cannot_be_told(tmp_path, config, message):
    file = tmp_path / "weir.yaml"
    file.write_text(config + f'state: {{dir: "{tmp_path}/state"}}\n')
    done = run_weir(tmp_path, "env", "-c", file)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(message.format(dir=tmp_path)) and done.stderr.count("\n") == 1


def test_values_are_quoted(tmp_path):
    """Whatever a shell might take for its own."""
    value = "a'b \"c\" $(touch ran) `id` \\ \n*;&|"
    done = subprocess.run(
        [PROGRAM, "env"],
        capture_output=True,
        text=True,
        env={**clean_environment(tmp_path), "NO_PROXY": value, "JAVA_TOOL_OPTIONS": value},
    )
    told = evaluated(done.stdout, tmp_path)
    assert told["NO_PROXY"] == told["no_proxy"] == value
    assert told["JAVA_TOOL_OPTIONS"].startswith(value + " -D")


def test_the_manual_for_clients_names_them():
    text = (pathlib.Path(__file__).parents[3] / "docs/CLIENTS.md").read_text()
    assert [name for name in NAMES if f"`{name}" not in text] == []
