"""The units of systemd: right, and as closed as they can be."""
import pathlib
import re
import shutil
import subprocess

import pytest

from harness.daemon import PROGRAM
from harness.wire import get

UNITS = pathlib.Path(__file__).resolve().parents[3] / "systemd"
pytestmark = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="is in Debian's package systemd")


@pytest.fixture
def units(tmp_path):
    """As they are installed, but with the program that is tested."""
    text = (UNITS / "weir.service.in").read_text()
    text = text.replace("@bindir@/weir", PROGRAM).replace("@sysconfdir@", "/etc")
    (tmp_path / "weir.service").write_text(text)
    shutil.copy(UNITS / "weir.socket", tmp_path)
    return tmp_path


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def test_systemd_understands_them(units):
    done = analyze("verify", "--man=no", units / "weir.service", units / "weir.socket")
    assert (done.returncode, done.stderr) == (0, "")


def test_exposure(units):
    done = analyze("security", "--offline=true", "--threshold=15", units / "weir.service")
    assert done.returncode == 0, done.stdout
    assert float(re.search(r"Overall exposure level for weir.service: ([0-9.]+)", done.stdout)[1]) <= 1.5


# The kernel's own switch for what MemoryDenyWriteExecute= forbids (PR_SET_MDWE, refuse to gain).
WITHOUT_WRITE_AND_EXECUTE = """
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
    sys.exit(9)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_it_needs_no_memory_that_is_written_and_executed(weir, origin):
    before = ["/usr/bin/python3", "-c", WITHOUT_WRITE_AND_EXECUTE]
    if subprocess.run([*before, "/bin/true"], timeout=30).returncode == 9:
        pytest.skip("Linux before 6.3")
    proxy = weir(before=before)
    assert get(proxy.port, origin.url + "/x").status == 200
    assert proxy.reload().endswith("configuration reloaded")
