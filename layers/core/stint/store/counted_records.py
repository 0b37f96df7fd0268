"""Records whose number in a tenant is limited, such as vaults and automations.

Each is created, and marked as deleted, in one transaction with the number, whose condition is that it is still what was
read before. So the limit holds for requests at the same time, and nothing is counted twice:

    the transaction fails because of    create                              mark_deleted
    the record                          a repetition: it is stored          reads it again: gone, or marked
    the number                          reads the number again              reads the number again
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.table import Table
from stint.store.transactions import Put, TransactionCancelled, Transactions, Update


@dataclass(frozen=True, slots=True)
class CountedRecords:
    """The live records of one kind that a tenant has."""

    table: Table
    transactions: Transactions
    counter: Key
    """The key of the item with their number."""
    kind: str
    """The singular, as in `NotFound`. With an underscore and `count`, it is the attribute of the number."""
    most: int

    @property
    def attribute(self) -> str:
        return f"{self.kind.lower()}_count"

    async def require_room(self) -> int | None:
        """Return their number, None if there never was one. Raises Conflict if it is the maximum."""
        count = await self.read_count()
        if (count or 0) >= self.most:
            plural = f"{self.kind.lower()}s"
            raise Conflict(
                f"The tenant has {self.most:,} {plural}, the maximum. Delete some of them first.",
                code=f"too_many_{plural}",
            )
        return count

    async def create(self, item: Item) -> None:
        """Store a new record. A repetition changes nothing. Raises Conflict as `require_room`."""
        while True:
            count = await self.require_room()
            try:
                await self.transactions.write([Put(item), change_count(self.counter, self.attribute, count, 1)])
            except TransactionCancelled as cancelled:
                if cancelled.place == 0:  # an earlier attempt of this request has stored it
                    return
                continue
            return

    async def mark_deleted(self, key: Key, identifier: str) -> None:
        """Hide a record from all reads at once. It may be repeated. Raises NotFound."""
        while True:
            item = await self.table.get(key)
            if item is None:
                raise NotFound(self.kind, identifier)
            if "deleted_at" in item:
                return
            count = await self.read_count()
            condition = "attribute_exists(pk) AND attribute_not_exists(deleted_at)"
            mark = Update(key, {"deleted_at": int(time.time())}, condition)
            with suppress(TransactionCancelled):
                await self.transactions.write([mark, change_count(self.counter, self.attribute, count, -1)])
                return

    async def read_count(self) -> int | None:
        count = (await self.table.get(self.counter) or {}).get(self.attribute)
        return None if count is None else int(count)


def change_count(
    key: Key, name: str, count: int | None, change: int, condition: str = "", values: Mapping[str, Any] | None = None
) -> Update:
    """Return the write of a number that was read."""
    unchanged = f"attribute_not_exists({name})" if count is None else f"{name} = :count"
    seen = {} if count is None else {":count": count}
    return Update(key, {name: max((count or 0) + change, 0)}, unchanged + condition, seen | dict(values or {}))
