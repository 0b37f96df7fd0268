"""Containers in the table: one record with the list of the files, whose contents are in S3.

Each change writes the whole record, if its `revision` is still the one that was read.
"""

import builtins
import time
from collections.abc import Sequence
from hashlib import sha256
from heapq import merge
from itertools import islice
from typing import Literal

from pydantic import ConfigDict, TypeAdapter

from stint.dataclasses import dataclass, replace
from stint.domain.errors import NotFound
from stint.domain.ids import new_name
from stint.domain.openai.containers import Container, ContainerFile
from stint.domain.paging import Page
from stint.domain.schema import Schema
from stint.store import keys
from stint.store.blobs import Blobs
from stint.store.failures import BlobMissing
from stint.store.items import Item
from stint.store.owners import add_owners, hash_user, remove_owners
from stint.store.parallel import map_concurrently
from stint.store.records import is_live, mark_deleted
from stint.store.table import LIVE, SMALL_PAGE, Table, take

Source = Literal["user", "assistant"]


class StoredContainerFile(Schema):
    """A file of a container, and the object that has its content."""

    id: str
    name: str
    bytes: int
    created_at: int
    source: Source
    blob: str
    sha256: str

    def describe(self, container_id: str) -> ContainerFile:
        """Return the file as the API does."""
        return ContainerFile(
            id=self.id,
            container_id=container_id,
            created_at=self.created_at,
            bytes=self.bytes,
            path=self.name,
            source=self.source,
        )


FILES: TypeAdapter[list[StoredContainerFile]] = TypeAdapter(
    list[StoredContainerFile], config=ConfigDict(defer_build=True)
)


@dataclass(frozen=True, slots=True)
class StoredContainer:
    """A container with its files. `revision` counts its changes; 0 is a container that is not stored.

    `end_users` has the hashes of the end users to whom it belongs.
    """

    container: Container
    files: tuple[StoredContainerFile, ...] = ()
    revision: int = 0
    end_users: str = ""


class ContainerStore:
    """Containers. One exists until it is marked as deleted or expires; after that, methods raise NotFound."""

    def __init__(self, table: Table, blobs: Blobs) -> None:
        self._table = table
        self._blobs = blobs

    async def add_owners(self, tenant: str, container_id: str, users: Sequence[str], expires_at: int) -> None:
        """Note the end users to whom a container belongs that may be stored later. A unit for each."""
        await add_owners(self._table, tenant, users, "container", container_id, expires_at=expires_at)

    async def get(self, tenant: str, container_id: str) -> StoredContainer:
        item = await self._table.get(keys.container(tenant, container_id))
        if not is_live(item):
            raise NotFound("Container", container_id)
        return _stored(item)

    async def save(self, tenant: str, stored: StoredContainer, users: Sequence[str] = ()) -> None:
        """Write a container that was read, or a new one. Raises ConditionFailed if it has changed since.

        It belongs to `users`, too, a unit for each to whom it did not belong.
        """
        container, revision = stored.container, stored.revision
        key = keys.container(tenant, container.id)
        attributes: Item = {
            "doc": container.to_json().decode(),
            "files": FILES.dump_json(list(stored.files)).decode(),
            "revision": revision + 1,
            "expires_at": container.expires_at,
        }
        owners = set(stored.end_users.split())
        added = [user for user in users if hash_user(user) not in owners]
        if added:
            await add_owners(self._table, tenant, added, "container", container.id)
            attributes["end_users"] = " ".join(sorted(owners.union(map(hash_user, added))))
        if not revision:
            await self._table.put_new(key._asdict() | attributes)
            return
        values = {":revision": revision, ":now": int(time.time())}
        await self._table.update(key, attributes, f"revision = :revision AND {LIVE}", values)

    async def put_file(
        self, tenant: str, container_id: str, name: str, content: bytes, source: Source
    ) -> StoredContainerFile:
        """Store the content of a file, which no container has yet."""
        return StoredContainerFile(
            id=new_name("cfile"),
            name=name,
            bytes=len(content),
            created_at=int(time.time()),
            source=source,
            blob=await self._blobs.put(keys.container_blobs(tenant, container_id), content),
            sha256=sha256(content).hexdigest(),
        )

    async def read_file(self, file: StoredContainerFile) -> bytes:
        """Return the content of a file. Raises NotFound if it was deleted in the meantime."""
        try:
            return await self._blobs.get(file.blob, file.bytes, bytes.fromhex(file.sha256))
        except BlobMissing as error:
            raise NotFound("Container file", file.id) from error

    async def delete_contents(self, files: Sequence[StoredContainerFile]) -> None:
        """Delete the contents of files that no container has any more."""
        await map_concurrently(self._blobs.delete, [file.blob for file in files])

    async def list(
        self, tenant: str, *, after: str | None, limit: int, newest_first: bool, name: str | None
    ) -> Page[Container]:
        """List containers by creation, starting after `after`. Raises NotFound if that does not exist."""
        if after is not None and await self._table.get(keys.container(tenant, after)) is None:
            raise NotFound("Container", after)

        async def read(pk: str) -> builtins.list[Container]:
            page = max(limit + 1, SMALL_PAGE)
            items = self._table.query(
                pk, after=after, newest_first=newest_first, attributes="sk, doc, expires_at, deleted_at", page=page
            )
            live = (Container.model_validate_json(item["doc"]) async for item in items if is_live(item))
            return await take((each async for each in live if name in (None, each.name)), limit + 1)

        shards = await map_concurrently(read, keys.containers(tenant))
        found = list(islice(merge(*shards, key=lambda each: each.id, reverse=newest_first), limit + 1))
        return Page(found[:limit], len(found) > limit)

    async def mark_deleted(self, tenant: str, container_id: str) -> None:
        """Hide a container from all reads at once. It may be repeated. Raises NotFound if it does not exist."""
        if await mark_deleted(self._table, keys.container(tenant, container_id)) is None:
            raise NotFound("Container", container_id)

    async def delete(self, tenant: str, container_id: str) -> bool:
        """Delete a container with its files, unless it lives, and return whether it is gone. It may be repeated."""
        key = keys.container(tenant, container_id)
        item = await self._table.get(key)
        if is_live(item):
            return False
        async for _ in self._blobs.delete_prefix(keys.container_blobs(tenant, container_id)):
            pass
        if item is not None:
            await remove_owners(self._table, tenant, item, "container", container_id)
            values = {":revision": item["revision"]}
            await self._table.delete(key, condition="revision = :revision", values=values)
        return True


def with_files(stored: StoredContainer, files: Sequence[StoredContainerFile]) -> StoredContainer:
    """Return a container that is active now, with other files."""
    active = stored.container.model_copy(update={"last_active_at": int(time.time())})
    return replace(stored, container=active, files=tuple(files))


def _stored(item: Item) -> StoredContainer:
    return StoredContainer(
        Container.model_validate_json(item["doc"]),
        tuple(FILES.validate_json(item["files"])),
        item["revision"],
        item.get("end_users", ""),
    )
