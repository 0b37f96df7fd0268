"""Fake Bedrock runtime with ConverseStream. It validates requests strictly, and its responses can be scripted.

Responses are `application/vnd.amazon.eventstream`, encoded by the Amazon Event Stream specification (Smithy 2.0):
a prelude of two lengths and their checksum, headers, a payload, and a checksum of the whole message.

Without a script, it repeats the last user message or the tool results.
"""

import json
import re
import struct
from binascii import crc32
from typing import Any
from urllib.parse import unquote

from tests.servers.scripted_http import Part, Received, Reply, ScriptedHTTPServer

EVENT_STREAM = {"Content-Type": "application/vnd.amazon.eventstream"}
PATH = re.compile(r"/model/([^/]+)/(converse-stream|count-tokens)")
TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
STRING = 7


class ConverseStreamServer(ScriptedHTTPServer):
    """Server of `POST /model/{modelId}/converse-stream`, and of `/count-tokens` for Claude's models only."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(answer, port)


def answer(received: Received) -> Reply:
    if received.method != "POST" or PATH.fullmatch(received.path) is None:
        return error(404, "UnknownOperationException", received.path)
    body = received.json()
    if received.path.endswith("/count-tokens"):
        return count(model_of(received), body["input"]["converse"])
    fault = find_fault(body)
    if fault:
        return error(400, "ValidationException", fault)
    blocks = body["messages"][-1]["content"]
    results = [block["toolResult"] for block in blocks if "toolResult" in block]
    texts = [block["text"] for block in blocks if "text" in block]
    if results:
        texts = [f"{result['toolUseId']} gave {result['content'][0].get('text')}" for result in results]
    return stream(*text_block("You said: " + "; ".join(texts)))


def count(model: str, conversation: dict[str, Any]) -> Reply:
    """Return the number of words as tokens. Inference profiles are not accepted as models, like in Bedrock."""
    if not model.startswith("anthropic."):
        return error(400, "ValidationException", "The provided model doesn't support counting tokens.")
    texts = [block["text"] for block in conversation.get("system", [])]
    texts += [block.get("text", "") for message in conversation["messages"] for block in message["content"]]
    tools = conversation.get("toolConfig", {}).get("tools", [])
    body = json.dumps({"inputTokens": sum(len(text.split()) for text in texts) + len(tools)}).encode()
    return Reply((body,))


def find_fault(body: dict[str, Any]) -> str | None:
    """Return why Bedrock would refuse a request, or None."""
    open_calls: set[str] = set()
    seen: set[str] = set()
    for place, message in enumerate(body["messages"]):
        if message["role"] != ("user", "assistant")[place % 2]:
            return "A conversation must alternate between user and assistant roles, and begin with user."
        if not message["content"]:
            return f"The content field in the Message object at messages.{place} is empty."
        if any("text" in block and not block["text"].strip() for block in message["content"]):
            return "The text field in the ContentBlock object is blank. Add text to the text field, and try again."
        tool_blocks = [block for block in message["content"] if {"toolUse", "toolResult"} & set(block)]
        if tool_blocks and "toolConfig" not in body:
            return "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        is_silent = "reasoningContent" not in message["content"][0]
        if (
            "thinking" in body.get("additionalModelRequestFields", {})
            and any("toolUse" in block for block in tool_blocks)
            and is_silent
        ):
            return f"messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
        answered = {block["toolResult"]["toolUseId"] for block in tool_blocks if "toolResult" in block}
        if answered != open_calls:
            return f"Expected toolResult blocks at messages.{place}.content for the following Ids: {sorted(open_calls)}"
        made = [block["toolUse"]["toolUseId"] for block in tool_blocks if "toolUse" in block]
        if not all(TOOL_USE_ID.fullmatch(each) for each in made):
            return f"Value at messages.{place}.content.toolUse.toolUseId failed to satisfy constraint"
        if len(set(made)) < len(made) or not seen.isdisjoint(made):
            return f"messages.{place}.content: `tool_use` ids must be unique"
        seen.update(made)
        open_calls = set(made)
    return None


def model_of(received: Received) -> str:
    match = PATH.fullmatch(received.path)
    return unquote(match[1]) if match else ""


def encode(headers: dict[str, str], payload: bytes) -> bytes:
    """Encode one message of an event stream."""
    encoded = b""
    for name, value in headers.items():
        encoded += struct.pack("!B", len(name)) + name.encode()
        encoded += struct.pack("!BH", STRING, len(value.encode())) + value.encode()
    lengths = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    message = lengths + struct.pack("!I", crc32(lengths)) + encoded + payload
    return message + struct.pack("!I", crc32(message))


def event(name: str, payload: Any) -> bytes:
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode(headers, json.dumps(payload).encode())


def exception(name: str, message: str) -> bytes:
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return encode(headers, json.dumps({"message": message}).encode())


def text_block(text: str, block: int = 0) -> list[bytes]:
    """Return the events of a text, one for each word."""
    pieces = re.findall(r"\S+\s*|\s+", text)
    deltas = [event("contentBlockDelta", {"contentBlockIndex": block, "delta": {"text": piece}}) for piece in pieces]
    return [*deltas, event("contentBlockStop", {"contentBlockIndex": block})]


def thought_block(*pieces: str, signature: str, block: int = 0) -> list[bytes]:
    """Return the events of a reasoning text with its signature at the end."""
    deltas = [{"text": piece} for piece in pieces] + [{"signature": signature}]
    return [*(reasoning(delta, block) for delta in deltas), event("contentBlockStop", {"contentBlockIndex": block})]


def reasoning(delta: dict[str, str], block: int = 0) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": block, "delta": {"reasoningContent": delta}})


def tool_block(call_id: str, name: str, *inputs: str, block: int = 0) -> list[bytes]:
    """Return the events of a tool call whose input is sent in pieces."""
    start = {"contentBlockIndex": block, "start": {"toolUse": {"toolUseId": call_id, "name": name}}}
    deltas = [
        event("contentBlockDelta", {"contentBlockIndex": block, "delta": {"toolUse": {"input": piece}}})
        for piece in inputs
    ]
    return [event("contentBlockStart", start), *deltas, event("contentBlockStop", {"contentBlockIndex": block})]


def stream(*parts: Part, stop: str = "end_turn", usage: tuple[int, int] = (5, 7), **counted_too: Any) -> Reply:
    """Return a whole response with these blocks."""
    counted = {"inputTokens": usage[0], "outputTokens": usage[1], "totalTokens": sum(usage), **counted_too}
    return begun(
        *parts,
        event("messageStop", {"stopReason": stop}),
        event("metadata", {"usage": counted, "metrics": {"latencyMs": 12}}),
    )


def begun(*parts: Part, ending: Any = "finish") -> Reply:
    """Return a response that ends after the given parts."""
    return Reply((event("messageStart", {"role": "assistant"}), *parts), headers=EVENT_STREAM, ending=ending)


def error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Reply:
    body = json.dumps({"message": message}).encode()
    return Reply((body,), status, {"x-amzn-ErrorType": code, **(headers or {})})
