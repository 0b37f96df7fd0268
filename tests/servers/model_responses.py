"""Fake model server with the Responses API. It validates requests as strictly as OpenAI, and is scriptable.

In a test: `with ModelResponsesServer() as server:`, then `server.base_url`, `server.bodies`, `server.script(...)`.
A request that OpenAI refuses, or that Open Responses does not describe, fails the test, also if its answer is scripted.

Without a script, it calls the tool that the last user message names, with the JSON object in the message. It responds
to tool results with `TOOL said: ...`, and to any other message with `You said: ...`. It reasons first if the request
has options of reasoning.
"""

import itertools
import json
import re
from collections.abc import Iterable
from typing import Any

from tests.openresponses.schema import Mismatch, check_component
from tests.openresponses.watch import COMPLAINTS
from tests.servers.chat_completions import document, error
from tests.servers.model_responses_faults import INCLUDED, find_fault, written_in
from tests.servers.scripted_http import Part, Received, Reply, ScriptedHTTPServer

Json = dict[str, Any]
EVENT_STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
USAGE: Json = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 18,
}


class ModelResponsesServer(ScriptedHTTPServer):
    """Server of `POST /v1/responses`. `raw`: it takes reasoning back as text, like vLLM."""

    def __init__(self, port: int = 0, *, raw: bool = False) -> None:
        super().__init__(self.answer, port)
        self.raw = raw
        self._sent: dict[str, tuple[Json, Json | None]] = {}
        self._numbers = itertools.count(1)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def inputs(self) -> list[list[Json]]:
        """Return the items of each request."""
        return [body["input"] for body in self.bodies]

    @property
    def stored(self) -> list[Json]:
        """Return the requests whose responses would be stored."""
        return [body for body in self.bodies if body.get("store") is not False]

    def script(self, *replies: Reply) -> None:
        for reply in replies:
            self._remember(_items_in(reply))
        super().script(*replies)

    def record(self, received: Received) -> None:
        super().record(received)
        if received.path.endswith("/responses"):
            body = received.json()
            if fault := find_fault(body, self._sent, raw=self.raw):
                COMPLAINTS.append(f"The model server would refuse this: {fault[0]} {json.dumps(body)[:2000]}")
            try:
                check_component("CreateResponseBody", body)
            except Mismatch as mismatch:
                COMPLAINTS.append(f"{mismatch} in {json.dumps(body)[:2000]}")

    def answer(self, received: Received) -> Reply:
        """Return an unscripted answer."""
        if (received.method, received.path) != ("POST", "/v1/responses"):
            message = f"Invalid URL ({received.method} {received.path})"
            return error(404, message, type="invalid_request_error")
        body = received.json()
        if fault := find_fault(body, self._sent, raw=self.raw):
            code = "invalid_encrypted_content" if fault[1] == "encrypted_content" else None
            return error(400, fault[0], type="invalid_request_error", param=fault[1], code=code)
        items = [*self._think(body), *self._act(body)]
        self._remember(items)
        return stream(*items, model=body["model"]) if body.get("stream") else whole(*items, model=body["model"])

    def _think(self, body: Json) -> list[Json]:
        """Return a reasoning item if the request has options of reasoning, as it wishes to see it."""
        options = body.get("reasoning") or {}
        if options.get("effort", "none") == "none":
            return []
        number = next(self._numbers)
        texts = [f"Thought {number}."] if options.get("summary") else []
        encrypted = f"gAAAA{number}" if INCLUDED[0] in body.get("include", []) else None
        return [thought(*texts, item_id=f"rs_{number}", encrypted=encrypted)]

    def _act(self, body: Json) -> list[Json]:
        items = body["input"]
        last = items[-1]
        said = written_in(last)
        number = next(self._numbers)
        if last["type"] == "function_call_output":
            called = next(item["name"] for item in items if item.get("call_id") == last["call_id"])
            return [message(f"{called} said: {said}", item_id=f"msg_{number}")]
        names = [tool["name"] for tool in body.get("tools", [])]
        named = next((name for name in names if re.search(rf"\b{re.escape(name)}\b", said)), None)
        if named is None:
            return [message(f"You said: {said}", item_id=f"msg_{number}")]
        arguments = re.search(r"\{.*\}", said, re.DOTALL)
        return [call(f"call_{number}", named, arguments[0] if arguments else "{}")]

    def _remember(self, items: list[Json]) -> None:
        """Remember reasoning, which must come back unchanged, before the item that followed it."""
        late = False
        for item, following in itertools.zip_longest(items, items[1:]):
            late = late or item.get("type") != "reasoning"
            if isinstance(item.get("encrypted_content"), str):
                self._sent[item["encrypted_content"]] = {**item, "late": late}, following


def _items_in(reply: Reply) -> list[Json]:
    """Return the items of a scripted answer."""
    items: dict[str, Json] = {}
    lines = [line for part in reply.parts if isinstance(part, bytes) for line in part.split(b"\n")]
    for line in lines:
        try:
            event = json.loads(line.removeprefix(b"data: "))
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and event.get("type") == "response.output_item.done":
            items[str(event.get("output_index"))] = event["item"]
        response = event.get("response", event) if isinstance(event, dict) else None
        output = response.get("output") if isinstance(response, dict) else None
        if isinstance(output, list) and output:
            return [item for item in output if isinstance(item, dict)]
    return [item for item in items.values() if isinstance(item, dict)]


