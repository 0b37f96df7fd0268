"""Conversations and their items: create, read, list, update, delete.

A response adds its items to its conversation after its outcome is stored, so a process that dies in between leaves
items out. Readers repair that: a list whose conversation has a lapsed lease, and a look-up of an item that is not
found, call `reconcile` and look again. Most reads therefore cost nothing more.

Files in items are read when the items are added, and their texts are stored beside them: a URL may have another content
later, and each response would fetch it again. Items get new ids, because ids of callers could be those of other items;
references between the items of one request are changed with them.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from stint.caller import end_users_of, next_object_ids, record_end
from stint.documents.document_reader import DocumentReader
from stint.domain.errors import NotFound
from stint.domain.expiry import find_end
from stint.domain.ids import name_of, new_name
from stint.domain.openai.conversations import (
    Conversation,
    ConversationList,
    CreateConversation,
    DeletedConversation,
    StoredItem,
    UpdateConversation,
)
from stint.domain.openai.input_items import InputItem
from stint.domain.openai.items import PREFIXES, HostedCall, Item, ItemReference
from stint.domain.openai.mcp_items import McpApprovalResponse
from stint.domain.openai.response_resource import ItemList
from stint.domain.tasks import DeletionTask
from stint.services.conversations.include import include_fields
from stint.services.conversations.item_files import check_images, read_files
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.deletions import Deletions
from stint.store.conversations import ConversationStore, Order
from stint.store.items import Item as StoredRecord

T = TypeVar("T")

Reconcile = Callable[[str], Awaitable[bool]]
"""A function that adds the items which a response left out, and returns whether a conversation may have changed."""


class ItemCache(Protocol):
    """The memory of a process for the items of conversations."""

    def note_items(self, tenant: str, conversation_id: str, records: Sequence[StoredRecord], /) -> None:
        """Keep records that were added to a conversation, if it is known."""
        ...

    def forget(self, tenant: str, conversation_id: str, /) -> None:
        """Drop a conversation of which something was deleted."""
        ...


class Conversations:
    """The conversations of a tenant. Unknown ids raise NotFound.

    Added items get new ids, whose order is the order in which they are added.
    """

    def __init__(
        self,
        tenant: str,
        store: ConversationStore,
        reader: DocumentReader,
        deletions: Deletions,
        opaque: OpaqueTexts,
        reconcile: Reconcile,
        cache: ItemCache,
        retention_days: float = 0,
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.reader = reader
        self.deletions = deletions
        self.opaque = opaque
        self.reconcile = reconcile
        self.cache = cache
        self.retention_days = retention_days

    async def create(self, request: CreateConversation, conversation_id: str | None = None) -> Conversation:
        """Store a conversation with its first items, under a new id.

        Raises:
            InvalidRequest: a file or an image among them cannot be read. The message names its location.
        """
        first = await self.prepare_items(request.items)
        now = int(time.time())
        conversation = Conversation(
            id=conversation_id or new_name("conv"),
            created_at=now,
            metadata=request.metadata,
            expires_at=find_end(now, request.expires_after, self.retention_days),
            budget=request.budget.show() if request.budget else None,
        )
        # The answer that is stored for repetitions must not outlive the conversation.
        record_end(conversation.expires_at)
        await self.store.create(self.tenant, conversation, first, end_users_of())
        return conversation

    async def get(self, conversation_id: str) -> Conversation:
        return await self.store.get(self.tenant, conversation_id)

    async def list(self, after: str | None, limit: int, order: Order) -> ConversationList:
        """List conversations by creation, starting after `after`. Raises NotFound if that does not exist."""
        page = await self.store.list(self.tenant, after=after, limit=limit, order=order)
        return ConversationList.of(page.data, page.has_more)

    async def update(self, conversation_id: str, request: UpdateConversation) -> Conversation:
        """Replace all metadata."""
        return await self.store.update(self.tenant, conversation_id, request.metadata or {})

    async def delete(self, conversation_id: str) -> DeletedConversation:
        """Delete a conversation with its items. When this returns, no reader can find it.

        A running response loses its lease on it.
        """
        task = DeletionTask(kind="delete_conversation", tenant=self.tenant, conversation_id=conversation_id)
        mark = partial(self.store.mark_deleted, self.tenant, conversation_id)
        await self.deletions.start_deletion(task, mark)
        self.cache.forget(self.tenant, conversation_id)
        return DeletedConversation(id=conversation_id)

    async def add_items(
        self, conversation_id: str, items: Sequence[InputItem], include: Collection[str] = ()
    ) -> ItemList:
        """Append items, possibly concurrently with other requests, and return them as they are stored.

        A repeated request with the same idempotency key writes the same items.

        Raises:
            InvalidRequest: a file or an image among them cannot be read. The message names its location.
        """
        added = await self.prepare_items(items)
        stored = await self.store.add_items(self.tenant, conversation_id, added, users=end_users_of())
        record_end(stored.expires_at)
        # A repeated request may have read the files anew, and has stored other texts then.
        if not any(each.texts for each in added):
            self.cache.note_items(self.tenant, conversation_id, stored.records)
        return ItemList.of([include_fields(each.item, include) for each in added], has_more=False)

    async def list_items(
        self, conversation_id: str, after: str | None, limit: int, order: Order, include: Collection[str] = ()
    ) -> ItemList:
        """List items, starting after `after`. Raises NotFound, also if the conversation has no such item."""
        read = partial(self.store.list_items, self.tenant, conversation_id, after=after, limit=limit, order=order)
        page = await read()
        # Without a lapsed lease, no response can have left items out.
        if page.lapsed and await self.reconcile(conversation_id):
            page = await read()
        return ItemList.of([include_fields(stored.item, include) for stored in page.data], page.has_more)

    async def get_item(self, conversation_id: str, item_id: str, include: Collection[str] = ()) -> Item:
        stored = await self.find(conversation_id, partial(self.store.get_item, self.tenant, conversation_id, item_id))
        return include_fields(stored.item, include)

    async def delete_item(self, conversation_id: str, item_id: str) -> Conversation:
        """Delete one item, and return its conversation."""
        delete = partial(self.store.delete_item, self.tenant, conversation_id, item_id)
        conversation = await self.find(conversation_id, delete)
        self.cache.forget(self.tenant, conversation_id)
        return conversation

    async def find(self, conversation_id: str, find_item: Callable[[], Awaitable[T]]) -> T:
        """Find an item, also one that a response has not added to the conversation. Raises NotFound."""
        try:
            return await find_item()
        except NotFound:
            # Nothing was added, so a second look would find the same.
            if not await self.reconcile(conversation_id):
                raise
        return await find_item()

    async def prepare_items(self, items: Sequence[InputItem]) -> Sequence[StoredItem]:
        """Check opaque texts and images, convert files to text, and assign ids."""
        await self.opaque.check(items, "items")
        await check_images(self.reader, items, "items")
        texts = await read_files(self.reader, items, "items")
        return [StoredItem(item=item, texts=own) for item, own in zip(rename(items), texts, strict=True)]


def rename(items: Sequence[InputItem]) -> Sequence[Item]:
    """Assign new ids to items, also in references between them: from approvals and calls to approval requests.

    A repeated request with the same idempotency key assigns the same ones.
    """
    given = [item for item in items if not isinstance(item, ItemReference)]
    names = [name_of(PREFIXES[item.type], new) for item, new in zip(given, next_object_ids(len(given)), strict=True)]
    new_names = {item.id: name for item, name in zip(given, names, strict=True) if item.id}
    return [
        replace_ids(item, new_names).model_copy(update={"id": name}) for item, name in zip(given, names, strict=True)
    ]


def replace_ids(item: Item, new_ids: Mapping[str, str]) -> Item:
    asked = item.approval_request_id if isinstance(item, McpApprovalResponse | HostedCall) else None
    return item if asked is None else item.model_copy(update={"approval_request_id": new_ids.get(asked, asked)})
