"""Pools of real upstream proxies: what goes out, with whose name, and what is told of it."""
import concurrent.futures
import signal

import pytest

from harness.daemon import run_weir
from harness.origin import Gate
from harness.tcp import Listener, connect, ports, tunnel
from harness.tls import TlsOrigin, server_context
from harness.wire import Client, get

SECRET = "s3cr:t@/%41"  # what a URL cannot hold as it is


def config(*endpoints, more="", policy=""):
    listed = ", ".join(e if e.startswith("{") else f'"{e}"' for e in endpoints)
    return f"""
defaults: {{egress: pool, retry: {{base: 1ms, max: 1ms}}{policy}}}
pools: {{pool: {{endpoints: [{listed}]{more}}}}}
"""


# An endpoint backs off for longer than that.
WAITS_FOR_NONE = ", queue: {timeout: 500ms}"
MOST_BACK_OFF = 10  # seconds, of an endpoint that a slow machine has let be tried some times


def no_endpoint(answer, within):
    """weir's answer where no endpoint is of use, but one is expected to be in that many seconds."""
    assert answer.status == 503, answer.head
    assert "error=destination_unavailable" in answer.get("Proxy-Status")
    assert 1 <= int(answer.get("Retry-After")) <= within


def endpoints(proxy):
    return {e["name"]: e for e in proxy.api("/api/v1/endpoints")["endpoints"]}


@pytest.mark.parametrize("kind", ["tinyproxy", "squid", "microsocks"])
def test_requests_go_by_the_proxy(weir, where, proxies, kind):
    upstream = proxies(kind, "127.0.0.5")
    proxy = weir(config(upstream.url))
    with Client(proxy.port) as client:
        for number in range(3):
            answer = client.get(f"{where.url}/a//b%2F?x=|{number}", fields=[("X-A", "b")])
            assert (answer.status, answer.body) == (200, b"127.0.0.5")
    request = where.requests[0].request
    assert request.target == "/a//b%2F?x=|0" and request.get("X-A") == "b"
    assert not [n for n in request.names() if n.lower().startswith("proxy-")]
    row = proxy.access("x=|0")
    assert row["upstream"]["endpoint"] == f"pool/{upstream.place}"
    assert row["upstream"]["address"] == ""
    assert row["scope"] == f"{where.host} pool=pool"


@pytest.mark.parametrize("kind", ["tinyproxy", "squid", "microsocks"])
def test_blind_tunnels_go_by_the_proxy(weir, proxies, kind):
    listener = Listener()
    try:
        upstream = proxies(kind, "127.0.0.5")
        proxy = weir(config(upstream.url) + ports(listener))
        client, host = tunnel(proxy, listener)
        assert host.getpeername()[0] == "127.0.0.5"
        client.send(b"ping")
        assert host.recv(4) == b"ping"
        host.sendall(b"pong" * 100000)
        assert client.reader.exactly(400000) == b"pong" * 100000
        # the tunnel is in use, and with it the one place that its endpoint has
        own = {"pool": "pool", "endpoint": upstream.place}
        proxy.wait_metrics(lambda m: m.value("weir_endpoint_in_flight", **own) == 1)
        client.close()
        proxy.wait_metrics(lambda m: m.value("weir_endpoint_in_flight", **own) == 0)
    finally:
        listener.close()


def echo(exchange):
    exchange.send(b"HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n" + exchange.sock.getpeername()[0].encode())
    while data := exchange.sock.recv(1 << 16):
        exchange.send(data)
    exchange.close()


@pytest.mark.parametrize("kind", ["tinyproxy", "squid", "microsocks"])
def test_other_protocols_go_by_the_proxy(weir, where, proxies, kind):
    where.on("/x", echo)
    upstream = proxies(kind, "127.0.0.5")
    proxy = weir(config(upstream.url))
    with Client(proxy.port) as client:
        client.request(where.url + "/x", fields=[("Connection", "Upgrade"), ("Upgrade", "echo")])
        assert client.head().status == 101
        assert client.reader.exactly(9) == b"127.0.0.5"
        client.send(b"ping" * 1000)
        assert client.reader.exactly(4000) == b"ping" * 1000
    assert get(proxy.port, where.url + "/").body == b"127.0.0.5"
    assert where.requests[0].request.target == "/x" and endpoints(proxy)[upstream.place]["faults"] == 0


