"""Automations in the table.

    record                        partition                    has
    automation                    T#automation                 the automation, the hash of its end user
    invocation                    T#automation:{automation}    see `stint.store.automation_invocations`
    number of live automations    T#automations                the limit of a tenant

A change replaces the whole record under the condition that it is the one that was read, by its `revision`. So whoever
creates a schedule and then names it in the record knows whether that name is the only one.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.openai.automations import MOST_AUTOMATIONS, StoredAutomation
from stint.domain.paging import Page
from stint.store import keys
from stint.store.counted_records import CountedRecords
from stint.store.documents import Documents, fitting, json_size
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.owners import add_entries, hash_user, remove_owners
from stint.store.records import delete_partition, is_live, read_marked
from stint.store.table import SMALL_PAGE, Table
from stint.store.transactions import Transactions

DeleteSchedule = Callable[[str], Awaitable[None]]
"""A function that deletes a schedule by its name. A missing one is ignored. Raises StoreUnavailable."""


NO_BLOBS = ""
"""The prefix of objects in S3, which no automation needs: it has at most MAX_AUTOMATION bytes."""


@dataclass(frozen=True, slots=True)
class FoundAutomation:
    """An automation as it was read. `owners` is the hash of the end user whom it belongs to; empty: the tenant."""

    stored: StoredAutomation
    revision: int
    owners: str

    def is_visible_for(self, user: str | None) -> bool:
        """Return whether a caller who acts for an end user may see it. One who acts for none sees all."""
        return user is None or self.owners == hash_user(user)


class AutomationStore:
    """The automations of all tenants. Unknown and deleted ids raise NotFound."""

    def __init__(self, table: Table, transactions: Transactions, documents: Documents) -> None:
        self._table = table
        self._transactions = transactions
        self._documents = documents

    async def require_room(self, tenant: str) -> int | None:
        """Return the number of automations. Raises Conflict if the tenant has MOST_AUTOMATIONS."""
        return await self._counted(tenant).require_room()

    async def create(self, tenant: str, stored: StoredAutomation) -> None:
        """Store a new automation. A repetition changes nothing. Raises Conflict as `require_room`."""
        identifier = stored.resource.id
        owners = hash_user(stored.end_user) if stored.end_user else ""
        # Entries first: an erasure of the end user finds each automation that exists.
        owned = await add_entries(self._table, tenant, owners, "automation", identifier)
        await self._counted(tenant).create(await self._pack(tenant, stored, 1, owned))

    async def get(self, tenant: str, automation_id: str) -> FoundAutomation:
        item = await self._table.get(keys.automation(tenant, automation_id))
        if not is_live(item):
            raise NotFound("Automation", automation_id)
        return (await self._read([item]))[0]

    async def exists(self, tenant: str, automation_id: str) -> bool:
        """Return whether there is an automation that is not being deleted."""
        return is_live(await self._table.get(keys.automation(tenant, automation_id)))

    async def list(
        self,
        tenant: str,
        *,
        after: str | None,
        limit: int,
        newest_first: bool,
        accepts: Callable[[FoundAutomation], bool],
    ) -> Page[FoundAutomation]:
        """List automations by creation, starting after `after`. Raises NotFound if that does not exist."""
        if after is not None and await self._table.get(keys.automation(tenant, after)) is None:
            raise NotFound("Automation", after)
        pages: AsyncIterator[Item] = self._table.query(
            keys.automations(tenant), after=after, newest_first=newest_first, page=SMALL_PAGE
        )
        found, sizes = list[FoundAutomation](), list[int]()
        async for item in pages:
            if is_live(item):
                [read] = await self._read([item])
                if accepts(read):
                    found.append(read)
                    sizes.append(json_size(item))
            if len(found) > limit or fitting(sizes) < len(sizes):
                break
        shown = min(limit, fitting(sizes))
        return Page(found[:shown], len(found) > shown)

    async def replace(self, tenant: str, found: FoundAutomation, stored: StoredAutomation) -> FoundAutomation:
        """Replace an automation that was read. Raises Conflict if it was changed since, NotFound if it was deleted."""
        owned: Item = {"end_users": found.owners} if found.owners else {}
        revision = found.revision + 1
        item = await self._pack(tenant, stored, revision, owned)
        condition = "revision = :revision AND attribute_not_exists(deleted_at)"
        try:
            await self._table.put_new(item, condition=condition, values={":revision": found.revision})
        except ConditionFailed as failed:
            if not is_live(failed.item):
                raise NotFound("Automation", stored.resource.id) from None
            raise Conflict(
                f"The automation {stored.resource.id} was changed meanwhile. Read it, and try again.",
                code="automation_changed",
            ) from None
        return FoundAutomation(stored, revision, found.owners)

    async def mark_deleted(self, tenant: str, automation_id: str) -> None:
        """Hide an automation from all reads at once. It may be repeated."""
        await self._counted(tenant).mark_deleted(keys.automation(tenant, automation_id), automation_id)

    def _counted(self, tenant: str) -> CountedRecords:
        counter = keys.automation_count(tenant)
        return CountedRecords(self._table, self._transactions, counter, "Automation", MOST_AUTOMATIONS)

    async def delete(self, tenant: str, automation_id: str, deadline: float, delete_schedule: DeleteSchedule) -> bool:
        """Delete a marked automation: its schedule, its invocations, its record. Return whether nothing is left.

        It may be repeated. `deadline` is on the monotonic clock. Raises NotMarkedDeleted, StoreUnavailable.
        """
        key = keys.automation(tenant, automation_id)
        item = await read_marked(self._table, key, "Automation", automation_id)
        if item is None:
            return True
        # The record names the schedule, so it is deleted after that.
        [found] = await self._read([item])
        if found.stored.schedule:
            await delete_schedule(found.stored.schedule)
        async for _ in delete_partition(self._table, keys.automation_invocations(tenant, automation_id)):
            if time.monotonic() >= deadline:
                return False
        await remove_owners(self._table, tenant, item, "automation", automation_id)
        await self._table.delete(key)
        return True

    async def _pack(self, tenant: str, stored: StoredAutomation, revision: int, owned: Item) -> Item:
        item = keys.automation(tenant, stored.resource.id)._asdict() | {"revision": revision} | owned
        return await self._documents.pack(item, stored, NO_BLOBS)

    async def _read(self, items: Sequence[Item]) -> Sequence[FoundAutomation]:
        return [
            FoundAutomation(read_stored(raw), int(item["revision"]), item.get("end_users", ""))
            for raw, item in zip(await self._documents.read(items), items, strict=True)
        ]


def read_stored(raw: bytes) -> StoredAutomation:
    """Return an automation as it is now. Its record is still active if the worker was killed in each delivery."""
    stored = StoredAutomation.model_validate_json(raw)
    return stored.changed(status="completed") if stored.resource.is_overdue else stored
