"""Calls of a model of a fake server by the Responses API."""

from typing import Any

from tests.servers.model_responses import ModelResponsesServer
from tests.servers.scripted_http import Reply

from stint.domain.inference import (
    Accepted,
    AssistantAnswer,
    Finished,
    InferenceRequest,
    ModelChunk,
    ModelMessage,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.loop.answer import Answer
from stint.models.openai_compatible import OpenAICompatible
from stint.models.port import storable_chunk

KEY = "sk-secret-123"
ADD = ToolSignature("add", "Adds", {"type": "object", "properties": {"a": {"type": "integer"}}})


def connect(server: ModelResponsesServer, **options: Any) -> OpenAICompatible:
    return OpenAICompatible(server.base_url, KEY, **{"api": "responses", "backoff": 0.001, **options})


def asked(*messages: Any, **fields: Any) -> InferenceRequest:
    return InferenceRequest(fields.pop("model", "demo"), messages or (UserInput("Hello you"),), **fields)


async def collect(model: OpenAICompatible, request: InferenceRequest | None = None) -> list[ModelChunk]:
    """Return the chunks of an answer, in which each call begins with its name and only the last chunk is the end."""
    chunks = [chunk async for chunk in model.stream(request or asked())]
    assert [isinstance(chunk, Accepted) for chunk in chunks] == [True, *[False] * (len(chunks) - 1)]
    assert [isinstance(chunk, Finished) for chunk in chunks] == [*[False] * (len(chunks) - 1), True]
    return chunks[1:]


async def read(
    server: ModelResponsesServer, reply: Reply | None = None, request: InferenceRequest | None = None
) -> list[ModelChunk]:
    """Return the chunks of an answer of the server."""
    if reply is not None:
        server.script(reply)
    model = connect(server, repeats=0)
    try:
        return await collect(model, request)
    finally:
        await model.aclose()


def text_in(chunks: list[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def refusal_in(chunks: list[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, RefusalChunk))


def thoughts_in(chunks: list[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningChunk))


def calls_in(chunks: list[ModelChunk]) -> list[tuple[str, str, str]]:
    calls: dict[int, tuple[str, str, str]] = {}
    for chunk in chunks:
        if isinstance(chunk, ToolCallChunk):
            assert chunk.index in calls or chunk.name
            call_id, name, arguments = calls.get(chunk.index, ("", "", ""))
            calls[chunk.index] = (call_id + chunk.call_id, name + chunk.name, arguments + chunk.arguments)
    return list(calls.values())


def end_of(chunks: list[ModelChunk]) -> Finished:
    end = chunks[-1]
    assert isinstance(end, Finished)
    return end


def answer_of(chunks: list[ModelChunk]) -> AssistantAnswer:
    """Return an answer as the loop keeps it for later requests."""
    answer = Answer("run")
    for chunk in chunks:
        list(answer.add_chunk(storable_chunk(chunk)))
    return AssistantAnswer("".join(answer.text), tuple(answer.calls), answer.reasoning())


def continued(answer: AssistantAnswer, **fields: Any) -> InferenceRequest:
    """Return the next request: with the results of the answer's calls, or another message of the user."""
    results: list[ModelMessage] = [ToolResult(call.call_id, call.tool_name, "3") for call in answer.tool_calls]
    return asked(UserInput("Hello you"), answer, *(results or [UserInput("And?")]), **{"tools": (ADD,), **fields})


async def sent_back(
    server: ModelResponsesServer, reply: Reply, then: dict[str, Any] | None = None, **fields: Any
) -> list[dict[str, Any]]:
    """Return the items between the first message and the last, after an answer of the server."""
    answer = answer_of(await read(server, reply, asked(tools=(ADD,), **fields)))
    await read(server, None, continued(answer, **{**fields, **(then or {})}))
    return [item for item in server.inputs[-1][1:] if item["type"] != "function_call_output"]