# ---- items


def message(text: str, *, phase: str | None = None, item_id: str = "msg_1", logprobs: list[Json] | None = None) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs or []}
    item = {"type": "message", "id": item_id, "status": "completed", "role": "assistant", "content": [part]}
    return item | ({"phase": phase} if phase else {})


def refused(text: str) -> Json:
    return {**message(""), "content": [{"type": "refusal", "refusal": text}]}


def call(call_id: str, name: str, arguments: str = "{}") -> Json:
    fields = {"id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}
    return {"type": "function_call", "status": "completed", **fields}


def thought(*texts: str, item_id: str = "rs_1", encrypted: str | None = "gAAAAB") -> Json:
    """Return a reasoning item with its summary."""
    summary = [{"type": "summary_text", "text": text} for text in texts]
    return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": encrypted}


def raw_thought(*texts: str, item_id: str = "rs_1") -> Json:
    """Return a reasoning item with the reasoning itself, like vLLM's."""
    content = [{"type": "reasoning_text", "text": text} for text in texts]
    return {"type": "reasoning", "id": item_id, "summary": [], "content": content, "encrypted_content": None}


def response(
    *items: Json, status: str = "completed", reason: str | None = None, usage: Json | None = USAGE, **fields: Any
) -> Json:
    """Return the resource. `reason` is why it is incomplete."""
    details = {"incomplete_details": {"reason": reason} if reason else None}
    head: Json = {"id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": None, **details}
    return {**head, "model": "m", "output": [*items], "usage": usage, "store": False, **fields}


# ---- events


def events_of(*items: Json, **fields: Any) -> list[Json]:
    """Return OpenAI's sequence of events, without numbers. `fields` are those of `response`."""
    begun = response(status="in_progress", usage=None, **({"model": fields["model"]} if "model" in fields else {}))
    events: list[Json] = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for index, item in enumerate(items):
        events += [{**event, "output_index": index} for event in _events_of_item(item)]
    whole = response(*items, **fields)
    return [*events, {"type": f"response.{whole['status']}", "response": whole}]


def _events_of_item(item: Json) -> Iterable[Json]:
    kind, own = item["type"], {"item_id": item["id"]}
    empty: Json = (
        {"content": []} if kind == "message" else {"summary": []} if kind == "reasoning" else {"arguments": ""}
    )
    status = {} if kind == "reasoning" else {"status": "in_progress"}
    begun = {key: value for key, value in item.items() if key != "content" or kind == "message"}
    yield {"type": "response.output_item.added", "item": {**begun, **empty, **status}}
    if kind == "function_call":
        for piece in halves(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **own, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **own, "arguments": item["arguments"]}
    for place, part in enumerate(item.get("summary", [])):
        yield from _events_of_part("reasoning_summary_part", "reasoning_summary_text", part, summary_index=place, **own)
    for place, part in enumerate(item.get("content") or []):
        name = "content_part" if kind == "message" else "reasoning_part"
        yield from _events_of_part(name, part["type"], part, content_index=place, **own)
    yield {"type": "response.output_item.done", "item": item}


def _events_of_part(name: str, kind: str, part: Json, **place: Any) -> Iterable[Json]:
    key = "refusal" if part["type"] == "refusal" else "text"
    own: Json = {"logprobs": []} if kind == "output_text" else {}
    logprobs = part.get("logprobs") or []
    yield {"type": f"response.{name}.added", "part": {**part, key: "", **own}, **place}
    for number, piece in enumerate(re.findall(r"\S+\s*|\s+", part[key])):
        scored = {"logprobs": logprobs[number : number + 1]} if own else {}
        yield {"type": f"response.{kind}.delta", "delta": piece, **scored, **place}
    yield {"type": f"response.{kind}.done", key: part[key], **own, **place}
    yield {"type": f"response.{name}.done", "part": part, **place}


def halves(text: str) -> list[str]:
    half = len(text) // 2
    return [text[:half], text[half:]]


def sse(event: Any, number: int = 0) -> bytes:
    numbered = {**event, "sequence_number": number} if isinstance(event, dict) else event
    kind = str(event.get("type")) if isinstance(event, dict) else ""
    return f"event: {json.dumps(kind)[1:-1]}\ndata: {json.dumps(numbered)}\n\n".encode()


def reply(events: Iterable[Json | Part], **options: Any) -> Reply:
    """Return an answer of events. Bytes, seconds and events to wait for are used as parts."""
    parts = [sse(event, number) if isinstance(event, dict) else event for number, event in enumerate(events)]
    return Reply(tuple(parts), headers=EVENT_STREAM, **options)


def stream(*items: Json, **fields: Any) -> Reply:
    """Return a streamed answer."""
    return reply(events_of(*items, **fields))


def whole(*items: Json, **fields: Any) -> Reply:
    """Return an answer that is not streamed."""
    return document(response(*items, **fields))


def failed(code: str, text: str = "It failed.") -> Reply:
    """Return an answer that fails after its beginning."""
    return reply(events_of(status="failed", error={"code": code, "message": text}, usage=None))


def only(events: Iterable[Json], *names: str) -> list[Json]:
    """Return the events of these types, given without `response.`, or by their endings."""
    return [event for event in events if event["type"].removeprefix("response.").endswith(names)]
