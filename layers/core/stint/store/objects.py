"""Objects of the bucket that are replaced only by a process that has read their latest version.

S3 has conditional writes, so an object can be what a record with a condition is in the table. The ETag is the version:

    the object   read(known)            create         replace(etag)
    none         NotFound               its ETag       None
    unchanged    None                   None           its new ETag
    changed      the body, its ETag     None           None

None from a write means that another process was there before: the caller reads again and repeats its change. After a
lost answer it may also mean that the first try took effect, because the client repeats the write and is then refused.

Objects in the inbox of the bucket are written by others. `Inbox` only reads them.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from stint.domain.errors import NotFound, StintError
from stint.domain.vector_stores import ObjectContent
from stint.store.failures import BlobMissing, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

UNCHANGED = "304"
FAILED_CONDITIONS = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412"})
"""The codes of a conditional write to an object that another one wrote, is writing, or deleted."""
PAGE = 1_000
"""Most objects of a request that deletes."""


class BucketObjects:
    """The ObjectStore of the vector indexes in S3. `connect` makes the client when first used.

    Each call waits in a thread.
    """

    def __init__(self, connect: "Callable[[], S3Client]", bucket: str) -> None:
        self._connect = connect
        self._bucket = bucket
        self._lock = threading.Lock()
        self._made: S3Client | None = None

    async def read(self, key: str, known: str = "") -> tuple[bytes, str] | None:
        return await asyncio.to_thread(self._read, key, known)

    def _read(self, key: str, known: str) -> tuple[bytes, str] | None:
        from botocore.exceptions import ClientError  # noqa: PLC0415 - loaded with the client

        # An unchanged object is an error to botocore (304), and the cheapest answer: it has no body.
        with missing(key), translated("bucket"):
            try:
                condition = {"IfNoneMatch": known} if known else {}
                answer = self._client().get_object(Bucket=self._bucket, Key=key, **condition)  # type: ignore[arg-type]  # the stubs want literals
            except ClientError as error:
                if error.response["Error"].get("Code") == UNCHANGED:
                    return None
                raise
            return answer["Body"].read(), answer["ETag"]

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        return await asyncio.to_thread(self._read_range, key, start, length)

    def _read_range(self, key: str, start: int, length: int) -> bytes:
        with missing(key), translated("bucket"):
            part = f"bytes={start}-{start + length - 1}"
            return self._client().get_object(Bucket=self._bucket, Key=key, Range=part)["Body"].read()

    async def write(self, key: str, body: bytes) -> None:
        await asyncio.to_thread(self._put, key, body, {})

    async def create(self, key: str, body: bytes) -> str | None:
        return await asyncio.to_thread(self._put, key, body, {"IfNoneMatch": "*"})

    async def replace(self, key: str, body: bytes, etag: str) -> str | None:
        return await asyncio.to_thread(self._put, key, body, {"IfMatch": etag})

    def _put(self, key: str, body: bytes, condition: dict[str, str]) -> str | None:
        """Write an object and return its ETag, or None if the condition fails."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 - loaded with the client

        with translated("bucket"):
            try:
                return self._client().put_object(Bucket=self._bucket, Key=key, Body=body, **condition)["ETag"]  # type: ignore[arg-type]  # the stubs want literals
            except ClientError as error:
                # Without a condition, these codes are faults.
                if condition and error.response["Error"].get("Code") in FAILED_CONDITIONS:
                    return None
                raise

    async def delete(self, keys: Sequence[str]) -> None:
        for at in range(0, len(keys), PAGE):
            await asyncio.to_thread(self._delete, keys[at : at + PAGE])

    def _delete(self, keys: Sequence[str]) -> None:
        with translated("bucket"):
            objects = [{"Key": key} for key in keys]
            answer = self._client().delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})  # type: ignore[typeddict-item]  # the stubs want their own class
        if answer.get("Errors"):
            raise StintError(f"{len(answer['Errors'])} objects could not be deleted. Try again.")

    async def delete_all(self, prefix: str) -> None:
        await self.delete(await self.keys(prefix))

    async def keys(self, prefix: str) -> list[str]:
        return await asyncio.to_thread(self._keys, prefix)

    def _keys(self, prefix: str) -> list[str]:
        with translated("bucket"):
            pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def _client(self) -> "S3Client":
        with self._lock:
            if self._made is None:
                self._made = self._connect()
            return self._made


@contextmanager
def missing(key: str) -> Iterator[None]:
    """Convert BlobMissing to NotFound."""
    try:
        yield
    except BlobMissing:
        raise NotFound("Object", key) from None


INBOX = "inbox/"


class Inbox:
    """Objects whose keys begin with `inbox/`. `connect` makes the client when first used."""

    def __init__(self, connect: "Callable[[], S3Client]", bucket: str) -> None:
        self._connect = connect
        self._bucket = bucket

    @cached_property
    def _client(self) -> "S3Client":
        return self._connect()

    async def read(self, content: ObjectContent) -> bytes:
        """Return the body of an object. Raises NotFound if it was deleted or replaced."""
        return await asyncio.to_thread(self._read, content)

    def _read(self, content: ObjectContent) -> bytes:
        try:
            with translated("bucket"):
                answer = self._client.get_object(Bucket=self._bucket, Key=content.key)
                if answer["ETag"].strip('"') != content.etag:
                    raise NotFound("Object", content.key)
                return answer["Body"].read()
        except BlobMissing as error:
            raise NotFound("Object", content.key) from error

    async def find(self, key: str) -> ObjectContent | None:
        """Return an object as it is now; None if there is none."""
        return await asyncio.to_thread(self._find, key)

    def _find(self, key: str) -> ObjectContent | None:
        from botocore.exceptions import ClientError  # noqa: PLC0415 - loaded with the client

        try:
            with translated("bucket"):
                try:
                    answer = self._client.head_object(Bucket=self._bucket, Key=key)
                except ClientError as error:
                    if error.response["ResponseMetadata"].get("HTTPStatusCode") == 404:
                        return None
                    raise
        except BlobMissing:
            return None
        return ObjectContent(key=key, etag=answer["ETag"].strip('"'), size=answer["ContentLength"])
