"""An origin that a test scripts byte by byte, and that remembers exactly what reached it."""
import collections
import contextlib
import email.utils
import math
import select
import socket
import struct
import threading
import time

from harness.wire import PATIENCE, Closed, Reader, Request


class Exchange:
    """One request at the origin, and the means to answer it."""

    def __init__(self, origin, sock, reader, request, connection):
        self.origin = origin
        self.sock = sock
        self.reader = reader
        self.request = request
        self.connection = connection  # which of the origin's connections, from 0
        self.time = time.monotonic()

    def send(self, data):
        self.sock.sendall(data)

    def reply(self, status=200, fields=(), body=b"ok", reason="Said"):
        lines = [f"HTTP/1.1 {status} {reason}"] + [f"{n}: {v}" for n, v in fields]
        lines.append(f"Content-Length: {len(body)}")
        text = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        self.send(text if self.request.method == "HEAD" else text + body)

    def close(self):
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def wait_gone(self, patience=PATIENCE):
        """Waits until the proxy has closed this connection; True when it has."""
        readable, _, _ = select.select([self.sock], [], [], patience)
        if not readable:
            return False
        with contextlib.suppress(ConnectionError):
            return self.sock.recv(1) == b""
        return True


class Gate:
    """Handlers wait at it until the test opens it, for all or for a number of them."""

    def __init__(self):
        self.changed = threading.Condition()
        self.open_for = 0

    def wait(self):
        with self.changed:
            assert self.changed.wait_for(lambda: self.open_for > 0, 2 * PATIENCE), "gate stayed shut"
            self.open_for -= 1

    def open(self, count=1 << 30):
        with self.changed:
            self.open_for += count
            self.changed.notify_all()


class Origin:
    """
    `on(path, handler)` scripts a path, `default` all others. A handler gets the Exchange; it may
    reply with any bytes, wait, close or reset. All requests are kept in `requests`.
    """

    def __init__(self, address="127.0.0.1"):
        self.default = lambda exchange: exchange.reply()
        self.handlers = {}
        self.requests = []
        self.connections = 0
        self.faults = []
        self.changed = threading.Condition()
        self.sockets = set()
        self.threads = []
        self.listener = socket.create_server((address, 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.host = f"{address}:{self.port}"
        self.url = f"http://{self.host}"
        self.accepting = threading.Thread(target=self._accept)
        self.accepting.start()

    def on(self, path, handler):
        self.handlers[path] = handler

    def paths(self):
        with self.changed:
            return [e.request.target for e in self.requests]

    def wait(self, condition, patience=PATIENCE):
        with self.changed:
            assert self.changed.wait_for(condition, patience), f"came: {[e.request.line for e in self.requests]}"

    def wait_requests(self, count, path=None):
        """The exchanges so far, of that path where given, once there are at least `count`."""

        def those():
            return [e for e in self.requests if path in (None, e.request.target)]

        self.wait(lambda: len(those()) >= count)
        return those()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepting.join(PATIENCE)
        with self.changed:
            for sock in self.sockets:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)  # TLS's own breaks off its reader
        for thread in self.threads:
            thread.join(PATIENCE)

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.changed:
                number = self.connections
                self.connections += 1
                self.sockets.add(sock)
                self.changed.notify_all()
            thread = threading.Thread(target=self._serve, args=(sock, number))
            self.threads.append(thread)
            thread.start()

    def _open(self, sock):
        """The connection as requests are read from it; TLS has its own."""
        return sock

    def _serve(self, sock, number):
        try:
            sock = self._opened(sock)
            reader = Reader(sock)
            with sock:
                while True:
                    self._one(sock, reader, number)
        except (Closed, OSError):
            pass  # the proxy's or the handler's own end of it
        except Exception as fault:  # shown by the fixture: a thread's exception is lost otherwise
            self.faults.append(repr(fault))
        finally:
            with self.changed:
                self.sockets.discard(sock)

    def _opened(self, sock):
        opened = self._open(sock)
        with self.changed:
            self.sockets.discard(sock)
            self.sockets.add(opened)
        return opened

    def _one(self, sock, reader, number):
        request = Request(reader.until(b"\r\n\r\n"))
        if request.is_chunked():
            request.chunks, request.trailers = reader.chunked()
            request.body = b"".join(request.chunks)
        else:
            request.body = reader.exactly(int(request.get("content-length") or 0))
        exchange = Exchange(self, sock, reader, request, number)
        with self.changed:
            self.requests.append(exchange)
            self.changed.notify_all()
        self.handlers.get(request.target.split("?")[0], self.default)(exchange)


# ---- hidden limits ------------------------------------------------------------------------------


class Limited:
    """
    A handler with a hidden limit: `fixed` or `sliding` (rate requests per window), `token` (rate,
    burst), `conc` (at most `cap` at a time). Refuses with 429; counts what it served and refused.
    """

    def __init__(self, policy, rate=20, window=1.0, burst=5, cap=5, latency=0.0, retry_after="int"):
        self.admit = getattr(self, "_" + policy)
        self.rate, self.window, self.burst, self.cap = rate, window, burst, cap
        self.latency, self.retry_after = latency, retry_after
        self.lock = threading.Lock()
        self.served = self.refused = self.active = self.count = 0
        self.start = -math.inf
        self.tokens, self.last = float(burst), time.monotonic()
        self.recent = collections.deque()

    def _fixed(self, now):
        if now - self.start >= self.window:
            self.start, self.count = now, 0
        self.count += 1
        return 0 if self.count <= self.rate * self.window else self.window - (now - self.start)

    def _sliding(self, now):
        while self.recent and now - self.recent[0] >= self.window:
            self.recent.popleft()
        if len(self.recent) >= self.rate * self.window:
            return self.window - (now - self.recent[0])
        self.recent.append(now)
        return 0

    def _token(self, now):
        self.tokens = min(self.burst, self.tokens + (now - self.last) * self.rate)
        self.last = now
        if self.tokens < 1:
            return (1 - self.tokens) / self.rate
        self.tokens -= 1
        return 0

    def _conc(self, now):
        return 0 if self.active < self.cap else 0.2

    def __call__(self, exchange):
        with self.lock:
            wait = self.admit(time.monotonic())
            if wait > 0:
                self.refused += 1
            else:
                self.served += 1
                self.active += 1
        if wait > 0:
            exchange.reply(429, retry_after_fields(self.retry_after, wait), b"slow down")
            return
        try:
            if self.latency:
                threading.Event().wait(self.latency)
        finally:
            with self.lock:
                self.active -= 1
        exchange.reply(200, [("Content-Type", "text/plain")], b"served")


def retry_after_fields(form, wait):
    seconds = max(1, math.ceil(wait))
    value = {
        "none": None,
        "int": seconds,
        "date": email.utils.formatdate(time.time() + seconds, usegmt=True),
    }.get(form, form)
    return [] if value is None else [("Retry-After", value)]


def in_turn(*answers):
    """A handler that gives the answers one after the other, and the last one from then on. Each is
    a function of the Exchange, or the arguments of Exchange.reply."""
    lock = threading.Lock()
    left = list(answers)

    def handler(exchange):
        with lock:
            answer = left.pop(0) if len(left) > 1 else left[0]
        if callable(answer):
            answer(exchange)
        else:
            exchange.reply(*answer)

    return handler


def in_halves(gate, first, second, head=b"HTTP/1.1 200 OK"):
    """A handler that sends a body's second half once the gate is open."""

    def handler(exchange):
        exchange.send(head + b"\r\nContent-Length: %d\r\n\r\n" % len(first + second) + first)
        gate.wait()
        exchange.send(second)

    return handler
