"""Files in the table: one record for the list entry, the metadata and a small content. A larger content is in S3.

The content of a file that was uploaded in parts stays in the objects of its parts. The record has a compact list of
them.
"""

import builtins
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from hashlib import sha256
from heapq import merge
from itertools import islice
from typing import Literal

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.openai.files import FileObject, FilePurpose
from stint.domain.paging import Page
from stint.store import keys
from stint.store.blobs import Blobs
from stint.store.failures import BlobMissing, ConditionFailed
from stint.store.items import Item, write_units
from stint.store.owners import add_owners, remove_owners
from stint.store.parallel import map_concurrently
from stint.store.records import delete_partition, is_live, mark_deleted, read_marked
from stint.store.table import SMALL_PAGE, Table, take

PREFIX = 16
"""Bytes of the random end of an object's key."""

LENGTH = 4
DIGEST = 32
SIZE = PREFIX + LENGTH + DIGEST


@dataclass(frozen=True, slots=True)
class StoredPart:
    """An object in S3."""

    blob: str
    length: int
    digest: bytes


def pack_parts(parts: Sequence[StoredPart]) -> bytes:
    """Return SIZE bytes for each part. The keys of the objects differ only in their random end."""
    return b"".join(
        bytes.fromhex(part.blob[-2 * PREFIX :]) + part.length.to_bytes(LENGTH, "big") + part.digest for part in parts
    )


def unpack_parts(prefix: str, packed: bytes) -> list[StoredPart]:
    """Return the parts that `pack_parts` packed. `prefix` is that of their keys."""
    entries = [packed[at : at + SIZE] for at in range(0, len(packed), SIZE)]
    return [
        StoredPart(prefix + each[:PREFIX].hex(), int.from_bytes(each[PREFIX:-DIGEST], "big"), each[-DIGEST:])
        for each in entries
    ]


Order = Literal["asc", "desc"]

INLINE_UNITS = 4
"""Maximum write units of a record with its content. A write of an object costs 8, and a list reads 4 KB at a time."""

LARGEST_PAGE = 1_000
"""Maximum records of one call for a list."""

