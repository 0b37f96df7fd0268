"""Refusals that quote what a caller has written. Nothing is learned from them about a model.

The tenants of a stack share its models, so a caller could otherwise change the requests of others.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.servers import chat_completions as chat
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.model_responses import ModelResponsesServer
from tests.servers.scripted_http import Reply

from stint.domain.errors import StintError
from stint.domain.inference import (
    AssistantAnswer,
    Decoding,
    InferenceRequest,
    JsonObjectResponseFormat,
    ReasoningOptions,
    ToolSignature,
    UserInput,
)
from stint.models.openai_compatible import OpenAICompatible

ASKED = InferenceRequest(
    "m",
    (UserInput("Hello", "Ann"), AssistantAnswer("Hi")),
    tools=(ToolSignature("lookup", "", {"type": "object"}),),
    decoding=Decoding(temperature=0.0, max_tokens=20),
    verbosity="low",
    service_tier="default",
    cache_key="5f0c",
    response_format=JsonObjectResponseFormat(),
    reasoning=ReasoningOptions("minimal", "auto"),
)
WORDS = [
    "prompt_cache_key",
    "temperature",
    "service_tier",
    "verbosity",
    "json_object",
    "stream_options",
    "reasoning_content",
    "max_completion_tokens",
    "reasoning_effort minimal",
    "summary",
    "encrypted could not be",
    "encrypted content is not supported",
]


@pytest.fixture(params=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(api: str) -> Iterator[Any]:
    with ChatCompletionsServer() if api == "chat" else ModelResponsesServer() as server:
        yield server


@pytest.fixture
async def model(server: Any, api: Any) -> AsyncIterator[OpenAICompatible]:
    model = OpenAICompatible(server.base_url, api=api, repeats=0)
    yield model
    await model.aclose()


async def ask(model: OpenAICompatible, request: InferenceRequest = ASKED) -> None:
    async for _ in model.stream(request):
        pass


def in_stream(message: str) -> Reply:
    return chat.document({"error": {"code": 400, "message": message, "type": "invalid_request_error"}}, 200)


def quote(words: str, param: str | None) -> Reply:
    return chat.error(400, f"Invalid schema for function '{words}'", type="invalid_request_error", param=param)


@pytest.mark.parametrize("param", [None, "tools[0].parameters", "tools[0].function.parameters.{}"])
@pytest.mark.parametrize("words", WORDS)
async def test_other_requests_stay_as_they_are(
    model: OpenAICompatible, server: Any, words: str, param: str | None
) -> None:
    await ask(model)
    first = server.bodies[0]
    refusal = quote(words, param and param.format(words))
    server.script(*[refusal] * 9)

    with pytest.raises(StintError):
        await ask(model)
    calls = len(server.bodies)
    server.forget()
    await ask(model)

    assert calls <= 3 + 1
    assert server.bodies[-1] == first


@pytest.mark.parametrize("words", WORDS)
async def test_a_refusal_with_a_field_is_about_this_field(model: OpenAICompatible, server: Any, words: str) -> None:
    server.script(quote(words, "tools[0].parameters"))

    with pytest.raises(StintError):
        await ask(model)

    assert len(server.bodies) == 1


async def test_a_refusal_in_the_stream_of_an_accepted_call_is_no_answer(model: OpenAICompatible, server: Any) -> None:
    await ask(model)
    first = server.bodies[0]
    server.script(*[in_stream("Invalid schema for function 'temperature'")] * 3)

    with pytest.raises(StintError):
        await ask(model)
    server.forget()
    await ask(model)

    assert server.bodies[-1] == first


async def test_what_a_refusal_named_in_vain_is_not_remembered(model: OpenAICompatible, server: Any) -> None:
    """The caller's words are beside a field that the model does refuse."""
    refusal = chat.error(400, "'verbosity' is not supported. Tools: 'temperature'", type="invalid_request_error")
    server.script(refusal)

    await ask(model)
    await ask(model)

    assert "temperature" in server.bodies[-1]


async def test_several_refusals_in_a_row_are_remembered_once_the_call_is_answered(
    model: OpenAICompatible, server: Any
) -> None:
    names = ["temperature", "prompt_cache_key", "service_tier"]
    server.script(*[chat.error(400, f"'{name}' is not supported", param=name) for name in names])

    await ask(model)
    await ask(model)
    await ask(model, replace(ASKED, model="other"))

    sent = [[name for name in names if name in body] for body in server.bodies]
    assert sent == [names, names[1:], names[2:], [], [], names]


async def test_nothing_is_stored_for_models_that_refused_nothing(model: OpenAICompatible, api: Any) -> None:
    for place in range(3):
        await ask(model, replace(ASKED, model=f"m{place}"))

    assert model._apis[api].refused._refused == {}
