"""`weir explain`: the rule, the scope key and each setting, with the line that it comes from."""
import hashlib
import re

import pytest

from harness.daemon import run_weir
from harness.wire import get

FILE = """\
defaults:
  limit: {ceiling: 20, max_rate: 5/s}
rules:
  - name: github
    hosts: [api.github.com, "*.githubusercontent.com"]
    scope: [host, "header:authorization", "path:1"]
    limit: {ceiling: 8}
    retry:
      attempts: 2
  - hosts: "*.co.uk"
    scope: domain
    queue:
      timeout: 5s
"""


@pytest.fixture
def explain(tmp_path):
    def run(*arguments, text=FILE):
        path = tmp_path / "weir.yaml"
        path.write_text(text)
        done = run_weir(tmp_path, "explain", "-c", path, *arguments)
        rows = {}
        for line in done.stdout.splitlines():
            row = re.fullmatch(r"(\S+(?: \S+)*)  +(\S.*?)(?:  +(\S+|built in))?", line)
            assert row, line
            assert row[1] not in rows, line
            rows[row[1]] = (row[2], (row[3] or "").replace(f"{path}:", ""))
        return done, rows

    return run


def test_a_rule(explain):
    done, rows = explain("--header", "Authorization: Bearer x", "http://API.github.com/repos/x?y=1")
    assert (done.returncode, done.stderr) == (0, "")
    digest = hashlib.sha256(b"Bearer x").hexdigest()[:16]
    expected = {
        "rule": ("github", "4:11"),
        "hosts": ('["api.github.com", "*.githubusercontent.com"]', "5:12"),
        "scope": ('[host, "header:authorization", "path:1"]', "6:12"),
        "scope key": (f"api.github.com:80 header:authorization={digest} path=/repos", ""),
        "limit.ceiling": ("8", "7:22"),
        "limit.max_rate": ("5/s", "2:34"),
        "limit.start": ("4", "built in"),
        "retry.attempts": ("2", "9:17"),
        "queue.timeout": ("2m", "built in"),
        "timeouts.total": ("5m", "built in"),
        "egress": ("direct", "built in"),
        "https": ("tunnel", "built in"),
    }
    assert {k: rows.get(k) for k in expected} == expected
    assert "Bearer" not in done.stdout


def test_columns_are_aligned(explain):
    done, rows = explain("http://api.github.com/")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("scope key")]
    assert len({line.index(rows[k][0], len(k)) for line, k in zip(lines, [k for k in rows if k != "scope key"])}) == 1
    places = [re.search(r"(\S+:\d+:\d+|built in)$", line) for line in lines]
    assert all(places) and len({p.start() for p in places}) == 1


# URL; rule and its place; scope key
CASES = [
    ("http://raw.githubusercontent.com/", "github", "4:11", "raw.githubusercontent.com:80 header:authorization= path=/"),
    ("http://githubusercontent.com/", "default", "built in", "githubusercontent.com:80"),
    ("http://www.shop.co.uk:81/", "*.co.uk", "10:12", "domain=shop.co.uk"),
    ("https://www.shop.co.uk/", "*.co.uk", "10:12", "domain=shop.co.uk"),
    ("https://other.example", "default", "built in", "other.example:443"),
    ("http://[::1]:8080/", "default", "built in", "[::1]:8080"),
    # a tunnel shows nothing of what is asked
    ("https://api.github.com/repos", "github", "4:11", "api.github.com:443 header:authorization= path="),
]


@pytest.mark.parametrize("url, rule, place, key", CASES)
def test_first_matching_rule(explain, url, rule, place, key):
    done, rows = explain("--header", "authorization:" if url.startswith("https") else "X: y", url)
    assert done.returncode == 0, done.stderr
    assert rows["rule"] == (rule, place)
    assert rows["scope key"] == (key, "")


