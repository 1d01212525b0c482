"""What cannot be used keeps the daemon from starting: one line with the path, what is wrong and what to
do, before anybody can connect."""
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


@pytest.mark.parametrize("case", CASES)
def test_one_line_before_it_listens(tmp_path, taken, case):
    setting, message = (text.format(dir=tmp_path, taken=taken) for text in CASES[case])
    (tmp_path / "file").write_text("somebody's")
    config = tmp_path / "weir.yaml"
    rest = {"listen": "['127.0.0.1:0']", "admin": "{listen: ''}", "state": f"{{dir: {tmp_path}}}"}
    config.write_text(setting + "".join(f"{k}: {v}\n" for k, v in rest.items() if not setting.startswith(k)))
    done = run_weir(tmp_path, "run", "-c", config)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and message in done.stderr, done.stderr
    assert (tmp_path / "file").read_text() == "somebody's"


def test_a_configuration_that_cannot_be_read(tmp_path):
    for path, why in ((tmp_path / "no.yaml", "No such file"), (tmp_path, "Is a directory")):
        done = run_weir(tmp_path, "run", "-c", path)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1 and str(path) in done.stderr and why in done.stderr
