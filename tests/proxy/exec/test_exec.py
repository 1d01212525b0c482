"""`weir exec`: what the command finds, what becomes of its signals, its status, and what is left."""
import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import threading

import pytest

from harness.daemon import PATIENCE, PROGRAM, Lines, clean_environment, sanitizer_reports
from harness.origin import Limited, in_turn

PYTHON = "/usr/bin/python3"
CONFIG = "workers: 1\n"


class Exec:
    """`weir exec` with a state directory and a directory for temporary files of its own."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.tmp = self.directory / "tmp dir"
        self.tmp.mkdir()
        self.state = self.directory / "state"
        self.config_path = self.directory / "weir.yaml"
        self.write("")

    def write(self, config):
        state = "" if "state:" in config else f'state: {{dir: "{self.state}"}}\n'
        self.config_path.write_text(CONFIG + state + config)

    def environment(self, **more):
        """A value of None takes a variable away."""
        env = {**clean_environment(self.directory), "TMPDIR": str(self.tmp), "NO_PROXY": "", "no_proxy": "", **more}
        return {k: v for k, v in env.items() if v is not None}

    def arguments(self, *command, options=()):
        return [PROGRAM, "exec", "-c", str(self.config_path), *options, "--", *map(str, command)]

    def run(self, *command, options=(), env={}, **more):
        done = subprocess.run(
            self.arguments(*command, options=options),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            env=self.environment(**env),
            **more,
        )
        self.check_nothing_left()
        return done

    def python(self, script, *arguments, **more):
        return self.run(PYTHON, "-c", script, *arguments, **more)

    def start(self, *command, **more):
        return subprocess.Popen(
            self.arguments(*command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
            **more,
        )

    def check_nothing_left(self):
        assert not sanitizer_reports(self.directory), sanitizer_reports(self.directory)
        assert list(self.tmp.iterdir()) == []


@pytest.fixture
def weir_exec(tmp_path):
    return Exec(tmp_path)


# ---- its exit status ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script, status",
    [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("kill -SEGV $$", 139)],
)
def test_the_commands_status(weir_exec, script, status):
    assert weir_exec.run("sh", "-c", script).returncode == status


def test_a_command_that_cannot_run(weir_exec, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program\n")
    for command, status, why in [
        ("weir-no-such-command", 127, "No such file or directory"),
        (tmp_path / "nothing" / "here", 127, "No such file or directory"),
        (plain, 126, "Permission denied"),
        (tmp_path, 126, "Permission denied"),
    ]:
        done = weir_exec.run(command)
        assert (done.returncode, done.stdout) == (status, "")
        assert done.stderr == f"weir exec: {command}: {why}\n"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "there is no command to run"),
        (["--"], "there is no command to run"),
        (["--https", "upgrade", "--", "true"], '--https: expected tunnel or intercept, got "upgrade"'),
        (["--nonsense", "--", "true"], "unrecognized option"),
    ],
)
def test_a_wrong_command_line(weir_exec, arguments, message):
    done = subprocess.run([PROGRAM, "exec", *arguments], capture_output=True, text=True, env=weir_exec.environment())
    assert done.returncode == 2 and done.stdout == ""
    assert message in done.stderr and "usage: weir exec" in done.stderr


def test_the_commands_own_options_are_its_own(weir_exec):
    done = subprocess.run(
        [PROGRAM, "exec", "-c", str(weir_exec.config_path), "sh", "-c", "echo $0 $1", "-c", "--https"],
        capture_output=True,
        text=True,
        env=weir_exec.environment(),
    )
    assert (done.returncode, done.stdout) == (0, "-c --https\n")


def test_what_keeps_the_command_from_running(weir_exec, tmp_path):
    (tmp_path / "file").write_text("")
    touch = ("touch", tmp_path / "ran")
    for config, options, message in [
        ("nonsense: 1\n", (), f"{weir_exec.config_path}:3:1: nonsense: unknown key\n"),
        (f'state: {{dir: "{tmp_path}/file"}}\n', (), f"weir exec: cannot use the state directory {tmp_path}/file: "),
        (f'log: {{file: "{tmp_path}/no/log"}}\n', (), f"weir exec: cannot write to {tmp_path}/no/log: No such file"),
        ("", ("--summary", tmp_path / "no" / "summary"), f"weir exec: cannot write to {tmp_path}/no/summary: No such"),
    ]:
        weir_exec.write(config)
        done = weir_exec.run(*touch, options=map(str, options))
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith(message)
        assert not (tmp_path / "ran").exists()
    weir_exec.write("")
    assert weir_exec.run(*touch, env={"TMPDIR": str(tmp_path / "no")}).returncode == 1
    assert not (tmp_path / "ran").exists()


# ---- what it finds ------------------------------------------------------------------------------

TABLE = re.findall(
    r'^CLIENT_ENV\("(\w+)", (\w+), ', (pathlib.Path(__file__).parents[3] / "src/cli/client_env.def").read_text(), re.M
)
DUMP = "import json, os; print(json.dumps(dict(os.environ)))"


def told(weir_exec, **more):
    done = weir_exec.python(DUMP, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_its_environment(weir_exec):
    env = told(weir_exec)
    proxy = env["HTTP_PROXY"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", proxy)
    bundle = env["SSL_CERT_FILE"]
    assert bundle.startswith(str(weir_exec.tmp)) and len(TABLE) > 15
    for name, kind in TABLE:
        if kind == "PROXY":
            assert env[name] == proxy
        elif kind == "BUNDLE":
            assert env[name] == bundle
        elif kind == "SWITCH":
            assert env[name] == "1"
        else:
            assert name in env and kind in ("NO_PROXY", "WGETRC", "JAVA")
    assert f"-Dhttps.proxyPort={proxy.split(':')[2]} " in env["JAVA_TOOL_OPTIONS"]


def test_all_else_stays_as_it_was(weir_exec):
    ours = weir_exec.environment(WEIR_TEST="a=b 'c'\n", EMPTY="")
    env = told(weir_exec, env={"WEIR_TEST": "a=b 'c'\n", "EMPTY": ""})
    names = {name for name, _ in TABLE} | {"_", "PWD", "OLDPWD", "SHLVL", "LC_CTYPE"}
    assert {k: v for k, v in env.items() if k not in names} == {k: v for k, v in ours.items() if k not in names}


@pytest.mark.parametrize(
    "own, expected",
    [
        ({"NO_PROXY": None, "no_proxy": None}, ("localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1")),
        ({"NO_PROXY": "a.example", "no_proxy": None}, ("a.example", "a.example")),
        ({"NO_PROXY": None, "no_proxy": "b.example"}, ("b.example", "b.example")),
        ({"NO_PROXY": "a.example", "no_proxy": "b.example"}, ("a.example", "b.example")),
        ({"NO_PROXY": "", "no_proxy": None}, ("", "")),
    ],
)
def test_no_proxy_is_the_users(weir_exec, own, expected):
    env = told(weir_exec, env=own)
    assert (env["NO_PROXY"], env["no_proxy"]) == expected


@pytest.mark.parametrize(
    "own, expected",
    [
        (None, "localhost|*.localhost|127.0.0.1|[::1]"),
        ("a.example, .b.example,10.0.0.0/8,fd00::1", "a.example|*.a.example|*.b.example|[fd00::1]"),
        ("*", "*"),
        ("", ""),
    ],
)
def test_no_proxy_in_javas_notation(weir_exec, own, expected):
    env = told(weir_exec, env={"NO_PROXY": own, "no_proxy": None, "JAVA_TOOL_OPTIONS": "-Xmx1g"})
    assert env["JAVA_TOOL_OPTIONS"].startswith("-Xmx1g -Dhttp.proxyHost=127.0.0.1 ")
    assert f'"-Dhttp.nonProxyHosts={expected}"' in env["JAVA_TOOL_OPTIONS"]


@pytest.mark.parametrize("how", ["option", "file"])
def test_without_interception_no_variable_of_a_ca_is_touched(weir_exec, how):
    if how == "file":
        weir_exec.write("defaults: {https: tunnel}\n")
    own = {name: f"/mine/{name}" for name, kind in TABLE if kind in ("BUNDLE", "WGETRC")}
    env = told(weir_exec, env=own, options=("--https", "tunnel") if how == "option" else ())
    assert {name: env[name] for name in own} == own
    assert "trustStore" not in env["JAVA_TOOL_OPTIONS"]
    assert not weir_exec.state.exists() or not list(weir_exec.state.glob("ca.*"))


def test_a_rule_that_opens_https_is_enough(weir_exec):
    weir_exec.write("defaults: {https: tunnel}\nrules: [{hosts: [a.example], https: intercept}]\n")
    assert "SSL_CERT_FILE" in told(weir_exec)
    assert (weir_exec.state / "ca.pem").exists()


READ = """
import os, sys
for name in sys.argv[1:]:
    path = os.environ[name]
    print(name, oct(os.stat(path).st_mode & 0o777), oct(os.stat(os.path.dirname(path)).st_mode & 0o777))
    print(open(path).read())
