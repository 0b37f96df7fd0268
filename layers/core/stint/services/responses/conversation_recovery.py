"""Conversations whose lease lapsed: the response that had it is ended, and its items are added."""

from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.openai.stored_responses import StoredResponse
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.responses.conversation_writer import ConversationWriter
from stint.services.responses.recovery import interrupted_record
from stint.store.store import Store


@dataclass(frozen=True, slots=True)
class ConversationRecovery:
    """Completes what the holder of a lapsed lease left in a tenant's conversation."""

    tenant: str
    store: Store
    opaque: OpaqueTexts

    async def reconcile(self, conversation_id: str) -> bool:
        """Complete a conversation for a reader, and clear its lapsed lease. Return whether it may have changed.

        Raises:
            NotFound: the conversation does not exist.
        """
        lapsed = await self.store.conversation_leases.find_lapsed(self.tenant, conversation_id)
        if lapsed is None or not await self.finish_holder(conversation_id, lapsed.holder, lapsed.expires_at):
            return False
        await self.store.conversation_leases.clear(self.tenant, conversation_id, lapsed)
        return True

    async def finish_holder(self, conversation_id: str, response_id: str, expires_at: int | None) -> bool:
        """End a foreground response whose lease on a conversation lapsed, and add the items of a response that ended.

        Return False for a background response that has not ended, because its worker continues it. `expires_at` is that
        of the conversation.

        Raises:
            NotFound: the conversation was deleted.
        """
        stored = await self._find_ended(response_id)
        if stored is None:
            return True
        if stored.ending is None:
            return False
        writer = ConversationWriter(self.tenant, self.store.conversations, conversation_id, self.opaque, expires_at)
        await writer.put_items(await writer.pack_items(stored))
        return True

    async def _find_ended(self, response_id: str) -> StoredResponse | None:
        """Return a response, which is ended if it is in the foreground; None if it does not exist."""
        responses = self.store.responses
        with suppress(NotFound):
            stored = await responses.get(self.tenant, response_id)
            if stored.ending is None and not stored.header.background:
                return await responses.seal(self.tenant, response_id, interrupted_record)
            return stored
        return None
