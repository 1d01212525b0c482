"""What every black-box test starts from: `weir` starts daemons, `origin` starts an origin."""
import pytest

from harness.daemon import Weir
from harness.origin import Origin
from harness.tls import Authority, TlsOrigin


@pytest.fixture
def weir(tmp_path):
    """weir(CONFIG, workers=1): a running daemon; it is stopped, and must stop clean, at the end."""
    running = []

    def start(config="", **more):
        daemon = Weir(tmp_path / f"weir{len(running)}", config, **more)
        daemon.__enter__()
        running.append(daemon)
        return daemon

    yield start
    faults = []
    for daemon in reversed(running):
        try:
            daemon.__exit__(None, None, None)
        except AssertionError as fault:
            faults.append(fault)
    if faults:
        raise faults[0]


@pytest.fixture
def origins():
    """origins(ADDRESS): one more origin."""
    running = []

    def start(address="127.0.0.1"):
        running.append(Origin(address))
        return running[-1]

    yield start
    for one in running:
        one.close()
    assert not [fault for one in running for fault in one.faults]


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """The CA of the hosts in tests."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def tls_origins(authority):
    """tls_origins(CONTEXT): an origin that is asked over https."""
    running = []

    def start(context, kind=TlsOrigin, **more):
        running.append(kind(context, **more))
        return running[-1]

    yield start
    for one in running:
        one.close()
    assert not [fault for one in running for fault in one.faults]


@pytest.fixture
def origin(origins):
    return origins()
