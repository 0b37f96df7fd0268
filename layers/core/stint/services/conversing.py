"""The conversation that a response works in."""

import asyncio
from dataclasses import dataclass
from itertools import islice

from stint.domain.conversations import StoredItem
from stint.domain.items import Item, Message
from stint.domain.parts import InputFile
from stint.domain.responses import ResponseRecord, ResponseSettings, ResponseStatus, StoredResponse
from stint.services.output_items import output_of
from stint.store.conversations import Conversations


@dataclass(frozen=True, slots=True)
class Conversing:
    """Adds to a conversation what was said in a response."""

    tenant: str
    store: Conversations
    conversation_id: str

    async def add(self, response: StoredResponse, last: ResponseRecord) -> None:
        """Add the input and the output of a response that ends with a record; of one that failed, nothing.

        The ids are those of the response, so that adding them twice changes nothing.

        Raises:
            NotFound: the conversation was deleted meanwhile.
        """
        if last.ending is None or last.ending.status not in (ResponseStatus.completed, ResponseStatus.incomplete):
            return
        header = response.header.model_copy(update={"settings": with_all(response.header.settings)})
        whole = StoredResponse(header, [*response.records, last])
        texts = iter(response.header.texts)
        said = [StoredItem(item=item, texts=list(islice(texts, files_in(item)))) for item in whole.header.input]
        answered = [StoredItem(item=item) for item in output_of(whole).items]
        await asyncio.to_thread(self.store.add_items, self.tenant, self.conversation_id, [*said, *answered])


def with_all(settings: ResponseSettings) -> ResponseSettings:
    """Include all there is: a conversation keeps the reasoning that its model wants back, and shows it on request."""
    return settings.model_copy(update={"include": ["reasoning.encrypted_content", "web_search_call.action.sources"]})


def files_in(item: Item) -> int:
    parts = item.content if isinstance(item, Message) else getattr(item, "output", None)
    return sum(isinstance(part, InputFile) for part in parts) if isinstance(parts, list) else 0
