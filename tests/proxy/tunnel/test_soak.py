"""Tunnels of every kind that are dropped at every moment leave nothing behind."""
import pytest

from harness.soak import soak


@pytest.mark.threads
def test_nothing_is_left_behind(weir, authority):
    counts = soak(weir(workers=2), authority, seconds=5)
    assert len(counts) == 8, counts
