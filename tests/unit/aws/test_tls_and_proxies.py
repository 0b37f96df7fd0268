"""Verified TLS, and proxies, over real connections on loopback."""

import asyncio
import datetime
import gc
import ssl
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path
from typing import Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.unit.aws.dynamodb_server import DynamoDBServer, make_client, ok, reply

from stint.aws.dynamodb import NoResponse


class Certificate:
    """A self-signed certificate for 127.0.0.1, or for a name."""

    def __init__(self, folder: Path, name: str = "127.0.0.1") -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        names: x509.GeneralName = x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.bundle = str(folder / f"{name}.pem")
        keys = str(folder / f"{name}.key")
        Path(self.bundle).write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        Path(keys).write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.bundle, keys)


class TunnelProxy:
    """A proxy: CONNECT opens a tunnel, and another request is answered with `{}`. `refusal` replaces all answers."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.heads: list[str] = []
        self.refusal = b""
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._talk(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            if self.refusal:
                writer.write(self.refusal)
            elif head.startswith("CONNECT"):
                host, _, port = head.split(" ")[1].rpartition(":")
                server = await asyncio.open_connection(host, int(port))
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                try:
                    await asyncio.gather(copy(reader, server[1]), copy(server[0], writer))
                finally:
                    server[1].transport.abort()
            else:
                writer.write(ok({"Item": "of the proxy"}))
            await writer.drain()
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    raise ConnectionResetError


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return Certificate(tmp_path)


@pytest.fixture
async def secure(certificate: Certificate) -> AsyncIterator[DynamoDBServer]:
    async with DynamoDBServer(certificate.context) as server:
        yield server


@pytest.fixture
async def proxy() -> AsyncIterator[TunnelProxy]:
    async with TunnelProxy() as proxy:
        yield proxy


async def test_a_certificate_of_the_bundle_is_accepted(secure: DynamoDBServer, certificate: Certificate) -> None:
    client = make_client(secure, variables={"AWS_CA_BUNDLE": certificate.bundle})
    for _ in range(3):
        assert await client.call("GetItem", {}) == {}

    assert secure.connections == 1
    await client.close()
    await secure.left.wait()


async def test_an_unknown_certificate_is_refused(secure: DynamoDBServer) -> None:
    client = make_client(secure)

    with pytest.raises(NoResponse, match="certificate verify failed") as raised:
        await client.call("PutItem", {})

    assert not raised.value.unsure
    assert secure.requests == []
    await client.close()


async def test_a_certificate_of_another_server_is_refused(tmp_path: Path) -> None:
    other = Certificate(tmp_path, "example.com")
    async with DynamoDBServer(other.context) as server:
        client = make_client(server, variables={"AWS_CA_BUNDLE": other.bundle})
        with pytest.raises(NoResponse, match=r"certificate is not valid for '127\.0\.0\.1'"):
            await client.call("PutItem", {})

        assert server.requests == []
        await client.close()


async def test_a_missing_bundle_is_an_error(secure: DynamoDBServer) -> None:
    client = make_client(secure, variables={"AWS_CA_BUNDLE": "/nonexistent.pem"})

    with pytest.raises(NoResponse, match="cannot be reached"):
        await client.call("PutItem", {})

    await client.close()


async def test_old_tls_is_refused(certificate: Certificate) -> None:
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        certificate.context.minimum_version = certificate.context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with DynamoDBServer(certificate.context) as server:
        client = make_client(server, variables={"AWS_CA_BUNDLE": certificate.bundle})
        with pytest.raises(NoResponse):
            await client.call("PutItem", {})
        await client.close()


async def test_a_secure_connection_that_the_server_closed_is_replaced(
    secure: DynamoDBServer, certificate: Certificate
) -> None:
    client = make_client(secure, variables={"AWS_CA_BUNDLE": certificate.bundle})
    await client.call("GetItem", {})
    secure.script((None,))
    await client.call("GetItem", {})

    assert secure.connections == 2
    await client.close()


async def test_a_tunnel_hides_the_request_from_the_proxy(
    secure: DynamoDBServer, certificate: Certificate, proxy: TunnelProxy
) -> None:
    client = make_client(
        secure,
        variables={"AWS_CA_BUNDLE": certificate.bundle, "HTTPS_PROXY": f"http://user:password@{proxy.address}"},
    )
    for _ in range(2):
        assert await client.call("GetItem", {}) == {}

    server = secure.url.removeprefix("https://")
    [head] = proxy.heads
    assert head.startswith(f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n")
    assert "Proxy-Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n" in head
    assert "proxy-authorization" not in secure.requests[0].headers
    assert secure.connections == 1
    await client.close()


async def test_the_connection_to_the_proxy_can_be_secure(secure: DynamoDBServer, certificate: Certificate) -> None:
    async with TunnelProxy(certificate.context) as proxy:
        variables = {"AWS_CA_BUNDLE": certificate.bundle, "https_proxy": f"https://{proxy.address}"}
        client = make_client(secure, variables=variables)
        assert await client.call("GetItem", {}) == {}
        assert len(proxy.heads) == 1
        await client.close()
        await secure.left.wait()


@pytest.mark.parametrize(
    "refusal",
    [
        reply(407, b"who are you?"),
        reply(502, b""),
        b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n",
        b"SSH-2.0\r\n\r\n",
    ],
)
async def test_a_proxy_that_refuses_is_an_error_without_effect(
    secure: DynamoDBServer, proxy: TunnelProxy, refusal: bytes
) -> None:
    proxy.refusal = refusal
    client = make_client(secure, variables={"HTTPS_PROXY": f"http://user:password@{proxy.address}"})

    with pytest.raises(NoResponse, match="proxy") as raised:
        await client.call("PutItem", {})

    assert not raised.value.unsure
    assert "password" not in str(raised.value)
    assert secure.connections == 0
    await client.close()


async def test_a_proxy_does_not_replace_the_servers_certificate(secure: DynamoDBServer, proxy: TunnelProxy) -> None:
    client = make_client(secure, variables={"HTTPS_PROXY": f"http://{proxy.address}"})

    with pytest.raises(NoResponse, match="certificate verify failed"):
        await client.call("PutItem", {})

    assert secure.requests == []
    await client.close()


async def test_a_tunnel_to_another_server_is_refused(tmp_path: Path, proxy: TunnelProxy) -> None:
    other = Certificate(tmp_path, "example.com")
    async with DynamoDBServer(other.context) as server:
        variables = {"AWS_CA_BUNDLE": other.bundle, "HTTPS_PROXY": f"http://{proxy.address}"}
        client = make_client(server, variables=variables)
        with pytest.raises(NoResponse, match=r"certificate is not valid for '127\.0\.0\.1'"):
            await client.call("PutItem", {})

        assert server.requests == []
        await client.close()


async def test_a_secure_connection_that_was_closed_while_idle_leaves_nothing(
    secure: DynamoDBServer, certificate: Certificate
) -> None:
    client = make_client(secure, variables={"AWS_CA_BUNDLE": certificate.bundle})
    await client.call("GetItem", {})
    await secure.drop()
    for _ in range(20):
        await asyncio.sleep(0)
    await client.call("GetItem", {})
    gc.collect()  # a transport that was not closed would warn

    assert secure.connections == 2
    await client.close()


async def test_plain_requests_are_forwarded_by_the_proxy(server: DynamoDBServer, proxy: TunnelProxy) -> None:
    client = make_client(server, variables={"HTTP_PROXY": f"http://u:p@{proxy.address}"})

    assert await client.call("GetItem", {}) == {"Item": "of the proxy"}

    [head] = proxy.heads
    assert head.startswith(f"POST {server.url}/ HTTP/1.1\r\nProxy-Authorization: Basic dTpw\r\n")
    assert f"\r\nhost: {server.url.removeprefix('http://')}\r\n" in head
    assert server.connections == 0
    await client.close()


async def test_excluded_hosts_are_reached_without_a_proxy(server: DynamoDBServer, proxy: TunnelProxy) -> None:
    client = make_client(server, variables={"HTTP_PROXY": f"http://{proxy.address}", "NO_PROXY": "127.0.0.1"})

    assert await client.call("GetItem", {}) == {}

    assert proxy.heads == []
    await client.close()
