"""The model's messages for requests that do not make a response."""

import asyncio
from collections.abc import Sequence

from stint.dataclasses import dataclass
from stint.documents.document_reader import DocumentReader
from stint.domain.errors import error_param
from stint.domain.ids import new_name
from stint.domain.openai.items import Item, ItemReference
from stint.loop.transcript import Transcript
from stint.services.responses.context import Contexts
from stint.services.responses.input_items import InputResolver
from stint.services.responses.links import Context, user_messages_in
from stint.store.parallel import value_of


@dataclass(frozen=True, slots=True)
class InputReader:
    """Reads inputs. Nothing is stored, and no lease is acquired."""

    contexts: Contexts
    reader: DocumentReader

    async def read(
        self,
        items: Sequence[Item | ItemReference],
        previous_response_id: str | None,
        conversation_id: str | None = None,
        *,
        shortens: bool = False,
    ) -> Transcript:
        """Return the messages of a context and an input. Raises as `open` does."""
        context = await self.open(items, previous_response_id, conversation_id, shortens=shortens)
        return context.reader.transcript

    async def open(
        self,
        items: Sequence[Item | ItemReference],
        previous_response_id: str | None,
        conversation_id: str | None = None,
        *,
        shortens: bool = False,
        cached: bool = True,
    ) -> Context:
        """Return a context with an input. Links of the context may be `cached`, without the messages of users.

        Raises:
            NotFound: there is no such conversation.
            InvalidRequest: there is no such response or item, or an output belongs to no call.
            Conflict: the response still runs.
            ContextLengthExceeded: the messages are too long.
        """
        resolver = InputResolver(items, new_name("resp"))
        opened, read = await asyncio.gather(
            self.open_context(previous_response_id, conversation_id, shortens=shortens, cached=cached),
            resolver.read(self.reader, self.contexts.opaque),
            return_exceptions=True,
        )
        context = value_of(opened)
        value_of(read)
        resolved = await resolver.resolve(context.known, self.contexts.find)
        context.reader.append_items(resolved)
        context.reader.flush_later()
        context.reader.transcript.close()
        context.user_messages += user_messages_in(stored.item for stored in resolved.values())
        return context

    async def open_context(
        self, previous_response_id: str | None, conversation_id: str | None, *, shortens: bool, cached: bool
    ) -> Context:
        if previous_response_id is not None:
            with error_param("previous_response_id"):
                return await self.contexts.from_response(previous_response_id, shortens=shortens, cached=cached)
        if conversation_id is not None:
            with error_param("conversation"):
                return await self.contexts.peek(conversation_id, shortens=shortens)
        return self.contexts.new()