@pytest.mark.parametrize("kind", ["tinyproxy", "squid", "microsocks"])
def test_https_goes_through_tunnels_of_its_own(weir, authority, tls_origins, proxies, kind):
    secure = tls_origins(server_context(authority.issue("localhost", "127.0.0.1"), ("h2", "http/1.1")))
    secure.default = lambda e: e.reply(body=e.sock.getpeername()[0].encode())
    ways = [proxies(kind, "127.0.0.5"), proxies(kind, "127.0.0.6")]
    policy = f', https: upgrade, http2: false, tls: {{ca_file: "{authority.path}"}}'
    text = config(*[w.url for w in ways], policy=policy, more=", choose: round_robin")
    proxy = weir(text.replace("socks5h:", "socks5:"))  # the name is found here, and the same
    exits = [get(proxy.port, secure.plain_url + "/").body for _ in range(6)]
    assert set(exits) == {b"127.0.0.5", b"127.0.0.6"} and exits[0] != exits[1]
    assert secure.connections == 2  # each has its own, and uses it again


def test_credentials_are_sent_and_never_told(weir, where, proxies, tmp_path):
    by_name = proxies("tinyproxy", "127.0.0.5", user="worker", password="s3cr-t")
    by_socks = proxies("microsocks", "127.0.0.6", user="worker", password=SECRET)
    environment = {"WEIR_TEST_SECRET": "s3cr-t", "WEIR_TEST_URL": f"socks5h://worker:s3cr%3At%40%2F%2541@{by_socks.place}"}
    text = config(f"http://worker:${{WEIR_TEST_SECRET}}@{by_name.place}", "${WEIR_TEST_URL}", more=", choose: round_robin")
    proxy = weir(text, environment=environment)
    answers = {get(proxy.port, where.url + "/").body for _ in range(4)}
    assert answers == {b"127.0.0.5", b"127.0.0.6"}
    proxy.access_rows(4)
    told = proxy.log.text() + proxy.access_path.read_text() + proxy.series_path.read_text()
    for path in ("/api/v1/endpoints", "/api/v1/scopes", "/api/v1/requests/recent", "/metrics"):
        told += proxy.admin(path)[2]
    shown = run_weir(tmp_path, "run", "--show-config", "-c", proxy.config_path, environment=environment)
    explained = run_weir(tmp_path, "explain", "-c", proxy.config_path, where.url, environment=environment)
    assert "${WEIR_TEST_SECRET}" in shown.stdout and explained.returncode == 0
    told += shown.stdout + shown.stderr + explained.stdout + explained.stderr
    assert "s3cr" not in told and "worker:$" in told
    assert by_name.place in told and by_socks.place not in told  # which is in the environment alone
    # nor when a reload does not like it
    proxy.write(text.replace(by_name.place, "no port").replace("${WEIR_TEST_SECRET}", "s3cr-t"))
    assert "was not" in proxy.reload()
    assert "endpoints[0]: the port is missing" in proxy.log.text() and "s3cr" not in proxy.log.text()


@pytest.mark.parametrize("kind", ["tinyproxy", "microsocks"])
@pytest.mark.parametrize("password", ["wrong", None])
@pytest.mark.parametrize("tunnels", [False, True])
def test_a_refused_password_is_the_endpoints_fault(weir, where, proxies, kind, password, tunnels):
    upstream = proxies(kind, "127.0.0.5", user="worker", password="right")
    wrong = upstream.url.replace("right", password) if password else upstream.url.replace("worker:right@", "")
    proxy = weir(config(wrong, policy=WAITS_FOR_NONE) + ports(where))
    no_endpoint(connect(proxy.port, where.host)[1] if tunnels else get(proxy.port, where.url + "/"), 2)
    assert where.requests == []
    assert endpoints(proxy)[upstream.place]["faults"] == 1
    proxy.log.wait(f"endpoint pool/{upstream.place}: the upstream proxy refuses the user name and password")
    proxy.write(config(wrong, f"{{url: \"{upstream.url}\", name: good}}"))
    proxy.reload()
    for _ in range(4):
        assert get(proxy.port, where.url + "/").body == b"127.0.0.5"


