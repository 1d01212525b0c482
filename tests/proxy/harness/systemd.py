"""What systemd would be to the daemon: a notify socket, and sockets that it hands over.

And what shows whether a stuck thread is noticed."""
import contextlib
import ctypes
import os
import pathlib
import socket
import sys
import threading

from harness.wire import PATIENCE


class NotifySocket:
    """Keeps what it is told: a dictionary for each message. Use it as a context."""

    def __init__(self, directory):
        self.path = str(directory / "notify.sock")
        self.all = []
        self.changed = threading.Condition()

    def __enter__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.path)
        self.reader.join(PATIENCE)
        self.socket.close()

    def _read(self):
        while data := self.socket.recv(4096):
            message = dict(line.split("=", 1) for line in data.decode().splitlines())
            with self.changed:
                self.all.append(message)
                self.changed.notify_all()

    def count(self):
        with self.changed:
            return len(self.all)

    def wait(self, key, value=None, after=0, patience=PATIENCE):
        """The index of the first message from `after` on that has the key, with that value."""
        found = []

        def look():
            found[:] = [
                i for i in range(after, len(self.all)) if value in (None, self.all[i].get(key)) and key in self.all[i]
            ]
            return bool(found)

        with self.changed:
            assert self.changed.wait_for(look, patience), f"no {key} after {self.all[:after]}: {self.all[after:]}"
        return found[0]

    def is_silent(self, key, after, seconds):
        """Comes there no such message in that time?"""
        with contextlib.suppress(AssertionError):
            self.wait(key, after=after, patience=seconds)
            return False
        return True

    def environment(self, watchdog=None):
        """As systemd sets it. `watchdog` in seconds."""
        env = {"NOTIFY_SOCKET": self.path}
        return env if watchdog is None else {**env, "WATCHDOG_USEC": str(int(watchdog * 1e6))}


# The descriptors have to be 3 and up, and only the process itself knows its number. High copies first:
# a target may be the number of another source.
LAUNCHER = """
import fcntl, os, sys
count = int(os.environ["LISTEN_FDS"])
for at, fd in enumerate([fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[1 : 1 + count]]):
    os.dup2(fd, 3 + at)
    os.close(fd)
for fd in map(int, sys.argv[1 : 1 + count]):
    if not 3 <= fd < 3 + count:
        os.close(fd)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[1 + count], sys.argv[1 + count :])
"""


def hand_over(sockets, names=None):
    """Starts the daemon with these sockets, as systemd passes them: weir(**hand_over(sockets))."""
    descriptors = [s.fileno() for s in sockets]
    environment = {"LISTEN_FDS": str(len(sockets))}
    if names:
        environment["LISTEN_FDNAMES"] = ":".join(names)
    return {
        "before": [sys.executable, "-c", LAUNCHER, *map(str, descriptors)],
        "pass_fds": descriptors,
        "environment": environment,
    }


def listening_socket(address="127.0.0.1", port=0, reuse=False):
    """A blocking one, as systemd makes it."""
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    if reuse:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind((address, port))
    s.listen(128)
    return s


# ---- a thread that does not go on ----

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
WALL = 0x40000000  # __WALL: threads as well


class StoppedThread:
    """Stops one thread of a child process, and no other, as a context."""

    def __init__(self, tid):
        self.tid = tid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long

    def _ptrace(self, what):
        if self.libc.ptrace(what, self.tid, None, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def __enter__(self):
        self._ptrace(PTRACE_ATTACH)
        os.waitpid(self.tid, WALL)
        return self

    def __exit__(self, *_):
        self._ptrace(PTRACE_DETACH)


def threads_named(pid, prefix):
    """The ids of the process's threads whose names begin so, by name."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    named = sorted(((tasks / t / "comm").read_text().strip(), int(t)) for t in os.listdir(tasks))
    return [tid for name, tid in named if name.startswith(prefix)]
