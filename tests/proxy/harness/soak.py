"""
Opens tunnels of every kind and drops them at random moments, from both ends; then looks at what the
daemon has kept. By hand, from tests/proxy: python3 -m harness.soak [SECONDS [SEED]]
"""
import asyncio
import contextlib
import random
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time

from harness.daemon import Weir, sanitized
from harness.tcp import full_listener, ports
from harness.tls import Authority, client_context, server_context

CLIENTS = 40
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

# Of the hosts below, those that are named by a name are opened, and one is slow to let anyone in.
RULES = """
rules:
  - {{name: opened, hosts: [localhost], https: intercept, tls: {{ca_file: "{ca}"}}}}
  - {{name: paced, hosts: ["127.0.0.2"], limit: {{min_delay: 20ms}}}}
defaults:
  limit: {{algorithm: fixed, start: 1000, ceiling: 1000}}
  queue: {{timeout: 200ms}}
  retry: {{attempts: 2, base: 0s}}
  timeouts: {{connect: 100ms, first_byte: 200ms, tunnel: 150ms}}
clients: {{header_timeout: 200ms, idle_timeout: 200ms}}
"""


class Soak:
    def __init__(self, proxy, authority, full, seed):
        self.proxy = proxy
        self.full = full
        self.rules = RULES.format(ca=authority.path)
        self.port = self.tls_port = 0
        self.random = random.Random(seed)
        self.trusts_nobody = ssl.create_default_context()
        self.certificate = server_context(authority.issue("localhost"))
        self.counts = {}
        self.kinds = [self.plain, self.paced, self.refused, self.stuck, self.switched, self.opened, self.early, self.broken]

    # ---- the host ----

    async def serve(self, reader, writer):
        """Says back what it hears, as long as it likes."""
        patience = self.random.choice([1, 3, 10, 100])
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
            for _ in range(patience):
                data = await reader.read(1 << 16)
                if not data:
                    break
                if b"Upgrade: echo" in data:
                    data = SWITCH + b"early" * self.random.randrange(2)
                writer.write(data)
                await writer.drain()
        await self.drop(writer)

    # ---- the clients ----

    async def drop(self, writer):
        """Closes, one way or the other."""
        how = self.random.randrange(4)
        with contextlib.suppress(OSError, ssl.SSLError, RuntimeError):
            if how == 0 and writer.get_extra_info("socket"):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            elif how == 1 and writer.can_write_eof():
                writer.write_eof()
                await asyncio.sleep(self.random.random() / 20)
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), 1)

    async def moment(self):
        """Nothing for a while, or for a longer one; a chance to leave now is what counts."""
        if self.random.randrange(3) == 0:
            await asyncio.sleep(self.random.random() / 30)
        return self.random.randrange(6) == 0

    async def connect(self, reader, writer, authority, more=b""):
        """Asks for a tunnel; false when it is time to leave, or there is none."""
        head = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode() + more
        cut = self.random.randrange(1, len(head)) if self.random.randrange(8) == 0 else len(head)
        writer.write(head[:cut])
        if cut < len(head) or await self.moment():
            return False
        answer = await reader.readuntil(b"\r\n\r\n")
        return answer.split()[1] == b"200" and not await self.moment()

    async def converse(self, reader, writer):
        for _ in range(self.random.choice([0, 1, 3])):
            data = bytes(self.random.choice([1, 100, 30000, 500000]))
            writer.write(data)
            if await self.moment():
                return
            await reader.readexactly(len(data))

    async def plain(self, reader, writer, address="127.0.0.1"):
        if await self.connect(reader, writer, f"{address}:{self.port}"):
            await self.converse(reader, writer)

    async def paced(self, reader, writer):
        await self.plain(reader, writer, "127.0.0.2")

    async def refused(self, reader, writer):
        await self.connect(reader, writer, "127.0.0.1:1")

    async def stuck(self, reader, writer):
        await self.connect(reader, writer, f"127.0.0.1:{self.full}")

    async def early(self, reader, writer):
        await self.connect(reader, writer, f"127.0.0.1:{self.port}", b"\x16\x03\x01")

    async def switched(self, reader, writer):
        url = f"http://127.0.0.1:{self.port}/"
        writer.write(f"GET {url} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode())
        if await self.moment():
            return
        if (await reader.readuntil(b"\r\n\r\n")).split()[1] == b"101" and not await self.moment():
            await self.converse(reader, writer)

    async def opened(self, reader, writer):
        if not await self.connect(reader, writer, f"localhost:{self.tls_port}"):
            return
        context = self.trusts_us if self.random.randrange(5) else self.trusts_nobody
        await writer.start_tls(context, server_hostname="localhost", ssl_handshake_timeout=5)
        if not await self.moment():
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost:%d\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n" % self.tls_port)
            if not await self.moment():
                await reader.readuntil(b"\r\n\r\n")
                await self.converse(reader, writer)

    async def broken(self, reader, writer):
        """A tunnel that is to be opened, into which something else than TLS is said."""
        if await self.connect(reader, writer, f"localhost:{self.tls_port}"):
            writer.write(self.random.choice([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"SSH-2.0-x\r\n", b"GET / HTTP/1.1\r\n", b"\x15\x03"]))
            if not await self.moment():
                await reader.read(100)

    async def client(self, until):
        while time.monotonic() < until:
            kind = self.random.choice(self.kinds)
            reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy.port)
            self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
            with contextlib.suppress(OSError, ssl.SSLError, EOFError, asyncio.LimitOverrunError, asyncio.TimeoutError):
                if not await self.moment():
                    await asyncio.wait_for(kind(reader, writer), 10)
            await self.drop(writer)

    async def run(self, seconds):
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # of transports that were broken
        servers = [await asyncio.start_server(self.serve, "127.0.0.1", self.port)]
        self.port = servers[0].sockets[0].getsockname()[1]
        servers.append(await asyncio.start_server(self.serve, "127.0.0.2", self.port))
        servers.append(await asyncio.start_server(self.serve, "127.0.0.1", self.tls_port, ssl=self.certificate))
        self.tls_port = servers[2].sockets[0].getsockname()[1]
        self.proxy.write(ports(self.port, self.tls_port, self.full, 1) + self.rules)
        self.proxy.reload()
        self.trusts_us = client_context(self.proxy.ca)
        until = time.monotonic() + seconds
        await asyncio.gather(*(self.client(until) for _ in range(CLIENTS)))
        for server in servers:
            server.close()


