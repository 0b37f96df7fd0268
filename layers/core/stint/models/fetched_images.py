"""Images behind URLs, for providers that fetch none themselves."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from stint.domain.content import Content, ContentItem, ImageContentItem, items_of
from stint.domain.errors import at_fault
from stint.domain.inference import InferenceRequest, ModelChunk, ModelMessage, ToolResult, UserInput
from stint.models.port import Model


class Image(Protocol):
    """What a URL was fetched to."""

    @property
    def body(self) -> bytes: ...


Fetch = Callable[[str], Awaitable[Image]]


class FetchedImages:
    """A model whose requests bear their images themselves: http(s) URLs are fetched first, side by side.

    `fetch` raises InvalidRequest for a URL that may not be called, or does not answer.
    """

    def __init__(self, model: Model, fetch: Fetch) -> None:
        self._model = model
        self._fetch = fetch

    def check(self, request: InferenceRequest) -> None:
        """Refuse what the model's provider lacks; see the port."""
        self._model.check(request)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Begin a model call; see the port."""
        chunks = self._model.stream(await self._fill_request(request))
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            aclose = getattr(chunks, "aclose", None)
            if aclose is not None:
                await aclose()

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count tokens, those of the images too; see the port."""
        return await self._model.count_tokens(await self._fill_request(request))

    async def _fill_request(self, request: InferenceRequest) -> InferenceRequest:
        messages = await asyncio.gather(*(self._fill_message(message) for message in request.messages))
        return replace(request, messages=tuple(messages))

    async def _fill_message(self, message: ModelMessage) -> ModelMessage:
        if not isinstance(message, UserInput | ToolResult):
            return message
        return replace(message, content=await self._fill(message.content))

    async def _fill(self, content: Content) -> Content:
        if isinstance(content, str):
            return content
        return list(await asyncio.gather(*(self._fill_item(item) for item in items_of(content))))

    async def _fill_item(self, item: ContentItem) -> ContentItem:
        if not isinstance(item, ImageContentItem) or item.image.url is None:
            return item
        url = item.image.url.uri
        if not url.lower().startswith(("http://", "https://")):
            return item
        with at_fault("messages"):
            data = base64.b64encode((await self._fetch(url)).body).decode()
        return ImageContentItem(image=item.image.model_copy(update={"url": None, "data": data}))
