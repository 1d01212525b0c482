"""Upstream proxies as Debian packages them, each on a free port and with an exit address of its own."""
import contextlib
import os
import pathlib
import random
import shutil
import socket
import subprocess
import threading
import time

from harness.wire import PATIENCE


def free_port():
    """One that no connection takes for its own end before the proxy listens, as it might those that
    the system gives away."""
    given_away = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(10000, given_away), 1000):
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def find(program):
    path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    assert path, f"{program} is not installed"
    return path


class Proxy:
    """
    A proxy that goes out from the address `exit`. `stop()` ends it, `start()` has it back on the same
    port; `url` is how it is named to weir.
    """

    scheme = "http"

    def __init__(self, directory, exit, user=None, password=None):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.exit = exit
        self.user, self.password = user, password
        self.process = None
        self.port = free_port()
        self.start()

    @property
    def place(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        who = f"{self.user}:{self.password}@" if self.user else ""
        return f"{self.scheme}://{who}{self.place}"

    def start(self):
        self.log = open(self.directory / "log", "ab")
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=self.directory
        )
        self._wait_listening()

    def _wait_listening(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self.process.poll() is None, (self.directory / "log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            threading.Event().wait(0.02)
        raise AssertionError(f"{self.command()} does not listen")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.log.close()
            self.process = None


class Tinyproxy(Proxy):
    def command(self):
        config = self.directory / "tinyproxy.conf"
        auth = f"BasicAuth {self.user} {self.password}\n" if self.user else ""
        config.write_text(
            f"Port {self.port}\nListen 127.0.0.1\nBind {self.exit}\nTimeout 60\nMaxClients 500\n"
            f"LogLevel Critical\nAllow 127.0.0.0/8\n{auth}"
        )
        return [find("tinyproxy"), "-d", "-c", str(config)]


class Squid(Proxy):
    """With a certificate (a file that has its key as well) it is spoken to over TLS. It lets nothing
    through to the address `denied`."""

    def __init__(self, directory, exit, certificate=None, denied=None, **more):
        self.certificate = certificate
        self.denied = f"acl denied dst {denied}/32\nhttp_access deny denied\n" if denied else ""
        if certificate:
            self.scheme = "https"
        super().__init__(directory, exit, **more)

    def listens(self):
        if not self.certificate:
            return f"http_port 127.0.0.1:{self.port}\n"
        copy = self.directory / "certificate.pem"
        shutil.copy(self.certificate, copy)
        copy.chmod(0o644)
        return f"https_port 127.0.0.1:{self.port} tls-cert={copy} tls-key={copy}\n"

    def command(self):
        os.chmod(self.directory, 0o755)  # squid does not stay root
        config = self.directory / "squid.conf"
        config.write_text(
            f"{self.listens()}{self.denied}http_access allow all\ncache deny all\ncache_mem 8 MB\n"
            "access_log none\ncache_log /dev/null\npid_filename none\ncoredump_dir /\n"
            "netdb_filename none\nshutdown_lifetime 0 seconds\npinger_enable off\n"
            "max_filedescriptors 1024\nvisible_hostname squid.test\nconnect_retries 0\n"
            f"tcp_outgoing_address {self.exit}\n"
            f"reply_header_add X-Exit-Address {self.exit} all\n"
        )
        return [find("squid"), "-N", "-f", str(config)]


class Microsocks(Proxy):
    scheme = "socks5h"

    def command(self):
        auth = ["-u", self.user, "-P", self.password] if self.user else []
        return [find("microsocks"), "-i", "127.0.0.1", "-p", str(self.port), "-b", self.exit, *auth]
