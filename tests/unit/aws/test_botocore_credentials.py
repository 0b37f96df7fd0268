"""Clients of S3 that sign the requests of each tenant with that tenant's credentials."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from stint.aws.credentials import Credentials
from stint.domain.errors import NotFound, StintError
from stint.store.clients import make_bucket
from stint.store.objects import BucketObjects

tenant: ContextVar[str] = ContextVar("tenant")
REFUSED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
KEY_ID = re.compile(r"Credential=([^/]+)/")


class TenantKeys:
    """Credentials whose access key is the tenant of the calling code."""

    async def get(self) -> Credentials:
        return Credentials(tenant.get(), "secret", f"token-of-{tenant.get()}")

    async def renew(self, refused: Credentials) -> bool:
        return False

    def forget(self) -> None: ...


class BucketServer(ThreadingHTTPServer):
    """An S3 that notes who signed each request, and refuses those whose path has `missing`."""

    def __init__(self) -> None:
        signed: list[tuple[str, str, str]] = []
        self.signed = signed

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                [key_id] = KEY_ID.findall(self.headers["authorization"])
                signed.append((self.command, key_id, self.headers["x-amz-security-token"]))
                refused = "missing" in self.path
                body = REFUSED if refused else b"content"
                self.send_response(403 if refused else 200)
                self.send_header("content-length", str(len(body)))
                self.send_header("etag", '"e"')
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = answer  # noqa: N815 - names of the base class

            def log_message(self, *_: Any) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    with BucketServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
        for name, value in {"REGION": "us-east-1", "ACCESS_KEY_ID": "own", "SECRET_ACCESS_KEY": "own"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        yield server
        server.shutdown()


@pytest.fixture
def objects(bucket: BucketServer) -> BucketObjects:
    return BucketObjects(make_bucket("bucket", TenantKeys()))


async def read_as(objects: BucketObjects, name: str, key: str = "object") -> None:
    tenant.set(name)
    await objects.read(key)


async def test_requests_at_the_same_time_are_signed_by_their_tenants(
    objects: BucketObjects, bucket: BucketServer
) -> None:
    names = [f"TENANT{number}" for number in range(4)] * 4

    await asyncio.gather(*(asyncio.create_task(read_as(objects, name)) for name in names))

    assert sorted(bucket.signed) == sorted(("GET", name, f"token-of-{name}") for name in names)


async def test_a_refused_read_is_that_of_a_missing_object(objects: BucketObjects) -> None:
    with pytest.raises(NotFound):
        await read_as(objects, "TENANT", "missing")


async def test_a_refused_write_stays_refused(objects: BucketObjects) -> None:
    tenant.set("TENANT")

    with pytest.raises(StintError, match="AccessDenied"):
        await objects.write("missing", b"content")


async def test_code_without_a_tenant_sends_nothing(objects: BucketObjects, bucket: BucketServer) -> None:
    with pytest.raises(LookupError):
        await objects.read("object")

    assert bucket.signed == []
