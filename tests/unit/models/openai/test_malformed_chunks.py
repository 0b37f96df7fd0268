"""Chunks with each wrong value in each field: an error of the provider, or chunks that are well typed."""

import json
from collections.abc import Iterator

import pytest
from tests.adversarial.hostile_answers import FIELDS, RAW, WRONG
from tests.servers.chat_completions import ChatCompletionsServer, sse, stream
from tests.servers.scripted_http import Reply

from stint.domain.errors import StintError
from stint.domain.inference import (
    Finished,
    InferenceRequest,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
    UserInput,
)
from stint.models.openai_compatible import OpenAICompatible
from stint.models.port import storable_chunk


@pytest.fixture(scope="module")
def server() -> Iterator[ChatCompletionsServer]:
    with ChatCompletionsServer() as server:
        yield server


async def read(server: ChatCompletionsServer, reply: Reply) -> list[ModelChunk]:
    """Return the chunks of an answer; none if it is an error, whose message can be sent to the caller."""
    model = OpenAICompatible(server.base_url, repeats=0)
    server.script(reply)
    try:
        return [chunk async for chunk in model.stream(InferenceRequest("m", (UserInput("Hello"),)))]
    except StintError as error:
        json.dumps([error.message, error.param, error.code], ensure_ascii=False).encode()
        return []
    finally:
        await model.aclose()


def check(chunk: ModelChunk) -> None:
    """Assert that a chunk has the types that it promises, and can be sent as JSON."""
    match storable_chunk(chunk):
        case TextChunk(text=text, logprobs=logprobs):
            said = [text, [(each.token, each.logprob, each.utf8) for each in logprobs]]
            assert all(isinstance(each.token, str) and isinstance(each.logprob, float) for each in logprobs)
        case ReasoningChunk(text=text) | RefusalChunk(text=text):
            said = [text]
        case ToolCallChunk(call_id=call_id, name=name, arguments=arguments):
            said = [call_id, name, arguments]
        case Finished(usage=usage):
            assert usage is None or all(0 <= count < 10**12 for count in usage.model_dump().values())
            return
        case _:
            return
    assert all(isinstance(each, str | list) for each in said)
    json.dumps(said, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize("field", FIELDS)
async def test_a_wrong_value_is_an_error_or_is_ignored(server: ChatCompletionsServer, field: str) -> None:
    for value in WRONG.values():
        for chunk in await read(server, stream(sse(FIELDS[field](value)))):
            check(chunk)


@pytest.mark.parametrize("name", RAW)
async def test_json_that_python_cannot_hold_is_an_error_or_is_ignored(server: ChatCompletionsServer, name: str) -> None:
    for chunk in await read(server, stream(b"data: " + RAW[name] + b"\n\n")):
        check(chunk)


@pytest.mark.parametrize(("sent", "read_as"), [(7, "7"), (-7, "-7"), (10**30, None), ([1], None), (True, "True")])
async def test_an_id_that_is_a_number_becomes_a_text(
    server: ChatCompletionsServer, sent: object, read_as: str | None
) -> None:
    chunks = await read(server, stream(sse(FIELDS["id_of_call"](sent)), finish="tool_calls"))

    [call_id] = [chunk.call_id for chunk in chunks if isinstance(chunk, ToolCallChunk)]
    assert call_id == read_as if read_as else call_id.startswith("call_")


@pytest.mark.parametrize(
    ("name", "value", "usage"),
    [
        ("prompt_tokens", 5.0, Usage(input_tokens=5, output_tokens=1, total_tokens=2)),
        ("prompt_tokens", -5, None),
        ("completion_tokens", 10**30, None),
        ("total_tokens", "2", None),
        ("cached_tokens", -5, Usage(input_tokens=1, output_tokens=1, total_tokens=2)),
    ],
)
async def test_a_usage_that_cannot_be_is_none(
    server: ChatCompletionsServer, name: str, value: object, usage: Usage | None
) -> None:
    [*_, end] = await read(server, stream(sse(FIELDS[name](value))))

    assert isinstance(end, Finished)
    assert end.usage == usage


async def test_many_calls_are_read_in_linear_time(server: ChatCompletionsServer) -> None:
    """With their square, this would take minutes."""
    pieces = [{"index": place, "id": f"c{place}", "function": {"name": "add"}} for place in range(30_000)]

    chunks = await read(server, stream({"tool_calls": pieces}, finish="tool_calls"))

    assert sum(isinstance(chunk, ToolCallChunk) for chunk in chunks) == 30_000