@pytest.mark.threads
def test_a_proxy_that_dies(weir, where, proxies):
    ways = [proxies("tinyproxy", "127.0.0.5"), proxies("tinyproxy", "127.0.0.6")]
    proxy = weir(config(*[w.url for w in ways], policy=", limit: {start: 8}"), workers=2)
    scope = f"{where.host} pool=pool"

    def limit():
        return next(s for s in proxy.api("/api/v1/scopes")["scopes"] if s["scope"] == scope)["concurrency_limit"]

    for _ in range(6):
        assert get(proxy.port, where.url + "/").status == 200
    before = limit()
    ways[0].stop()
    for number in range(20):  # what it had an open connection for may be lost; the rest moves over
        answer = get(proxy.port, f"{where.url}/{number}")
        assert (answer.status, answer.body) == (200, b"127.0.0.6")
    assert limit() >= before
    proxy.wait_metrics(
        lambda m: get(proxy.port, where.url + "/").status == 200
        and m.value("weir_endpoint_up", pool="pool", endpoint=ways[0].place) == 0
    )
    assert endpoints(proxy)[ways[0].place]["faults"] <= 4  # it is left alone, but for a look now and then
    ways[0].start()
    proxy.wait_metrics(
        lambda m: get(proxy.port, where.url + "/").status == 200
        and m.value("weir_endpoint_up", pool="pool", endpoint=ways[0].place) == 1
    )
    assert b"127.0.0.5" in {get(proxy.port, where.url + "/").body for _ in range(4)}


def test_no_way_out_is_left(weir, where, proxies):
    ways = [proxies("tinyproxy", "127.0.0.5"), proxies("microsocks", "127.0.0.6")]
    proxy = weir(config(*[w.url for w in ways], policy=WAITS_FOR_NONE) + ports(where))
    for way in ways:
        way.stop()
    with Client(proxy.port) as client:
        no_endpoint(client.get(where.url + "/get"), MOST_BACK_OFF)
        no_endpoint(client.get(where.url + "/get"), MOST_BACK_OFF)
        client.request(where.url + "/post", method="POST", body=b"x")  # nothing of it has gone anywhere
        no_endpoint(client.response(), MOST_BACK_OFF)
    no_endpoint(connect(proxy.port, f"localhost:{where.port}")[1], MOST_BACK_OFF)
    assert {row["outcome"] for row in proxy.access_rows(4)} == {"no_endpoint"}
    assert proxy.metrics().value("weir_failovers_total") >= 1
    for way in ways:
        proxy.log.wait(f"warn .*endpoint pool/{way.place}: the upstream proxy cannot be reached")


def test_the_last_fault_is_told_of_when_there_are_others(weir, where, proxies):
    """One attempt is what the client wants; the next may go by another endpoint."""
    ways = [proxies("tinyproxy", "127.0.0.5"), proxies("tinyproxy", "127.0.0.6")]
    proxy = weir(config(*[w.url for w in ways], more=", choose: round_robin"))
    ways[0].stop()
    answers = [get(proxy.port, where.url + "/", fields=[("Weir-Retry", "no")]) for _ in range(3)]
    assert {a.status for a in answers} == {200, 502}
    told = next(a for a in answers if a.status == 502)
    assert "error=connection_refused" in told.get("Proxy-Status") and told.get("Weir-Attempts") == "1"
    assert b"the upstream proxy cannot be reached" in told.body


