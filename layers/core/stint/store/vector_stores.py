"""Vector stores in the table: one record each, which is also the list entry.

    state      attributes               readers                    ends by
    in use     none of these            find it                    a mark, or its expiry
    expired    `last_active_at` is      find it, but searches      `update`, which counts as use; `mark_emptied`, after
               too old                  and insertions refuse it   which its contents are deleted
    emptied    emptied_at               as expired, for ever       a mark
    marked     deleted_at               do not find it             removal after its documents
    sealed     deleted_at, sealed_at    do not find it             expiry after an hour

`usage` is a sum over all documents, too expensive for each read and too contended to be kept by each change. So a
change of a document only removes it and sets a new `change_id`; the next reader computes it, and stores it if the
`change_id` is still the one that it read before.

A session's own store may be created while the session is deleted. `seal` marks it, or takes its key for an hour.

File batches are records in the partitions of their stores. Their documents have the id of the batch.
"""

import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from heapq import merge
from typing import Literal

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.expiry import DAY_SECONDS
from stint.domain.paging import Page
from stint.domain.vector_stores import StoreUsage, VectorStoreSettings
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.parallel import map_concurrently
from stint.store.records import is_live, mark_deleted, new_seal, read_marked
from stint.store.table import GET_BATCH, Table, take

Order = Literal["asc", "desc"]

LIVE = "attribute_exists(pk) AND attribute_not_exists(deleted_at)"


@dataclass(frozen=True, slots=True)
class StoredVectorStore:
    """A vector store."""

    id: str
    """The id, which is also the sort key."""
    created_at: int
    """In seconds since 1970."""
    last_active_at: int
    """When a user last used or changed it, in seconds since 1970. Its expiry counts from then."""
    change_id: str
    """A random id of the last change of its documents."""
    settings: VectorStoreSettings
    """What users can set, such as name and `expires_after`, and what was chosen at the creation."""
    usage: StoreUsage | None = None
    """None if its documents have changed since it was last computed."""
    emptied: bool = False
    """Whether it has expired for ever, and its contents are being deleted."""

    @property
    def expires_at(self) -> int | None:
        after = self.settings.expires_after
        return None if after is None else self.last_active_at + after.days * DAY_SECONDS

    @property
    def expired(self) -> bool:
        return self.emptied or (self.expires_at is not None and self.expires_at <= time.time())

    @property
    def idle_seconds(self) -> float:
        return time.time() - self.last_active_at


def changed(*, by_user: bool = True) -> Item:
    """Return the attributes that each change of a store's documents writes. Only those of users count as activity."""
    activity = {"last_active_at": int(time.time())} if by_user else {}
    return {"change_id": secrets.token_hex(6), "doc_usage": None} | activity


