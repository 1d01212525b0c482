"""The daemon under test: started on a port of its own, watched, and stopped without a blemish."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

from harness.prometheus import Metrics, still_open

PROGRAM = os.path.abspath(
    os.environ.get("WEIR") or pathlib.Path(__file__).resolve().parents[3] / "weir"
)
SUPPRESSIONS = pathlib.Path(__file__).with_name("tsan.supp")
PATIENCE = 30  # seconds until a condition that does not come true fails the test


def sanitized():
    """Built with a sanitizer: memory and speed then say nothing about weir."""
    text = pathlib.Path(PROGRAM).read_bytes()
    return b"__asan_init" in text or b"__tsan_init" in text


def sanitizer_environment(directory):
    options = f"log_path={directory}/sanitizer:"
    return {
        "ASAN_OPTIONS": options + "detect_leaks=1:detect_stack_use_after_return=1:exitcode=99",
        "UBSAN_OPTIONS": options + "print_stacktrace=1",
        "TSAN_OPTIONS": options + f"second_deadlock_stack=1:exitcode=99:suppressions={SUPPRESSIONS}",
    }


def clean_environment(directory):
    kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    return {**kept, **sanitizer_environment(directory)}


def run_weir(directory, *arguments, timeout=PATIENCE, environment=None):
    """One command of weir, to its end; no sanitizer may have complained."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**clean_environment(directory), **(environment or {})},
    )
    assert not sanitizer_reports(directory), sanitizer_reports(directory)
    return done


def sanitizer_reports(directory):
    return "".join(p.read_text() for p in pathlib.Path(directory).glob("sanitizer.*"))


class Lines:
    """The lines that something writes, as they come."""

    def __init__(self):
        self.all = []
        self.ended = False
        self.changed = threading.Condition()

    def follow(self, stream):
        for line in stream:
            with self.changed:
                self.all.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait(self, pattern, after=0, patience=PATIENCE):
        """The first match in a line from index `after` on, and that line's index."""
        found = []

        def look():
            for index in range(after, len(self.all)):
                match = re.search(pattern, self.all[index])
                if match:
                    found[:] = [match, index]
                    return True
            return self.ended

        with self.changed:
            self.changed.wait_for(look, patience)
        assert found, f"no line like {pattern!r}; there is:\n" + self.text()
        return found[0], found[1]

    def text(self):
        return "\n".join(self.all)


