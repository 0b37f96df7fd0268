"""A chat completions server, and a model that calls it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.servers.chat_completions import ChatCompletionsServer

from stint.models.openai_compatible import OpenAICompatible


@pytest.fixture
def server() -> Iterator[ChatCompletionsServer]:
    with ChatCompletionsServer() as server:
        yield server


@pytest.fixture
async def model(server: ChatCompletionsServer) -> AsyncIterator[OpenAICompatible]:
    model = OpenAICompatible(server.base_url, backoff=0.001)
    yield model
    await model.aclose()