def test_a_host_that_is_down_is_not_the_proxys_fault(weir, where, proxies):
    ways = [proxies("squid", "127.0.0.5"), proxies("tinyproxy", "127.0.0.6"), proxies("microsocks", "127.0.0.7")]
    proxy = weir(config(*[w.url for w in ways], more=", choose: round_robin") + ports(1))
    once = [("Weir-Retry", "no")]
    for _ in ways:
        answer = get(proxy.port, "http://127.0.0.1:1/", fields=once)
        assert answer.status in (502, 503) and answer.get("Weir-Attempts") == "1"
    for _ in ways:
        answer = connect(proxy.port, "127.0.0.1:1", fields=once)[1]
        assert answer.status in (502, 503) and answer.get("Weir-Attempts") == "1"
    for _ in ways:  # an address that no machine can have
        assert get(proxy.port, "http://240.0.0.1/", fields=once).status in (502, 503)
    assert [endpoints(proxy)[w.place]["requests"] for w in ways] == [3, 3, 3]
    assert [endpoints(proxy)[w.place]["faults"] for w in ways] == [0, 0, 0]
    assert {get(proxy.port, where.url + "/").body for _ in ways} == {b"127.0.0.5", b"127.0.0.6", b"127.0.0.7"}


@pytest.mark.parametrize("how", ["GET", "POST", "CONNECT"])
def test_what_a_proxy_does_not_let_through(weir, origins, proxies, how):
    """It is as if that host had blocked it: others do go by it, and that one by others. But for
    tunnels, where it may be the port: then it is asked each time."""
    host, other = origins("127.0.0.1"), origins("127.0.0.9")
    for one in (host, other):
        one.default = lambda e: e.reply(body=e.sock.getpeername()[0].encode())
    ways = [proxies("squid", "127.0.0.5", denied="127.0.0.1"), proxies("tinyproxy", "127.0.0.6")]
    text = config(*[w.url for w in ways], more=", choose: round_robin") + ports(host, other)
    proxy = weir(text)

    def ask(origin):
        if how == "CONNECT":
            client, answer = connect(proxy.port, origin.host)
            assert answer.status == 200
            client.send(f"GET / HTTP/1.1\r\nHost: {origin.host}\r\n\r\n".encode())
            body = client.response().body
            client.close()
            proxy.wait_metrics(lambda m: m.total("weir_endpoint_in_flight") == 0)
            return body
        # Without a body: squid breaks off where one comes later than its answer, and who knows what was done?
        answer = get(proxy.port, origin.url + "/", method=how, body=b"" if how == "POST" else None)
        assert answer.status == 200, (answer.head, answer.body)
        return answer.body

    assert {ask(host) for _ in range(4)} == {b"127.0.0.6"}
    assert {ask(other) for _ in range(4)} == {b"127.0.0.5", b"127.0.0.6"}
    listed = endpoints(proxy)[ways[0].place]
    assert listed["faults"] == 0
    assert [q["host"] for q in listed["quarantines"]] == ([] if how == "CONNECT" else ["127.0.0.1"])
    assert listed["blocked"] == (0 if how == "CONNECT" else 1)
    proxy.write(text.replace(f', "{ways[1].url}"', ""))  # which leaves none for that host
    proxy.reload()
    if how == "CONNECT":
        answer = connect(proxy.port, host.host)[1]
        assert answer.status == 502 and "proxy_configuration_error" in answer.get("Proxy-Status")
    else:
        no_endpoint(get(proxy.port, host.url + "/"), 600)
    assert ask(other) == b"127.0.0.5"


def test_what_must_not_go_twice_is_not_lost(weir, where, proxies):
    """tinyproxy closes after each answer and does not say so before."""
    upstream = proxies("tinyproxy", "127.0.0.5")
    proxy = weir(config(f"{{url: '{upstream.url}', max_in_flight: 8}}"), workers=2)

    def post(_):
        with Client(proxy.port) as client:
            return {client.get(where.url + "/", method="POST", body=b"x").status for _ in range(40)}

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set.union(*pool.map(post, range(8))) == {200}
    assert len(where.requests) == 320


def test_what_a_proxy_takes_for_nonsense(weir, where, proxies):
    """It says so to the client, and serves others."""
    upstream = proxies("squid", "127.0.0.5")
    proxy = weir(config(upstream.url))
    for path in ("/" + "a" * 9000, "/"):  # squid's URLs are shorter
        assert get(proxy.port, where.url + path).status == (400 if len(path) > 1 else 200)
    assert endpoints(proxy)[upstream.place]["faults"] == 0


