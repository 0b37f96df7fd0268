"""Answers of a model server that no model should send: their text, their form, and their number of calls."""

import json
from collections.abc import Callable
from itertools import cycle
from typing import Any

from tests.servers.chat_completions import EVENT_STREAM, chunk, sse, stream
from tests.servers.scripted_http import Reply

DEEP = 1_000
ARGUMENTS: dict[str, str] = {
    "brackets": "[" * DEEP + "]" * DEEP,
    "open_brackets": "[" * DEEP,
    "many_open_brackets": "[" * 100_000,
    "objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "open_objects": '{"a":' * DEEP,
    "brackets_in_an_object": '{"a":' + "[" * DEEP + "]" * DEEP + "}",
    "nested_101": '{"a":' + "[" * 101 + "]" * 101 + "}",
    "nested_190": '{"a":' + "[" * 190 + "]" * 190 + "}",
    "infinite": '{"a": 1e999}',
    "long_integer": '{"a": ' + "1" * 5_000 + "}",
    "integer": '{"a": ' + "1" * 4_000 + "}",
    "nan": '{"a": NaN}',
    "infinity": '{"a": -Infinity}',
    "duplicate_keys": '{"a": 1, "a": 2}',
    "nul": '{"a": "\\u0000"}',
    "raw_nul": '{"a": "\0"}',
    "escaped_surrogate": '{"a": "\\ud800"}',
    "raw_surrogate": '{"a": "\ud800"}',
    "surrogate_as_key": '{"\\udfff": 1}',
    "cut": '{"a": "b',
    "array": "[1]",
    "scalar": "7",
    "null": "null",
    "string": '"x"',
    "text": "please call it",
    "blank": " \n",
    "nothing": "",
    "byte_order_mark": "\ufeff{}",
    "trailing": '{"a": 1} {"a": 2}',
    "keys": "{" + ",".join(f'"k{place}": 0' for place in range(10_000)) + "}",
}

WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "integer": 7,
    "negative": -7,
    "huge": 10**30,
    "fraction": 0.5,
    "text": "x",
    "list": [],
    "list_of_null": [None],
    "list_of_text": ["x"],
    "lists": [[[]]],
    "object": {},
    "objects": [{}],
    "nested": {"a": {"a": {"a": []}}},
    "surrogate": "\ud800",
    "nul": "\0",
}
"""Values, of which most have the wrong type for a field."""

CHOICE: dict[str, Any] = {"index": 0, "delta": {"content": "hello"}, "finish_reason": None}
CALL: dict[str, Any] = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": ""}}
LOGPROB: dict[str, Any] = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
USAGE: dict[str, Any] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{**CHOICE, "delta": fields}]}


def called(**fields: Any) -> dict[str, Any]:
    return delta(tool_calls=[{**CALL, **fields}])


FIELDS: dict[str, Callable[[Any], Any]] = {
    "chunk": lambda value: value,
    "id": lambda value: {**delta(content="a"), "id": value},
    "object": lambda value: {**delta(content="a"), "object": value},
    "error": lambda value: {**delta(content="a"), "error": value},
    "message_of_error": lambda value: {"error": {"message": value, "type": "server_error", "code": "x"}},
    "code_of_error": lambda value: {"error": {"message": "no", "type": value, "code": value, "param": value}},
    "choices": lambda value: {"choices": value},
    "choice": lambda value: {"choices": [value]},
    "index": lambda value: {"choices": [{**CHOICE, "index": value}]},
    "delta": lambda value: {"choices": [{**CHOICE, "delta": value}]},
    "message": lambda value: {"choices": [{"message": value}]},
    "finish_reason": lambda value: {"choices": [{**CHOICE, "finish_reason": value}]},
    "content": lambda value: delta(content=value),
    "part": lambda value: delta(content=[value]),
    "text_of_part": lambda value: delta(content=[{"type": "text", "text": value}]),
    "thought": lambda value: delta(content=[{"type": "thinking", "thinking": value}]),
    "reasoning": lambda value: delta(reasoning=value, content="a"),
    "reasoning_content": lambda value: delta(reasoning_content=value, content="a"),
    "refusal": lambda value: delta(refusal=value),
    "tool_calls": lambda value: delta(tool_calls=value),
    "tool_call": lambda value: delta(tool_calls=[value]),
    "index_of_call": lambda value: called(index=value),
    "id_of_call": lambda value: called(id=value),
    "function": lambda value: called(function=value),
    "name": lambda value: called(function={"name": value, "arguments": "{}"}),
    "arguments": lambda value: called(function={"name": "lookup", "arguments": value}),
    "logprobs": lambda value: {"choices": [{**CHOICE, "logprobs": value}]},
    "logprobs_content": lambda value: {"choices": [{**CHOICE, "logprobs": {"content": value}}]},
    "token": lambda value: scored(token=value),
    "logprob": lambda value: scored(logprob=value),
    "bytes": lambda value: scored(bytes=value),
    "byte": lambda value: scored(bytes=[value]),
    "top_logprobs": lambda value: scored(top_logprobs=value),
    "usage": lambda value: {**delta(content="a"), "usage": value},
    "prompt_tokens": lambda value: counted(prompt_tokens=value),
    "completion_tokens": lambda value: counted(completion_tokens=value),
    "total_tokens": lambda value: counted(total_tokens=value),
    "prompt_tokens_details": lambda value: counted(prompt_tokens_details=value),
    "cached_tokens": lambda value: counted(prompt_tokens_details={"cached_tokens": value}),
    "reasoning_tokens": lambda value: counted(completion_tokens_details={"reasoning_tokens": value}),
}
"""The fields of a chunk. Each makes a chunk with a value in it."""


