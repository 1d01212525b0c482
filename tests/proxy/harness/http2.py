"""An origin that speaks HTTP/2 alone, and remembers what reached it."""
import contextlib
import select
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from harness.tls import TlsOrigin, server_context
from harness.wire import Closed


class Stream:
    """One request, and the means to answer it; a handler has a thread of its own."""

    def __init__(self, link, number, fields):
        self.link = link
        self.number = number
        self.fields = fields  # with the pseudo fields, as they came
        self.body = b""
        self.target = dict(fields)[":path"]
        self.window = threading.Condition()

    def get(self, name):
        return dict(self.fields).get(name)

    def reply(self, status=200, fields=(), body=b"ok"):
        head = [(":status", str(status)), *fields]
        if body is None:
            self.link.send(lambda h: h.send_headers(self.number, head, end_stream=True))
            return
        self.link.send(lambda h: h.send_headers(self.number, head))
        self.send(body, end=True)

    def head(self, status=200, fields=()):
        self.link.send(lambda h: h.send_headers(self.number, [(":status", str(status)), *fields]))

    def send(self, body, end=False):
        """As much at a time as the window and the size of a frame allow."""
        while True:
            with self.link.lock:
                room = min(self.link.h2.local_flow_control_window(self.number), self.link.h2.max_outbound_frame_size)
                part, body = body[:room], body[room:]
                if part or not body:
                    self.link.h2.send_data(self.number, part, end_stream=end and not body)
                    self.link.flush()
            if not body:
                return
            if not part:
                self.link.wait_window()

    def reset(self, code=h2.errors.ErrorCodes.INTERNAL_ERROR):
        self.link.send(lambda h: h.reset_stream(self.number, code))


class Link:
    """One connection."""

    def __init__(self, sock, number):
        self.sock = sock
        self.number = number
        self.lock = threading.RLock()
        self.more_window = threading.Condition(self.lock)
        self.closed = False
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.send(lambda h: h.initiate_connection())

    def flush(self):
        self.sock.sendall(self.h2.data_to_send())

    def send(self, action):
        with self.lock:
            action(self.h2)
            self.flush()

    def go_away(self, last=0):
        self.send(lambda h: h.close_connection(last_stream_id=last))

    def wait_window(self):
        with self.more_window:
            if not self.more_window.wait(30) or self.closed:
                raise Closed(b"")


class Http2Origin(TlsOrigin):
    """`on` and `default` as with Origin; a handler gets a Stream."""

    def __init__(self, certificate, **more):
        super().__init__(server_context(certificate, ("h2",)), **more)
        self.default = lambda stream: stream.reply()
        self.links = []
        self.streams = []

    def _serve(self, sock, number):
        workers = []
        link = None
        try:
            sock = self._opened(sock)
            link = Link(sock, number)
            self.links.append(link)
            while True:
                # One thread at a time may use a TLS connection, in whichever direction.
                if not sock.pending():
                    select.select([sock], [], [])
                with link.lock:
                    data = sock.recv(1 << 16)
                    if not data:
                        break
                    events = link.h2.receive_data(data)
                    link.flush()
                    link.more_window.notify_all()
                for event in events:
                    self._take(link, event, workers)
        except (OSError, h2.exceptions.ProtocolError):
            pass  # the proxy's own end of it
        finally:
            if link:
                with link.lock:
                    link.closed = True
                    link.more_window.notify_all()
            for worker in workers:
                worker.join()
            with contextlib.suppress(OSError):
                sock.close()
            with self.changed:
                self.sockets.discard(sock)

    def _take(self, link, event, workers):
        if isinstance(event, h2.events.RequestReceived):
            stream = Stream(link, event.stream_id, [(n.decode(), v.decode()) for n, v in event.headers])
            setattr(link, f"stream{event.stream_id}", stream)
        elif isinstance(event, h2.events.DataReceived):
            getattr(link, f"stream{event.stream_id}").body += event.data
            link.send(lambda h: h.acknowledge_received_data(event.flow_controlled_length, event.stream_id))
        elif isinstance(event, h2.events.StreamEnded):
            stream = getattr(link, f"stream{event.stream_id}")
            with self.changed:
                self.streams.append(stream)
                self.changed.notify_all()
            worker = threading.Thread(target=self._answer, args=(stream,))
            workers.append(worker)
            worker.start()

    def _answer(self, stream):
        try:
            self.handlers.get(stream.target.split("?")[0], self.default)(stream)
        except (Closed, OSError, h2.exceptions.ProtocolError):
            pass
        except Exception as fault:
            self.faults.append(repr(fault))

    def wait_streams(self, count):
        self.wait(lambda: len(self.streams) >= count)
        return self.streams
