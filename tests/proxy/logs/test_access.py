"""The access log: one JSON object for each request, when it ends, however it ends."""
import datetime
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from harness.daemon import PATIENCE, PROGRAM, clean_environment, json_line, json_rows, sanitizer_reports
from harness.origin import Gate, in_turn
from harness.wire import Client, get


def test_the_row_of_a_served_request(weir, origin):
    origin.default = lambda e: e.reply(body=b"12345")
    proxy = weir()
    before = time.time()
    get(proxy.port, origin.url + "/x?page=2", source="127.0.0.2")
    row = proxy.access("/x")
    when = datetime.datetime.fromisoformat(row["time"].replace("Z", "+00:00"))
    assert when.tzinfo and before - 1 <= when.timestamp() <= time.time() + 1
    assert row["client"].startswith("127.0.0.2")
    assert row["method"] == "GET"
    assert row["scope"] == origin.host
    assert row["class"] == "success"
    assert row["status"] == 200
    assert row["attempts"] == 1
    assert 0 <= row["queued"] < 10
    assert row["outcome"] == "served"
    assert row["bytes_out"] == 5
    times = row["upstream"]
    assert 0 <= times["connect"] <= times["first_byte"] <= times["total"] < 10


def test_times_have_no_more_digits_than_were_measured(weir, origin):
    """Of forty there are some that a double has not, such as 0.00029."""
    proxy = weir()
    for number in range(40):
        get(proxy.port, f"{origin.url}/{number}")
    proxy.access_rows(40)
    numbers = re.findall(r'(?:queued|duration|connect|first_byte|total)":([\d.e+-]+)', proxy.access_path.read_text())
    assert len(numbers) == 5 * 40
    assert not [n for n in numbers if re.search(r"\.\d{6}", n)]


@pytest.mark.parametrize("query", ["token=geheim", "api_key=geheim&page=2", "page=1&password=geheim", "X-Amz-Signature=geheim"])
def test_query_secrets_are_not_written(weir, origin, query):
    proxy = weir()
    get(proxy.port, f"{origin.url}/x?{query}")
    row = proxy.access("/x")
    assert "geheim" not in str(row)
    assert row["url"].startswith(origin.url + "/x")
    assert "geheim" not in proxy.access_path.read_text() + proxy.log.text()


def test_secrets_in_fields_are_not_written(weir, origin):
    proxy = weir()
    get(proxy.port, origin.url + "/x", fields=[("Authorization", "Bearer geheim"), ("Cookie", "s=geheim")])
    proxy.access("/x")
    assert "geheim" not in proxy.access_path.read_text() + proxy.log.text()


def test_the_row_of_a_retried_request(weir, origin):
    origin.default = in_turn((429, [("Retry-After", "0.3")]), (200,))
    proxy = weir()
    get(proxy.port, origin.url + "/x")
    row = proxy.access("/x")
    assert (row["attempts"], row["status"], row["class"], row["outcome"]) == (2, 200, "success", "served")
    assert row["queued"] >= 0.29
    assert len(proxy.access_rows(1)) == 1


def test_the_row_of_a_refusal_that_passes(weir, origin):
    origin.default = lambda e: e.reply(429)
    proxy = weir("defaults: {retry: {attempts: 1}}\n")
    get(proxy.port, origin.url + "/x")
    row = proxy.access("/x")
    assert (row["status"], row["class"], row["outcome"]) == (429, "throttled", "gave_up")


def test_the_row_of_weirs_own_answer(weir):
    proxy = weir('defaults: {retry: {attempts: 1}}\ndestinations: {deny: [loopback]}\n')
    get(proxy.port, "http://127.0.0.1:9/x")
    row = proxy.access("/x")
    assert row["status"] == 403
    assert row["outcome"] == "denied"


def test_each_request_has_one_row(weir, origin):
    proxy = weir(workers=2)
    for i in range(50):
        get(proxy.port, f"{origin.url}/{i}")
    assert sorted(row["url"] for row in proxy.access_rows(50)) == sorted(f"{origin.url}/{i}" for i in range(50))


def test_odd_bytes_stay_json(weir, origin):
    proxy = weir()
    get(proxy.port, origin.url + '/x"\\\xff\xe9{}')
    assert proxy.access("/x")["status"] == 200


def test_a_client_that_left(weir, origin):
    gate = Gate()
    origin.default = lambda e: gate.wait()
    proxy = weir()
    client = Client(proxy.port)
    client.request(origin.url + "/x")
    origin.wait_requests(1)
    client.close()
    row = proxy.access("/x")
    assert (row["outcome"], row["attempts"]) == ("client_gone", 1)
    gate.open()


def test_reopen(weir, origin):
    """SIGUSR1, as logrotate sends it after it has moved the files away."""
    proxy = weir()
    get(proxy.port, origin.url + "/before")
    proxy.access("/before")
    moved = proxy.directory / "access.log.1"
    os.rename(proxy.access_path, moved)
    get(proxy.port, origin.url + "/between")
    json_line(moved, lambda row: row["url"].endswith("/between"))
    seen = len(proxy.log.all)
    proxy.signal(signal.SIGUSR1)
    proxy.log.wait("log files reopened", seen)
    get(proxy.port, origin.url + "/after")
    assert proxy.access("/after")
    assert len(json_rows(moved)) == 2


def wait_for_line(path, text):
    """Polls: a file cannot be waited for in a portable way."""
    tick = threading.Event()
    for _ in range(1500):
        if path.exists() and text in path.read_text():
            return
        tick.wait(0.02)
    raise AssertionError(f"no {text!r} in {path}")


def test_log_file_is_the_one_of_the_start(tmp_path):
    """Also after a reload of a file that names another, and with standard error closed."""
    config, first, second = tmp_path / "weir.yaml", tmp_path / "first.log", tmp_path / "second.log"
    text = f'{{listen: "127.0.0.1:0", admin: {{listen: ""}}, state: {{dir: "{tmp_path}"}}, log: {{file: "%s"}}}}\n'
    config.write_text(text % first)
    command = ["sh", "-c", 'exec "$0" run -c "$1" 2>&-', PROGRAM, config]
    process = subprocess.Popen(command, env=clean_environment(tmp_path))
    try:
        wait_for_line(first, "ready:")
        config.write_text(text % second)
        process.send_signal(signal.SIGHUP)
        wait_for_line(first, "configuration reloaded")
        os.rename(first, tmp_path / "moved.log")
        process.send_signal(signal.SIGUSR1)
        wait_for_line(first, "log files reopened")
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert "stopped: 0 open" in first.read_text()
        assert not second.exists()
    finally:
        process.kill()
        process.wait()
    assert not sanitizer_reports(tmp_path)


def test_a_refused_request_line_is_told(weir):
    proxy = weir()
    assert get(proxy.port, "http://user:pw@127.0.0.1:9/x").status == 400
    row = json_line(proxy.access_path, lambda row: row["status"] == 400)
    assert row["attempts"] == 0
    assert "pw" not in str(row)
