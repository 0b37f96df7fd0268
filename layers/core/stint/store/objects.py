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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from stint.domain.errors import NotFound
from stint.domain.vector_stores import ObjectContent
from stint.store.bucket import Bucket
from stint.store.failures import BlobMissing, translated

FAILED_CONDITIONS = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412"})
"""The codes of a conditional write to an object that another one wrote, is writing, or deleted."""
PAGE = 1_000
"""Most objects of a request that deletes."""


class BucketObjects:
    """The ObjectStore of the vector indexes in S3. Calls other than reads wait in a thread."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def read(self, key: str, known: str = "") -> tuple[bytes, str] | None:
        with missing(key):
            found = await self._bucket.get("bucket", key, known=known)
        return (found.body, found.etag) if found is not None else None

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        with missing(key):
            found = await self._bucket.get("bucket", key, part=f"bytes={start}-{start + length - 1}")
        return found.body if found is not None else b""

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
                return self._bucket.client.put_object(Bucket=self._bucket.name, Key=key, Body=body, **condition)["ETag"]  # type: ignore[arg-type]  # the stubs want literals
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
            self._bucket.delete_objects(keys)

    async def delete_all(self, prefix: str) -> None:
        await self.delete(await self.keys(prefix))

    async def keys(self, prefix: str) -> list[str]:
        return await asyncio.to_thread(self._keys, prefix)

    def _keys(self, prefix: str) -> list[str]:
        with translated("bucket"):
            lists = self._bucket.client.get_paginator("list_objects_v2")
            pages = lists.paginate(Bucket=self._bucket.name, Prefix=prefix)
            return [found["Key"] for page in pages for found in page.get("Contents", [])]


@contextmanager
def missing(key: str) -> Iterator[None]:
    """Convert BlobMissing to NotFound."""
    try:
        yield
    except BlobMissing:
        raise NotFound("Object", key) from None


INBOX = "inbox/"


class Inbox:
    """Objects whose keys begin with `inbox/`."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def read(self, content: ObjectContent) -> bytes:
        """Return the body of an object. Raises NotFound if it was deleted or replaced."""
        with missing(content.key):
            found = await self._bucket.get("bucket", content.key)
        if found is None or found.etag.strip('"') != content.etag:
            raise NotFound("Object", content.key)
        return found.body

    async def find(self, key: str) -> ObjectContent | None:
        """Return an object as it is now; None if there is none."""
        return await asyncio.to_thread(self._find, key)

    def _find(self, key: str) -> ObjectContent | None:
        from botocore.exceptions import ClientError  # noqa: PLC0415 - loaded with the client

        try:
            with translated("bucket"):
                try:
                    answer = self._bucket.client.head_object(Bucket=self._bucket.name, Key=key)
                except ClientError as error:
                    if error.response["ResponseMetadata"].get("HTTPStatusCode") == 404:
                        return None
                    raise
        except BlobMissing:
            return None
        return ObjectContent(key=key, etag=answer["ETag"].strip('"'), size=answer["ContentLength"])
