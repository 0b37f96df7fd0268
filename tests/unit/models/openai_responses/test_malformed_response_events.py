"""Events with each wrong value in each field: an error of the provider, or chunks that are well typed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.adversarial.hostile_answers import WRONG
from tests.adversarial.hostile_events import EVENTS, RAW_EVENTS, WHOLE_RESPONSES, among_events
from tests.servers.chat_completions import document
from tests.servers.model_responses import ModelResponsesServer, events_of, message, reply
from tests.servers.scripted_http import Reply
from tests.unit.models.openai.test_malformed_chunks import check
from tests.unit.models.openai_responses.calling import ADD, answer_of, asked, connect, continued

from stint.domain.errors import StintError
from stint.domain.inference import Finished, FinishReason, ModelChunk, ToolCallChunk


@pytest.fixture(scope="module")
def server() -> Iterator[ModelResponsesServer]:
    with ModelResponsesServer(raw=True) as server:
        yield server


async def read(server: ModelResponsesServer, answer: Reply) -> list[ModelChunk]:
    """Return the chunks of an answer; none if it is an error, whose message can be sent to the caller.

    What the loop keeps of the answer can be written for the next request.
    """
    model, request = connect(server, repeats=0), asked(tools=(ADD,), top_logprobs=1)
    server.script(answer)
    try:
        chunks = [chunk async for chunk in model.stream(request)]
    except StintError as error:
        json.dumps([error.message, error.param, error.code], ensure_ascii=False).encode()
        return []
    finally:
        await model.aclose()
    api = model._api_of(model._routes_to(request)[0])
    written = api.write(continued(answer_of(chunks)), frozenset())
    json.loads(written.decode())
    return chunks


@pytest.mark.parametrize("field", EVENTS)
async def test_a_wrong_value_is_an_error_or_is_ignored(server: ModelResponsesServer, field: str) -> None:
    for value in WRONG.values():
        for chunk in await read(server, among_events(EVENTS[field](value))):
            check(chunk)


@pytest.mark.parametrize("field", WHOLE_RESPONSES)
async def test_a_wrong_value_of_a_whole_response_is_an_error_or_is_ignored(
    server: ModelResponsesServer, field: str
) -> None:
    for value in WRONG.values():
        for chunk in await read(server, document(WHOLE_RESPONSES[field](value))):
            check(chunk)


@pytest.mark.parametrize("name", RAW_EVENTS)
async def test_json_that_python_cannot_hold_is_an_error_or_is_ignored(server: ModelResponsesServer, name: str) -> None:
    for chunk in await read(server, reply([b"data: " + RAW_EVENTS[name] + b"\n\n", *events_of(message("x"))])):
        check(chunk)


async def test_many_items_are_read_in_linear_time(server: ModelResponsesServer) -> None:
    """With their square, this would take minutes."""
    made = [{"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": "add"} for n in range(30_000)]
    ended: dict[str, Any] = {"object": "response", "status": "completed", "output": made}

    chunks = await read(server, reply([{"type": "response.completed", "response": ended}]))

    assert sum(isinstance(chunk, ToolCallChunk) for chunk in chunks) == 30_000
    assert chunks[-1] == Finished(FinishReason.tool_calls)