class VectorStores:
    """Vector stores. One exists while its record exists and is not marked as deleted; otherwise methods raise NotFound.

    `usage` is computed of the documents when it is read, and kept until the documents change.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def create(
        self, tenant: str, store_id: str, settings: VectorStoreSettings, users: Sequence[str] = ()
    ) -> StoredVectorStore:
        """Store a vector store under its new id, for one unit, and one for each of its end users."""
        now = int(time.time())
        item = {"created_at": now, "last_active_at": now, "change_id": "", "settings": settings.model_dump_json()}
        owned: Item = {"owned": 1} if settings.owner is not None else {}
        key = keys.vector_store(tenant, store_id)
        if users:
            from stint.store.owners import add_owners  # noqa: PLC0415 - few stores belong to end users

            owned |= await add_owners(self._table, tenant, users, "vector_store", store_id)
        await self._table.put_new(key._asdict() | item | owned | {"doc_usage": StoreUsage().model_dump_json()})
        return StoredVectorStore(store_id, now, now, "", settings=settings, usage=StoreUsage())

    async def get(self, tenant: str, store_id: str) -> StoredVectorStore:
        item = await self._table.get(keys.vector_store(tenant, store_id))
        if not is_live(item):
            raise NotFound("Vector store", store_id)
        return _store(item)

    async def get_many(self, tenant: str, store_ids: Sequence[str]) -> Mapping[str, StoredVectorStore]:
        """Read several stores in one call. Raises NotFound if one does not exist."""
        wanted = {one: keys.vector_store(tenant, one) for one in store_ids}
        found = await self._table.get_many(list(wanted.values()))
        for store_id, key in wanted.items():
            if not is_live(found.get(key)):
                raise NotFound("Vector store", store_id)
        return {store_id: _store(found[key]) for store_id, key in wanted.items()}

    async def existing(self, tenant: str, store_ids: Sequence[str]) -> Set[str]:
        """Return those of the ids whose stores exist."""
        wanted = [keys.vector_store(tenant, one) for one in store_ids]
        found = await self._table.get_many(wanted, "deleted_at, expires_at") if wanted else {}
        return {key.sk for key, item in found.items() if is_live(item)}

    async def list(
        self, tenant: str, *, after: str | None, before: str | None, limit: int, order: Order
    ) -> Page[StoredVectorStore]:
        """List the stores that no session owns, by creation: one read per shard.

        `after` and `before` are ids in the requested order, and need not exist.
        """
        for one in filter(None, (after, before)):
            keys.vector_store(tenant, one)

        async def read(pk: str) -> list[Item]:
            # Sessions own stores that their callers do not list.
            items = self._table.query(pk, after=after, newest_first=order == "desc", page=limit + 1)
            return await take((item async for item in items if is_live(item) and "owned" not in item), limit + 1)

        shards = await map_concurrently(read, keys.vector_stores(tenant))
        found = list(merge(*shards, key=lambda item: str(item["sk"]), reverse=order == "desc"))
        if before is not None:
            found = [item for item in found if (item["sk"] > before if order == "desc" else item["sk"] < before)]
        return Page([_store(item) for item in found[:limit]], len(found) > limit)

    async def ids(self, tenant: str) -> AsyncGenerator[Sequence[str], None]:
        """Read the ids of all stores, also those of sessions, up to 100 per step."""
        for pk in keys.vector_stores(tenant):
            items = self._table.query(pk, attributes="sk")
            while some := await take(items, GET_BATCH):
                yield [item["sk"] for item in some]

    async def update(self, tenant: str, store_id: str, settings: VectorStoreSettings) -> StoredVectorStore:
        """Replace the settings, and count as activity."""
        assign = {"settings": settings.model_dump_json(), "last_active_at": int(time.time())}
        return await self._update(tenant, store_id, assign)

    async def touch(self, tenant: str, store_id: str) -> StoredVectorStore:
        """Note that a store was used."""
        return await self._update(tenant, store_id, {"last_active_at": int(time.time())})

    async def _update(self, tenant: str, store_id: str, assign: Item) -> StoredVectorStore:
        try:
            return _store(await self._table.update(keys.vector_store(tenant, store_id), assign, LIVE))
        except ConditionFailed:
            raise NotFound("Vector store", store_id) from None

    async def put_usage(self, tenant: str, store: StoredVectorStore, usage: StoreUsage) -> None:
        """Keep the usage of a store, unless its documents have changed since it was read."""
        condition, seen = f"{LIVE} AND change_id = :seen", {":seen": store.change_id}
        try:
            assign = {"doc_usage": usage.model_dump_json()}
            await self._table.update(keys.vector_store(tenant, store.id), assign, condition, seen)
        except ConditionFailed:
            return

    async def mark_emptied(self, tenant: str, store: StoredVectorStore) -> bool:
        """Let a store stay expired for ever, and return whether it has not been used since it was read."""
        key, seen = keys.vector_store(tenant, store.id), {":seen": store.last_active_at}
        try:
            # A store that was used since it was read has not expired.
            await self._table.update(key, {"emptied_at": int(time.time())}, f"{LIVE} AND last_active_at = :seen", seen)
        except ConditionFailed:
            return False
        return True

    async def find_settings(self, tenant: str, store_id: str) -> VectorStoreSettings | None:
        """Return the settings of a store, also of one that is being deleted; None if there is none."""
        item = await self._table.get(keys.vector_store(tenant, store_id))
        return VectorStoreSettings.model_validate_json(item["settings"]) if item and "settings" in item else None

    async def mark_deleted(self, tenant: str, store_id: str) -> VectorStoreSettings:
        """Hide a store from all reads at once, and return its settings. It may be repeated.

        Raises NotFound if the store does not exist.
        """
        item = await mark_deleted(self._table, keys.vector_store(tenant, store_id))
        if item is None:
            raise NotFound("Vector store", store_id)
        return VectorStoreSettings.model_validate_json(item["settings"])

    async def seal(self, tenant: str, store_id: str) -> bool:
        """Hide a store, and return whether there was one. If not, its creation is prevented for an hour."""
        key = keys.vector_store(tenant, store_id)
        if await mark_deleted(self._table, key) is not None:
            return True
        try:
            await self._table.put_new(key._asdict() | new_seal() | {"deleted_at": int(time.time())})
        except ConditionFailed:  # it was created between the two writes
            return await mark_deleted(self._table, key) is not None
        return False

    async def get_marked(self, tenant: str, store_id: str) -> VectorStoreSettings | None:
        """Return the settings of a store that is marked as deleted; None if there is no store.

        Raises NotMarkedDeleted if the store has no mark.
        """
        item = await read_marked(self._table, keys.vector_store(tenant, store_id), "Vector store", store_id)
        return VectorStoreSettings.model_validate_json(item["settings"]) if item and "settings" in item else None

    async def is_marked(self, tenant: str, store_id: str) -> bool:
        """Return whether there is a store that is marked as deleted."""
        item = await self._table.get(keys.vector_store(tenant, store_id))
        return item is not None and not is_live(item)

    async def remove(self, tenant: str, store_id: str) -> None:
        """Delete the record of a marked store, the last step of its deletion, and its entries of end users."""
        key = keys.vector_store(tenant, store_id)
        item = await self._table.get(key)
        if item is not None and "end_users" in item:
            from stint.store.owners import remove_owners  # noqa: PLC0415 - few stores belong to end users

            await remove_owners(self._table, tenant, item, "vector_store", store_id)
        await self._table.delete(key)


def _store(item: Item) -> StoredVectorStore:
    usage = StoreUsage.model_validate_json(item["doc_usage"]) if "doc_usage" in item else None
    settings = VectorStoreSettings.model_validate_json(item["settings"])
    return StoredVectorStore(
        id=item["sk"],
        created_at=item["created_at"],
        last_active_at=item["last_active_at"],
        change_id=item["change_id"],
        settings=settings,
        usage=usage,
        emptied="emptied_at" in item,
    )


@dataclass(frozen=True, slots=True)
class StoredFileBatch:
    """A batch of files that were added at once."""

    id: str
    created_at: int
    cancelled: bool = False


class FileBatchStore:
    """The records of file batches, in the partitions of their stores."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def make(self, tenant: str, store_id: str, batch_id: str) -> Item:
        """Return the record of a new batch, to be written with its documents."""
        return keys.file_batch(tenant, store_id, batch_id)._asdict() | {"created_at": int(time.time())}

    async def exists(self, batch: Item) -> bool:
        """Return whether the record of a batch is stored."""
        return await self._table.get(Key(batch["pk"], batch["sk"])) is not None

    async def get(self, tenant: str, store_id: str, batch_id: str) -> StoredFileBatch:
        item = await self._table.get(keys.file_batch(tenant, store_id, batch_id))
        if not is_live(item):
            raise NotFound("File batch", batch_id)
        return StoredFileBatch(batch_id, item["created_at"], "cancelled_at" in item)

    async def cancel(self, tenant: str, store_id: str, batch_id: str) -> None:
        """Mark a batch as cancelled. It may be repeated."""
        try:
            assign = {"cancelled_at": int(time.time())}
            await self._table.update(keys.file_batch(tenant, store_id, batch_id), assign, LIVE)
        except ConditionFailed:
            raise NotFound("File batch", batch_id) from None