def test_what_may_not_be_reached_may_not_be_reached_by_a_proxy_either(weir, where, proxies):
    upstream = proxies("tinyproxy", "127.0.0.5")
    deny = ports(where).replace("{", "{deny: [loopback], ")
    proxy = weir(config(upstream.url) + deny)
    for host in ("127.0.0.1", "127.1", "localhost", "0x7f000001"):
        answer = get(proxy.port, f"http://{host}:{where.port}/")
        assert answer.status == 403 and "destination_ip_prohibited" in answer.get("Proxy-Status")
        assert connect(proxy.port, f"{host}:{where.port}")[1].status == 403
    assert where.requests == []
    socks = proxies("microsocks", "127.0.0.6")
    proxy = weir(config(socks.url.replace("socks5h:", "socks5:")) + deny)
    assert get(proxy.port, f"http://localhost:{where.port}/").status == 403
    assert where.requests == []
    assert endpoints(proxy)[socks.place]["faults"] == 0


# ---- the address that hosts see ----


def test_the_proxy_tells_the_exit_address(weir, where, proxies):
    upstream = proxies("squid", "127.0.0.5")  # which adds the field
    proxy = weir(config(upstream.url, more=', exit_ip: {header: "X-Exit-Address"}'))
    assert get(proxy.port, where.url + "/told").body == b"127.0.0.5"
    assert proxy.access("/told")["upstream"]["exit"] == "127.0.0.5"
    proxy.wait_idle()
    assert proxy.api("/api/v1/requests/recent")["requests"][0]["exit_address"] == "127.0.0.5"
    assert endpoints(proxy)[upstream.place]["exit_address"] == "127.0.0.5"
    m = proxy.metrics()
    assert m.value("weir_endpoint_exit_info", pool="pool", endpoint=upstream.place, exit_address="127.0.0.5") == 1


def test_a_local_address_is_the_exit_address(weir, where):
    proxy = weir(config("{source: 127.0.0.2, name: two}"))
    assert get(proxy.port, where.url + "/seen").body == b"127.0.0.2"
    assert proxy.access("/seen")["upstream"]["exit"] == "127.0.0.2"
    proxy.wait_idle()
    assert proxy.api("/api/v1/requests/recent")["requests"][0]["exit_address"] == "127.0.0.2"
    assert endpoints(proxy)["two"]["exit_address"] == "127.0.0.2"
    m = proxy.metrics()
    assert m.value("weir_endpoint_exit_info", pool="pool", endpoint="two", exit_address="127.0.0.2") == 1


@pytest.mark.threads
def test_a_probe_finds_the_exit_address(weir, where, proxies):
    ways = [proxies("tinyproxy", "127.0.0.5"), proxies("microsocks", "127.0.0.6")]
    probe = f', exit_ip: {{probe: "{where.url}/ip"}}'
    proxy = weir(config(*[w.url for w in ways], "{source: 127.0.0.7}", more=probe), workers=2)
    wanted = {ways[0].place: "127.0.0.5", ways[1].place: "127.0.0.6", "127.0.0.7": "127.0.0.7"}
    proxy.wait_metrics(lambda m: m.total("weir_endpoint_exit_info") == 3)
    assert {n: e["exit_address"] for n, e in endpoints(proxy).items() if n in wanted} == wanted
    assert where.paths() == ["/ip"] * 3
    assert proxy.api("/api/v1/endpoints")["sessions"] == []
    assert get(proxy.port, where.url + "/seen").status == 200
    row = proxy.access("/seen")
    assert row["upstream"]["exit"] == wanted[row["upstream"]["endpoint"].removeprefix("pool/")]
    where.on("/ip", lambda e: e.reply(body=b"<html>"))
    proxy.reload()
    proxy.log.wait(r"warn .*exit_ip\.probe of pool pool by .*: the answer, with status 200, is no address")
    assert {n: e["exit_address"] for n, e in endpoints(proxy).items() if n in wanted} == wanted


def forever(exchange):
    exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        exchange.send(b"x" * 4096)


def never(exchange):
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n127.")
    exchange.wait_gone()