def scored(**fields: Any) -> dict[str, Any]:
    return {"choices": [{**CHOICE, "logprobs": {"content": [{**LOGPROB, **fields}]}}]}


def counted(**fields: Any) -> dict[str, Any]:
    return {**delta(content="a"), "usage": {**USAGE, **fields}}


RAW: dict[str, bytes] = {
    "infinite_logprob": json.dumps(scored(logprob=-1)).replace("-1", "-1e999").encode(),
    "nan_logprob": json.dumps(scored(logprob=-1)).replace("-1", "NaN").encode(),
    "infinity_logprob": json.dumps(scored(logprob=-1)).replace("-1", "-Infinity").encode(),
    "infinite_usage": json.dumps(counted(prompt_tokens=-1)).replace("-1", "1e999").encode(),
    "long_usage": json.dumps(counted(prompt_tokens=-1)).replace("-1", "1" * 4_299).encode(),
    "longer_usage": json.dumps(counted(prompt_tokens=-1)).replace("-1", "1" * 5_000).encode(),
    "deep_chunk": b"[" * 100_000,
    "deep_delta": b'{"choices": ' + b"[" * 190 + b"]" * 190 + b"}",
    "deep_arguments": json.dumps(called(function={"name": "lookup", "arguments": 0}))
    .replace('"arguments": 0', '"arguments": {"a": ' + "[" * 180 + "]" * 180 + "}")
    .encode(),
    "infinite_arguments": json.dumps(called(function={"name": "lookup", "arguments": {"a": -1}}))
    .replace("-1", "1e999")
    .encode(),
    "deep_logprobs": b'{"choices": [{"delta": {"content": "a"}, "logprobs": {"content": ['
    + b'{"token": "a", "logprob": 0, "top_logprobs": [' * 60
    + b"]}" * 60
    + b"]}}]}",
    "deep_error": b'{"error": {"message": ' + b"[" * 900 + b"]" * 900 + b"}}",
    "surrogate_in_an_error": b'{"error": {"message": "\\ud800", "code": "\\ud800", "type": "\\ud800"}}',
    "duplicate_keys": b'{"choices": [], "choices": [{"index": 0, "delta": {"content": "a"}}]}',
    "half_a_character": b'{"choices": [{"index": 0, "delta": {"content": "\\ud83d"}}]}',
    "no_utf8": b'{"choices": [{"index": 0, "delta": {"content": "\xff\xfe"}}]}',
}


def make_answers() -> dict[str, Reply]:
    """Return the answers by their names. `tests/unit/models/openai` has every value in every field."""
    answers = {f"arguments_{name}": stream(*pieces(text), finish="tool_calls") for name, text in ARGUMENTS.items()}
    for (field, make), (name, value) in zip(FIELDS.items(), cycle(WRONG.items()), strict=False):
        answers[f"{field}_{name}"] = stream(sse(make(value)), finish="stop")
    answers |= {f"raw_{name}": stream(b"data: " + text + b"\n\n", finish="stop") for name, text in RAW.items()}
    answers["document"] = Reply((b"[" * 100_000,), 200, {"Content-Type": "application/json"})
    answers["error"] = Reply((b'{"error": {"message": "\\ud800", "param": "\\ud800"}}',), 400)
    answers["deep_error"] = Reply((b'{"error": {"message": ' + b"[" * 900 + b"]" * 900 + b"}}",), 400)
    answers["calls_250"] = calls(250)
    answers["calls_100000"] = calls(100_000)
    answers["calls_in_a_chunk"] = stream({"tool_calls": [{**CALL, "index": place} for place in range(30_000)]})
    answers["ids"] = stream({"tool_calls": [{**CALL, "id": "x" * 1_000_000}]}, finish="tool_calls")
    answers["pieces_of_one_call"] = stream(*pieces("{" + " " * 20_000 + "}", 1), finish="tool_calls")
    return answers


def pieces(arguments: str, size: int = 4_000) -> list[dict[str, Any]]:
    """Return the deltas of a call with these arguments."""
    parts = [arguments[place : place + size] for place in range(0, len(arguments), size)]
    written = [{"index": 0, "function": {"arguments": part}} for part in parts]
    return [{"tool_calls": [piece]} for piece in (CALL, *written)]


def calls(count: int) -> Reply:
    """Return an answer with many calls, in one piece each."""
    made = [chunk({"tool_calls": [{**CALL, "index": place, "id": f"call_{place}"}]}) for place in range(count)]
    return Reply((b"".join([*made, chunk({}, "tool_calls"), b"data: [DONE]\n\n"]),), headers=EVENT_STREAM)
