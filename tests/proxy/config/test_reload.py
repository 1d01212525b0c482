"""SIGHUP: a good file takes effect at once, a bad one changes nothing; what was learned stays."""
import threading

import pytest

from harness.origin import Gate
from harness.wire import Client

pytestmark = pytest.mark.threads


def annotated(client, origin):
    return client.get(origin.url + "/x").get("weir-scope") is not None


def wait_annotated(client, origin, wanted):
    """Each worker takes over the new file in its next turn, just after the daemon has told of it."""
    assert any(annotated(client, origin) == wanted for _ in range(1000))


def test_a_good_file_takes_effect(weir, origin):
    """For connections that are open already as well as for new ones."""
    proxy = weir("annotate: true\n")
    with Client(proxy.port) as kept, Client(proxy.port) as fresh:
        assert annotated(kept, origin)
        proxy.write("annotate: false\n")
        proxy.reload()
        wait_annotated(kept, origin, False)
        wait_annotated(fresh, origin, False)


def test_a_bad_file_changes_nothing_and_is_named(weir, origin):
    proxy = weir("annotate: false\n")
    seen = len(proxy.log.all)
    proxy.write("annotate: true\nworkerz: 3\n")
    assert "not reloaded" in proxy.reload()
    proxy.log.wait(r"weir\.yaml:\d+:1: workerz", seen)
    with Client(proxy.port) as client:
        assert not annotated(client, origin)
        proxy.write("annotate: true\n")
        proxy.reload()
        wait_annotated(client, origin, True)


def test_new_listeners_wait_for_the_restart_and_so_does_their_guard(weir, origin):
    """A proxy that is reached from outside keeps others from the inside; this one is not yet."""
    proxy = weir("annotate: false\n")
    proxy.listen = "0.0.0.0:0"
    proxy.write("annotate: true\n")
    proxy.reload()
    with Client(proxy.port) as client:
        wait_annotated(client, origin, True)
        assert client.get(origin.url + "/x").status == 200


def test_a_request_under_way_keeps_its_configuration(weir, origin):
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    proxy = weir("annotate: true\n")
    with Client(proxy.port) as client:
        client.request(origin.url + "/held")
        origin.wait_requests(1)
        proxy.write("annotate: false\n")
        proxy.reload()
        origin.on("/x", lambda e: e.reply())
        with Client(proxy.port) as other:
            wait_annotated(other, origin, False)
        gate.open()
        assert client.response().get("weir-scope") == origin.host


def test_new_limits_reach_the_queue(weir, origin, origins):
    """One in flight, others queued; under the new file they go as well."""
    gate = Gate()
    origin.default = lambda e: (gate.wait(), e.reply())
    limit = "defaults: {{limit: {{algorithm: fixed, start: {0}, ceiling: {0}}}}}\n"
    proxy = weir(limit.format(1))
    clients = [Client(proxy.port) for _ in range(4)]
    clients[0].request(origin.url + "/0")
    origin.wait_requests(1)
    for i, client in enumerate(clients[1:], 1):
        client.request(f"{origin.url}/{i}")
    proxy.write(limit.format(4) + "annotate: false\n")
    proxy.reload()
    with Client(proxy.port) as other:
        wait_annotated(other, origins(), False)
        other.request(origin.url + "/5")  # a lane takes over the policy of who comes with a newer one
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