@pytest.mark.threads
@pytest.mark.parametrize("handler, told", [(forever, "no address, but long"), (never, "does not end in time")])
def test_a_probe_does_not_keep_the_endpoint(weir, where, handler, told):
    """However the answer goes on: requests want it too. And the next endpoint is asked."""
    where.on("/ip", handler)
    policy = ", timeouts: {total: 1s}"
    ways = ("{source: 127.0.0.2}", "{source: 127.0.0.3}")
    proxy = weir(config(*ways, more=f', exit_ip: {{probe: "{where.url}/ip"}}', policy=policy), workers=2)
    for way in ("127.0.0.2", "127.0.0.3"):
        proxy.log.wait(f"warn .*exit_ip.probe of pool pool by {way}: the answer .*{told}")
    proxy.wait_metrics(lambda m: m.total("weir_endpoint_in_flight") == 0)
    assert len(where.wait_requests(2, "/ip")) == 2
    assert proxy.metrics().total("weir_endpoint_exit_info") == 0
    assert {get(proxy.port, where.url + "/").body for _ in range(4)} == {b"127.0.0.2", b"127.0.0.3"}


@pytest.mark.threads
def test_a_probe_under_way_when_all_changes(weir, where):
    """A reload lets it end and asks anew; a stop waits for nothing."""
    gate = Gate()
    where.on("/ip", lambda e: (gate.wait(), e.reply(body=e.sock.getpeername()[0].encode())))
    probe = f', exit_ip: {{probe: "{where.url}/ip"}}'
    proxy = weir(config("{source: 127.0.0.2}", more=probe), workers=2)
    where.wait_requests(1)
    proxy.write(config("{source: 127.0.0.3}", more=probe))
    proxy.reload()
    gate.open(1)
    where.wait_requests(2)
    assert [e.sock.getpeername()[0] for e in where.requests] == ["127.0.0.2", "127.0.0.3"]
    proxy.signal(signal.SIGTERM)
    assert proxy.wait_exit() == 0
    gate.open()


# ---- a proxy that is spoken to over TLS ----


def test_a_proxy_behind_tls(weir, where, proxies, authority):
    listener = Listener()
    try:
        upstream = proxies("squid", "127.0.0.5", certificate=authority.issue("localhost", "127.0.0.1"))
        text = config(upstream.url, policy=WAITS_FOR_NONE) + ports(listener)
        proxy = weir(text)
        no_endpoint(get(proxy.port, where.url + "/"), 2)  # nobody here knows its CA
        assert where.requests == []
        assert endpoints(proxy)[upstream.place]["faults"] == 1
        proxy = weir(text, environment={"SSL_CERT_FILE": authority.path})
        assert get(proxy.port, where.url + "/").body == b"127.0.0.5"
        client, host = tunnel(proxy, listener)
        assert host.getpeername()[0] == "127.0.0.5"
        client.send(b"ping" * 50000)
        got = b""
        while len(got) < 200000:
            got += host.recv(1 << 16)
        assert got == b"ping" * 50000
        host.sendall(b"pong" * 200000)
        assert client.reader.exactly(800000) == b"pong" * 200000
        host.sendall(b"bye")
        host.close()
        assert client.reader.to_end() == b"bye"
        client.close()
        client, host = tunnel(proxy, listener)
        client.close()
        assert host.recv(1) == b""  # the host is told
    finally:
        listener.close()


@pytest.mark.parametrize("kind", ["tinyproxy", "squid", "microsocks"])
def test_a_stop_ends_tunnels_by_proxies(weir, proxies, authority, kind):
    listener = Listener()
    try:
        secure = {"certificate": authority.issue("localhost", "127.0.0.1")} if kind == "squid" else {}
        upstream = proxies(kind, "127.0.0.5", **secure)
        text = config(upstream.url) + ports(listener) + "shutdown_grace: 200ms\n"
        proxy = weir(text, environment={"SSL_CERT_FILE": authority.path})
        client, host = tunnel(proxy, listener)
        client.send(b"ping")
        assert host.recv(4) == b"ping"
        proxy.signal(signal.SIGTERM)
        assert proxy.wait_exit() == 0
        assert host.recv(1) == b"" and client.reader.to_end() == b""
        client.close()
    finally:
        listener.close()
