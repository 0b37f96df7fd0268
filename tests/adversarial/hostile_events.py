"""Answers of the Responses API that no model server should send."""

import json
from collections.abc import Callable
from typing import Any

from tests.servers.model_responses import (
    call,
    events_of,
    message,
    raw_thought,
    refused,
    reply,
    response,
    sse,
    thought,
)
from tests.servers.scripted_http import Reply

Json = dict[str, Any]
ITEMS = (thought("Well"), message("hello"), call("call_1", "lookup", '{"a": 1}'))
LOGPROB: Json = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
PLACE: Json = {"output_index": 0, "item_id": "msg_9", "content_index": 0}


def among_events(event: Any) -> Reply:
    """Return an answer that begins with an event."""
    return reply([sse(event), *events_of(*ITEMS)[:2], *_at(1, events_of(*ITEMS)[2:])])


def _at(offset: int, events: list[Json]) -> list[Json]:
    """Return events with higher places of their items."""
    return [{**each, "output_index": each.get("output_index", 0) + offset} for each in events]


def done(item: Any, **fields: Any) -> Json:
    return {"type": "response.output_item.done", "output_index": 0, "item": item, **fields}


def added(**fields: Any) -> Json:
    return {"type": "response.output_item.added", "output_index": 0, "item": {**message("a"), **fields}}


def delta(kind: str, value: Any, **fields: Any) -> Json:
    return {"type": f"response.{kind}.delta", **PLACE, "delta": value, **fields}


def ended(**fields: Any) -> Json:
    return {"type": "response.completed", "response": response(message("a"), **fields)}


def scored(**fields: Any) -> Json:
    return delta("output_text", "a", logprobs=[{**LOGPROB, **fields}])


def failed(error: Any) -> Json:
    return {"type": "response.failed", "response": response(status="failed", error=error)}


EVENTS: dict[str, Callable[[Any], Any]] = {
    "event": lambda value: value,
    "type": lambda value: {"type": value},
    "object": lambda value: {**added(), "object": value},
    "error": lambda value: {**added(), "error": value},
    "error_event": lambda value: {"type": "error", "code": value, "message": value, "param": value},
    "error_of_response": failed,
    "code_of_error": lambda value: failed({"code": value, "message": value}),
    "index": lambda value: {**added(), "output_index": value},
    "index_of_done": lambda value: done(message("a"), output_index=value),
    "index_of_delta": lambda value: delta("output_text", "a", output_index=value),
    "id_without_index": lambda value: {"type": "response.output_text.delta", "item_id": value, "delta": "a"},
    "item": lambda value: {**added(), "item": value},
    "item_without_index": lambda value: {"type": "response.output_item.added", "item": value},
    "done_item": done,
    "id_of_item": lambda value: added(id=value),
    "type_of_item": lambda value: done({**message("a"), "type": value}),
    "phase": lambda value: added(phase=value),
    "content": lambda value: done({**message("a"), "content": value}),
    "part": lambda value: done({**message("a"), "content": [value]}),
    "text_of_part": lambda value: done({**message("a"), "content": [{"type": "output_text", "text": value}]}),
    "type_of_part": lambda value: done({**message("a"), "content": [{"type": value, "text": "a"}]}),
    "refusal_of_part": lambda value: done({**refused("a"), "content": [{"type": "refusal", "refusal": value}]}),
    "summary": lambda value: done({**thought("a"), "summary": value}),
    "part_of_summary": lambda value: done({**thought("a"), "summary": [value]}),
    "text_of_summary": lambda value: done({**thought("a"), "summary": [{"type": "summary_text", "text": value}]}),
    "encrypted": lambda value: done(thought("a", encrypted=value)),
    "id_of_reasoning": lambda value: done({**thought("a"), "id": value}),
    "reasoning": lambda value: done({**raw_thought("a"), "content": value}),
    "part_of_reasoning": lambda value: done({**raw_thought("a"), "content": [value]}),
    "text_of_reasoning": lambda value: done({**raw_thought("a"), "content": [{"text": value}]}),
    "text_delta": lambda value: delta("output_text", value),
    "refusal_delta": lambda value: delta("refusal", value),
    "arguments_delta": lambda value: delta("function_call_arguments", value),
    "summary_delta": lambda value: delta("reasoning_summary_text", value, summary_index=0),
    "summary_index": lambda value: delta("reasoning_summary_text", "a", summary_index=value),
    "reasoning_delta": lambda value: delta("reasoning_text", value),
    "name": lambda value: done({**call("c", "lookup"), "name": value}),
    "call_id": lambda value: done({**call("c", "lookup"), "call_id": value}),
    "arguments": lambda value: done({**call("c", "lookup"), "arguments": value}),
    "logprobs": lambda value: delta("output_text", "a", logprobs=value),
    "logprob": lambda value: delta("output_text", "a", logprobs=[value]),
    "number_of_logprob": lambda value: scored(logprob=value),
    "token": lambda value: scored(token=value),
    "bytes": lambda value: scored(bytes=value),
    "top_logprobs": lambda value: scored(top_logprobs=value),
    "response": lambda value: {"type": "response.completed", "response": value},
    "incomplete": lambda value: {"type": "response.incomplete", "response": value},
}
"""The fields of events. Each makes an event with a value in it."""

