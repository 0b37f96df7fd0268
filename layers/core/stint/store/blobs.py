"""Bodies in S3 that are too large for an item.

An object is written once under a random name, so no two writers share one, and a repetition of a write that was
refused in the table cannot change what another one stored. Its record has length and SHA-256, which each read checks.
Nothing lists objects to find out what exists: an object without a record does no harm, and is deleted with the prefix
of its owner.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from hashlib import sha256

from stint.domain.errors import StintError
from stint.store.bucket import Bucket
from stint.store.failures import translated


class Blobs:
    """Objects of one bucket, each written once under a random name.

    Calls other than reads wait in a thread. All methods raise StoreUnavailable.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def put(self, prefix: str, body: bytes, name: str | None = None) -> str:
        """Store a body, and return its key. `name` is one that no other body has; a random one unless it is set."""
        key = prefix + (name or secrets.token_hex(16))
        await asyncio.to_thread(self._put, key, body)
        return key

    def _put(self, key: str, body: bytes) -> None:
        with translated("database"):
            s3, kind = self._bucket.client, "application/octet-stream"
            s3.put_object(Bucket=self._bucket.name, Key=key, Body=body, ContentType=kind)

    async def get(self, key: str, length: int, digest: bytes) -> bytes:
        """Read a body. Raises BlobMissing, and StintError if it is not the one that was stored."""
        found = await self._bucket.get("database", key)
        body = found.body if found is not None else b""
        # A wrong body must not reach a model or a caller as if it were what was stored.
        if len(body) != length or sha256(body).digest() != digest:
            raise StintError("A stored document is damaged: its checksum does not match.")
        return body

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._delete, key)

    def _delete(self, key: str) -> None:
        with translated("database"):
            self._bucket.client.delete_object(Bucket=self._bucket.name, Key=key)

    async def delete_prefix(self, prefix: str) -> AsyncIterator[None]:
        """Delete all objects with a key prefix, up to 1,000 per step of the iterator."""
        # Always the first page: the one before it is deleted by then.
        while await asyncio.to_thread(self._delete_page, prefix):
            yield

    def _delete_page(self, prefix: str) -> bool:
        """Delete the first objects with a key prefix, and return whether more follow."""
        with translated("database"):
            listed = self._bucket.client.list_objects_v2(Bucket=self._bucket.name, Prefix=prefix)
            keys = [found["Key"] for found in listed.get("Contents", [])]
            # A request to delete nothing is refused by S3.
            if keys:
                self._bucket.delete_objects(keys)
        return bool(listed.get("IsTruncated"))
