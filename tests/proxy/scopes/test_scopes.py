"""What shares one limit: by account, path, domain, session; each with a limit of its own."""
import hashlib
import socket
import time

import pytest

from harness.origin import Gate
from harness.wire import PATIENCE, Client, get

ONE = "limit: {algorithm: fixed, start: 1, floor: 1, ceiling: 1}, queue: {max: 0}"


class Busy:
    """An origin that holds what it has got, behind limits of one request in flight and no queue: so
    a request is refused where it shares its limit with one under way, and comes through otherwise."""

    def __init__(self, weir, origin, scope):
        self.gate = Gate()
        self.origin = origin
        origin.default = lambda e: (self.gate.wait(), e.reply())
        self.proxy = weir(f"defaults: {{scope: {scope}, {ONE}}}\n")
        self.clients = []

    def ask(self, path="/", fields=()):
        """The answer of one that is refused; None for one that the origin has got."""
        before = len(self.origin.requests)
        client = Client(self.proxy.port)
        self.clients.append(client)
        client.request(self.origin.url + path, fields=fields)
        client.sock.setblocking(False)
        answered = []

        def settled():
            try:
                answered.append(client.sock.recv(1, socket.MSG_PEEK))
            except BlockingIOError:
                return len(self.origin.requests) > before
            return True

        end = time.monotonic() + PATIENCE
        while not settled():
            assert time.monotonic() < end, "neither answered nor sent on"
            with self.origin.changed:
                self.origin.changed.wait(0.01)
        client.sock.settimeout(PATIENCE)
        return client.response() if answered else None

    def close(self):
        self.gate.open()
        for client in self.clients:
            client.close()


@pytest.fixture
def busy(weir, origin):
    made = []

    def make(scope):
        made.append(Busy(weir, origin, scope))
        return made[-1]

    yield make
    for one in made:
        one.close()


def key(account):
    return [("Authorization", f"Bearer {account}")]


# scope; then requests in order: path, fields, and whether there is a slot left for it
CASES = {
    "host": ("[host]", [("/", (), True), ("/other", key("b"), False)]),
    "two accounts": (
        '["header:authorization"]',
        [("/", key("a"), True), ("/", key("a"), False), ("/", key("b"), True), ("/", key("b"), False), ("/", (), True)],
    ),
    "path groups": (
        '[host, "path:2"]',
        [
            ("/v1/users/1", (), True),
            ("/v1/users/2?x=/y", (), False),
            ("/v1/users/", (), False),
            ("/v1/orders/1", (), True),
            ("/v2/users/1", (), True),
            ("/v1", (), True),
        ],
    ),
    "sessions": (
        "[session]",
        [
            ("/", [("Weir-Session", "a")], True),
            ("/", [("weir-session", "a")], False),
            ("/", [("Weir-Session", "b")], True),
            ("/", (), True),
            ("/", (), False),
        ],
    ),
    "in combination": (
        '[session, "path:1"]',
        [
            ("/x", [("Weir-Session", "a")], True),
            ("/y", [("Weir-Session", "a")], True),
            ("/x", [("Weir-Session", "b")], True),
            ("/x/1", [("Weir-Session", "b")], False),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_shares_a_limit(busy, name):
    scope, requests = CASES[name]
    b = busy(scope)
    for path, fields, comes_through in requests:
        answer = b.ask(path, fields)
        assert (answer is None) == comes_through, (path, fields)
        assert answer is None or answer.status == 503


def test_secrets_are_hashed_wherever_they_show(weir, origin):
    proxy = weir('defaults: {scope: [host, "header:X-Api-Key"]}\n')
    answer = get(proxy.port, origin.url + "/seen", fields=[("x-api-key", "sesame-1234")])
    digest = hashlib.sha256(b"sesame-1234").hexdigest()[:16]
    assert answer.get("weir-scope") == f"{origin.host} header:x-api-key={digest}"
    assert proxy.access("/seen")["scope"] == answer.get("weir-scope")
    assert origin.requests[0].request.get("x-api-key") == "sesame-1234"
    for file in (proxy.access_path, proxy.series_path):
        assert "sesame" not in (file.read_text() if file.exists() else "")
    assert "sesame" not in proxy.log.text()


def test_the_hash_is_the_same_after_a_restart(weir, origin):
    fields = [("Authorization", "Bearer a")]
    scopes = set()
    for _ in range(2):
        proxy = weir('defaults: {scope: ["header:authorization"]}\n')
        scopes.add(get(proxy.port, origin.url + "/", fields=fields).get("weir-scope"))
    assert len(scopes) == 1


def test_domain(weir, origin):
    """Names that need no resolver: all below localhost are the host itself."""
    proxy = weir("defaults: {scope: [domain]}\n")
    a = get(proxy.port, f"http://127.0.0.1:{origin.port}/")
    b = get(proxy.port, f"http://localhost:{origin.port}/")
    assert a.get("weir-scope") == "domain=127.0.0.1"
    assert b.get("weir-scope") == "domain=localhost"
