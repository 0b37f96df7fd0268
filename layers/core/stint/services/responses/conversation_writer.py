"""The conversation that a response works in."""

import asyncio
from dataclasses import dataclass

from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.stored_responses import ResponseRecord, ResponseStatus, StoredResponse
from stint.services.conversations.item_files import share_out
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.responses.output_items import output_of, whole
from stint.store.conversations import ConversationStore


@dataclass(frozen=True, slots=True)
class ConversationWriter:
    """Adds to a conversation what was said in a response."""

    tenant: str
    store: ConversationStore
    conversation_id: str
    opaque: OpaqueTexts

    async def add_items(self, response: StoredResponse, last: ResponseRecord) -> None:
        """Add the input and the output of a response that ends with a record; of one that failed, nothing.

        The ids are those of the response, so that adding them twice changes nothing. The items are whole: a
        conversation keeps the reasoning that its model wants back, and shows it on request.

        Raises:
            NotFound: the conversation was deleted meanwhile.
        """
        if last.ending is None or last.ending.status not in (ResponseStatus.completed, ResponseStatus.incomplete):
            return
        header, ended = response.header, StoredResponse(response.header, [*response.records, last])
        said = share_out(header.input, header.texts)
        await self.opaque.warm_for(ended.records)
        items = output_of(ended, self.opaque.encode, whole(header.settings)).items
        answered = [StoredItem(item=item) for item in items]
        await asyncio.to_thread(self.store.add_items, self.tenant, self.conversation_id, [*said, *answered])
