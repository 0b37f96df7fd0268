"""Bodies in S3 that are too large for an item.

An object is written once under a random name, so no two writers share one, and a repetition of a write that was
refused in the table cannot change what another one stored. Its record has length and SHA-256, which each read checks.
Nothing lists objects to find out what exists: an object without a record does no harm, and is deleted with the prefix
of its owner.
"""

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from stint.domain.errors import StintError
from stint.store.failures import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Blobs:
    """Objects of one bucket, each written once under a random name.

    `connect` makes the client when first used, because most requests need none. Each call waits in a thread. All
    methods raise StoreUnavailable.
    """

    def __init__(self, connect: "Callable[[], S3Client]", bucket: str) -> None:
        self._connect = connect
        self._bucket = bucket
        self._lock = threading.Lock()
        self._made: S3Client | None = None

    async def put(self, prefix: str, body: bytes, name: str | None = None) -> str:
        """Store a body, and return its key. `name` is one that no other body has; a random one unless it is set."""
        key = prefix + (name or secrets.token_hex(16))
        await asyncio.to_thread(self._put, key, body)
        return key

    def _put(self, key: str, body: bytes) -> None:
        with translated("database"):
            self._client().put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/octet-stream")

    async def get(self, key: str, length: int, digest: bytes) -> bytes:
        """Read a body. Raises BlobMissing, and StintError if it is not the one that was stored."""
        return await asyncio.to_thread(self._get, key, length, digest)

    def _get(self, key: str, length: int, digest: bytes) -> bytes:
        with translated("database"):
            body = self._client().get_object(Bucket=self._bucket, Key=key)["Body"].read()
        # A wrong body must not reach a model or a caller as if it were what was stored.
        if len(body) != length or sha256(body).digest() != digest:
            raise StintError("A stored document is damaged: its checksum does not match.")
        return body

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._delete, key)

    def _delete(self, key: str) -> None:
        with translated("database"):
            self._client().delete_object(Bucket=self._bucket, Key=key)

    async def delete_prefix(self, prefix: str) -> AsyncIterator[None]:
        """Delete all objects with a key prefix, up to 1,000 per step of the iterator."""
        # Always the first page: the one before it is deleted by then.
        while await asyncio.to_thread(self._delete_page, prefix):
            yield

    def _delete_page(self, prefix: str) -> bool:
        """Delete the first objects with a key prefix, and return whether more follow."""
        with translated("database"):
            listed = self._client().list_objects_v2(Bucket=self._bucket, Prefix=prefix)
            objects = [{"Key": found["Key"]} for found in listed.get("Contents", [])]
            # A request to delete nothing is refused by S3.
            if objects:
                self._delete_objects(objects)
        return bool(listed.get("IsTruncated"))

    def _delete_objects(self, objects: list[dict[str, str]]) -> None:
        answer = self._client().delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})  # type: ignore[typeddict-item]  # the stubs want their own class
        if answer.get("Errors"):
            raise StintError(f"{len(answer['Errors'])} stored documents could not be deleted. Try again.")

    def _client(self) -> "S3Client":
        with self._lock:
            if self._made is None:
                self._made = self._connect()
            return self._made