class Weir:
    """`weir run` with a configuration file of its own; use it as a context."""

    def __init__(self, directory, config="", workers=1, listen="127.0.0.1:0", expect_exit=0, environment=None,
                 before=(), pass_fds=(), ends_idle=True):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.access_path = self.directory / "access.log"
        self.ca = str(self.directory / "ca.pem")  # made where HTTPS is opened
        self.series_path = self.directory / "series.log"
        self.config_path = self.directory / "weir.yaml"
        self.workers = workers
        self.listen = listen
        self.expect_exit = expect_exit
        self.environment = environment or {}
        self.before = list(before)  # a command that starts the daemon
        self.pass_fds = pass_fds
        self.ends_idle = ends_idle  # at the end of the test nothing goes on, and the metrics say so
        self.write(config)
        self.log = Lines()

    def write(self, config):
        """Writes the configuration file: what every test needs, then the test's own part."""
        log = f'log: {{level: debug, access: "{self.access_path}", series: "{self.series_path}"}}\n'
        self.config_path.write_text(
            f'listen: ["{self.listen}"]\n'
            f"workers: {self.workers}\n"
            + ("" if "admin:" in config else 'admin: {listen: "127.0.0.1:0"}\n')
            + ("" if "state:" in config else f'state: {{dir: "{self.directory}"}}\n')
            + ("" if "log:" in config else log)
            + config
        )

    def __enter__(self):
        self.process = subprocess.Popen(
            [*self.before, PROGRAM, "run", "-c", str(self.config_path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**clean_environment(self.directory), **self.environment},
            pass_fds=self.pass_fds,
        )
        self.reader = threading.Thread(target=self.log.follow, args=(self.process.stderr,))
        self.reader.start()
        try:
            self.log.wait("ready: ")
            match, _ = self.log.wait(r"listening on 127\.0\.0\.1:(\d+)")
            self.log.wait("ready: ")  # the admin listener notes requests only from then on
        except BaseException:
            self.kill()
            raise
        self.port = int(match[1])
        self.url = f"http://127.0.0.1:{self.port}"
        admin = re.search(r"admin on 127\.0\.0\.1:(\d+)", self.log.text())
        self.admin_port = int(admin[1]) if admin else None
        return self

    def signal(self, number):
        if number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            self.ends_idle = False  # whatever goes on is about to be ended
        self.process.send_signal(number)

    def wait_exit(self):
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        return code

    def reload(self):
        """SIGHUP; returns once the daemon has said what came of it."""
        seen = len(self.log.all)
        self.signal(signal.SIGHUP)
        return self.log.wait(r"configuration (was not )?reloaded", seen)[0].string

    def admin(self, path, method="GET", fields=(), patience=PATIENCE):
        """One request to the admin listener: its status, fields and body."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.admin_port}{path}", method=method, headers=dict(fields)
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            answer = opener.open(request, timeout=patience)
        except urllib.error.HTTPError as fault:
            answer = fault
        with answer:
            return answer.status, answer.headers, answer.read().decode()

    def api(self, path, method="GET", fields=()):
        """The JSON of a request to it that goes well."""
        status, _, body = self.admin(path, method, fields)
        assert status == 200, (status, body)
        return json.loads(body)

    def metrics(self):
        status, _, body = self.admin("/metrics")
        assert status == 200, (status, body)
        return Metrics(body)

    def wait_metrics(self, wanted, patience=PATIENCE):
        """Polls /metrics until `wanted` is true of it."""
        tick = threading.Event()
        for _ in range(int(patience / 0.02)):
            metrics = self.metrics()
            if wanted(metrics):
                return metrics
            tick.wait(0.02)
        raise AssertionError("not so: " + metrics.text)

    def wait_idle(self):
        """Waits until nothing is queued or in flight any more."""
        return self.wait_metrics(lambda metrics: not still_open(metrics), patience=10)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(PATIENCE)

    def __exit__(self, kind, value, trace):
        try:
            if self.process.poll() is None and kind is None and self.admin_port and self.ends_idle:
                self.wait_idle()
            if self.process.poll() is None:
                self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.wait_exit()
        finally:
            hung = self.process.poll() is None
            self.kill()
        if kind is not None:
            print("the daemon's log:\n" + self.log.text())
        reports = sanitizer_reports(self.directory)
        assert not reports, reports
        if kind is not None:
            return
        assert not hung, "did not stop on SIGTERM:\n" + self.log.text()
        code = self.process.returncode
        assert code == self.expect_exit, f"exit status {code}:\n" + self.log.text()
        if self.expect_exit == 0:
            closing = "\n".join(self.log.all[-5:])
            assert "stopped: 0 open, 0 queued, 0 in flight" in closing, self.log.text()

    # ---- what it writes ----

    def access(self, path_part, patience=PATIENCE):
        """The access log's line of the request whose URL contains `path_part`, once it is there."""
        return json_line(self.access_path, lambda row: path_part in row["url"], patience)

    def access_rows(self, count):
        """All of the access log, once `count` rows are there: a row is written after its answer."""
        json_line(self.access_path, lambda row: len(json_rows(self.access_path)) >= count)
        return json_rows(self.access_path)

    def access_row(self, wanted):
        """The first row for which `wanted` is true, once it is there."""
        return json_line(self.access_path, wanted)

    # ---- what it holds ----

    def descriptors(self):
        """What each of its descriptors is, as the kernel names it."""
        names = {}
        for entry in os.scandir(f"/proc/{self.process.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                names[entry.name] = os.readlink(entry.path)
        return names

    def sockets_to(self, port):
        """How many of its sockets are connected to that port, or on the way there."""
        own = {name[8:-1] for name in self.descriptors().values() if name.startswith("socket:[")}
        rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(1 for row in rows if int(row[2].split(":")[1], 16) == port and row[9] in own)

    def wait_sockets(self, port, count):
        tick = threading.Event()
        for _ in range(int(PATIENCE / 0.02)):
            if self.sockets_to(port) == count:
                return
            tick.wait(0.02)
        raise AssertionError(f"{self.sockets_to(port)} sockets to port {port}, not {count}")

    def resident_kib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def json_rows(path):
    if not path.exists():
        return []
    whole = path.read_text().rpartition("\n")[0]  # the last line may be half written
    return [json.loads(line) for line in whole.splitlines()]


def json_line(path, wanted, patience=PATIENCE):
    """Polls: a file cannot be waited for in a portable way."""
    tick = threading.Event()
    for _ in range(int(patience / 0.02)):
        for row in json_rows(path):
            if wanted(row):
                return row
        tick.wait(0.02)
    raise AssertionError(f"no such line in {path}: {json_rows(path)}")
