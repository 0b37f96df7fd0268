"""Bodies in S3 that are too large for an item."""

import secrets
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from stint.domain.errors import StintError
from stint.store.failures import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Blobs:
    """Objects of one bucket, each written once under a random name. Thread-safe.

    `connect` makes the client when first used, because most requests need none. All methods raise StoreUnavailable.
    """

    def __init__(self, connect: "Callable[[], S3Client]", bucket: str) -> None:
        self._connect = connect
        self._bucket = bucket
        self._lock = threading.Lock()
        self._made: S3Client | None = None

    def put(self, prefix: str, body: bytes) -> str:
        """Store a body, and return its key."""
        key = prefix + secrets.token_hex(16)
        with translated():
            self._client().put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/octet-stream")
        return key

    def get(self, key: str, length: int, digest: bytes) -> bytes:
        """Read a body. Raises BlobMissing, and StintError if it is not the one that was stored."""
        with translated():
            body = self._client().get_object(Bucket=self._bucket, Key=key)["Body"].read()
        if len(body) != length or sha256(body).digest() != digest:
            raise StintError("A stored document is damaged: its checksum does not match.")
        return body

    def delete(self, key: str) -> None:
        with translated():
            self._client().delete_object(Bucket=self._bucket, Key=key)

    def delete_prefix(self, prefix: str) -> Iterator[None]:
        """Delete all objects with a key prefix, up to 1,000 per step of the iterator."""
        while True:
            with translated():
                listed = self._client().list_objects_v2(Bucket=self._bucket, Prefix=prefix)
                objects = [{"Key": found["Key"]} for found in listed.get("Contents", [])]
                if objects:
                    self._delete(objects)
            if not listed.get("IsTruncated"):
                return
            yield

    def _delete(self, objects: list[dict[str, str]]) -> None:
        answer = self._client().delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})  # type: ignore[typeddict-item]  # the stubs want their own class
        if answer.get("Errors"):
            raise StintError(f"{len(answer['Errors'])} stored documents could not be deleted. Try again.")

    def _client(self) -> "S3Client":
        with self._lock:
            if self._made is None:
                self._made = self._connect()
            return self._made
