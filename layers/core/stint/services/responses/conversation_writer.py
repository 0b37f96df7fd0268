"""Adding of a response's items to its conversation."""

from dataclasses import dataclass

from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.stored_responses import ResponseRecord, ResponseStatus, StoredResponse
from stint.services.conversations.item_files import share_out
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.responses.output_items import output_of, whole
from stint.store.conversations import ConversationStore


@dataclass(frozen=True, slots=True)
class ConversationWriter:
    """Adds the items of a response to its conversation."""

    tenant: str
    store: ConversationStore
    conversation_id: str
    opaque: OpaqueTexts
    expires_at: int | None = None

    async def add_items(self, response: StoredResponse, last: ResponseRecord) -> None:
        """Add the input and the output of a response that ends with this record. A failed one adds nothing.

        The items keep their ids, so a repeated call changes nothing. They include the reasoning that the model needs
        later, which the API returns on request.

        Raises:
            NotFound: the conversation was deleted in the meantime.
        """
        if last.ending is None or last.ending.status not in (ResponseStatus.completed, ResponseStatus.incomplete):
            return
        header, ended = response.header, StoredResponse(response.header, [*response.records, last])
        said = share_out(header.input, header.texts)
        await self.opaque.warm_for(ended.records)
        items = output_of(ended, self.opaque.encode, whole(header.settings)).items
        answered = [StoredItem(item=item) for item in items]
        await self.store.add_items(self.tenant, self.conversation_id, [*said, *answered], self.expires_at)
