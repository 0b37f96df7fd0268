"""The port of the vector indexes to the bucket."""

from collections.abc import Sequence
from typing import Protocol


class ObjectStore(Protocol):
    """Objects with ETags. All methods raise StoreUnavailable."""

    async def read(self, key: str, known: str = "") -> tuple[bytes, str] | None:
        """Return an object and its ETag, or None if its ETag is `known`. Raises NotFound."""
        ...

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        """Return a part of an object. Raises NotFound."""
        ...

    async def write(self, key: str, body: bytes) -> None:
        """Write an object."""
        ...

    async def create(self, key: str, body: bytes) -> str | None:
        """Write an object and return its ETag, or None if it exists already."""
        ...

    async def replace(self, key: str, body: bytes, etag: str) -> str | None:
        """Write an object that has this ETag, and return the new one. None if it has another one, or is missing."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. Missing ones are ignored."""
        ...

    async def keys(self, prefix: str) -> list[str]:
        """Return the keys of all objects that have a prefix."""
        ...

    async def delete_all(self, prefix: str) -> None:
        """Delete all objects whose keys have a prefix."""
        ...
