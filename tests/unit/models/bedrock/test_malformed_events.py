"""Events of ConverseStream with wrong types, which boto3 does not check: an error, or well typed chunks."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.servers import converse_stream as converse
from tests.servers.converse_stream import ConverseStreamServer, event

from stint.domain.errors import StintError
from stint.domain.inference import InferenceRequest, ReasoningChunk, TextChunk, ToolCallChunk, UserInput
from stint.models.bedrock.model import Bedrock
from stint.providers.bedrock.client import connect

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

WRONG: list[Any] = [None, True, 7, -7, 10**30, 0.5, "x", "", [], [None], [[]], {}, {"a": {"a": []}}, "\ud800", "\0"]
DELTA = "contentBlockDelta"


def delta(value: Any) -> bytes:
    return event(DELTA, {"contentBlockIndex": 0, "delta": value})


def start(value: Any) -> bytes:
    return event("contentBlockStart", {"contentBlockIndex": 0, "start": value})


def usage(name: str) -> Callable[[Any], bytes]:
    counted = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return lambda value: event("metadata", {"usage": {**counted, name: value}})


FIELDS: dict[str, Callable[[Any], bytes]] = {
    "event": lambda value: event(DELTA, value),
    "index": lambda value: event(DELTA, {"contentBlockIndex": value, "delta": {"text": "a"}}),
    "delta": delta,
    "text": lambda value: delta({"text": value}),
    "reasoning": lambda value: delta({"reasoningContent": value}),
    "thought": lambda value: delta({"reasoningContent": {"text": value}}),
    "signature": lambda value: delta({"reasoningContent": {"signature": value}}),
    "redacted": lambda value: delta({"reasoningContent": {"redactedContent": value}}),
    "start": start,
    "tool_use": lambda value: start({"toolUse": value}),
    "id": lambda value: start({"toolUse": {"toolUseId": value, "name": "add"}}),
    "name": lambda value: start({"toolUse": {"toolUseId": "t", "name": value}}),
    "input": lambda value: start({"toolUse": {"toolUseId": "t", "name": "a"}}) + delta({"toolUse": {"input": value}}),
    "stop": lambda value: event("messageStop", value),
    "reason": lambda value: event("messageStop", {"stopReason": value}),
    "metadata": lambda value: event("metadata", value),
    "usage": lambda value: event("metadata", {"usage": value}),
    **{name: usage(name) for name in ("inputTokens", "outputTokens", "cacheReadInputTokens")},
    "unknown": lambda value: event("somethingNew", value),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ConverseStreamServer]:
    with ConverseStreamServer() as server:
        yield server


@pytest.fixture(scope="module")
def client(server: ConverseStreamServer) -> "Iterator[BedrockRuntimeClient]":
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield connect("eu-central-1")


async def read(client: "BedrockRuntimeClient") -> None:
    """Read an answer, whose texts must be texts."""
    try:
        async for chunk in Bedrock(lambda: client).stream(InferenceRequest("m", (UserInput("Hello"),))):
            match chunk:
                case TextChunk(text=text) | ReasoningChunk(text=text):
                    assert isinstance(text, str)
                case ToolCallChunk(call_id=call_id, name=name, arguments=arguments):
                    assert all(isinstance(each, str) for each in (call_id, name, arguments))
    except StintError as error:
        json.dumps(error.message, ensure_ascii=False).encode()


@pytest.mark.parametrize("field", FIELDS)
async def test_a_wrong_type_is_an_error_or_is_ignored(
    server: ConverseStreamServer, client: "BedrockRuntimeClient", field: str
) -> None:
    for value in WRONG:
        server.script(converse.stream(FIELDS[field](value)))
        await read(client)


async def test_deep_json_is_an_error(server: ConverseStreamServer, client: "BedrockRuntimeClient") -> None:
    headers = {":event-type": DELTA, ":content-type": "application/json", ":message-type": "event"}
    server.script(converse.stream(converse.encode(headers, b"[" * 100_000)))

    await read(client)
