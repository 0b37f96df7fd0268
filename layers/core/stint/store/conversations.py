"""Conversations in the table: a record with metadata and lease, a record for each item, and a list entry.

Items are in the order of their ids, in the partition of the conversation's own record, whose key sorts after theirs. So
one Query from the end reads the record and then the newest items. Items have no indexes that could be taken: those of a
response have their ids in its log, so a process that adds them again after a death replaces equal records.

Items may arrive while the conversation is being deleted. Both orders are safe:

    adding items                     deletion                       outcome
    1 writes the items               1 marks the conversation       if 2 of the addition sees the mark, the addition
    2 reads the conversation, or     2 deletes all records, the     removes its items; otherwise 2 of the deletion finds
      completes its change             conversation's own last      them

`stint.store.item_changes` has the changes that callers make.
"""

import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.openai.conversations import Conversation, StoredItem
from stint.domain.paging import Page
from stint.store import items, keys
from stint.store.blobs import Blobs
from stint.store.documents import MANY_ITEMS, Documents, context_size, cut_history, fitting, json_size
from stint.store.failures import ConditionFailed
from stint.store.item_changes import announce_change, version_of
from stint.store.items import Item
from stint.store.owners import add_owners, remove_owners
from stint.store.parallel import map_concurrently
from stint.store.records import delete_partition, expiry, is_expired, is_live, mark_deleted, query_shards, read_marked
from stint.store.response_leases import has_lapsed
from stint.store.session_ledgers import budget_item, show_budget
from stint.store.table import LARGE_PAGE, LIVE, Table, take

Order = Literal["asc", "desc"]
Items = list[StoredItem]

OF_LISTS = "sk, deleted_at, expires_at, lock_holder, lock_until"
"""The attributes of a list of keys: those of the conversation's own record tell whether it is live, and leased."""


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """A conversation's items, oldest first, and their records. `complete`: none was omitted.

    `lapsed` as in ItemPage. `size` is in bytes of JSON.
    """

    items: list[StoredItem]
    records: Sequence[Item]
    complete: bool
    lapsed: bool = False
    size: int = 0


@dataclass(frozen=True, slots=True)
class ItemKeys:
    """The sort keys of a conversation's newest items, oldest first. `lapsed` as in ItemPage."""

    keys: tuple[str, ...]
    lapsed: bool


@dataclass(frozen=True, slots=True)
class ItemPage(Page[StoredItem]):
    """A page of items. `lapsed`: a response let its lease lapse, and may not have added its items."""

    lapsed: bool = False


@dataclass(frozen=True, slots=True)
class AddedItems:
    """The records of items that were added, and the end of their conversation, in seconds since 1970."""

    records: Sequence[Item]
    expires_at: int | None


