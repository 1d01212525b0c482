"""TLS for tests: an authority that makes certificates, and an origin that speaks it."""
import datetime
import ipaddress
import pathlib
import socket
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.origin import Origin
from harness.wire import PATIENCE, Client, Reader

DAY = datetime.timedelta(days=1)


def _general_name(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path, *parts):
    path.write_bytes(b"".join(parts))
    return str(path)


class Authority:
    """A CA with its files: `path` is its certificate."""

    def __init__(self, directory, name="test CA"):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key, [], ca=True)
        self.path = _write(self.directory / "authority.pem", self._pem(self.certificate))
        self.key_path = _write(self.directory / "authority.key", self._key_pem(self.key))
        self.count = 0

    @staticmethod
    def _pem(certificate):
        return certificate.public_bytes(serialization.Encoding.PEM)

    @staticmethod
    def _key_pem(key):
        return key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def _sign(self, subject, key, names, ca=False, since=-DAY, until=30 * DAY, by=None):
        now = datetime.datetime.utcnow()
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if by else self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + since)
            .not_valid_after(now + until)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if names:
            names = x509.SubjectAlternativeName([_general_name(n) for n in names])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(by or self.key, hashes.SHA256())

    def issue(self, *names, self_signed=False, since=-DAY, until=30 * DAY):
        """A certificate with its key: the path of one file that holds both."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        by = key if self_signed else None
        certificate = self._sign(subject, key, names, since=since, until=until, by=by)
        self.count += 1
        path = self.directory / f"certificate{self.count}.pem"
        return _write(path, self._key_pem(key), self._pem(certificate))


    def revoke(self, *paths):
        """Its list of revoked certificates, those of the files: PEM."""
        now = datetime.datetime.utcnow()
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.name)
        builder = builder.last_update(now - DAY).next_update(now + 9 * DAY)
        for path in paths:
            serial = x509.load_pem_x509_certificate(pathlib.Path(path).read_bytes()).serial_number
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - DAY).build()
            builder = builder.add_revoked_certificate(entry)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def server_context(certificate, alpn=("http/1.1",)):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(list(alpn))
    return context


class TlsOrigin(Origin):
    """An origin that is asked over https. `handshakes` has what each connection agreed on, or why
    there was no agreement."""

    def __init__(self, context, address="127.0.0.1", name="localhost"):
        self.context = context
        self.handshakes = []
        self.names = []  # that were asked for
        context.sni_callback = lambda sock, asked, _: self.names.append(asked)
        super().__init__(address)
        self.host = f"{name}:{self.port}"
        self.url = f"https://{self.host}"
        self.plain_url = f"http://{self.host}"

    def _open(self, sock):
        sock.settimeout(PATIENCE)
        try:
            opened = self.context.wrap_socket(sock, server_side=True)
        except OSError as fault:
            with self.changed:
                self.handshakes.append(getattr(fault, "reason", None) or type(fault).__name__)
                self.changed.notify_all()
            raise
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.settimeout(None)
        with self.changed:
            self.handshakes.append((opened.version(), opened.selected_alpn_protocol(), opened.session_reused))
            self.changed.notify_all()
        return opened

    def wait_handshakes(self, count=1):
        self.wait(lambda: len(self.handshakes) >= count)
        return self.handshakes


def client_context(ca, alpn=("http/1.1",)):
    context = ssl.create_default_context(cafile=ca)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


class Tunnel(Client):
    """A connection through the proxy's CONNECT; `url` names the host. `open_tls` speaks TLS inside."""

    def __init__(self, port, url, fields=(), **more):
        super().__init__(port, **more)
        self.authority = url.split("/")[2]
        lines = [f"CONNECT {self.authority} HTTP/1.1", f"Host: {self.authority}"]
        lines += [f"{n}: {v}" for n, v in fields]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n")
        self.answer = self.head()

    def open_tls(self, context, name=None, session=None):
        host = self.authority.rpartition(":")[0].strip("[]")
        self.sock = context.wrap_socket(self.sock, server_hostname=name or host, session=session)
        self.reader = Reader(self.sock)
        return self

    def ask(self, target="/", method="GET", fields=(), body=None, host=None):
        """Sends a request as hosts get them."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host or self.authority}"]
        lines += [f"{n}: {v}" for n, v in fields]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))

    def fetch(self, target="/", **more):
        self.ask(target, **more)
        return self.response(to=more.get("method", "GET"))


def intercepted(proxy, url, **more):
    """A tunnel that the proxy has opened with its own CA."""
    return Tunnel(proxy.port, url).open_tls(client_context(proxy.ca), **more)