WHOLE_RESPONSES: dict[str, Callable[[Any], Any]] = {
    "response": lambda value: value,
    "object": lambda value: {**response(message("a")), "object": value},
    "status": lambda value: response(message("a"), status=value),
    "details": lambda value: response(message("a"), status="incomplete", incomplete_details=value),
    "reason": lambda value: response(message("a"), status="incomplete", incomplete_details={"reason": value}),
    "error": lambda value: response(status="failed", error=value),
    "output": lambda value: {**response(), "output": value},
    "item": lambda value: {**response(), "output": [value]},
    "usage": lambda value: response(message("a"), usage=value),
    "input_tokens": lambda value: response(message("a"), usage={"input_tokens": value}),
    "details_of_usage": lambda value: response(
        message("a"), usage={"input_tokens": 1, "input_tokens_details": value, "output_tokens_details": value}
    ),
    "cached_tokens": lambda value: response(
        message("a"), usage={"input_tokens_details": {"cached_tokens": value, "cache_write_tokens": value}}
    ),
}
"""The fields of a whole response."""


def _text(event: Json, value: str) -> bytes:
    return json.dumps(event).replace("-1", value).encode()


RAW_EVENTS: dict[str, bytes] = {
    "infinite_logprob": _text(scored(logprob=-1), "-1e999"),
    "nan_logprob": _text(scored(logprob=-1), "NaN"),
    "infinite_usage": _text(ended(usage={"input_tokens": -1}), "1e999"),
    "long_usage": _text(ended(usage={"input_tokens": -1}), "1" * 5_000),
    "long_index": _text({**added(), "output_index": -1}, "1" * 4_000),
    "deep_event": b"[" * 100_000,
    "deep_item": b'{"type": "response.output_item.done", "output_index": 0, "item": ' + b"[" * 190 + b"]" * 190 + b"}",
    "deep_type": b'{"type": ' + b"[" * 190 + b"]" * 190 + b"}",
    "deep_id": _text(done({**thought("a"), "id": -1}), "[" * 180 + "]" * 180),
    "deep_arguments": _text(done({**call("c", "lookup"), "arguments": -1}), '{"a":' * 180 + "1" + "}" * 180),
    "deep_error": _text({"type": "error", "message": -1}, "[" * 180 + "]" * 180),
    "deep_failure": _text(failed({"code": "x", "message": -1}), "[" * 180 + "]" * 180),
    "surrogates": b'{"type": "error", "message": "\\ud800", "code": "\\ud800", "param": "\\ud800"}',
    "surrogate_in_encrypted": json.dumps(done(thought("\ud800", encrypted="\ud800"))).encode(),
    "half_a_character": json.dumps(delta("output_text", "\ud83d")).encode(),
    "no_utf8": b'{"type": "response.output_text.delta", "output_index": 0, "delta": "\xff\xfe"}',
    "duplicate_keys": b'{"type": "response.completed", "type": "response.output_text.delta", "delta": "a"}',
}
"""Events whose JSON Python cannot hold, or writes otherwise."""


def make_responses(arguments: dict[str, str]) -> dict[str, Reply]:
    """Return the answers by their names. The unit tests have every value in every field."""
    made = {name: call("call_1", "lookup", text) for name, text in arguments.items()}
    answers = {f"arguments_{name}": reply(events_of(item)) for name, item in made.items()}
    answers |= {f"raw_{name}": reply([b"data: " + text + b"\n\n"]) for name, text in RAW_EVENTS.items()}
    many = [delta("output_text", "a", output_index=place, item_id=f"m{place}") for place in range(200)]
    answers["messages_200"] = reply([b"".join(map(sse, many)), *events_of()[-1:]])
    summary = [delta("reasoning_summary_text", "a", summary_index=place) for place in range(200)]
    answers["summaries_200"] = reply([b"".join(map(sse, summary)), done(thought()), *events_of(message("x"))[-1:]])
    answers["calls_250"] = reply(events_of(*(call(f"c{place}", "lookup") for place in range(250)))[-1:])
    answers["output_100000"] = reply([ended(output=[{"type": "new"}] * 100_000)])
    answers["calls_10000"] = reply([ended(output=[call(f"c{place}", "lookup") for place in range(30_000)])])
    answers["encrypted"] = reply(events_of(thought("a", encrypted="x" * 1_000_000), message("x")))
    thoughts = [done(thought("", encrypted="x" * 100), output_index=place) for place in range(20_000)]
    answers["reasoning_items"] = reply([b"".join(map(sse, thoughts)), *events_of()[-1:]])
    phases = ("commentary", "final_answer") * 10_000
    begun = [{**added(phase=phase), "output_index": place} for place, phase in enumerate(phases)]
    answers["phases"] = reply([b"".join(map(sse, begun)), *events_of(message("x"))[-1:]])
    unknown = [{"type": "response.new.delta", "delta": "a"}, {"type": "response.output_text.done", "text": "a"}]
    answers["ignored_100000"] = reply([b"".join(map(sse, unknown)) * 50_000, *events_of(message("x"))])
    answers["silent_end"] = reply([*events_of(message("x"))[:-1], {"type": "response.done", "response": {}}])
    return answers
