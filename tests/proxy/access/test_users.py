"""clients.users: who may use the proxy, by name and password; who guesses is kept away."""
import base64
import ctypes
import json
import re
import subprocess
import threading

import pytest

from harness.daemon import PROGRAM, clean_environment, run_weir
from harness.origin import Gate
from harness.wire import Client, get

ALICE = ("alice", "open sesame")
BOB = ("bob", "p:ss:w\u00f6rd")


libcrypt = ctypes.CDLL("libcrypt.so.1")
libcrypt.crypt.restype = ctypes.c_char_p


def hash_of(password, setting="$6$rounds=1000$abcdefgh"):
    """crypt(3); by default of the cheapest kind: what is dear about it is not tested."""
    made = libcrypt.crypt(password.encode(), setting.encode()).decode()
    assert not made.startswith("*"), f"this system knows no hashes like {setting}"
    return made


def basic(name, password):
    return ("Proxy-Authorization", "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())


@pytest.fixture
def users(tmp_path):
    """Writes a users file, and returns the setting that names it."""
    path = tmp_path / "users"

    def write(*who, text=None):
        lines = text if text is not None else "# who may\n\n" + "".join(f"{n}:{hash_of(p)}\n" for n, p in who)
        path.write_text(lines)
        path.chmod(0o600)
        return f'clients: {{users: "{path}"}}\n'

    write.path = path
    return write


def status(proxy, url, *fields, **more):
    return get(proxy.port, url, fields=fields, **more).status


@pytest.mark.threads
def test_names_and_passwords(weir, origin, users):
    proxy = weir(users(ALICE, BOB), workers=2)
    for who in (ALICE, BOB, ALICE):
        assert status(proxy, origin.url + "/", basic(*who)) == 200
    wrong = [(ALICE[0], BOB[1]), (ALICE[0], ""), ("", ALICE[1]), ("nobody", "x"), ("Alice", ALICE[1]), (ALICE[0], ALICE[1] + "x")]
    for who in wrong:
        assert status(proxy, origin.url + "/", basic(*who)) == 407, who
    served = [e.request for e in origin.requests]
    assert len(served) == 3 and not any(r.get("proxy-authorization") for r in served)
    proxy.log.wait("warn +wrong user name or password from 127.0.0.1")
    assert ALICE[1] not in proxy.log.text() + proxy.access_path.read_text()
    m = proxy.wait_metrics(lambda m: m.value("weir_logins_total", result="failed") == len(wrong))
    assert 2 <= m.value("weir_logins_total", result="done") <= 3  # each worker checks it once


def test_what_is_asked_for(weir, origin, users):
    proxy = weir(users(ALICE))
    with Client(proxy.port) as client:
        answer = client.get(origin.url + "/")
        assert answer.status == 407 and answer.reason == "Proxy Authentication Required"
        assert answer.get("proxy-authenticate") == 'Basic realm="weir", charset="UTF-8"'
        assert answer.get("proxy-status").startswith("weir; error=http_request_denied")
        # the same connection may go on, as clients do that were asked
        assert client.get(origin.url + "/", fields=[basic(*ALICE)]).status == 200
        assert client.get(origin.url + "/").status == 407  # each request says it
    row = proxy.access_rows(3)[1]
    assert row["user"] == "alice"
    assert [r["user"] for r in proxy.access_rows(3)] == [None, "alice", None]


@pytest.mark.parametrize(
    "value",
    ["", "Basic", "Basic ", "Basic !!!!", "Basic YWxpY2U=", "Basic YWxpY2U6b3BlbiBzZXNhbWU", "Bearer YTpi", "Digest username=alice",
     "Basic " + base64.b64encode(b"alice:open\nsesame").decode(), "Basic " + base64.b64encode(b"alice\0:open sesame").decode()],
)
def test_malformed_credentials(weir, origin, users, value):
    proxy = weir(users(ALICE))
    assert status(proxy, origin.url + "/", ("Proxy-Authorization", value)) == 407
    assert origin.requests == []


def test_several_fields(weir, origin, users):
    """Which of them counts nobody can know."""
    proxy = weir(users(ALICE))
    assert status(proxy, origin.url + "/", basic("x", "y"), basic(*ALICE)) == 407
    assert status(proxy, origin.url + "/", basic(*ALICE), basic(*ALICE)) == 407


@pytest.mark.parametrize(
    "setting", ["$y$j9T$abcdefgh", "$2b$04$N9qo8uLOickgx2ZMRZoMye", "$6$rounds=1000$abcdefgh", "$5$rounds=1000$abcdefgh", "$1$abcdefgh"]
)
def test_kinds_of_hashes(weir, origin, users, setting):
    proxy = weir(users(text=f"carol:{hash_of('secret', setting)}\n"))
    assert status(proxy, origin.url + "/", basic("carol", "secret")) == 200
    assert status(proxy, origin.url + "/", basic("carol", "Secret")) == 407


def test_connect(weir, origin, users):
    proxy = weir(users(ALICE) + f"destinations: {{connect_ports: [{origin.port}]}}\n")
    with Client(proxy.port) as client:
        client.send(f"CONNECT {origin.host} HTTP/1.1\r\nHost: {origin.host}\r\n\r\n".encode())
        assert client.response().status == 407
        client.send("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n{1}: {2}\r\n\r\n".format(origin.host, *basic(*ALICE)).encode())
        assert client.head().status == 200
        client.send(f"GET / HTTP/1.1\r\nHost: {origin.host}\r\n\r\n".encode())
        assert client.response().status == 200
    assert [r["user"] for r in proxy.access_rows(2)] == [None, "alice"]


def test_inside_a_tunnel_that_is_opened(weir, origin, users):
    """What goes through it was let in with its CONNECT, and comes from that user."""
    proxy = weir(
        users(ALICE)
        + f"destinations: {{connect_ports: [{origin.port}]}}\ndefaults: {{https: intercept, scope: [client, session]}}\n"
    )
    name = "alice-session-red"
    with Client(proxy.port) as client:
        client.send("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n{1}: {2}\r\n\r\n".format(origin.host, *basic(name, ALICE[1])).encode())
        assert client.head().status == 200
        for _ in range(2):
            client.send(f"GET / HTTP/1.1\r\nHost: {origin.host}\r\n\r\n".encode())
            answer = client.response()
            assert (answer.status, answer.get("weir-scope")) == (200, "client=alice session=red")


def test_with_curl(weir, origin, users):
    proxy = weir(users(ALICE))
    for user, code in (("alice:open sesame", "200"), ("alice:wrong", "407")):
        for way in ([], ["--proxy-anyauth"]):
            done = subprocess.run(
                ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-U", user, *way, "-x", proxy.url, origin.url + "/"],
                capture_output=True, text=True, timeout=30, env={"PATH": "/usr/bin:/bin", "NO_PROXY": ""},
            )
            assert done.stdout == code, done


# ---- sessions in the user's name ----------------------------------------------------------------


@pytest.mark.parametrize("asks", [True, False])
def test_a_session_in_the_name(weir, origin, users, asks):
    config = (users(ALICE) if asks else "") + "defaults: {scope: [session]}\n"
    proxy = weir(config)

    def scope(name, *fields):
        answer = get(proxy.port, origin.url + "/", fields=[basic(name, ALICE[1]), *fields])
        assert answer.status == 200
        return answer.get("weir-scope")

    assert scope("alice-session-abc123") == "session=abc123"
    assert scope("alice-session-x-session-y") == "session=x-session-y"
    assert scope("alice") == "session="
    assert scope("alice-session-abc", ("Weir-Session", "field")) == "session=field"  # what is said plainly wins


@pytest.mark.parametrize("session", ["", "a b", "a" * 129, "\u00e9"])
def test_sessions_that_make_no_sense(weir, origin, users, session):
    proxy = weir(users(ALICE))
    assert status(proxy, origin.url + "/", basic("alice-session-" + session, ALICE[1])) == 400
    assert origin.requests == []


def test_turns_go_round_between_users(weir, origin, users):
    """Of one address: each user is a client of its own."""
    gate, order = Gate(), []
    origin.default = lambda e: (order.append(e.request.target), gate.wait(), e.reply())
    proxy = weir(users(ALICE, BOB) + "defaults: {limit: {algorithm: fixed, start: 1, ceiling: 1}}\n")
    clients = []

    def ask(path, who):
        clients.append(Client(proxy.port))
        clients[-1].request(origin.url + path, fields=[basic(*who)])

    ask("/first", ALICE)
    origin.wait_requests(1)
    for n in range(4):
        ask(f"/alice{n}", ALICE)
        proxy.wait_metrics(lambda m, n=n: m.value("weir_queued") == n + 1)
    ask("/bob", BOB)
    proxy.wait_metrics(lambda m: m.value("weir_queued") == 5)
    gate.open()
    for client in clients:
        assert client.response().status == 200
        client.close()
    assert order.index("/bob") <= 2


# ---- those who guess ----------------------------------------------------------------------------


@pytest.mark.threads
def test_guesses_are_limited(weir, origin, users):
    """For each address; and then the right password is no better than a wrong one, or it could be
    found that way. A connection that is in stays in."""
    proxy = weir(users(ALICE), workers=2)
    with Client(proxy.port) as inside:
        assert inside.get(origin.url + "/", fields=[basic(*ALICE)]).status == 200
        seen = [status(proxy, origin.url + "/", basic("alice", f"guess{n}")) for n in range(14)]
        assert seen[:10] == [407] * 10 and seen[-1] == 429
        answer = get(proxy.port, origin.url + "/", fields=[basic(*ALICE)])
        assert answer.status == 429 and 1 <= int(answer.get("retry-after")) <= 60
        assert b"wrong passwords" in answer.body
        assert inside.get(origin.url + "/", fields=[basic(*ALICE)]).status == 200
        assert inside.get(origin.url + "/", fields=[basic("alice", "guess")]).status == 429
        # who says nothing is asked still, and other addresses are other people
        assert status(proxy, origin.url + "/") == 407
        assert status(proxy, origin.url + "/", basic(*ALICE), source="127.0.0.9") == 200


@pytest.mark.threads
def test_many_at_once(weir, origin, users):
    """The first requests of many connections wait for one check; those of leavers are forgotten."""
    proxy = weir(users(ALICE, BOB), workers=2)
    clients = [Client(proxy.port) for _ in range(60)]
    for n, client in enumerate(clients):
        client.request(origin.url + "/", fields=[basic(*(ALICE if n % 3 else BOB))])
    for client in clients[::7]:
        client.reset()
    for n, client in enumerate(clients):
        if n % 7:
            assert client.response().status == 200
            client.close()
    m = proxy.wait_idle()
    assert m.value("weir_logins_total", result="done") <= 8 and m.value("weir_logins_total", result="failed") == 0


def test_slow_hashes_hold_up_nobody_else(weir, origin, users):
    """A check of a second does not stop the loop that others are served by."""
    slow = hash_of("x", "$6$rounds=800000$abcdefgh")
    proxy = weir(users(text=f"alice:{hash_of(ALICE[1])}\nslow:{slow}\n"))
    with Client(proxy.port) as quick, Client(proxy.port) as waits:
        assert quick.get(origin.url + "/", fields=[basic(*ALICE)]).status == 200
        waits.request(origin.url + "/slow", fields=[basic("slow", "x")])
        proxy.wait_metrics(lambda m: m.value("weir_requests_open") == 1)
        answered = 0
        while not [e for e in origin.requests if e.request.target == "/slow"] and answered < 50:
            assert quick.get(origin.url + "/", fields=[basic(*ALICE)]).status == 200
            answered += 1
        assert waits.response().status == 200
    assert answered >= 5


def test_the_end_does_not_wait_for_passwords(weir, origin, users):
    slow = hash_of("x", "$6$rounds=400000$abcdefgh")
    proxy = weir(users(text=f"slow:{slow}\n"))
    with Client(proxy.port) as client:
        client.request(origin.url + "/", fields=[basic("slow", "x")])
        proxy.wait_metrics(lambda m: m.value("weir_requests_open") == 1)
        proxy.signal(15)
        assert client.response().status == 503
    assert proxy.wait_exit() == 0


# ---- the file -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, fault",
    [
        ("alice\n", r"users:1: expected NAME:HASH"),
        ("# x\n\n:hash\n", r"users:3: expected NAME:HASH"),
        ("alice:secret\n", r"users:1: .*crypt\(3\)"),
        ("alice:\n", r"users:1: .*crypt\(3\)"),
        ("alice-session-x:HASH\n", r"users:1: .*-session-"),
        ("alice:HASH\nalice:HASH\n", r"users:2: this name is there already"),
    ],
)
def test_bad_files(tmp_path, users, text, fault):
    """One line that says where; nothing is served."""
    setting = users(text=text.replace("HASH", hash_of("x")))
    config = tmp_path / "weir.yaml"
    config.write_text(f'listen: ["127.0.0.1:0"]\nadmin: {{listen: ""}}\nstate: {{dir: "{tmp_path}"}}\n' + setting)
    done = run_weir(tmp_path, "run", "-c", config)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert re.search(r"clients\.users: .*" + fault, done.stderr), done.stderr