class ConversationStore:
    """Conversations. One exists while its record exists and is not marked as deleted; otherwise methods raise NotFound.

    Items are in the order of their ids, which `domain.openai.items.name_items` makes. With `versioned`, the records of
    conversations show all changes by callers; see `stint.store.item_changes`.
    """

    def __init__(self, table: Table, documents: Documents, blobs: Blobs, *, versioned: bool = True) -> None:
        self._table = table
        self._documents = documents
        self._blobs = blobs
        self.versioned = versioned

    async def create(
        self, tenant: str, conversation: Conversation, first: Sequence[StoredItem] = (), users: Sequence[str] = ()
    ) -> None:
        """Store a conversation under its new id, with its first items."""
        end = expiry(conversation.expires_at)
        owned = await add_owners(
            self._table, tenant, users, "conversation", conversation.id, expires_at=conversation.expires_at
        )
        key, entry = keys.conversation(tenant, conversation.id), keys.conversation_entry(tenant, conversation.id)
        own = {"created_at": conversation.created_at, "metadata": _metadata(conversation.metadata)}
        limits = budget_item(conversation.budget.limits if conversation.budget else None)
        await self._table.put_many(
            [
                *await self.pack_items(tenant, conversation.id, first, conversation.expires_at),
                entry._asdict() | end,
                key._asdict() | own | owned | end | limits,
            ]
        )

    async def get(self, tenant: str, conversation_id: str) -> Conversation:
        item = await self._table.get(keys.conversation(tenant, conversation_id))
        if not is_live(item):
            raise NotFound("Conversation", conversation_id)
        return _conversation(conversation_id, item)

    async def update(self, tenant: str, conversation_id: str, metadata: Mapping[str, str]) -> Conversation:
        """Replace all metadata."""
        key, changed = keys.conversation(tenant, conversation_id), {"metadata": _metadata(metadata)}
        try:
            item = await self._table.update(
                key, changed, f"attribute_exists(pk) AND {LIVE}", {":now": int(time.time())}
            )
        except ConditionFailed:
            raise NotFound("Conversation", conversation_id) from None
        return _conversation(conversation_id, item)

    async def list(
        self, tenant: str, *, after: str | None = None, limit: int = 20, order: Order = "desc"
    ) -> Page[Conversation]:
        """List conversations by creation, starting after `after`. Raises NotFound if that does not exist."""
        if after is not None and await self._table.get(keys.conversation_entry(tenant, after)) is None:
            raise NotFound("Conversation", after)
        while True:
            ids, more = await query_shards(
                self._table, keys.conversations(tenant), after=after, limit=limit, newest_first=order == "desc"
            )
            wanted = {one: keys.conversation(tenant, one) for one in ids}
            found = await self._table.get_many(list(wanted.values()))
            live = [_conversation(one, found[key]) for one, key in wanted.items() if is_live(found.get(key))]
            if live or not more or not limit:
                return Page(live, more)
            after = ids[-1]

    async def add_items(
        self, tenant: str, conversation_id: str, added: Sequence[StoredItem], users: Sequence[str] = ()
    ) -> AddedItems:
        """Add any number of items: 25 per call, a unit for each small one, and two for the conversation's record.

        The conversation then belongs to the end users, too, a unit each. Raises NotFound as `put_items`.
        """
        change = await announce_change(self._table, tenant, conversation_id)
        end = change.record.get("expires_at")
        await add_owners(self._table, tenant, users, "conversation", conversation_id, expires_at=end)
        packed = await self.pack_items(tenant, conversation_id, added, end)
        await self._table.put_many(packed)
        try:
            await change.complete()
        except ConditionFailed:
            await self._remove_items(packed)
            raise NotFound("Conversation", conversation_id) from None
        return AddedItems(packed, end)

    async def put_items(self, tenant: str, conversation_id: str, packed: Sequence[items.Item]) -> None:
        """Write packed items of a response, which has or had the conversation's lease.

        The conversation's existence is checked after the write, so that a later deletion finds the items. Raises
        NotFound after an earlier deletion, and removes the items.
        """
        await self._table.put_many(packed)
        # After the write: a deletion that has not seen the items has marked the conversation before.
        if not is_live(await self._table.get(keys.conversation(tenant, conversation_id))):
            await self._remove_items(packed)
            raise NotFound("Conversation", conversation_id)

    async def _remove_items(self, packed: Sequence[items.Item]) -> None:
        await self._table.delete_many([keys.Key(item["pk"], item["sk"]) for item in packed])
        for item in packed:
            await self._documents.delete_blob(item)

    async def pack_items(
        self, tenant: str, conversation_id: str, added: Sequence[StoredItem], expires_at: int | None
    ) -> Sequence[items.Item]:
        """Return the records of items. Those that are too large are in S3 when this returns."""
        blobs = keys.conversation_blobs(tenant, conversation_id, expires=expires_at is not None)
        own = [keys.conversation_item(tenant, conversation_id, one.item.id)._asdict() for one in added]
        places = [at | expiry(expires_at) | items.mark_of(one.compacts) for at, one in zip(own, added, strict=True)]
        return await map_concurrently(
            lambda one: self._documents.pack(one[0], one[1], blobs), list(zip(places, added, strict=True))
        )

    async def list_items(
        self, tenant: str, conversation_id: str, *, after: str | None = None, limit: int = 20, order: Order = "desc"
    ) -> ItemPage:
        """List items, starting after `after`: up to MAX_BYTES of JSON, at least one.

        Raises NotFound if the conversation or its item `after` does not exist.
        """
        key = keys.conversation(tenant, conversation_id)
        begin = keys.conversation_item(tenant, conversation_id, after) if after is not None else None
        present = await self._table.get_many([key] if begin is None else [key, begin])
        own = present.get(key)
        if not is_live(own):
            raise NotFound("Conversation", conversation_id)
        if begin is not None and begin not in present:
            raise NotFound("Item", str(after))
        after_sk, newest_first = begin.sk if begin else None, order == "desc"
        found = self._table.query(key.pk, prefix=keys.ITEMS, after=after_sk, newest_first=newest_first, page=limit + 1)
        listed = await take(found, limit + 1)
        shown = min(limit, fitting(map(json_size, listed)))
        return ItemPage(await self._read(listed[:shown]), shown < len(listed), lapsed=has_lapsed(own))

    async def get_item(self, tenant: str, conversation_id: str, item_id: str) -> StoredItem:
        """Read one item and its conversation, in one call."""
        return (await self._find_item(tenant, conversation_id, item_id))[1]

    async def _find_item(self, tenant: str, conversation_id: str, item_id: str) -> tuple[Item, StoredItem]:
        """Return the record of an item, and the item."""
        key = keys.conversation(tenant, conversation_id)
        place = keys.conversation_item(tenant, conversation_id, item_id)
        found = await self._table.get_many([key, place])
        if not is_live(found.get(key)):
            raise NotFound("Conversation", conversation_id)
        for stored in await self._read([found[place]] if place in found else []):
            if stored.item.id == item_id:
                return found[place], stored
        raise NotFound("Item", item_id)

    async def delete_item(self, tenant: str, conversation_id: str, item_id: str) -> Conversation:
        """Delete an item, and return its conversation: a unit, and two for the conversation's record."""
        record, _ = await self._find_item(tenant, conversation_id, item_id)
        change = await announce_change(self._table, tenant, conversation_id)
        # It may be missing by now: its deletion is repeated if its answer is lost.
        await self._table.delete(keys.conversation_item(tenant, conversation_id, item_id))
        await self._documents.delete_blob(record)
        try:
            return _conversation(conversation_id, await change.complete())
        except ConditionFailed:
            raise NotFound("Conversation", conversation_id) from None

    async def history(
        self, tenant: str, conversation_id: str, max_bytes: int | None = None, before: str | None = None
    ) -> ItemHistory:
        """Read a conversation's items: one Query per MB, and the blobs concurrently.

        With `max_bytes`, read newest items that fit (see `choose_first`), at least one, up to one that replaces others.
        With `before`, leave out the items from the place of that id on, which are read, too.
        """
        found, own = await self._query_newest(tenant, conversation_id)
        end = keys.conversation_item(tenant, conversation_id, before).sk if before is not None else None
        chosen, total, complete = list[items.Item](), 0, True
        async for item in found:
            if end is not None and item["sk"] >= end:
                continue
            total += context_size(item)
            complete = not chosen or max_bytes is None or total <= max_bytes
            if not complete:
                break
            chosen.append(item)
            # Models get the summary in place of all older items.
            if "compacts" in item and max_bytes is not None:
                break
        chosen.reverse()
        chosen = chosen if complete or max_bytes is None else cut_history(chosen, max_bytes)
        shown = await self._read(chosen, brief=max_bytes is not None)
        return ItemHistory(shown, chosen, complete, has_lapsed(own), total)

    async def list_keys(
        self,
        tenant: str,
        conversation_id: str,
        *,
        until: str | None = None,
        limit: int = LARGE_PAGE,
        leased: bool = False,
    ) -> ItemKeys:
        """Return the keys of the newest items, up to `limit` of them, or up to the one `until`: one Query per MB.

        It costs the read units of the items, but transfers only their keys. With `leased`, the caller's lease shows
        that the conversation is live.
        """
        found, own = await self._query_newest(tenant, conversation_id, attributes="sk" if leased else OF_LISTS)
        listed: list[str] = []
        async for item in found:
            listed.append(item["sk"])
            if item["sk"] == until or len(listed) == limit:
                break
        return ItemKeys(tuple(reversed(listed)), has_lapsed(own))

    def version_of(self, record: Item) -> str | None:
        """Return the version of a conversation's items in its record; None if it does not tell whether they changed."""
        return version_of(record) if self.versioned else None

    async def get_records(self, tenant: str, conversation_id: str, wanted: Sequence[str]) -> dict[str, items.Item]:
        """Read the records of items by their sort keys, 100 per call. Missing ones are omitted."""
        pk = keys.conversation(tenant, conversation_id).pk
        found = await self._table.get_many([keys.Key(pk, sk) for sk in wanted])
        return {key.sk: item for key, item in found.items()}

    async def read_brief(self, records: Sequence[items.Item]) -> Items:
        """Return the items of records as models get them."""
        return await self._read(records, brief=True)

    async def _query_newest(
        self, tenant: str, conversation_id: str, attributes: str | None = None
    ) -> tuple[AsyncGenerator[items.Item, None], items.Item]:
        """Return a conversation's items, newest first, and its own record. Raises NotFound."""
        key = keys.conversation(tenant, conversation_id)
        found = self._table.query(key.pk, newest_first=True, attributes=attributes)
        # The conversation's own record has the last key of the partition, so it is the first one here.
        own = await anext(found, None)
        if own is None or own["sk"] != key.sk or not is_live(own):
            raise NotFound("Conversation", conversation_id)
        return found, own

    async def _read(self, found: Sequence[items.Item], *, brief: bool = False) -> Items:
        documents = await self._documents.read(found, brief=brief)
        if len(documents) <= MANY_ITEMS:
            return [StoredItem.model_validate_json(raw) for raw in documents]
        from stint.domain.field_names import FieldNames  # noqa: PLC0415 - few conversations are long

        names = FieldNames()
        return [names.share(StoredItem.model_validate_json(raw)) for raw in documents]

    async def mark_deleted(self, tenant: str, conversation_id: str) -> None:
        """Hide a conversation from all reads at once. A holder of its lease loses it.

        It may be repeated. Raises NotFound if the conversation does not exist.
        """
        item = await mark_deleted(self._table, keys.conversation(tenant, conversation_id))
        if item is None or is_expired(item):
            raise NotFound("Conversation", conversation_id)

    async def delete(self, tenant: str, conversation_id: str, deadline: float = float("inf")) -> bool:
        """Delete a marked conversation with its items and waiting messages, and return whether nothing is left to do.

        It may be repeated at any point. `deadline` is on the monotonic clock. Raises NotMarkedDeleted without a mark.
        """
        from stint.store.waiting_line import delete_messages  # noqa: PLC0415 - not at the start of a function

        key = keys.conversation(tenant, conversation_id)
        item = await read_marked(self._table, key, "Conversation", conversation_id)
        if item is None:
            return True
        # The own record goes last: as long as it is there, a repetition finds the deletion.
        await self._table.delete(keys.conversation_entry(tenant, conversation_id))
        async for _ in delete_messages(self._table, self._blobs, tenant, conversation_id):
            if time.monotonic() >= deadline:
                return False
        async for _ in delete_partition(self._table, key.pk, spare=[key.sk]):
            if time.monotonic() >= deadline:
                return False
        blobs = keys.conversation_blobs(tenant, conversation_id, expires="expires_at" in item)
        async for _ in self._blobs.delete_prefix(blobs):
            if time.monotonic() >= deadline:
                return False
        await remove_owners(self._table, tenant, item, "conversation", conversation_id)
        await self._table.delete(key)
        return True


def _metadata(metadata: Mapping[str, str]) -> str:
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))


def _conversation(conversation_id: str, item: items.Item) -> Conversation:
    return Conversation(
        id=conversation_id,
        created_at=item["created_at"],
        metadata=json.loads(item["metadata"]),
        expires_at=item.get("expires_at"),
        budget=show_budget(item),
    )
