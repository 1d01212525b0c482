import pytest

from harness.tcp import Listener


@pytest.fixture
def listeners():
    """listeners(ADDRESS): one more host that speaks whatever the test speaks."""
    running = []

    def start(address="127.0.0.1"):
        running.append(Listener(address))
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.fixture
def listener(listeners):
    return listeners()
