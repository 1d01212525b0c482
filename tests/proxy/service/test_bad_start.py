"""What cannot be used keeps the daemon from starting: one line with the path, what is wrong and what to
do, before anybody can connect."""
import re
import socket

import pytest

from harness.daemon import run_weir

CA = "ca: {{certificate: {dir}/no.pem, key: {dir}/no.key}}\ndefaults: {{https: intercept}}\n"
NOT_THERE = "No such file or directory; "
CASES = {
    "the log": ("log: {{file: {dir}/no/log}}\n", "cannot write to {dir}/no/log: " + NOT_THERE + "change log.file"),
    "the access log": ("log: {{access: {dir}/no/log}}\n", "to {dir}/no/log: " + NOT_THERE + "change log.access"),
    "the series log": ("log: {{series: {dir}/no/log}}\n", "to {dir}/no/log: " + NOT_THERE + "change log.series"),
    "the state directory": ("state: {{dir: {dir}/file}}\n", "directory {dir}/file: Not a directory; change state.dir"),
    "the users": (
        "clients: {{users: {dir}/no/users}}\n",
        "clients.users: cannot read {dir}/no/users: " + NOT_THERE + "see to its permissions",
    ),
    "the CA": (CA, "the CA's certificate {dir}/no.pem: " + NOT_THERE + "see to its permissions"),
    "the CAs of hosts": (
        "defaults: {{tls: {{ca_file: {dir}/no.pem}}}}\n",
        "tls.ca_file of the defaults: cannot read {dir}/no.pem: " + NOT_THERE + "name a file",
    ),
    "a socket without a directory": (
        "listen: ['127.0.0.1:0', 'unix:{dir}/no/socket']\n",
        "unix:{dir}/no/socket: " + NOT_THERE + "make its directory first",
    ),
    "a file where a socket would be": (
        "listen: ['127.0.0.1:0', 'unix:{dir}/file']\n",
        "unix:{dir}/file: Address already in use; another process listens there, or a file is in the place",
    ),
    "a port in use": ("listen: ['127.0.0.1:0', '{taken}']\n", "{taken}: Address already in use; choose another"),
    "the port of admin in use": ("admin: {{listen: '{taken}'}}\n", "{taken}: Address already in use; choose another"),
    "an address of another machine": (
        "listen: ['127.0.0.1:0', '192.0.2.1:80']\n",
        "192.0.2.1:80: Cannot assign requested address; this machine has no such address",
    ),
}


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as s:
        yield "127.0.0.1:%d" % s.getsockname()[1]


def write_config(tmp_path, setting):
    config = tmp_path / "weir.yaml"
    (tmp_path / "file").write_text("somebody's")
    rest = {"listen": "['127.0.0.1:0']", "admin": "{listen: ''}", "state": f"{{dir: {tmp_path}}}"}
    config.write_text(setting + "".join(f"{k}: {v}\n" for k, v in rest.items() if not setting.startswith(k)))
    return config


@pytest.mark.parametrize("case", CASES)
def test_one_line_before_it_listens(tmp_path, taken, case):
    setting, message = (text.format(dir=tmp_path, taken=taken) for text in CASES[case])
    config = write_config(tmp_path, setting)
    done = run_weir(tmp_path, "run", "-c", config)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and message in done.stderr, done.stderr
    assert re.search(rf"{re.escape(str(config))}:1:\d+: ", done.stderr), done.stderr
    assert (tmp_path / "file").read_text() == "somebody's"


# what is wrong without anything being opened for others
CHECKED = [
    "the log",
    "the access log",
    "the series log",
    "the state directory",
    "the users",
    "the CA",
    "the CAs of hosts",
]


@pytest.mark.parametrize("case", CHECKED)
def test_check_says_what_run_would_say(tmp_path, case):
    setting, message = (text.format(dir=tmp_path) for text in CASES[case])
    config = write_config(tmp_path, setting)
    before = sorted(tmp_path.iterdir())
    check = run_weir(tmp_path, "check", "-c", config)
    assert check.returncode == 1 and not check.stdout
    (line,) = check.stderr.splitlines()
    assert line.startswith(f"{config}:1:{setting.index(str(tmp_path)) + 1}: ") and message in line
    assert sorted(tmp_path.iterdir()) == before
    assert line in run_weir(tmp_path, "run", "-c", config).stderr


def test_check_tells_of_all_files_at_once(tmp_path):
    config = tmp_path / "weir.yaml"
    users = tmp_path / "users"
    users.write_text("somebody:secret\n")
    config.write_text(
        f"clients: {{users: {users}}}\n"
        f"log: {{access: {tmp_path}}}\n"
        f"state: {{dir: {tmp_path}/new/state}}\n"
        f"defaults: {{tls: {{ca_file: {users}}}}}\n"
        "rules:\n"
        "  - {hosts: [a.example], https: intercept}\n"
        f"  - {{hosts: [b.example], tls: {{ca_file: {tmp_path}/no.pem}}}}\n"
        "  - {hosts: [c.example]}\n"
    )
    wanted = [
        f"1:18: clients.users: {users}:1: behind the name is no hash of crypt(3)",
        f"2:15: cannot write to {tmp_path}: Is a directory; change log.access",
        f"4:27: tls.ca_file of the defaults: {users} holds no certificate in PEM form",
        f"7:41: tls.ca_file of rule b.example: cannot read {tmp_path}/no.pem",
    ]
    lines = run_weir(tmp_path, "check", "-c", config).stderr.splitlines()
    assert [line[: len(f"{config}:{start}")] for line, start in zip(lines, wanted)] == [f"{config}:{w}" for w in wanted]
    assert len(lines) == len(wanted) and not (tmp_path / "new").exists()


def test_check_of_the_ca_in_the_state_directory(tmp_path):
    """It would be made; but half of one stays half of one, and what is no CA is none."""
    config = write_config(tmp_path, "rules: [{hosts: ['*'], https: intercept}]\n")
    assert run_weir(tmp_path, "check", "-c", config).returncode == 0
    assert not (tmp_path / "ca.pem").exists()
    (tmp_path / "ca.pem").write_text("nothing")
    done = run_weir(tmp_path, "check", "-c", config)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{config}:1:31: ") and "ca.key: No such file" in done.stderr
    assert done.stderr.rstrip() in run_weir(tmp_path, "run", "-c", config).stderr


def test_the_command_line_is_not_blamed_on_the_file(tmp_path):
    config = write_config(tmp_path, "listen: ['127.0.0.1:0']\n")
    done = run_weir(tmp_path, "run", "-c", config, "--listen", "192.0.2.1:80")
    assert done.returncode == 1
    assert f" {config}: cannot listen on 192.0.2.1:80: " in done.stderr


def test_a_configuration_that_cannot_be_read(tmp_path):
    for path, why in ((tmp_path / "no.yaml", "No such file"), (tmp_path, "Is a directory")):
        done = run_weir(tmp_path, "run", "-c", path)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1 and str(path) in done.stderr and why in done.stderr
