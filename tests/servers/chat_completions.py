"""Fake chat completions server. It validates requests as strictly as OpenAI, and its responses can be scripted.

In a test: `with ChatCompletionsServer() as server:`, then `server.base_url`, `server.bodies`, `server.script(...)`.
As a process: `python tests/servers/chat_completions.py --port 0` prints its base URL.

Without a script, it calls the tool that the last user message names, with the JSON object in the message. It responds
to tool results with `TOOL said: ...`, to any other message with `You said: ...`, and with 400 to requests that OpenAI
refuses.
"""

import argparse
import json
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # as a process it is started by its path

from tests.servers.scripted_http import Part, Received, Reply, ScriptedHTTPServer

CALL_ID = re.compile(r".{1,40}", re.DOTALL)
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
EVENT_STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}


class ChatCompletionsServer(ScriptedHTTPServer):
    """Server of `POST /v1/chat/completions`."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(answer, port)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"


def answer(received: Received) -> Reply:
    if (received.method, received.path) != ("POST", "/v1/chat/completions"):
        return error(404, f"Unknown request URL: {received.method} {received.path}")
    body = received.json()
    fault = find_fault(body)
    if fault:
        return error(400, fault, type="invalid_request_error")
    text, calls = make_answer(body)
    prompt = sum(len(text_of(message.get("content")).split()) for message in body["messages"])
    completion = len(text.split()) + len(calls)
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    reason = "tool_calls" if calls else "stop"
    if body.get("stream"):
        deltas = words(text) + [delta for call in calls for delta in tool_call(*call)]
        wants_usage = (body.get("stream_options") or {}).get("include_usage")
        return stream(*deltas, finish=reason, usage=usage if wants_usage else None)
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [whole_call(*call) for call in calls]
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    return document({"object": "chat.completion", "choices": choices, "usage": usage})


def make_answer(body: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Return the text and the calls of an unscripted response."""
    last = body["messages"][-1]
    said = text_of(last.get("content"))
    if last["role"] == "tool":
        return f"{_tool_name(body, last['tool_call_id'])} said: {said}", []
    names = [tool["function"]["name"] for tool in body.get("tools") or []]
    named = next((name for name in names if re.search(rf"\b{re.escape(name)}\b", said)), None)
    if named is None:
        return f"You said: {said}", []
    arguments = re.search(r"\{.*\}", said, re.DOTALL)
    call_id = f"call_{len(body['messages'])}"
    return "", [(call_id, named, arguments[0] if arguments else "{}")]


def find_fault(body: dict[str, Any]) -> str | None:
    """Return why OpenAI would refuse a request, or None."""
    if not isinstance(body.get("model"), str) or not body.get("messages"):
        return "you must provide a model and messages"
    if "tool_choice" in body and not body.get("tools"):
        return "'tool_choice' is only allowed when 'tools' are specified."
    if "parallel_tool_calls" in body and not body.get("tools"):
        return "'parallel_tool_calls' is only allowed when 'tools' are specified."
    if any("reasoning_content" in message for message in body["messages"]):
        return "Unrecognized field: reasoning_content"
    open_calls: list[str] = []
    for place, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                return f"messages.[{place}]: 'tool_call_id' does not answer a preceding tool call"
            if not isinstance(message["content"], str) and any(part["type"] != "text" for part in message["content"]):
                return f"messages.[{place}]: tool messages hold text only"
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            return f"messages.[{place}]: these tool calls have no answer: {', '.join(open_calls)}"
        if message["role"] == "user" and message.get("content") in (None, []):
            return f"messages.[{place}]: content must not be empty"
        made = message.get("tool_calls") or []
        if unusable := [call for call in made if not CALL_ID.fullmatch(call["id"])]:
            return f"messages.[{place}]: Invalid 'id', expected 1 to 40 characters: {unusable[0]['id']!r}"
        if unusable := [call for call in made if not TOOL_NAME.fullmatch(call["function"]["name"])]:
            return f"messages.[{place}]: Invalid 'name': {unusable[0]['function']['name']!r}"
        open_calls = [call["id"] for call in made]
    return f"these tool calls have no answer: {', '.join(open_calls)}" if open_calls else None


def words(text: str) -> list[dict[str, Any]]:
    """Return a delta for each word."""
    return [{"content": piece} for piece in re.findall(r"\S+\s*|\s+", text)]


def tool_call(call_id: str, name: str, arguments: str, index: int = 0) -> list[dict[str, Any]]:
    """Return the deltas of a call, like OpenAI: id and name first, then the arguments in pieces."""
    half = len(arguments) // 2
    first = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [{"index": index, "function": {"arguments": piece}} for piece in (arguments[:half], arguments[half:])]
    return [{"tool_calls": [piece]} for piece in (first, *pieces)]


def whole_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a call in one piece."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def stream(
    *deltas: dict[str, Any] | Part, finish: str | None = "stop", usage: dict[str, Any] | None = None, done: bool = True
) -> Reply:
    """Return a streamed response with deltas. Bytes, seconds and events between them are used as parts."""
    parts: list[Part] = [chunk({"role": "assistant", "content": ""})]
    parts += [chunk(delta) if isinstance(delta, dict) else delta for delta in deltas]
    if finish is not None:
        parts.append(chunk({}, finish_reason=finish))
    if usage is not None:
        parts.append(sse({"object": "chat.completion.chunk", "choices": [], "usage": usage}))
    if done:
        parts.append(b"data: [DONE]\n\n")
    return Reply(tuple(parts), headers=EVENT_STREAM)


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return sse({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})


def sse(payload: Any) -> bytes:
    return f"data: {json.dumps(payload)}\n\n".encode()


def error(status: int, message: str, headers: dict[str, str] | None = None, **fields: Any) -> Reply:
    """Return an error in OpenAI's format."""
    body = {"error": {"message": message, "type": "server_error", "param": None, "code": None, **fields}}
    return document(body, status, headers)


def document(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    return Reply((json.dumps(body).encode(),), status, headers or {})


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part["type"] == "text")
    return content or ""


def _tool_name(body: dict[str, Any], call_id: str) -> str:
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or []]
    return next((str(call["function"]["name"]) for call in calls if call["id"] == call_id), "a tool")


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve chat completions on loopback.")
    parser.add_argument("--port", type=int, default=0)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with ChatCompletionsServer(parser.parse_args().port) as server:
        print(server.base_url, flush=True)
        stopped.wait()


if __name__ == "__main__":
    main()
