"""Adding of a response's items to its conversation."""

from collections.abc import Iterable, Sequence

from stint.dataclasses import dataclass
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import CompactionItem, FunctionCall, OutputItem
from stint.domain.openai.mcp_items import McpApprovalRequest
from stint.domain.openai.stored_responses import ResponseStatus, StoredResponse
from stint.services.conversations.include import whole
from stint.services.conversations.item_files import distribute_texts
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.responses.link_cache import LinkCache
from stint.services.responses.output_items import output_of
from stint.store.conversations import ConversationStore
from stint.store.items import Item


@dataclass(frozen=True, slots=True)
class ConversationWriter:
    """Adds the items of an ended response to its conversation.

    The items have their ids from the response, so a repetition changes nothing. They include the reasoning that the
    model needs later, which the API returns on request.
    """

    tenant: str
    store: ConversationStore
    conversation_id: str
    opaque: OpaqueTexts
    cache: LinkCache
    expires_at: int | None = None
    lease_id: str | None = None
    """The lease that the response has, until this has written its items."""

    async def pack_items(self, response: StoredResponse) -> Sequence[Item]:
        """Return the records of a response's input and output; none if it failed, or was cancelled in the queue.

        Of a cancelled response, the calls that its client has not answered are left out.
        """
        if not has_items(response):
            return []
        header = response.header
        said = distribute_texts(header.input, header.texts)
        await self.opaque.warm_for(response.records)
        output = output_of(response, self.opaque.encode, whole(header.settings))
        first = {output.items[place].id: late for place, late in output.answers.items() if place < len(output.items)}
        added = [StoredItem(item=item) for item in response.merged_items]
        for item in finished_items(response, output.items):
            call_id, begins = output.call_ids.get(item.id), True if item.id in first else None
            compacts = True if isinstance(item, CompactionItem) else None
            late = first.get(item.id) or None
            added.append(StoredItem(item=item, call_id=call_id, begins_answer=begins, late=late, compacts=compacts))
        return await self.store.pack_items(self.tenant, self.conversation_id, [*said, *added], self.expires_at)

    async def put_items(self, packed: Sequence[Item]) -> None:
        """Write packed items, and remember them. Raises NotFound if the conversation was deleted."""
        if packed:
            await self.store.put_items(self.tenant, self.conversation_id, packed)
        self.cache.note_response(self.tenant, self.conversation_id, packed, self.lease_id)


def has_items(response: StoredResponse) -> bool:
    """Return whether an ended response has items for its conversation."""
    ending = response.ending
    if ending is None or ending.status is ResponseStatus.failed:
        return False
    began = not response.header.background or response.taken_up or len(response.records) > 1
    return began or ending.status is not ResponseStatus.cancelled


def finished_items(response: StoredResponse, items: Iterable[OutputItem]) -> list[OutputItem]:
    """Return the items without the calls that the client of a cancelled response has not answered."""
    if response.ending is None or not response.ending.broke_off:
        return [*items]
    return [item for item in items if not isinstance(item, FunctionCall | McpApprovalRequest)]
