"""Adding of a response's items to its conversation."""

from collections.abc import Sequence
from dataclasses import dataclass

from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.stored_responses import StoredResponse
from stint.services.conversations.item_files import share_out
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.responses.output_items import output_of, whole
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
    expires_at: int | None = None

    async def pack_items(self, response: StoredResponse) -> Sequence[Item]:
        """Return the records of the input and the output of a response; none unless it is completed or incomplete."""
        if response.ending is None or response.ending.broke_off:
            return []
        header = response.header
        said = share_out(header.input, header.texts)
        await self.opaque.warm_for(response.records)
        items = output_of(response, self.opaque.encode, whole(header.settings)).items
        added = [StoredItem(item=item) for item in (*response.merged_items, *items)]
        return await self.store.pack_items(self.tenant, self.conversation_id, [*said, *added], self.expires_at)

    async def put_items(self, packed: Sequence[Item]) -> None:
        """Write packed items. Raises NotFound if the conversation was deleted."""
        if packed:
            await self.store.put_items(self.tenant, self.conversation_id, packed)
