"""Real clients, told of the proxy as their users do it, fetch from a host with a hidden limit: they
see nothing but 200."""
import concurrent.futures
import os
import subprocess

import pytest

from harness.clients import SCRIPTS, python_command, statuses
from harness.origin import Limited

REQUESTS = 60

LIMITS = {
    "fixed": dict(policy="fixed", rate=20, window=1.0),
    "token": dict(policy="token", rate=20, burst=5),
    "conc": dict(policy="conc", cap=3, latency=0.02),
}


def environment(proxy):
    kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    return {**kept, "HTTP_PROXY": proxy.url, "http_proxy": proxy.url}


def check(proxy, limit, statuses):
    assert statuses == [200] * REQUESTS
    assert limit.served == REQUESTS
    # All at once, and again when the host says so, would be refused 60 times at 20 a second: 40, then 20.
    assert limit.refused < REQUESTS
    assert len(proxy.access_rows(REQUESTS)) == REQUESTS


def run_script(proxy, script, urls):
    done = subprocess.run(
        python_command(script, urls), capture_output=True, text=True, timeout=100, env=environment(proxy)
    )
    return statuses("python", done)


@pytest.mark.parametrize("client", SCRIPTS)
def test_python_client(weir, origin, client):
    limit = origin.default = Limited(**LIMITS["fixed"])
    proxy = weir(workers=2)
    check(proxy, limit, run_script(proxy, SCRIPTS[client], [f"{origin.url}/{i}" for i in range(REQUESTS)]))


def curl(proxy, *arguments):
    done = subprocess.run(
        ["curl", "-sS", "--max-time", "60", "-w", "%{http_code}\n", "-o", "/dev/null", *arguments],
        capture_output=True,
        text=True,
        env=environment(proxy),
    )
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def test_curl(weir, origin):
    limit = origin.default = Limited(**LIMITS["fixed"])
    proxy = weir(workers=2)
    check(proxy, limit, curl(proxy, f"{origin.url}/[1-{REQUESTS}]"))


@pytest.mark.threads
@pytest.mark.parametrize("kind", LIMITS)
def test_curl_in_parallel(weir, origin, kind):
    limit = origin.default = Limited(**LIMITS[kind])
    proxy = weir(workers=2)
    check(proxy, limit, curl(proxy, "-Z", "--parallel-max", "16", f"{origin.url}/[1-{REQUESTS}]"))


def test_curl_uploads(weir, origin, tmp_path):
    """With and without Expect: 100-continue, and chunked from a pipe."""
    origin.default = lambda e: e.reply()
    proxy = weir()
    file = tmp_path / "body"
    file.write_bytes(os.urandom(2 << 20))
    for more in (["-T", str(file)], ["--data-binary", f"@{file}"], ["-H", "Expect:", "-T", str(file)], ["-H", "Transfer-Encoding: chunked", "-T", str(file)]):
        assert curl(proxy, *more, origin.url + "/x") == [200]
    assert [e.request.body == file.read_bytes() for e in origin.requests] == [True] * 4


def test_two_clients_share_one_limit(weir, origin):
    """Two programs at once, each with its own connections: the host is still asked at one rate."""
    limit = origin.default = Limited(**LIMITS["fixed"])
    proxy = weir(workers=2)
    urls = [f"{origin.url}/{i}" for i in range(REQUESTS)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(lambda part: run_script(proxy, SCRIPTS["aiohttp"], part), (urls[::2], urls[1::2])))
    check(proxy, limit, halves[0] + halves[1])
