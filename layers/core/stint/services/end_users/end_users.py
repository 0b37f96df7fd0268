"""The objects of end users: list, erase.

Requests name their end user. Each object that such a request creates has an entry in the partition of that user,
written before or with the object. So an entry may be without its object, never an object without its entry.

  an entry's object                     list      erase
  exists                                shown     is deleted, then the entry
  is marked as deleted                  hidden    its deletion is continued, then the entry is removed
  does not exist, the entry is recent   hidden    left: its request may be about to write it
  does not exist, the entry is older    hidden    the entry is removed

The entry is removed last, because it is what a repetition finds the object by. Erasing has rounds, since deleting a
session adds its own vector store to the user's objects. It ends when nothing is left, nothing changes, or the time is
over; the receipt says how many are left.
"""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from stint.dataclasses import dataclass, replace
from stint.domain.end_users import EndUserObjects, ErasureReceipt, OwnedObject
from stint.domain.errors import NotFound
from stint.domain.tasks import DeletionTask
from stint.services.deletions import Deletions, Mark
from stint.store.end_users import is_recent, owned_object, record_key
from stint.store.items import Item
from stint.store.parallel import map_concurrently
from stint.store.records import is_live
from stint.store.store import Store

REQUEST_SECONDS = 20.0
"""Maximum seconds of an erasure in a request. What is left then needs another request."""


@dataclass(frozen=True, slots=True)
class EndUsers:
    """The end users of a tenant. One without objects is not different from one that never existed.

    `deletions` finish the deletions of all kinds of objects.
    """

    tenant: str
    store: Store
    deletions: Deletions
    request_seconds: float = REQUEST_SECONDS

    async def list(self, user: str, after: str | None, limit: int) -> EndUserObjects:
        """List the objects of an end user that exist, starting after the cursor `after`."""
        found: list[OwnedObject] = []
        cursor = after
        async for entries in self.store.end_users.entries(self.tenant, user, after):
            for entry, owned in await self._live(entries):
                if len(found) == limit:
                    return EndUserObjects(user=user, data=found, has_more=True, next=cursor)
                found.append(owned)
                cursor = entry["sk"]
        return EndUserObjects(user=user, data=found)

    async def _live(self, entries: Sequence[Item]) -> Sequence[tuple[Item, OwnedObject]]:
        named = [(entry, owned_object(entry)) for entry in entries]
        records = await self.store.end_users.records(self.tenant, [owned for _, owned in named])
        return [each for each in named if is_live(records.get(record_key(self.tenant, each[1])))]

    async def erase(self, user: str) -> ErasureReceipt:
        """Delete all objects of an end user, in rounds until none is left or the time is over. It may be repeated.

        The worker finishes a deletion that takes longer.
        """
        deadline = time.monotonic() + self.request_seconds
        deleted: Counter[str] = Counter()
        left = await self._erase_round(user, deadline, deleted)
        while left and time.monotonic() < deadline:
            now = await self._erase_round(user, deadline, deleted)
            # Only recent entries or deletions of the worker are left.
            if now == left:
                break
            left = now
        return ErasureReceipt(
            user=user,
            deleted=dict(deleted),
            remaining=len(left),
            complete=not left,
            created_at=int(time.time()),
        )

    async def _erase_round(self, user: str, deadline: float, deleted: "Counter[str]") -> frozenset[str]:
        """Delete objects concurrently, count the deleted ones by kind, and return the keys of those that are left."""

        async def erase(entry: Item) -> bool:
            return time.monotonic() < deadline and await self._erase_object(user, entry, deadline, deleted)

        async for entries in self.store.end_users.entries(self.tenant, user):
            await map_concurrently(erase, entries)
        return frozenset([e["sk"] async for some in self.store.end_users.entries(self.tenant, user) for e in some])

    async def _erase_object(self, user: str, entry: Item, deadline: float, deleted: "Counter[str]") -> bool:
        """Delete the object of an entry, and then the entry. Return whether nothing is left of it."""
        index, owned = self.store.end_users, owned_object(entry)
        record = (await index.records(self.tenant, [owned])).get(record_key(self.tenant, owned))
        # Without an object, only the age of the entry tells whether one will follow.
        if record is None or "sealed_at" in record:
            if is_recent(entry):
                return False
            await index.remove(self.tenant, user, owned)
            return True
        await self._delete(user, owned, record, deadline)
        # The worker has the rest of the deletion.
        if await index.records(self.tenant, [owned]):
            return False
        await index.remove(self.tenant, user, owned)
        deleted[owned.kind] += 1
        return True

    async def _delete(self, user: str, owned: OwnedObject, record: Item, deadline: float) -> None:
        if owned.kind == "upload":
            await self.store.uploads.erase(self.tenant, owned.id)
            return
        if owned.kind == "idempotent_request":
            await self.store.requests.erase_answer(self.tenant, owned.id)
            return
        if "vector_db_id" in record:  # the session's own store, which the worker deletes
            # An entry before the session is gone, whose record is the only one that names the store.
            own = OwnedObject(kind="vector_store", id=record["vector_db_id"])
            await self.store.end_users.add(self.tenant, user, own)
        seconds = max(deadline - time.monotonic(), 0)
        with suppress(NotFound):
            await replace(self.deletions, request_seconds=seconds).start_deletion(self._task(owned), self._mark(owned))

    def _mark(self, owned: OwnedObject) -> Mark:
        """Return a function that hides an object from all reads.

        That of a document also changes its store's usage, and that of a vault or an automation their number.
        """
        if owned.kind == "vault":
            return partial(self.store.vaults.mark_deleted, self.tenant, owned.id)
        if owned.kind == "automation":
            return partial(self.store.automations.mark_deleted, self.tenant, owned.id)
        if owned.kind == "vector_store_document":
            return partial(self.store.vector_store_documents.mark_deleted, self.tenant, *owned.ids)
        return partial(self.store.end_users.mark_deleted, self.tenant, owned)

    def _task(self, owned: OwnedObject) -> DeletionTask:
        if owned.kind == "session":
            return DeletionTask(tenant=self.tenant, agent_id=owned.agent_id, session_id=owned.id)
        if owned.kind == "vector_store_document":
            store_id, document = owned.ids
            return DeletionTask(
                kind="delete_store_document", tenant=self.tenant, vector_store_id=store_id, document=document
            )
        fields: dict[str, Any] = {"kind": f"delete_{owned.kind}", f"{owned.kind}_id": owned.id}
        return DeletionTask(tenant=self.tenant, **fields)
