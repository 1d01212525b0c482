"""proxies(KIND, …): upstream proxies that end with the test."""
import pytest

from harness.proxies import Microsocks, Squid, Tinyproxy

KINDS = {"tinyproxy": Tinyproxy, "squid": Squid, "microsocks": Microsocks}


@pytest.fixture
def proxies(tmp_path):
    running = []

    def start(kind, exit, **more):
        running.append(KINDS[kind](tmp_path / f"{kind}{len(running)}", exit, **more))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def where(origin):
    """An origin that answers with the address that it is asked from."""
    origin.default = lambda e: e.reply(body=e.sock.getpeername()[0].encode())
    return origin