def settle(proxy, enough=None):
    """Waits until no more than `enough` descriptors are open, or their number stays the same for a
    second; returns it."""
    tick = threading.Event()
    number, same = len(proxy.descriptors()), 0
    while same < 50 and (enough is None or number > enough):
        tick.wait(0.02)
        before, number = number, len(proxy.descriptors())
        same = same + 1 if number == before else 0
    return number


def soak(proxy, authority, seconds, seed=1, tell=None):
    """
    Runs for so long, in rounds. The first of them is for all that is made once and kept; nothing may
    be left of the others. Returns how many connections there were, by kind.
    """
    with full_listener() as full:
        one = Soak(proxy, authority, full, seed)
        asyncio.run(one.run(seconds / 10))
        kept, memory = settle(proxy), proxy.resident_kib()
        for number in range(2, 11):
            asyncio.run(one.run(seconds / 10))
            left, now = settle(proxy, kept), proxy.resident_kib()
            if tell:
                tell(f"{number}/10: {sum(one.counts.values())} connections, {left} descriptors, {now} KiB")
            assert left <= kept, f"{left} descriptors, {kept} before: {sorted(proxy.descriptors().values())}"
        assert sanitized() or now - memory < 4096, f"{now} KiB, {memory} before"
        return one.counts


def main(seconds=300, seed=1):
    with tempfile.TemporaryDirectory() as directory, Weir(directory, workers=2) as proxy:
        authority = Authority(directory + "/authority")
        print(soak(proxy, authority, float(seconds), int(seed), print))


if __name__ == "__main__":
    main(*sys.argv[1:])
