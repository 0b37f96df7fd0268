"""Short builders of items, and the messages to which they are converted."""

from typing import Any

from pydantic import TypeAdapter
from tests.script_model import words_of

from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.openai.input_items import Input
from stint.domain.openai.opaque import SigningKey, encode_opaque
from stint.domain.schema import Schema
from stint.loop.transcript import Transcript
from stint.services.responses.items_to_messages import MessageBuilder

INPUT: TypeAdapter[Any] = TypeAdapter(Input)
KEY = SigningKey("tenant", b"k" * 32)


def encode(document: Schema) -> str:
    """Return opaque text that is signed with a key of the tests."""
    return encode_opaque(document, KEY)


def call(call_id: str, name: str = "get") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}


def output(call_id: str, text: Any = "sunny") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def mcp_call(identifier: str, **fields: Any) -> dict[str, Any]:
    own = {"type": "mcp_call", "id": identifier, "server_label": "s", "name": "add", "arguments": "{}"}
    return own | {"output": "3"} | fields


def says(words: str) -> dict[str, Any]:
    return {"role": "assistant", "content": words}


def asks(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def read(*items: Any, texts: tuple[str, ...] = (), lenient: bool = False) -> MessageBuilder:
    reader = MessageBuilder(Transcript(), lenient=lenient)
    reader.read(INPUT.validate_python(list(items)), texts)
    return reader


def messages(*items: Any, texts: tuple[str, ...] = ()) -> list[ModelMessage]:
    return read(*items, texts=texts).transcript.messages


def shape(said: list[ModelMessage]) -> list[str]:
    """Return a short description of each message."""
    letters = {SystemText: "system", UserInput: "user", ToolResult: "result", AssistantAnswer: "answer"}
    calls = [
        "".join(f" -> {each.call_id}" for each in one.tool_calls) if isinstance(one, AssistantAnswer) else ""
        for one in said
    ]
    return [f"{letters[type(one)]} {words_of(one)}{called}".strip() for one, called in zip(said, calls, strict=True)]
