"""The series log: one JSON object for each change of a limiter."""
import datetime
import re

from harness.daemon import json_line, json_rows
from harness.origin import Limited, in_turn
from harness.wire import get


def test_a_refusal_closes_and_reopens_the_scope(weir, origin):
    origin.default = in_turn((200,), (429, [("Retry-After", "0.5")]), (200,))
    proxy = weir()
    get(proxy.port, origin.url + "/1")
    get(proxy.port, origin.url + "/2")
    rows = json_rows(proxy.series_path)
    assert rows and all(row["scope"] == origin.host for row in rows)
    for row in rows:
        assert datetime.datetime.fromisoformat(row["time"].replace("Z", "+00:00")).tzinfo
    assert [row["event"] for row in rows if row["event"] in ("closed", "cut")]
    for row in rows:
        assert row["closed_until"] != ""
        if row["event"] == "closed":
            assert row["closed_until"] > row["time"]
    reopened = json_line(proxy.series_path, lambda row: row["event"] == "reopened")
    assert reopened["in_flight"] >= 0 and reopened["concurrency"] >= 1
    assert reopened["closed_until"] is None


def test_a_learned_rate_shows(weir, origin):
    origin.default = Limited("fixed", rate=20, window=0.5)
    proxy = weir()
    for i in range(40):
        assert get(proxy.port, f"{origin.url}/{i}").status == 200
    assert json_line(proxy.series_path, lambda row: row["rate"] > 0)
    assert not re.search(r"\.\d{7}", proxy.series_path.read_text())


def test_off_by_default(weir, origin, tmp_path):
    proxy = weir(f'log: {{level: info}}\n')
    get(proxy.port, origin.url + "/x")
    assert not proxy.access_path.exists() and not proxy.series_path.exists()
