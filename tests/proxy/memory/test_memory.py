"""What was learned about a host outlives the process that learned it."""
import contextlib
import json
import os
import signal
import threading
import time

import pytest

from harness.daemon import Weir, json_line, run_weir
from harness.origin import Limited
from harness.wire import PATIENCE, Client, Closed, get

TICK = threading.Event()  # never set: waits between two looks at a file


def state_file(proxy):
    return proxy.directory / "learned.json"


def scopes(path):
    return {s["scope"]: s for s in json.loads(path.read_text())["scopes"]} if path.exists() else {}


def wait_scope(path, name):
    for _ in range(int(PATIENCE / 0.02)):
        if name in scopes(path):
            return scopes(path)[name]
        TICK.wait(0.02)
    raise AssertionError(f"{path} never told of {name}")


# ---- a crawl goes on over a restart -------------------------------------------------------------


class Watched(Limited):
    """A hidden limit that remembers when it said what."""

    def __init__(self, *policy, **more):
        super().__init__(*policy, **more)
        self.answers = []

    def __call__(self, exchange):
        reply = exchange.reply

        def noted(status=200, *rest):
            self.answers.append((time.monotonic(), status))
            reply(status, *rest)

        exchange.reply = noted
        super().__call__(exchange)

    def said(self, status, since, until=float("inf")):
        return sum(s == status and since <= t < until for t, s in list(self.answers))


class Crawl:
    """Workers that fetch without pause, through whichever proxy is there now."""

    def __init__(self, url, workers, port):
        self.url, self.port = url, port
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.work) for _ in range(workers)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(PATIENCE)

    def work(self):
        while not self.stop.is_set():
            with contextlib.suppress(Closed, OSError), Client(self.port) as client:
                while not self.stop.is_set():
                    client.request(self.url)
                    client.response()
            self.stop.wait(0.02)


@pytest.mark.threads
def test_a_crawl_goes_on_over_a_restart(tmp_path, origin):
    config = f'state: {{dir: "{tmp_path}", save_every: 1s}}\n'
    limit = Watched("fixed", rate=30, latency=0.35)
    origin.default = limit
    with Weir(tmp_path, config, workers=2) as first, Crawl(origin.url + "/", 40, first.port) as crawl:

        def learned():
            # nearly the whole rate, for two seconds, and a quarter of a minute of learning at least
            now = time.monotonic()
            since = limit.answers[0][0] if limit.answers else now
            return now - since > 15 and limit.said(200, now - 2) >= 0.9 * 60

        origin.wait(learned, patience=60)
        first.signal(signal.SIGTERM)
        assert first.wait_exit() == 0
        with Weir(tmp_path, config, workers=2) as second:
            start = time.monotonic()
            crawl.port = second.port
            origin.wait(lambda: time.monotonic() > start + 12)
            crawl.stop.set()
            assert limit.said(429, start) <= 2
            # a refusal may fall into the first seconds, and then closes the host for one of them
            begins = [start + tenth / 10 for tenth in range(21)]
            assert max(limit.said(200, t, t + 1) for t in begins) >= 0.85 * 30
            assert limit.said(200, start, start + 12) >= 0.7 * 12 * 30
            second.log.wait("restored the limits of 1 scopes")
            row = json_line(second.series_path, lambda r: r["event"] == "restored")
            assert row["scope"] == origin.host and row["rate"] > 20


# ---- holds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_hold_survives(tmp_path, origin, number):
    hold = 6
    origin.on("/refused", lambda e: e.reply(429, [("Retry-After", str(hold))]))
    config = 'state: {dir: "%s", save_every: 1s}\ndefaults: {retry: {attempts: 1}}\n' % tmp_path
    killed = number == signal.SIGKILL
    first = Weir(tmp_path, config, expect_exit=-number if killed else 0)
    with first:
        assert get(first.port, origin.url + "/refused").status == 429
        refused = time.monotonic()
        if killed:
            wait_scope(state_file(first), origin.host)
        first.signal(number)
        first.wait_exit()
    assert scopes(state_file(first))[origin.host]["closed"]
    with Weir(tmp_path, config) as second:
        assert get(second.port, origin.url + "/later").status == 200
        sent = origin.wait_requests(1, "/later")[0].time
        assert hold - 0.2 <= sent - refused < hold + 3


# ---- the file -------------------------------------------------------------------------------------


def test_it_is_saved_now_and_then(tmp_path, origin):
    with Weir(tmp_path, f'state: {{dir: "{tmp_path}/a/b", save_every: 1s}}\n') as proxy:
        assert get(proxy.port, origin.url + "/").status == 200
        path = tmp_path / "a" / "b" / "learned.json"
        assert wait_scope(path, origin.host)["rate"] > 0
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert os.listdir(path.parent) == ["learned.json"]


