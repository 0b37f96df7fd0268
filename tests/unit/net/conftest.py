import datetime
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.net.guard import Resolve


@pytest.fixture
def server() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(lambda received: Reply((f"{received.method} {received.path}".encode(),))) as server:
        yield server


@pytest.fixture
def names() -> dict[str, list[str]]:
    """Return the names of the fake resolver, which tests change."""
    return {}


@pytest.fixture
def resolve(names: dict[str, list[str]]) -> Resolve:
    async def look_up(host: str, port: int) -> list[str]:
        if host not in names:
            raise OSError(f"no such host: {host}")
        return names[host]

    return look_up


@pytest.fixture
def certify(tmp_path: Path) -> Callable[[str], tuple[ssl.SSLContext, ssl.SSLContext]]:
    """Return a function that creates the TLS contexts of a server with a certificate for a name and of its client."""

    def make(name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        path = tmp_path / "server.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(path)
        return server, ssl.create_default_context(cadata=certificate.public_bytes(serialization.Encoding.PEM).decode())

    return make
