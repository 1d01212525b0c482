"""The two ends of a tunnel, in plain TCP."""
import contextlib
import queue
import socket
import threading

from harness.wire import PATIENCE, Client


class Listener:
    """Accepts connections and leaves all else to the test."""

    def __init__(self, address="127.0.0.1"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.create_server((address, 0), family=family, backlog=512)
        self.port = self.listener.getsockname()[1]
        self.authority = f"[{address}]:{self.port}" if ":" in address else f"{address}:{self.port}"
        self.accepted = queue.Queue()
        self.all = []
        self.thread = threading.Thread(target=self._accept)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(PATIENCE)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.all.append(sock)
            self.accepted.put(sock)

    def accept(self):
        """The next connection."""
        return self.accepted.get(timeout=PATIENCE)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE)
        for sock in self.all:
            sock.close()


@contextlib.contextmanager
def full_listener():
    """A port at which nobody answers: as many wait to be accepted as may, and no more are let in."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port


def ports(*allowed):
    """The setting that lets CONNECT go to these listeners, or ports."""
    return f"destinations: {{connect_ports: [{', '.join(str(getattr(a, 'port', a)) for a in allowed)}]}}\n"


def ask(client, authority, fields=()):
    """Asks for a tunnel, without waiting for the answer."""
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"] + [f"{n}: {v}" for n, v in fields]
    client.send("\r\n".join(lines).encode() + b"\r\n\r\n")


def answer(client):
    """The answer to CONNECT: with a body only where there is no tunnel."""
    head = client.head()
    if head.status // 100 != 2:
        head.body = client.reader.exactly(int(head.get("content-length")))
    return head


def connect(port, authority, fields=(), **more):
    """A client, and the answer to its CONNECT."""
    client = Client(port, **more)
    ask(client, authority, fields)
    return client, answer(client)


def tunnel(proxy, listener, **more):
    """An open tunnel: the client at the one end, the socket at the other."""
    client, head = connect(proxy.port, listener.authority, **more)
    assert head.status == 200, head.head
    return client, listener.accept()