"""


def test_the_bundle_holds_all_cas(weir_exec, tmp_path):
    """The system's, those that the user named, and ours; the key is nobody else's."""
    own = tmp_path / "own.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=the user's own", "-keyout", str(tmp_path / "own.key"), "-out", str(own)],
        check=True, capture_output=True,
    )  # fmt: skip
    done = weir_exec.python(READ, "SSL_CERT_FILE", env={"CURL_CA_BUNDLE": str(own), "PIP_CERT": str(own)})
    assert done.stdout.startswith("SSL_CERT_FILE 0o644 0o700\n")
    held = re.findall("-----BEGIN CERTIFICATE-----.*?-----END", done.stdout, re.S)
    system = re.findall(
        "-----BEGIN CERTIFICATE-----.*?-----END", pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_text(), re.S
    )
    ca = (weir_exec.state / "ca.pem").read_text()
    assert len(held) == len(set(held)) == len(set(system)) + 2
    assert set(system) < set(held) and held[-1] in ca and held[-2] in own.read_text()
    assert (weir_exec.state / "ca.key").stat().st_mode & 0o777 == 0o600


def test_javas_trust_store_holds_the_same(weir_exec, tmp_path):
    """Each marked as trusted, without which Java passes it over."""
    copy = tmp_path / "store"
    copied = weir_exec.run("sh", "-c", f'cp "${{SSL_CERT_FILE%.pem}}.p12" {copy}; grep -c BEGIN "$SSL_CERT_FILE"')
    listed = subprocess.run(
        ["openssl", "pkcs12", "-in", str(copy), "-passin", "pass:changeit", "-nokeys"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    count = int(copied.stdout)
    assert listed.count("BEGIN CERTIFICATE") == count
    marks = re.findall(r"Trusted key usage \(Oracle\):|2\.16\.840\.1\.113894\.746875\.1\.1:", listed)
    assert len(marks) == count
    names = re.findall(r"friendlyName: (\S+)", listed)
    assert len(set(names)) == count


def test_a_file_of_the_users_that_cannot_be_read_is_told(weir_exec):
    done = weir_exec.run("true", env={"PIP_CERT": "/no/such.pem", "REQUESTS_CA_BUNDLE": "/dev/null"})
    assert done.returncode == 0
    assert "PIP_CERT=/no/such.pem: no certificates can be had from there: No such file or directory" in done.stderr
    assert "REQUESTS_CA_BUNDLE=/dev/null: no certificates can be had from there: it is no PEM file" in done.stderr


def test_wgetrc_keeps_what_the_user_has_in_it(weir_exec, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".wgetrc").write_text("tries = 1")
    text = weir_exec.python(READ, "WGETRC", env={"HOME": str(home)}).stdout.splitlines()
    assert text[0] == "WGETRC 0o600 0o700"
    assert text[1] == "tries = 1" and text[2].startswith("ca_certificate = ")
    named = tmp_path / "named"
    named.write_text("timeout = 9\n")
    assert "timeout = 9" in weir_exec.python(READ, "WGETRC", env={"HOME": str(home), "WGETRC": str(named)}).stdout


def test_without_a_place_for_a_ca_there_is_one_for_the_command(weir_exec, tmp_path):
    weir_exec.write('state: {dir: ""}\n')
    nowhere = {"HOME": None, "STATE_DIRECTORY": None, "XDG_STATE_HOME": None}
    done = weir_exec.python(READ, "SSL_CERT_FILE", env=nowhere)
    assert done.returncode == 0 and "BEGIN CERTIFICATE" in done.stdout
    assert "cannot use the state directory (HOME is not set)" in done.stderr
    done = weir_exec.run("true", env=nowhere, options=("--https", "tunnel"))
    assert done.returncode == 0


def test_the_ca_is_made_once(weir_exec):
    weir_exec.run("true")
    before = (weir_exec.state / "ca.pem").read_text()
    weir_exec.run("true")
    assert (weir_exec.state / "ca.pem").read_text() == before


STATUS = """
import json, os, re, resource
text = open("/proc/self/status").read()
fds = {int(fd) for fd in os.listdir("/proc/self/fd")}
print(json.dumps({
    # 32 and 33 are the C library's own; who is started by posix_spawn(3) finds them ignored
    "signals": [int(mask, 16) & ~(3 << 31) for mask in re.findall(r"^(?:SigBlk|SigIgn):\\s(.*)", text, re.M)],
    "limit": resource.getrlimit(resource.RLIMIT_NOFILE),
    "fds": sorted(fd for fd in fds if os.path.exists(f"/proc/self/fd/{fd}")),
}))
"""


def test_its_process_is_as_without_weir(weir_exec):
    """Open descriptors, limits, signals blocked and ignored: all as weir found them."""
    read, write = os.pipe()
    results = []
    try:
        for arguments in ([PYTHON, "-c", STATUS], weir_exec.arguments(PYTHON, "-c", STATUS)):
            done = subprocess.run(
                ["sh", "-c", 'trap "" HUP; ulimit -S -n 300; exec "$@"', "sh", *arguments],
                capture_output=True,
                text=True,
                pass_fds=(read, write),
                env=weir_exec.environment(),
            )
            assert done.returncode == 0, done.stderr
            results.append(json.loads(done.stdout))
    finally:
        os.close(read)
        os.close(write)
    assert results[0] == results[1]
    assert read in results[1]["fds"] and write in results[1]["fds"]


# ---- signals ------------------------------------------------------------------------------------

NOTES = """
import os, signal, sys, time
names = sys.argv[1].split(",")
last = sys.argv[2]
def note(number, frame):
    print(signal.Signals(number).name, flush=True)
    if signal.Signals(number).name == last:
        sys.exit(3)
