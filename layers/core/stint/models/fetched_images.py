"""Images behind URLs, for providers that fetch none themselves."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from stint.domain.content import Content, ContentItem, ImageContentItem, items_of
from stint.domain.errors import InvalidRequest, at_fault
from stint.domain.inference import InferenceRequest, ModelChunk, ModelMessage, ToolResult, UserInput
from stint.models.port import Model


class Image(Protocol):
    """What a URL was fetched to."""

    @property
    def body(self) -> bytes: ...


Fetch = Callable[[str], Awaitable[Image]]

MOST_BYTES = 12_000_000
"""Bytes of the fetched images of one model call, which holds each of them up to four times as base64."""

FETCHED_AT_ONCE = 2


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
        filling = Filling(self._fetch)
        messages = await asyncio.gather(*(filling.fill_message(message) for message in request.messages))
        return replace(request, messages=tuple(messages))


@dataclass(slots=True)
class Filling:
    """Puts the images of one request in the place of their URLs."""

    fetch: Fetch
    left: int = MOST_BYTES
    turnstile: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FETCHED_AT_ONCE))

    async def fill_message(self, message: ModelMessage) -> ModelMessage:
        if not isinstance(message, UserInput | ToolResult):
            return message
        return replace(message, content=await self.fill(message.content))

    async def fill(self, content: Content) -> Content:
        if isinstance(content, str):
            return content
        return list(await asyncio.gather(*(self.fill_item(item) for item in items_of(content))))

    async def fill_item(self, item: ContentItem) -> ContentItem:
        if not isinstance(item, ImageContentItem) or item.image.url is None:
            return item
        url = item.image.url.uri
        if not url.lower().startswith(("http://", "https://")):
            return item
        async with self.turnstile:
            with at_fault("messages"):
                data = await self.read(url)
        return ImageContentItem(image=item.image.model_copy(update={"url": None, "data": data}))

    async def read(self, url: str) -> str:
        """Return an image as base64. Raises InvalidRequest for the one that goes over the limit, and those after it."""
        if self.left >= 0:
            body = (await self.fetch(url)).body
            self.left -= len(body)
            if self.left >= 0:
                return base64.b64encode(body).decode()
        message = (
            f"The images behind URLs have more than {MOST_BYTES:,} bytes together, those of earlier turns included. "
            "Send smaller ones, or begin a new conversation."
        )
        raise InvalidRequest(message, code="images_too_large", param="messages")