@pytest.mark.parametrize("mode", ["tunnel", "upgrade", "intercept"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_a_tunnel_hides_is_told(explain, mode, scheme):
    """A header that is given has no say where nobody sees it; that is said beside the key."""
    text = f'defaults: {{https: {mode}, scope: [host, "header:x-key", session, "path:2"]}}\n'
    _, rows = explain("--header", "X-Key: v", "--session", "s", scheme + "://h:1/a/b", text=text)
    hidden = scheme == "https" and mode != "intercept"
    assert ("not seen" in rows) == hidden
    assert (" header:x-key= session=s path=" in rows["scope key"][0]) == hidden
    if hidden:
        assert rows["scope key"][0].endswith(" path=")
        assert rows["not seen"][0].startswith("header:x-key, path:2: ")
    _, rows = explain("https://h/", text="defaults: {scope: [host, client]}\n")
    assert "not seen" not in rows


def test_session_and_client(explain):
    text = "defaults: {scope: [session, client, rule]}\n"
    _, rows = explain("--session", "s1", "http://h/", text=text)
    assert rows["scope key"][0] == "session=s1 client=127.0.0.1 rule=default"
    assert rows["client"] == ("127.0.0.1", "assumed")
    _, rows = explain("--header", "Weir-Session: s2", "http://h/", text=text)
    assert rows["scope key"][0].startswith("session=s2 ")


def test_it_is_what_the_proxy_does(weir, origin, explain):
    """The key in the answer is the key that was foretold."""
    proxy = weir('defaults: {scope: [host, client, session, "path:2", "header:x-key", domain, port, rule]}\n')
    url = origin.url + "/a/b/c?d"
    answer = get(proxy.port, url, fields=[("X-Key", "v"), ("Weir-Session", "s")])
    _, rows = explain("--header", "X-Key: v", "--session", "s", url, text=proxy.config_path.read_text())
    assert rows["scope key"][0] == answer.get("weir-scope")


def test_without_a_file_all_is_built_in(tmp_path):
    done = run_weir(tmp_path, "explain", "http://example.com/")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^scope key +example\.com:80$", done.stdout, re.M)


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "usage: weir explain"),
        (["http://a/", "http://b/"], "usage: weir explain"),
        (["--frob", "http://a/"], "usage: weir explain"),
        (["example.com"], "weir explain: example.com: The target is not a URL."),
        (["ftp://example.com/"], "only http and https"),
        (["http://h:0/"], "port"),
        (["--header", "nonsense", "http://a/"], "weir explain: nonsense: expected a header field"),
        (["--header", "a b: c", "http://a/"], "expected a header field"),
        (["--session", "a b", "http://a/"], "weir explain: a b: Weir-Session"),
        (["--header", "Weir-Priority: x", "http://a/"], "Weir-Priority"),
    ],
)
def test_a_wrong_command_line(explain, arguments, said):
    done, rows = explain(*arguments)
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.splitlines()) <= 2
    assert rows == {}


def test_faults_of_the_file(explain):
    done, rows = explain("http://a/", text="defaults: {scope: [endpoints]}\n")
    assert done.returncode == 1 and rows == {}
    assert re.search(r"weir\.yaml:1:20: defaults\.scope: expected host, ", done.stderr)


def test_the_way_out(explain):
    text = """\
rules:
  - {hosts: a, egress: fast, scope: [host, endpoint]}
pools:
  fast: {endpoints: ["http://user:secret@proxy:80"]}
"""
    done, rows = explain("http://a/", text=text)
    assert rows["egress"] == ("fast", "2:24")
    assert rows["scope key"] == ("a:80 endpoint=fast", "")
    assert rows["pool.endpoints"] == ('["http://user:***@proxy:80"]', "4:21")
    assert rows["pool.max_in_flight"] == ("1", "built in")
    assert "secret" not in done.stdout
    done, rows = explain("http://b/", text=text)
    assert rows["egress"] == ("direct", "built in")