LISTED = "sk, doc, expires_at, deleted_at"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file, and the record that has or names its content."""

    tenant: str
    file: FileObject
    item: Item


class FileStore:
    """Files. One exists until it is marked as deleted or expires; after that, methods raise NotFound."""

    def __init__(self, table: Table, blobs: Blobs) -> None:
        self._table = table
        self._blobs = blobs

    async def create(
        self,
        tenant: str,
        file: FileObject,
        content: bytes,
        users: Sequence[str] = (),
        before_object: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Store a file under its new id. One write, and one object if the content is not small.

        `before_object` is called before an object that does not expire: it sends the task of `delete_orphan`.
        """
        owned = await add_owners(self._table, tenant, users, "file", file.id, expires_at=file.expires_at)
        item: Item = {**keys.file(tenant, file.id)._asdict(), **owned, "doc": file.to_json().decode()}
        if file.expires_at is not None:
            item["expires_at"] = file.expires_at
        inline = pack_content(item, content)
        if inline is not None:
            return await self._table.put(inline)
        prefix = keys.file_blobs(tenant, file.id, expires=file.expires_at is not None)
        if before_object is not None and file.expires_at is None:
            await before_object()
        blob = await self._blobs.put(prefix, content)
        try:
            await self._table.put(item | {"blob": blob, "length": len(content), "sha256": sha256(content).digest()})
        except ConditionFailed:
            await self._blobs.delete(blob)
            raise

    async def open(self, tenant: str, file_id: str) -> StoredFile:
        """Read a file's record."""
        item = await self._table.get(keys.file(tenant, file_id))
        if not is_live(item):
            raise NotFound("File", file_id)
        return StoredFile(tenant, FileObject.model_validate_json(item["doc"]), item)

    async def get(self, tenant: str, file_id: str) -> FileObject:
        return (await self.open(tenant, file_id)).file

    async def get_many(self, tenant: str, file_ids: list[str]) -> dict[str, FileObject]:
        """Read files by their ids. Those that do not exist are omitted."""
        wanted = {keys.file(tenant, each): each for each in file_ids if keys.is_file_id(each)}
        found = await self._table.get_many(list(wanted), LISTED.removeprefix("sk, "))
        live = {wanted[key]: item["doc"] for key, item in found.items() if is_live(item)}
        return {file_id: FileObject.model_validate_json(doc) for file_id, doc in live.items()}

    def _parts(self, stored: StoredFile) -> builtins.list[StoredPart]:
        item, expires = stored.item, stored.file.expires_at is not None
        if "manifest" not in item:
            return [StoredPart(item["blob"], item["length"], item["sha256"])]
        return unpack_parts(keys.upload_blobs(stored.tenant, item["upload"], expires=expires), item["manifest"])

    async def read(self, stored: StoredFile) -> AsyncIterator[bytes]:
        """Yield the content of a file, part by part. Raises NotFound if it was deleted in the meantime."""
        item = stored.item
        if "blob" not in item and "manifest" not in item:
            yield zlib.decompress(item["packed"]) if "packed" in item else item["content"]
            return
        try:
            for part in self._parts(stored):
                yield await self._blobs.get(part.blob, part.length, part.digest)
        except BlobMissing as error:
            raise NotFound("File", stored.file.id) from error

    async def list(
        self,
        tenant: str,
        *,
        after: str | None = None,
        limit: int = 20,
        order: Order = "desc",
        purpose: FilePurpose | None = None,
    ) -> Page[FileObject]:
        """List files by creation, starting after `after`. Raises NotFound if that does not exist."""
        if after is not None and await self._table.get(keys.file(tenant, after)) is None:
            raise NotFound("File", after)
        newest_first = order == "desc"

        async def read(pk: str) -> list[FileObject]:
            page = min(max(limit + 1, SMALL_PAGE), LARGEST_PAGE)
            items = self._table.query(pk, after=after, newest_first=newest_first, attributes=LISTED, page=page)
            live = (FileObject.model_validate_json(item["doc"]) async for item in items if is_live(item))
            return await take((file async for file in live if purpose in (None, file.purpose)), limit + 1)

        shards = await map_concurrently(read, keys.files(tenant))
        found = list(islice(merge(*shards, key=lambda file: file.id, reverse=newest_first), limit + 1))
        return Page(found[:limit], len(found) > limit)

    async def mark_deleted(self, tenant: str, file_id: str) -> None:
        """Hide a file from all reads at once. It may be repeated. Raises NotFound if the file does not exist."""
        if await mark_deleted(self._table, keys.file(tenant, file_id)) is None:
            raise NotFound("File", file_id)

    async def check_marked(self, tenant: str, file_id: str) -> None:
        """Raise NotMarkedDeleted if the file exists without a mark."""
        await read_marked(self._table, keys.file(tenant, file_id), "File", file_id)

    async def delete_orphan(self, tenant: str, file_id: str) -> None:
        """Delete the object of a file whose creation did not store a record."""
        if await self._table.get(keys.file(tenant, file_id)) is None:
            async for _ in self._blobs.delete_prefix(keys.file_blobs(tenant, file_id)):
                pass

    async def delete(self, tenant: str, file_id: str) -> None:
        """Delete a marked file. It may be stopped and repeated at any point.

        Raises NotMarkedDeleted if the file exists without a mark.
        """
        key = keys.file(tenant, file_id)
        item = await read_marked(self._table, key, "File", file_id)
        if item is None:
            return
        if "blob" in item:
            await self._blobs.delete(item["blob"])
        if "upload" in item:
            await self._delete_upload(tenant, item)
        await remove_owners(self._table, tenant, item, "file", file_id)
        if "upload" in item:
            await remove_owners(self._table, tenant, item, "upload", item["upload"])
        await self._table.delete(key)

    async def _delete_upload(self, tenant: str, item: Item) -> None:
        """Delete the objects and records of the upload that a file was."""
        prefix = keys.upload_blobs(tenant, item["upload"], expires="expires_at" in item)
        async for _ in self._blobs.delete_prefix(prefix):
            pass
        async for _ in delete_partition(self._table, keys.upload(tenant, item["upload"]).pk):
            pass


def pack_content(item: Item, content: bytes) -> Item | None:
    """Return the record with its content, compressed if that saves a unit, or None if it is too large."""
    plain = item | {"content": content}
    if write_units(plain) == 1 or len(content) > INLINE_UNITS * 100_000:
        return plain if write_units(plain) == 1 else None
    packed = item | {"packed": zlib.compress(content)}
    chosen = min(plain, packed, key=write_units)
    return chosen if write_units(chosen) <= INLINE_UNITS else None
