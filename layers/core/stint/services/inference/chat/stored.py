"""Stored chat completions: save, read, list, update, delete."""

import time
from collections.abc import Mapping
from functools import partial

from stint.caller import end_users_of, record_end
from stint.dataclasses import dataclass
from stint.domain.errors import NotFound, StintError, StoreUnavailable
from stint.domain.expiry import find_end
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.chat_output import ChatCompletion
from stint.domain.openai.stored_chats import (
    ChatMessageList,
    DeletedChatCompletion,
    StoredChatCompletion,
    UpdateChatCompletion,
    store_messages,
)
from stint.domain.paging import Page
from stint.domain.tasks import DeletionTask
from stint.services.deletions import Deletions
from stint.store.chat_completions import Order
from stint.store.store import Store


@dataclass(frozen=True, slots=True)
class StoredChats:
    """The stored chat completions of a tenant."""

    tenant: str
    store: Store
    deletions: Deletions
    retention_days: float = 0

    async def save(self, request: ChatCompletionRequest, completion: ChatCompletion) -> None:
        """Store a completion with the messages of its request.

        Raises:
            StoreUnavailable: it is not stored.
        """
        users = end_users_of(request.safety_identifier, request.user)
        stored = StoredChatCompletion(messages=request.messages, completion=completion)
        expires_at = find_end(time.time(), None, self.retention_days)
        record_end(expires_at)
        try:
            await self.store.chat_completions.put(self.tenant, stored, users, expires_at)
        except StintError as error:
            raise StoreUnavailable(
                f"The completion could not be stored, and does not exist. Send the request again, or without store. "
                f"({error.message})"
            ) from error

    async def get(self, completion_id: str) -> StoredChatCompletion:
        """Return a completion. Raises NotFound."""
        return await self.store.chat_completions.get(self.tenant, completion_id)

    async def list(
        self, after: str | None, limit: int, model: str | None, metadata: Mapping[str, str], order: Order
    ) -> Page[StoredChatCompletion]:
        """List completions by creation. Raises NotFound if there is no completion `after`."""
        return await self.store.chat_completions.list(
            self.tenant, after=after, limit=limit, model=model, metadata=metadata, order=order
        )

    async def update(self, completion_id: str, request: UpdateChatCompletion) -> ChatCompletion:
        """Replace the metadata of a completion. Raises NotFound."""
        return (await self.store.chat_completions.update(self.tenant, completion_id, request.metadata)).completion

    async def messages(self, completion_id: str, after: str | None, limit: int, order: Order) -> ChatMessageList:
        """List the messages of a completion's request. Raises NotFound for the completion, or a message `after`."""
        messages = store_messages(await self.get(completion_id))
        if order == "desc":
            messages.reverse()
        ids = [message.id for message in messages]
        if after is not None and after not in ids:
            raise NotFound("Message", after)
        start = 0 if after is None else ids.index(after) + 1
        return ChatMessageList.of(messages[start : start + limit], start + limit < len(messages))

    async def delete(self, completion_id: str) -> DeletedChatCompletion:
        """Delete a completion. Raises NotFound."""
        task = DeletionTask(kind="delete_chat_completion", tenant=self.tenant, chat_completion_id=completion_id)
        mark = partial(self.store.chat_completions.mark_deleted, self.tenant, completion_id)
        await self.deletions.start_deletion(task, mark)
        return DeletedChatCompletion(id=completion_id)