@pytest.mark.parametrize("path", ["missing", "."])
def test_unreadable_files(tmp_path, path):
    config = tmp_path / "weir.yaml"
    config.write_text(
        f'listen: ["127.0.0.1:0"]\nadmin: {{listen: ""}}\nstate: {{dir: "{tmp_path}"}}\nclients: {{users: "{tmp_path}/{path}"}}\n'
    )
    done = run_weir(tmp_path, "run", "-c", config)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert re.search(r"clients\.users: cannot read .*: (No such file|Is a directory)", done.stderr), done.stderr


def test_an_empty_file(weir, origin, users):
    proxy = weir(users(text="# nobody\n"))
    proxy.log.wait("warn .*names nobody")
    assert status(proxy, origin.url + "/", basic("", "")) == 407


def test_a_file_that_everybody_can_read(weir, users):
    setting = users(ALICE)
    users.path.chmod(0o644)
    weir(setting).log.wait("warn .*can be read by everybody.*chmod o-r")


@pytest.mark.threads
def test_reload(weir, origin, users):
    """What was right before is no longer, also on a connection that is open; a bad file changes nothing."""
    proxy = weir(users(ALICE), workers=2)
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/", fields=[basic(*ALICE)]).status == 200
        users((ALICE[0], "new"), BOB)
        assert proxy.api("/api/v1/reload", "POST")["reloaded"]
        assert client.get(origin.url + "/", fields=[basic(*ALICE)]).status == 407
        assert client.get(origin.url + "/", fields=[basic(ALICE[0], "new")]).status == 200
        users(text="nonsense\n")
        code, _, body = proxy.admin("/api/v1/reload", "POST")
        assert code == 422 and "users:1: expected NAME:HASH" in json.loads(body)["faults"][0]["text"]
        assert client.get(origin.url + "/", fields=[basic(*BOB)]).status == 200
        proxy.write("")
        assert proxy.api("/api/v1/reload", "POST")["reloaded"]
        assert client.get(origin.url + "/").status == 200