def test_save_every_can_be_reloaded(tmp_path, origin):
    with Weir(tmp_path, f'state: {{dir: "{tmp_path}", save_every: 1h}}\n') as proxy:
        assert get(proxy.port, origin.url + "/").status == 200
        proxy.write(f'state: {{dir: "{tmp_path}", save_every: 1s}}\n')
        proxy.reload()
        wait_scope(state_file(proxy), origin.host)


BAD = {
    "empty": (b"", "damaged"),
    "cut off": (b'{"version": 1, "scopes": [{"scope": "a.example:80", "algo', "damaged"),
    "binary": (bytes(range(256)) * 9, "damaged"),
    "of the future": (b'{"version": 999, "scopes": {"a": 1}}', "unknown"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_set_aside(tmp_path, origin, case):
    content, name = BAD[case]
    (tmp_path / "learned.json").write_bytes(content)
    with Weir(tmp_path) as proxy:
        warning = proxy.log.wait(r"warn .*learned\.json cannot be used")[0].string
        kept = list(tmp_path.glob(f"learned.json.{name}-*"))
        assert [p.read_bytes() for p in kept] == [content]
        assert kept[0].name in warning
        assert get(proxy.port, origin.url + "/").status == 200
    assert list(scopes(state_file(proxy))) == [origin.host]


def test_one_bad_scope_is_left_out(tmp_path, origin):
    whole = {"scope": origin.host, "algorithm": "adaptive", "rate": 17.5, "round_trip": 0.1}
    whole |= {"refused_rate": 18.0, "used": time.time()}
    bad = [{"scope": "b:80", "algorithm": "adaptive", "rate": "fast"}, 7, None]
    text = json.dumps({"version": 1, "scopes": bad + [whole]})
    (tmp_path / "learned.json").write_text(text)
    with Weir(tmp_path) as proxy:
        proxy.log.wait("3 entries make no sense")
        assert get(proxy.port, origin.url + "/").status == 200
        row = json_line(proxy.series_path, lambda r: r["event"] == "restored")
        assert row["rate"] == 17.5
    assert list(scopes(state_file(proxy))) == [origin.host]


def test_after_an_hour_it_starts_slowly(tmp_path, origin):
    known = {"scope": origin.host, "algorithm": "adaptive", "rate": 800.0, "refused_rate": 820.0}
    known |= {"round_trip": 0.1, "slots": 9, "used": time.time() - 3700}
    (tmp_path / "learned.json").write_text(json.dumps({"version": 1, "scopes": [known]}))
    with Weir(tmp_path) as proxy:
        assert get(proxy.port, origin.url + "/").status == 200
        row = json_line(proxy.series_path, lambda r: r["event"] == "restored")
        assert row["rate"] == pytest.approx(40) and row["concurrency"] == 9


# ---- the directory --------------------------------------------------------------------------------


def test_a_configured_directory_must_be_usable(tmp_path):
    (tmp_path / "file").write_text("")
    config = tmp_path / "weir.yaml"
    config.write_text(f'listen: ["127.0.0.1:0"]\nstate: {{dir: "{tmp_path}/file/state"}}\n')
    done = run_weir(tmp_path, "run", "-c", config)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and f"{tmp_path}/file/state" in lines[0] and "state.dir" in lines[0]


def test_without_a_default_directory_it_goes_on(tmp_path, origin):
    (tmp_path / "file").write_text("")
    nowhere = {"STATE_DIRECTORY": "", "XDG_STATE_HOME": f"{tmp_path}/file"}
    with Weir(tmp_path, 'state: {dir: ""}\n', environment=nowhere) as proxy:
        line = proxy.log.wait(r"warn .*cannot use the state directory")[0].string
        assert f"{tmp_path}/file/weir" in line and "state.dir" in line
        assert get(proxy.port, origin.url + "/").status == 200


@pytest.mark.parametrize("service", [True, False])
def test_default_directories(tmp_path, origin, service):
    environment = {
        "STATE_DIRECTORY": f"{tmp_path}/service" if service else "",
        "XDG_STATE_HOME": f"{tmp_path}/user",
    }
    with Weir(tmp_path, 'state: {dir: ""}\n', environment=environment) as proxy:
        assert get(proxy.port, origin.url + "/").status == 200
    where = tmp_path / ("service" if service else "user/weir") / "learned.json"
    assert list(scopes(where)) == [origin.host]


def test_a_failing_save_is_told_once(tmp_path, origin):
    with Weir(tmp_path, f'state: {{dir: "{tmp_path}", save_every: 1s}}\n') as proxy:
        (tmp_path / "learned.json").mkdir()  # no file can take its place
        assert get(proxy.port, origin.url + "/").status == 200
        _, first = proxy.log.wait(r"warn .*cannot save .*learned\.json")
        assert get(proxy.port, origin.url + "/again").status == 200
        (tmp_path / "learned.json").rmdir()
        _, then = proxy.log.wait("is saved .* again", first)
        between = proxy.log.all[first + 1 : then]
        assert not [line for line in between if "cannot save" in line]
        wait_scope(state_file(proxy), origin.host)
