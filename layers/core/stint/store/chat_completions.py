"""Stored chat completions in the table: one record each, which is also its list entry.

So a short one costs one write unit, where a response needs two. The price is that a page of a list reads whole records
from eight shards, up to its limit and one more from each.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Literal

from stint.domain.errors import NotFound
from stint.domain.openai.stored_chats import StoredChatCompletion
from stint.domain.paging import Page
from stint.store.blobs import Blobs
from stint.store.documents import Documents, fitting, json_size
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import chat_completion, chat_completion_blobs, chat_completions
from stint.store.owners import add_owners, remove_owners
from stint.store.records import expiry, is_live, mark_deleted, query_shards, read_marked
from stint.store.table import LIVE, Table

Order = Literal["asc", "desc"]

KIND = "Chat completion"


class ChatCompletionStore:
    """Chat completions. One exists while its record exists without a mark; otherwise methods raise NotFound."""

    def __init__(self, table: Table, documents: Documents, blobs: Blobs) -> None:
        self._table = table
        self._documents = documents
        self._blobs = blobs

    async def put(
        self, tenant: str, stored: StoredChatCompletion, users: Sequence[str] = (), expires_at: int | None = None
    ) -> None:
        """Store a completion under its new id: one record, a unit per KB. The body of a large one is in S3."""
        completion = stored.completion
        owned = await add_owners(self._table, tenant, users, "chat_completion", stored.id, expires_at=expires_at)
        item = chat_completion(tenant, stored.id)._asdict() | {"model": completion.model} | owned | expiry(expires_at)
        if completion.metadata:
            item["metadata"] = _metadata(completion.metadata)
        document = stored.model_copy(update={"completion": completion.model_copy(update={"metadata": None})})
        await self._documents.put_new(
            item, document, chat_completion_blobs(tenant, stored.id, expires=expires_at is not None)
        )

    async def get(self, tenant: str, completion_id: str) -> StoredChatCompletion:
        [stored] = await self._read([await self._get_live(tenant, completion_id)])
        return stored

    async def update(self, tenant: str, completion_id: str, metadata: Mapping[str, str]) -> StoredChatCompletion:
        """Replace all metadata."""
        key, changed = chat_completion(tenant, completion_id), {"metadata": _metadata(metadata)}
        try:
            item = await self._table.update(
                key, changed, f"attribute_exists(pk) AND {LIVE}", {":now": int(time.time())}
            )
        except ConditionFailed:
            raise NotFound(KIND, completion_id) from None
        [stored] = await self._read([item])
        return stored

    async def list(
        self,
        tenant: str,
        *,
        after: str | None = None,
        limit: int = 20,
        model: str | None = None,
        metadata: Mapping[str, str] | None = None,
        order: Order = "asc",
    ) -> Page[StoredChatCompletion]:
        """List completions by creation, starting after `after`: up to MAX_BYTES of JSON, at least one.

        `metadata` are values that the completions have. Raises NotFound if `after` does not exist.
        """
        if after is not None:
            await self._get_live(tenant, after)

        def is_listed(item: Item) -> bool:
            return is_live(item) and dict(metadata or {}).items() <= _metadata_of(item).items()

        ids, more = await query_shards(
            self._table,
            chat_completions(tenant),
            after=after,
            limit=limit,
            newest_first=order == "desc",
            model=model,
            attributes="sk, metadata, deleted_at, expires_at",
            accepts=is_listed,
        )
        wanted = [chat_completion(tenant, each) for each in ids]
        found = await self._table.get_many(wanted)
        live = [found[key] for key in wanted if is_live(found.get(key))]
        shown = live[: fitting(map(json_size, live))]
        return Page([*await self._read(shown)], more or len(shown) < len(live))

    async def mark_deleted(self, tenant: str, completion_id: str) -> bool:
        """Delete a completion that is only a record; hide any other one from all reads.

        Return whether there is something left to delete.
        """
        item = await self._get_live(tenant, completion_id)
        key = chat_completion(tenant, completion_id)
        if "blob" not in item and "end_users" not in item:
            await self._table.delete(key)
            return False
        return await mark_deleted(self._table, key) is not None

    async def delete(self, tenant: str, completion_id: str, deadline: float = float("inf")) -> bool:
        """Delete a marked completion with its body in S3, and return whether nothing is left to do.

        It may be stopped and repeated at any point. `deadline` is on the monotonic clock. Raises NotMarkedDeleted if
        the completion exists without a mark.
        """
        key = chat_completion(tenant, completion_id)
        item = await read_marked(self._table, key, KIND, completion_id)
        if item is None:
            return True
        blobs = chat_completion_blobs(tenant, completion_id, expires="expires_at" in item)
        async for _ in self._blobs.delete_prefix(blobs):
            if time.monotonic() >= deadline:
                return False
        await remove_owners(self._table, tenant, item, "chat_completion", completion_id)
        await self._table.delete(key)
        return True

    async def _get_live(self, tenant: str, completion_id: str) -> Item:
        item = await self._table.get(chat_completion(tenant, completion_id))
        if not is_live(item):
            raise NotFound(KIND, completion_id)
        return item

    async def _read(self, items: Sequence[Item]) -> Sequence[StoredChatCompletion]:
        documents = await self._documents.read(items)
        return [_stored(item, raw) for item, raw in zip(items, documents, strict=True)]


def _stored(item: Item, raw: bytes) -> StoredChatCompletion:
    stored = StoredChatCompletion.model_validate_json(raw)
    completion = stored.completion.model_copy(update={"metadata": _metadata_of(item)})
    return stored.model_copy(update={"completion": completion})


def _metadata(metadata: Mapping[str, str]) -> str:
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))


def _metadata_of(item: Item) -> dict[str, str]:
    found: dict[str, str] = json.loads(item.get("metadata", "{}"))
    return found
