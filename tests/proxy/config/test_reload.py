"""SIGHUP: a good file takes effect at once, a bad one changes nothing; what was learned stays."""
import threading

import pytest

from harness.origin import Gate
from harness.wire import Client, get

pytestmark = pytest.mark.threads


def test_a_good_file_takes_effect(weir, origin):
    proxy = weir("annotate: true\n")
    assert get(proxy.port, origin.url + "/x").get("weir-scope") == origin.host
    proxy.write("annotate: false\n")
    proxy.reload()
    assert get(proxy.port, origin.url + "/x").get("weir-scope") is None


def test_a_kept_connection_sees_the_new_file(weir, origin):
    proxy = weir("annotate: true\n")
    with Client(proxy.port) as client:
        assert client.get(origin.url + "/x").get("weir-scope")
        proxy.write("annotate: false\n")
        proxy.reload()
        assert client.get(origin.url + "/x").get("weir-scope") is None


def test_a_bad_file_changes_nothing_and_is_named(weir, origin):
    proxy = weir("annotate: false\n")
    seen = len(proxy.log.all)
    proxy.write("annotate: true\nworkerz: 3\n")
    proxy.reload()
    proxy.log.wait(r"weir\.yaml:\d+:1: workerz", seen)
    assert get(proxy.port, origin.url + "/x").get("weir-scope") is None
    proxy.write("annotate: true\n")
    proxy.reload()
    assert get(proxy.port, origin.url + "/x").get("weir-scope") == origin.host


def test_a_request_under_way_keeps_its_configuration(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir("annotate: true\n")
    with Client(proxy.port) as client:
        client.request(origin.url + "/x")
        origin.wait_requests(1)
        proxy.write("annotate: false\n")
        proxy.reload()
        gate.open()
        assert client.response().get("weir-scope") == origin.host


def test_new_limits_reach_the_queue(weir, origin):
    """One in flight, others queued; the new file lets four go."""
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    limit = "defaults: {{limit: {{algorithm: fixed, start: {0}, ceiling: {0}}}}}\n"
    proxy = weir(limit.format(1))
    clients = [Client(proxy.port) for _ in range(4)]
    clients[0].request(origin.url + "/0")
    origin.wait_requests(1)
    proxy.write(limit.format(4))
    proxy.reload()
    for i, client in enumerate(clients[1:], 1):
        client.request(f"{origin.url}/{i}")
    origin.wait_requests(4)
    gate.open()
    for client in clients:
        assert client.response().status == 200
        client.close()


def test_under_load_nothing_is_lost(weir, origin):
    """Twenty reloads while eight clients ask: every answer is a 200."""
    proxy = weir("defaults: {limit: {start: 8}}\n", workers=2)
    done = threading.Event()
    faults = []
    count = [0] * 8

    def worker(number):
        with Client(proxy.port) as client:
            while not done.is_set():
                answer = client.get(f"{origin.url}/{number}")
                count[number] += 1
                if answer.status != 200:
                    faults.append(answer.head)

    threads = [threading.Thread(target=worker, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for i in range(20):
        proxy.write(f"defaults: {{limit: {{start: 8, ceiling: {8 + i}}}}}\n" if i % 4 else "broken: [\n")
        proxy.reload()
    done.set()
    for thread in threads:
        thread.join()
    assert not faults and all(count)
