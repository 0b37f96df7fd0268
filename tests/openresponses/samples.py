"""A valid response and its stream."""

import copy
import json
from typing import Any

Json = dict[str, Any]
USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 5,
}
MCP = {"type": "mcp", "server_label": "deepwiki", "server_url": "https://mcp.example.org", "require_approval": "never"}
TEXT = {"type": "output_text", "text": "Hello you", "annotations": [], "logprobs": []}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Well."}]}
MESSAGE = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [TEXT]}
LISTED = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "deepwiki", "tools": []}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "polyjuice", "queries": ["polyjuice"]},
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city": "Bern"}',
    "status": "completed",
}
OUTPUT: list[Json] = [REASONING, LISTED, SEARCH, MESSAGE, CALL]


def response(status: str = "completed", output: list[Json] | None = None, **other: Any) -> Json:
    """Return a response with every key."""
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1790000000,
        "completed_at": 1790000001 if status == "completed" else None,
        "status": status,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": "scripted/demo",
        "previous_response_id": None,
        "instructions": None,
        "output": [MESSAGE] if output is None else output,
        "error": {"code": "x", "message": "x", "type": "server_error"} if status == "failed" else None,
        "tools": [],
        "tool_choice": "auto",
        "truncation": "disabled",
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
        "top_p": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "top_logprobs": 0,
        "temperature": 1,
        "reasoning": None,
        "usage": USAGE if status == "completed" else None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "store": True,
        "background": False,
        "service_tier": "default",
        "metadata": {},
        "safety_identifier": None,
        "prompt_cache_key": None,
    }
    return copy.deepcopy(body | other)


def stream() -> list[Json]:
    """Return the events of a response with an item of each kind."""
    tools: list[Json] = [MCP, {"type": "web_search"}]
    begun = response("in_progress", [], tools=tools)
    events = [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}]
    events += reasoning(0) + listed(1) + searched(2) + message(3) + call(4)
    events.append({"type": "response.completed", "response": response(output=OUTPUT, tools=tools)})
    return copy.deepcopy([event | {"sequence_number": number} for number, event in enumerate(events)])


def around(index: int, item: Json, begun: Json, *events: Json) -> list[Json]:
    """Return the events of an item between its `added` and its `done`."""
    inner = [{"item_id": item["id"], "output_index": index, **event} for event in events]
    added = {"type": "response.output_item.added", "output_index": index, "item": begun}
    return [added, *inner, {"type": "response.output_item.done", "output_index": index, "item": item}]


def reasoning(index: int) -> list[Json]:
    place = {"summary_index": 0}
    return around(
        index,
        REASONING,
        REASONING | {"summary": []},
        {"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}, **place},
        {"type": "response.reasoning_summary_text.delta", "delta": "Well.", **place},
        {"type": "response.reasoning_summary_text.done", "text": "Well.", **place},
        {"type": "response.reasoning_summary_part.done", "part": {"type": "summary_text", "text": "Well."}, **place},
    )


def listed(index: int) -> list[Json]:
    states = [{"type": f"response.mcp_list_tools.{state}"} for state in ("in_progress", "completed")]
    return around(index, LISTED, LISTED, *states)


def searched(index: int) -> list[Json]:
    states = [{"type": f"response.web_search_call.{state}"} for state in ("in_progress", "searching", "completed")]
    return around(index, SEARCH, SEARCH | {"status": "in_progress"}, *states)


def message(index: int) -> list[Json]:
    place = {"content_index": 0}
    return around(
        index,
        MESSAGE,
        MESSAGE | {"status": "in_progress", "content": []},
        {"type": "response.content_part.added", "part": TEXT | {"text": ""}, **place},
        {"type": "response.output_text.delta", "delta": "Hello ", "logprobs": [], **place},
        {"type": "response.output_text.delta", "delta": "you", "logprobs": [], **place},
        {"type": "response.output_text.done", "text": "Hello you", "logprobs": [], **place},
        {"type": "response.content_part.done", "part": TEXT, **place},
    )


def call(index: int) -> list[Json]:
    whole = str(CALL["arguments"])
    return around(
        index,
        CALL,
        CALL | {"status": "in_progress", "arguments": ""},
        {"type": "response.function_call_arguments.delta", "delta": whole[:5]},
        {"type": "response.function_call_arguments.delta", "delta": whole[5:]},
        {"type": "response.function_call_arguments.done", "arguments": whole, "name": "get_weather"},
    )


def encode(events: list[Json], end: str = "data: [DONE]\n\n") -> bytes:
    """Return the bytes of a stream."""
    frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return ("".join(frames) + end).encode()
