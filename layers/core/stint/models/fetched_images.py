"""Fetching of images by URL, for providers that do not fetch them.

Images lie in the history as URLs, so each model call fetches all of them again: an answer with many calls of tools can
fetch an image ten times. Within a call, each URL is fetched once, however often it occurs. Nothing is kept for the next
call: an image that a server no longer returns is not sent.

Memory is the limit. A call holds an image as bytes, as base64, in the request and in its JSON, so the bytes of all
images are counted with their repetitions, before they are encoded, and only two are fetched at a time.
"""

import asyncio
import base64
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from itertools import chain
from typing import Protocol

from stint.dataclasses import dataclass, field, replace
from stint.domain.content import ContentItem, ImageContentItem, TextContentItem, items_of
from stint.domain.errors import InvalidRequest, error_param
from stint.domain.inference import InferenceRequest, ModelChunk, ModelMessage, ToolResult, UserInput
from stint.domain.limits import MAX_IMAGE_URLS
from stint.models.port import ChatModel, close_chunks


class Image(Protocol):
    """A fetched image."""

    @property
    def body(self) -> bytes: ...


Fetch = Callable[[str], Awaitable[Image]]

MOST_BYTES = 12_000_000
"""Maximum bytes of the fetched images of one model call, which holds up to four copies of each as base64."""

FETCHED_AT_ONCE = 2


class FetchedImages:
    """A model whose requests contain their images: http(s) URLs are fetched first, concurrently.

    `fetch` raises InvalidRequest for a URL that is not allowed or does not answer.
    """

    def __init__(self, model: ChatModel, fetch: Fetch, most_bytes: int = MOST_BYTES) -> None:
        self.wrapped = model
        self._fetch = fetch
        self._most_bytes = most_bytes

    def check(self, request: InferenceRequest) -> None:
        """Refuse parameters that the model's provider lacks; see the port."""
        self.wrapped.check(request)

    def stream(self, request: InferenceRequest) -> AsyncIterator[ModelChunk]:
        """Start a model call; see the port. Without images to fetch, the chunks are those of the model itself."""
        counts = count_urls(request)
        return self._stream_filled(request, counts) if counts else self.wrapped.stream(request)

    async def _stream_filled(
        self, request: InferenceRequest, counts: Mapping[str, int]
    ) -> AsyncGenerator[ModelChunk, None]:
        """Fetch the images of a request, and yield the chunks of its answer."""
        chunks = self.wrapped.stream(await self._fill_request(request, counts))
        if request.times is not None:
            request.times.sent = time.monotonic()
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await close_chunks(chunks)

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count tokens, including those of the images; see the port."""
        counts = count_urls(request)
        return await self.wrapped.count_tokens(await self._fill_request(request, counts) if counts else request)

    async def _fill_request(self, request: InferenceRequest, counts: Mapping[str, int]) -> InferenceRequest:
        with error_param("messages"):
            images = await ImageFetcher(self._fetch, counts, self._most_bytes).fetch_all()
        return replace(request, messages=tuple(fill(message, images) for message in request.messages))


def count_urls(request: InferenceRequest) -> Mapping[str, int]:
    """Return the URLs of a request's images, with the number of their uses."""
    # most messages are texts, and a session may have thousands
    mixed = [each for each in request.messages if not isinstance(getattr(each, "content", ""), str)]
    return Counter(filter(None, map(url_of, chain.from_iterable(map(items_in, mixed))))) if mixed else {}


@dataclass(slots=True)
class ImageFetcher:
    """Fetches the images of one request, each URL once. `counts` has the number of its uses."""

    fetch: Fetch
    counts: Mapping[str, int]
    most: int
    left: int = field(init=False)
    turnstile: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FETCHED_AT_ONCE))

    def __post_init__(self) -> None:
        self.left = self.most

    async def fetch_all(self) -> dict[str, str]:
        """Return the images as base64 by their URLs. Raises InvalidRequest for too many images or bytes."""
        if len(self.counts) > MAX_IMAGE_URLS:
            raise too_many("too_many_images", f"The images have more than {MAX_IMAGE_URLS} URLs")
        reads = [asyncio.create_task(self.read(url)) for url in self.counts]
        try:
            return dict(zip(self.counts, await asyncio.gather(*reads), strict=True))
        finally:
            for read in reads:
                read.cancel()

    async def read(self, url: str) -> str:
        async with self.turnstile:
            body = (await self.fetch(url)).body
        # Counted as they arrive, so that the others are cancelled as soon as the limit is exceeded.
        self.left -= len(body) * self.counts[url]
        if self.left < 0:
            raise too_many("images_too_large", f"The images at URLs have more than {self.most:,} bytes in total")
        return base64.b64encode(body).decode()


def too_many(code: str, what: str) -> InvalidRequest:
    message = f"{what}, including those of earlier turns. Send fewer or smaller ones, or start a new conversation."
    return InvalidRequest(message, code=code, param="messages")


def items_in(message: ModelMessage) -> list[TextContentItem | ImageContentItem]:
    if not isinstance(message, UserInput | ToolResult) or isinstance(message.content, str):
        return []
    return items_of(message.content)


def url_of(item: ContentItem) -> str | None:
    """Return the URL to fetch for an item."""
    if not isinstance(item, ImageContentItem) or item.image.url is None:
        return None
    url = item.image.url.uri
    return url if url.lower().startswith(("http://", "https://")) else None


def fill(message: ModelMessage, images: Mapping[str, str]) -> ModelMessage:
    """Replace the image URLs of a message by the images."""
    items = items_in(message)
    if not isinstance(message, UserInput | ToolResult) or not any(map(url_of, items)):
        return message
    return replace(message, content=[fill_item(item, images) for item in items])


def fill_item(item: ContentItem, images: Mapping[str, str]) -> ContentItem:
    url = url_of(item)
    if url is None or not isinstance(item, ImageContentItem):
        return item
    return ImageContentItem(image=item.image.model_copy(update={"url": None, "data": images[url]}))