def test_reload_while_a_password_is_checked(weir, origin, users):
    slow = hash_of("x", "$6$rounds=400000$abcdefgh")
    proxy = weir(users(text=f"slow:{slow}\n"))
    with Client(proxy.port) as client:
        client.request(origin.url + "/", fields=[basic("slow", "x")])
        proxy.wait_metrics(lambda m: m.value("weir_requests_open") == 1)
        users(ALICE)
        assert proxy.api("/api/v1/reload", "POST")["reloaded"]
        assert client.response().status == 200  # it was right when it was asked
        assert client.get(origin.url + "/", fields=[basic("slow", "x")]).status == 407


# ---- whom an open listener lets in --------------------------------------------------------------


@pytest.mark.parametrize(
    "listen, allow, named, warned",
    [
        ("0.0.0.0:0", '["0.0.0.0/0", "::/0"]', False, True),
        ("0.0.0.0:0", '["0.0.0.0/1", "128.0.0.0/1"]', False, True),
        ("0.0.0.0:0", '["0.0.0.0/0"]', True, False),
        ("0.0.0.0:0", '["10.0.0.0/8"]', False, False),
        ("127.0.0.1:0", '["0.0.0.0/0"]', False, False),
    ],
)
def test_warns_of_an_open_proxy(tmp_path, users, listen, allow, named, warned):
    users(ALICE)
    config = tmp_path / "weir.yaml"
    config.write_text(
        f'listen: ["{listen}"]\nadmin: {{listen: ""}}\nstate: {{dir: "{tmp_path}"}}\n'
        f'clients: {{allow: {allow}, users: "{users.path if named else ""}"}}\n'
    )
    process = subprocess.Popen([PROGRAM, "run", "-c", config], stderr=subprocess.PIPE, text=True, env=clean_environment(tmp_path))
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "ready: " in line:
                break
    finally:
        process.terminate()
        process.communicate(timeout=30)
    found = [line for line in lines if re.search(r"warn .*(clients\.allow|clients\.users).*", line)]
    assert len(found) == warned, lines
