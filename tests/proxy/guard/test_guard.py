"""Destinations that are not allowed are refused before anything is dialled."""
import pytest

from harness.wire import Client, get

DENY = "destinations: {deny: [loopback]}\n"


def refused(answer):
    return answer.status == 403 and "destination_ip_prohibited" in answer.get("proxy-status", "")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "127.0.0.2", "127.255.255.254"])
def test_denied(weir, origins, host):
    origin = origins("127.0.0.1" if "localhost" in host.lower() else host)
    answer = get(weir(DENY).port, f"http://{host}:{origin.port}/")
    assert refused(answer), answer.head
    assert answer.values("weir-attempts") == ["1"]  # it would only happen again
    assert origin.connections == 0


@pytest.mark.parametrize(
    "host",
    ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"],
)
def test_other_spellings_do_not_get_round_it(weir, origin, host):
    answer = get(weir(DENY).port, f"http://{host}:{origin.port}/")
    assert answer.status == 400 or refused(answer), answer.head
    assert origin.connections == 0


@pytest.mark.parametrize("network", ["127.0.0.0/8", "127.0.0.1/32", "127.0.0.1", "0.0.0.0/0"])
def test_denied_by_network(weir, origin, network):
    assert refused(get(weir(f'destinations: {{deny: ["{network}"]}}\n').port, origin.url + "/"))
    assert origin.connections == 0


def test_the_others_pass(weir, origins):
    one, two = origins("127.0.0.1"), origins("127.0.0.2")
    proxy = weir('destinations: {deny: ["127.0.0.2/32"]}\n')
    assert get(proxy.port, one.url + "/").status == 200
    assert refused(get(proxy.port, two.url + "/"))
    assert two.connections == 0


def test_allow_makes_exceptions(weir, origins):
    one, two = origins("127.0.0.1"), origins("127.0.0.2")
    proxy = weir('destinations: {deny: [loopback], allow: ["127.0.0.2/32"]}\n')
    assert refused(get(proxy.port, one.url + "/"))
    assert get(proxy.port, two.url + "/").status == 200
    assert one.connections == 0


def test_a_refusal_teaches_the_limiter_nothing_and_costs_no_retry(weir, origin):
    proxy = weir(DENY)
    with Client(proxy.port) as client:
        for _ in range(20):  # more than the circuit breaker's count
            assert refused(client.get(origin.url + "/"))


def test_clients_that_are_not_allowed(weir, origin):
    proxy = weir('clients: {allow: ["127.0.0.2/32"]}\n')
    answer = get(proxy.port, origin.url + "/x")
    assert answer.status == 403
    assert answer.get("proxy-status", "").startswith("weir")
    assert origin.connections == 0
    assert get(proxy.port, origin.url + "/x", source="127.0.0.2").status == 200
