import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from stint.documents.document_reader import DocumentReader
from stint.documents.served import InlineDocument
from stint.domain.errors import DeadlineExceeded, InvalidRequest
from stint.domain.inference import InferenceRequest, ModelChunk, TextChunk
from stint.domain.llama_stack.registry import ProviderList
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.prices import Prices
from stint.domain.principals import NO_BUDGETS
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.services.inference.chat.chat import Chat
from stint.services.inference.chat.stored import StoredChats
from stint.services.registry.catalogue import Catalogue
from stint.services.registry.registry import Registry
from stint.spending.meters import Meters


class Endless:
    """A model that sends one word, then waits, and records whether its call was ended."""

    def __init__(self, refused: str | None = None) -> None:
        self.refused = refused
        self.ended = 0

    def check(self, request: InferenceRequest) -> None:
        if self.refused == "check":
            raise InvalidRequest("No effort here.", param="reasoning.effort")

    async def count_tokens(self, request: InferenceRequest) -> int:
        return 0

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        if self.refused == "call":
            raise InvalidRequest("No effort here.", param="reasoning.effort")
        try:
            yield TextChunk("word")
            await asyncio.sleep(60)
        finally:
            self.ended += 1


class NoRegistrations:
    async def read(self, tenant: str) -> dict[Any, Any]:
        return {}

    @property
    def stops(self) -> "NoRegistrations":
        return self


async def fetch(url: str) -> InlineDocument:
    raise AssertionError(url)


async def check_url(url: str) -> None:
    pass


def make(model: Endless) -> Chat:
    router = Router({"endless": lambda: model}, "endless/m")
    store: Any = NoRegistrations()
    registry = Registry("t", store, Catalogue({}, {}, {}), ProviderList(data=[]), router, 60)
    reader, meters = DocumentReader(fetch, check_url), Meters("t", store, Prices(), NO_BUDGETS, 0)
    return Chat(router, registry, reader, make_stored, meters, no_keys)


async def no_keys(_: ChatModel) -> None:
    return None


def make_stored() -> StoredChats:
    raise AssertionError


def in_time(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


REQUEST = ChatCompletionRequest.model_validate(
    {"model": "endless/m", "messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "low"}
)


async def test_the_deadline_ends_the_call_of_the_model() -> None:
    model = Endless()
    chat = make(model)
    run = await chat.start(REQUEST, in_time(0.1))

    with pytest.raises(DeadlineExceeded, match="before the answer ended"):
        async for _ in chat.run(run):
            pass

    assert model.ended == 1
    assert run.completion.text == ["word"]


async def test_a_reader_who_leaves_ends_the_call_of_the_model() -> None:
    model = Endless()
    chat = make(model)
    run = await chat.start(REQUEST, in_time(60))

    async with aclosing(chat.run(run)) as chunks:
        await anext(chunks)

    assert model.ended == 1


@pytest.mark.parametrize("where", ["check", "call"])
async def test_fields_have_the_names_that_chat_completions_give_them(where: str) -> None:
    chat = make(Endless(where))

    async def read() -> None:
        async for _ in chat.run(await chat.start(REQUEST, in_time(60))):
            pass

    with pytest.raises(InvalidRequest) as caught:
        await read()

    assert caught.value.param == "reasoning_effort"
