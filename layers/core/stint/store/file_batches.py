"""File batches of vector stores in the table. Their documents have the id of the batch."""

import time

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.store import knowledge_keys as keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.table import Table
from stint.store.tombstones import is_live
from stint.store.vector_stores import LIVE


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
