"""HTTP/1.1 at the level of bytes: what a well-made client library would hide is what is tested."""
import contextlib
import socket

PATIENCE = 30


class Closed(Exception):
    """The peer closed before the message was whole; `data` is what had arrived."""

    def __init__(self, data):
        super().__init__(f"closed after {data[-200:]!r}")
        self.data = data


class Reader:
    """Takes messages apart, and keeps their bytes as they came."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = bytearray()

    def more(self):
        try:
            data = self.sock.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(bytes(self.buffer))
        self.buffer += data

    def take(self, count):
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def until(self, mark):
        while mark not in self.buffer:
            self.more()
        taken = self.take(self.buffer.index(mark))
        del self.buffer[: len(mark)]
        return taken

    def exactly(self, count):
        while len(self.buffer) < count:
            self.more()
        return self.take(count)

    def drain(self, count):
        """Reads and drops that many bytes."""
        while count > 0:
            if not self.buffer:
                self.more()
            taken = min(count, len(self.buffer))
            del self.buffer[:taken]
            count -= taken

    def at_end(self):
        """Waits for a byte more, or for the peer's end."""
        try:
            if not self.buffer:
                self.more()
        except Closed:
            return True
        return False

    def to_end(self):
        with contextlib.suppress(Closed):
            while True:
                self.more()
        return self.take(len(self.buffer))

    def chunked(self):
        """The body decoded, its chunks as they were cut, and the trailer fields."""
        chunks = []
        while True:
            size = int(self.until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                break
            chunks.append(self.exactly(size))
            assert self.exactly(2) == b"\r\n"
        trailers = []
        while True:
            line = self.until(b"\r\n")
            if not line:
                return chunks, trailers
            trailers.append(split_field(line))


def split_field(line):
    name, colon, value = line.partition(b":")
    assert colon, line
    return name.decode("latin-1"), value.strip().decode("latin-1")


class Message:
    """A start line and fields, in order, with their spelling."""

    def __init__(self, head):
        self.head = head
        lines = head.split(b"\r\n")
        self.line = lines[0].decode("latin-1")
        self.fields = [split_field(line) for line in lines[1:]]
        self.body = b""
        self.chunks = None
        self.trailers = []

    def values(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    def get(self, name, default=None):
        return next(iter(self.values(name)), default)

    def names(self):
        return [n for n, _ in self.fields]

    def is_chunked(self):
        return (self.get("transfer-encoding") or "").lower() == "chunked"


class Request(Message):
    def __init__(self, head):
        super().__init__(head)
        self.method, self.target, self.version = self.line.split(" ", 2)


class Response(Message):
    def __init__(self, head):
        super().__init__(head)
        self.version, status, *reason = self.line.split(" ", 2)
        self.status = int(status)
        self.reason = reason[0] if reason else ""


class Client:
    """One connection to the proxy."""

    def __init__(self, port, source=None, receive_buffer=None):
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(PATIENCE)
        self.sock.bind((source or "127.0.0.1", 0))
        self.sock.connect(("127.0.0.1", port))
        self.reader = Reader(self.sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Goes with a RST instead of a FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def send(self, data):
        """Sends all of it; a peer that has answered and closed already may refuse the rest."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.sock.sendall(data)

    def request(self, url, method="GET", fields=(), body=None):
        """Sends a request in absolute form, as clients of a proxy do."""
        host = url.split("/")[2]
        lines = [f"{method} {url} HTTP/1.1", f"Host: {host}"]
        lines += [f"{n}: {v}" for n, v in fields]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))

    def head(self):
        return Response(self.reader.until(b"\r\n\r\n"))

    def response(self, to="GET", interim=None):
        """The final response with its body. Interim ones go to the list `interim`, where given."""
        response = self.head()
        while response.status < 200:
            if interim is not None:
                interim.append(response)
            response = self.head()
        if to == "HEAD" or response.status in (204, 304):
            return response
        if response.is_chunked():
            response.chunks, response.trailers = self.reader.chunked()
            response.body = b"".join(response.chunks)
        elif response.get("content-length") is not None:
            response.body = self.reader.exactly(int(response.get("content-length")))
        else:
            response.body = self.reader.to_end()
        return response

    def get(self, url, **more):
        self.request(url, **more)
        return self.response(to=more.get("method", "GET"))

    def is_closed(self):
        """Waits for the peer's end of the connection; anything it still says is an error."""
        return self.reader.to_end() == b""


def get(port, url, source=None, **more):
    """One request on a connection of its own."""
    with Client(port, source) as client:
        return client.get(url, **more)


def raw(port, data):
    """Sends the bytes as they are; what comes back until the peer closes."""
    with Client(port) as client:
        client.send(data)
        return client.reader.to_end()