for name in names + [last]:
    signal.signal(signal.Signals[name], note)
print("ready", os.getpid(), flush=True)
while True:
    signal.pause()
"""


def follow(process):
    lines = Lines()
    threading.Thread(target=lines.follow, args=(process.stdout,)).start()
    return lines


@pytest.mark.threads
def test_signals_are_passed_on(weir_exec):
    names = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT"]
    process = weir_exec.start(PYTHON, "-c", NOTES, ",".join(names), "SIGQUIT", start_new_session=True)
    lines = follow(process)
    lines.wait("ready")
    for name in names + ["SIGQUIT"]:
        process.send_signal(getattr(signal, name))
        lines.wait(name)
    assert process.wait(PATIENCE) == 3
    assert lines.all[1:] == names + ["SIGQUIT"]
    process.stderr.close()
    weir_exec.check_nothing_left()


def test_a_signal_for_the_whole_group_comes_once(weir_exec):
    """As timeout(1) and shells send it: the command must not be asked twice."""
    process = weir_exec.start(PYTHON, "-c", NOTES, "SIGTERM", "SIGQUIT", start_new_session=True)
    lines = follow(process)
    lines.wait("ready")
    os.killpg(process.pid, signal.SIGTERM)
    lines.wait("SIGTERM")
    os.killpg(process.pid, signal.SIGQUIT)
    assert process.wait(PATIENCE) == 3
    assert lines.all[1:] == ["SIGTERM", "SIGQUIT"]
    process.stderr.close()


def test_the_commands_group_gets_it(weir_exec):
    """A shell that waits for another program does not pass anything on by itself."""
    script = "import signal, sys; print('ready', flush=True); signal.pause()"
    process = weir_exec.start("sh", "-c", f'{PYTHON} -c "{script}"; echo after', start_new_session=True)
    lines = follow(process)
    lines.wait("ready")
    process.terminate()
    assert process.wait(PATIENCE) == 143
    assert lines.all == ["ready"]
    process.stderr.close()


def test_a_signal_that_ends_it_is_told(weir_exec):
    process = weir_exec.start("sleep", "100", start_new_session=True)
    child = first_child(process.pid)
    process.terminate()
    assert process.wait(PATIENCE) == 143
    assert "no request came through the proxy" in process.stderr.read()
    assert not pathlib.Path(f"/proc/{child}").exists()
    process.stdout.close()
    process.stderr.close()
    weir_exec.check_nothing_left()


def first_child(pid):
    """Polls: nobody tells when a process has children."""
    tick = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            children = (task / "children").read_text().split()
            if children:
                return int(children[0])
        tick.wait(0.02)
    raise AssertionError("no child")


# A shell as far as job control goes: runs a job in the foreground of its terminal, and when that stops
# lets it go on.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        break
    print("the job stopped by", signal.Signals(os.WSTOPSIG(status)).name, flush=True)
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
print("the job ended with", os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture
def terminal(weir_exec):
    """terminal(COMMAND): the lines written to a terminal at which `weir exec COMMAND` runs, and a
    function that types."""
    opened = []

    def start(*command):
        pid, ours = pty.fork()
        if pid == 0:
            os.execve(PYTHON, [PYTHON, "-c", SHELL, *weir_exec.arguments(*command)], weir_exec.environment())
        opened.append((pid, ours))
        lines = Lines()
        reader = threading.Thread(target=lines.follow, args=(terminal_lines(ours),))
        reader.start()
        return lines, lambda text: os.write(ours, text)

    yield start
    for pid, ours in opened:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ours)
    weir_exec.check_nothing_left()


def terminal_lines(fd):
    with contextlib.suppress(OSError), open(fd, errors="replace", closefd=False) as stream:
        yield from stream


def test_a_terminals_interrupt_comes_once(terminal):
    lines, type_ = terminal(PYTHON, "-c", NOTES, "SIGINT", "SIGQUIT")
    lines.wait("ready")
    type_(b"\x03")
    lines.wait("SIGINT")
    type_(b"\x1c")
    lines.wait("the job ended with 3")
    seen = [match[0] for match in map(re.compile("SIG[A-Z]+$").search, lines.all) if match]
    assert seen == ["SIGINT", "SIGQUIT"]


def test_it_stops_and_goes_on_with_its_command(terminal):
    """The shell gets its terminal back, and then the command goes on, and the proxy as well."""
    script = "import sys; print('ready', flush=True); print('read', sys.stdin.readline(), flush=True)"
    lines, type_ = terminal(PYTHON, "-c", script)
    lines.wait("ready")
    type_(b"\x1a")
    lines.wait("the job stopped by SIGSTOP")
    type_(b"hello\n")
    lines.wait("read hello")
    lines.wait("the job ended with 0")


# ---- the summary --------------------------------------------------------------------------------

FETCH = """
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url).status)
    except urllib.error.HTTPError as answer:
        print(answer.status)
