import base64
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from stint.domain.content import URL, ContentItem, DetailedImage, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    TextChunk,
    ToolResult,
    UserInput,
)
from stint.domain.limits import MAX_IMAGE_URLS
from stint.models.fetched_images import FetchedImages
from stint.models.port import close_chunks

PNG = b"\x89PNG\r\n\x1a\n rest"


@dataclass
class Web:
    asked: list[str] = field(default_factory=list)
    body: bytes = PNG

    async def fetch(self, url: str) -> "Web":
        self.asked.append(url)
        if "169.254" in url:
            raise InvalidRequest("169.254.169.254 may not be called.", code="url_not_allowed")
        return self


@dataclass
class Asked:
    requests: list[InferenceRequest] = field(default_factory=list)
    closed: bool = False

    def check(self, request: InferenceRequest) -> None:
        raise InvalidRequest(f"no {request.model}")

    async def count_tokens(self, request: InferenceRequest) -> int:
        self.requests.append(request)
        return 7

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        self.requests.append(request)
        try:
            yield TextChunk("a cat")
            yield Finished(FinishReason.stop)
        finally:
            self.closed = True


def image(url: str) -> ImageContentItem:
    return ImageContentItem(image=ImageSource(url=URL(uri=url)))


async def test_images_behind_urls_come_with_the_request_wherever_they_stand() -> None:
    web, model = Web(), Asked()
    known = image("data:image/png;base64,aGk=")
    messages = (
        UserInput([TextContentItem(text="look"), image("https://example.org/a.png"), known]),
        AssistantAnswer("ok"),
        ToolResult("c", "camera", image("HTTP://example.org/b.png")),
    )

    chunks = [chunk async for chunk in FetchedImages(model, web.fetch).stream(InferenceRequest("m", messages))]

    filled = ImageContentItem(image=ImageSource(data=base64.b64encode(PNG).decode()))
    assert chunks == [TextChunk("a cat"), Finished(FinishReason.stop)]
    assert model.requests[0].messages == (
        UserInput([TextContentItem(text="look"), filled, known]),
        AssistantAnswer("ok"),
        ToolResult("c", "camera", [filled]),
    )
    assert web.asked == ["https://example.org/a.png", "HTTP://example.org/b.png"]


async def test_an_image_keeps_its_detail_when_it_is_fetched() -> None:
    web, model = Web(), Asked()
    close = ImageContentItem(image=DetailedImage(url=URL(uri="https://example.org/a.png"), detail="high"))

    _ = [chunk async for chunk in FetchedImages(model, web.fetch).stream(InferenceRequest("m", (UserInput(close),)))]

    filled = ImageContentItem(image=DetailedImage(data=base64.b64encode(PNG).decode(), detail="high"))
    assert model.requests[0].messages == (UserInput([filled]),)


async def test_images_that_are_too_large_together_are_refused_before_the_model_is_asked() -> None:
    web, model = Web(body=b"x" * 4_000_000), Asked()
    large: list[ContentItem] = [image(f"https://example.org/{place}.png") for place in range(3)]

    _ = [chunk async for chunk in FetchedImages(model, web.fetch).stream(InferenceRequest("m", (UserInput(large),)))]
    with pytest.raises(InvalidRequest, match="more than 12,000,000 bytes in total") as caught:
        await anext(FetchedImages(model, web.fetch).stream(InferenceRequest("m", (UserInput(large * 20),))))

    assert (caught.value.code, caught.value.param) == ("images_too_large", "messages")
    assert len(model.requests) == 1
    assert len(web.asked) <= 3 + 5


async def test_a_smaller_limit_of_all_images_is_named() -> None:
    web, model = Web(body=b"x" * 60), Asked()
    two: list[ContentItem] = [image(f"https://example.org/{place}.png") for place in range(2)]

    with pytest.raises(InvalidRequest, match="more than 100 bytes in total"):
        await anext(FetchedImages(model, web.fetch, 100).stream(InferenceRequest("m", (UserInput(two),))))

    assert model.requests == []


async def test_a_url_that_may_not_be_called_is_refused_before_the_model_is_asked() -> None:
    model = Asked()
    request = InferenceRequest("m", (UserInput(image("http://169.254.169.254/latest")),))

    with pytest.raises(InvalidRequest, match="may not be called"):
        await anext(FetchedImages(model, Web().fetch).stream(request))

    assert model.requests == []


async def test_tokens_are_counted_with_the_images_and_checks_are_the_models() -> None:
    web, model = Web(), Asked()
    fetching = FetchedImages(model, web.fetch)

    assert await fetching.count_tokens(InferenceRequest("m", (UserInput(image("https://example.org/a.png")),))) == 7

    [counted] = model.requests
    assert "example.org" not in str(counted)
    with pytest.raises(InvalidRequest, match="no m"):
        fetching.check(counted)


async def test_closing_ends_the_models_call() -> None:
    model = Asked()
    stream = FetchedImages(model, Web().fetch).stream(InferenceRequest("m", (UserInput("hi"),)))

    await anext(stream)
    await close_chunks(stream)

    assert model.closed


async def test_an_image_is_fetched_once_however_often_it_is_in_a_request() -> None:
    web, model = Web(), Asked()
    again: list[ContentItem] = [image("https://example.org/a.png")] * 2_000

    _ = [chunk async for chunk in FetchedImages(model, web.fetch).stream(InferenceRequest("m", (UserInput(again),)))]

    assert web.asked == ["https://example.org/a.png"]
    assert "example.org" not in str(model.requests[0])


async def test_images_of_many_urls_are_refused_before_one_is_fetched() -> None:
    web, model = Web(), Asked()
    messages = tuple(UserInput(image(f"https://example.org/{place}.png")) for place in range(MAX_IMAGE_URLS + 1))
    fetching = FetchedImages(model, web.fetch)

    with pytest.raises(InvalidRequest, match="more than 100 URLs") as caught:
        await anext(fetching.stream(InferenceRequest("m", messages)))
    assert (caught.value.code, caught.value.param, web.asked) == ("too_many_images", "messages", [])

    _ = [chunk async for chunk in fetching.stream(InferenceRequest("m", messages[1:]))]
    assert len(web.asked) == MAX_IMAGE_URLS