"""


def summary(text):
    """Its rows by their names, the row of each scope by its key."""
    rows = dict(line.strip().split(None, 1) for line in text.splitlines() if line.startswith("  ") and line.strip())
    return rows


@pytest.mark.threads
def test_the_summary(weir_exec, origin):
    origin.on("/limited", in_turn((429, [("Retry-After", "1")]), (503,), (200,)))
    origin.on("/gone", lambda e: e.reply(404))
    urls = [f"{origin.url}/{path}" for path in ("limited", "gone", "a", "b", "c")]
    weir_exec.write("defaults: {retry: {base: 10ms}}\n")
    done = weir_exec.python(FETCH, *urls)
    assert done.stdout.split() == ["200", "404", "200", "200", "200"]
    lines = done.stderr.splitlines()
    assert re.fullmatch(r"weir: 5 requests in \d+\.\d s, (5 successes|\d\d successes a minute)", lines[0]), done.stderr
    rows = summary(done.stderr)
    assert rows["statuses"] == "200: 4, 404: 1"
    assert rows["429s"] == "1 absorbed, 0 passed on"
    assert rows["retries"] == "2, after 429: 1, 503: 1"
    p50, p95 = re.fullmatch(r"p50 ([\d.]+) ms, p95 ([\d.]+) s", rows["duration"]).groups()
    assert float(p50) < 1000 and float(p95) >= 1
    assert re.fullmatch(r"the queue +p50 .*, p95 .*", rows["in"])
    assert rows["scope"] == "attempts  limit/s  at once  closed for"
    assert re.fullmatch(r"7 +(-|[\d.]+) +\d+ +\S.*", rows[origin.host]), done.stderr


def test_a_summary_of_what_was_passed_on(weir_exec, origin):
    origin.default = lambda e: e.reply(429, [("Retry-After", "600")])
    done = weir_exec.python(FETCH, origin.url)
    rows = summary(done.stderr)
    assert done.stdout.split() == ["429"]
    assert rows["429s"] == "0 absorbed, 1 passed on" and rows["statuses"] == "429: 1"
    assert re.search(r"(10\.0|9\.\d) min$", rows[origin.host])
    assert done.stderr.startswith("weir: 1 request in ") and ", 0 successes" in done.stderr


def test_a_summary_of_nothing(weir_exec):
    done = weir_exec.run("true")
    assert re.fullmatch(r"weir: no request came through the proxy in \d+ ms: .* NO_PROXY\?\n", done.stderr)


def test_a_summary_of_many_scopes(weir_exec, origins):
    for address in ("127.0.0.1", "127.0.0.2"):
        origins(address)
    many = origins("127.0.0.3")
    urls = [f"http://127.0.0.3:{many.port}/{i}" for i in range(25)]
    weir_exec.write('defaults: {scope: [host, "path:1"]}\n')
    done = weir_exec.python(FETCH, *urls, urls[24])
    lines = done.stderr.splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("  scope")) + 1 :]
    assert len(table) == 21 and table[-1] == "  and 5 more"
    assert "/24" in table[0] and re.search(r" 2 +- +\d+  -$", table[0])


def test_a_summary_elsewhere(weir_exec, tmp_path, origin):
    to = tmp_path / "summary"
    done = weir_exec.python(FETCH, origin.url, options=("--summary", str(to)))
    assert done.stderr == "" and to.read_text().startswith("weir: 1 request in ")
    to.unlink()
    done = weir_exec.python(FETCH, origin.url, options=("--summary", "none"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "200\n", "")


def test_what_the_command_leaves_open_is_counted(weir_exec, origin):
    origin.default = lambda e: e.wait_gone()
    script = "import socket, sys, os; from urllib.parse import urlsplit as u; p = u(os.environ['http_proxy'])\n"
    script += "s = socket.create_connection((p.hostname, p.port)); s.sendall(f'GET {sys.argv[1]} HTTP/1.1\\r\\nHost: {u(sys.argv[1]).netloc}\\r\\n\\r\\n'.encode())\n"
    script += "sys.stdin.read()"
    process = subprocess.Popen(
        weir_exec.arguments(PYTHON, "-c", script, origin.url),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=weir_exec.environment(),
    )
    origin.wait_requests(1)
    _, errors = process.communicate("", timeout=PATIENCE)
    assert process.returncode == 0
    assert summary(errors)["not"] == "served      client_gone: 1"
    weir_exec.check_nothing_left()


def test_what_was_learned_is_kept(weir_exec, origin):
    origin.default = Limited("fixed", rate=20, window=1.0)
    weir_exec.python(FETCH, *[f"{origin.url}/{i}" for i in range(30)])
    learned = json.loads((weir_exec.state / "learned.json").read_text())
    assert origin.host in json.dumps(learned)


def test_weirs_own_log(weir_exec, tmp_path, origin):
    """Only what is wrong, unless the file says otherwise; then there."""
    assert "listening" not in weir_exec.python(FETCH, origin.url).stderr
    log = tmp_path / "log"
    weir_exec.write(f'log: {{level: info, file: "{log}"}}\n')
    done = weir_exec.python(FETCH, origin.url)
    assert "listening on 127.0.0.1:" in log.read_text()
    assert "listening" not in done.stderr and done.stderr.startswith("weir: 1 request")
    weir_exec.write("log: {level: info}\n")
    assert "listening on 127.0.0.1:" in weir_exec.python(FETCH, origin.url).stderr


def test_the_files_listeners_and_clients_are_the_daemons(weir_exec, origin):
    weir_exec.write('listen: ["127.0.0.1:1"]\nclients: {allow: ["192.0.2.0/24"]}\n')
    done = weir_exec.python(FETCH, origin.url)
    assert done.stdout == "200\n"
