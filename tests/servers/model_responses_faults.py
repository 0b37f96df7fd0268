"""Why OpenAI would refuse a request to the Responses API."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

Json = dict[str, Any]
Fault = tuple[str, str]
"""A message, and the parameter."""

FIELDS = frozenset(
    {"model", "input", "instructions", "stream", "store", "include", "tools", "tool_choice", "parallel_tool_calls"}
    | {"temperature", "top_p", "max_output_tokens", "reasoning", "text", "top_logprobs", "prompt_cache_key"}
    | {"prompt_cache_retention", "safety_identifier", "service_tier", "metadata", "truncation", "background"}
)
INCLUDED = ("reasoning.encrypted_content", "message.output_text.logprobs")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FIELDS_OF_ITEMS = {
    "message": {"type", "role", "content", "id", "status"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
}
FIELDS_OF_PARTS = {
    "input_text": {"type", "text"},
    "input_image": {"type", "image_url", "file_id", "detail"},
    "input_file": {"type", "file_data", "file_id", "file_url", "filename"},
    "output_text": {"type", "text", "annotations", "logprobs"},
    "refusal": {"type", "refusal"},
}
CHOICES = ("auto", "none", "required")
Followers = Mapping[str, tuple[Json, Json | None]]
"""The reasoning items that a server has sent, by their encrypted content, each with the item after it."""


def find_fault(body: Any, followers: Followers, *, raw: bool = False) -> Fault | None:
    """Return why the request is refused, or None. `raw`: reasoning items may have their text, like vLLM's."""
    checks: list[Callable[[], Fault | None]] = [
        lambda: _unknown(body, FIELDS, ""),
        lambda: None if isinstance(body.get("model"), str) and body.get("input") else ("model and input", "input"),
        lambda: _find_in_numbers(body),
        lambda: _find_in_tools(body),
        lambda: _find_in_options(body),
    ]
    if not isinstance(body, dict):
        return "The body is not an object.", ""
    found = next(filter(None, (check() for check in checks)), None)
    if found is not None or isinstance(body["input"], str):
        return found
    return _find_in_items(body["input"], followers, raw=raw)


def _unknown(value: Json, known: set[str] | frozenset[str], place: str) -> Fault | None:
    for name in value.keys() - known:
        return f"Unknown parameter: '{place}{name}'.", f"{place}{name}"
    return None


def _find_in_numbers(body: Json) -> Fault | None:
    for name, least, most in (
        ("temperature", 0, 2),
        ("top_p", 0, 1),
        ("top_logprobs", 0, 20),
        ("max_output_tokens", 16, 10**6),
    ):
        if name in body and not least <= body[name] <= most:
            return f"Invalid '{name}': expected a value between {least} and {most}.", name
    return None


def _find_in_tools(body: Json) -> Fault | None:
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in body and not body.get("tools"):
            return f"'{name}' is only allowed when 'tools' are specified.", name
    for place, tool in enumerate(body.get("tools", [])):
        known = {"type", "name", "description", "parameters", "strict"}
        if fault := _unknown(tool, known, f"tools[{place}]."):
            return fault
        if tool.get("type") != "function" or not NAME.fullmatch(tool.get("name", "")):
            return f"Invalid 'tools[{place}].name'", f"tools[{place}].name"
        if not isinstance(tool.get("strict"), bool):  # OpenAI takes it as true
            return f"Invalid schema for function '{tool['name']}'", f"tools[{place}].parameters"
        if tool["strict"] and tool["parameters"].get("additionalProperties") is not False:
            return f"'additionalProperties' is required in '{tool['name']}'", f"tools[{place}].parameters"
    names = [tool["name"] for tool in body.get("tools", [])]
    choice = body.get("tool_choice", "auto")
    if choice not in CHOICES and choice not in [{"type": "function", "name": name} for name in names]:
        return f"Tool choice {choice} not found in 'tools'.", "tool_choice"
    return None


def _find_in_options(body: Json) -> Fault | None:
    text, reasoning = body.get("text", {}), body.get("reasoning", {})
    fault = _unknown(text, {"format", "verbosity"}, "text.") or _unknown(reasoning, {"effort", "summary"}, "reasoning.")
    if fault is not None:
        return fault
    if set(body.get("include", [])) - set(INCLUDED):
        return "Invalid value in 'include'.", "include"
    answer_format = text.get("format", {"type": "text"})
    known = {"type", "name", "schema", "strict", "description"} if answer_format["type"] == "json_schema" else {"type"}
    if fault := _unknown(answer_format, known, "text.format."):
        return fault
    if answer_format["type"] == "json_schema" and not {"name", "schema"} <= answer_format.keys():
        return "Missing required parameter: 'text.format.name'.", "text.format.name"
    return None


def _find_in_items(items: list[Json], followers: Followers, *, raw: bool) -> Fault | None:
    seen: set[str] = set()
    called: list[str] = []
    answered: list[str] = []
    for place, item in enumerate(items):
        where = f"input[{place}]"
        kind = item.get("type")
        if kind not in FIELDS_OF_ITEMS:
            return f"Invalid value: {kind!r}.", f"{where}.type"
        known = FIELDS_OF_ITEMS[kind] | ({"phase"} if item.get("role") == "assistant" else set())
        fault = _unknown(item, known, f"{where}.")
        if fault is None and (kind == "message" or kind == "function_call_output"):
            fault = _find_in_content(item, where)
        if fault is None and "call_id" in item:
            fault = _find_in_call(item, where, called, answered)
        if fault is None and kind == "reasoning":
            following = items[place + 1] if place + 1 < len(items) else None
            fault = _find_in_reasoning(item, following, where, followers, raw=raw)
        if fault is None and item.get("id") in seen:
            fault = f"Duplicate item found with id {item['id']}.", where
        if fault is not None:
            return fault
        seen |= {item["id"]} if "id" in item else set()
    if missing := [each for each in called if each not in answered]:
        return f"No tool output found for function call {missing[0]}.", "input"
    return None


def _find_in_content(item: Json, where: str) -> Fault | None:
    content = item.get("output") if item["type"] == "function_call_output" else item.get("content")
    if item["type"] == "message" and item.get("role") not in ("user", "system", "developer", "assistant"):
        return f"Invalid value: {item.get('role')!r}.", f"{where}.role"
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "Invalid type: expected a string or an array.", f"{where}.content"
    is_answer = item.get("role") == "assistant"
    for place, part in enumerate(content):
        kind = part.get("type")
        if kind not in FIELDS_OF_PARTS or kind.startswith("input_") == is_answer:
            return f"Invalid value: {kind!r}.", f"{where}.content[{place}]"
        if fault := _unknown(part, FIELDS_OF_PARTS[kind], f"{where}.content[{place}]."):
            return fault
        if kind == "input_image" and part.get("detail") not in ("low", "high", "auto"):
            return "Missing required parameter: 'detail'.", f"{where}.content[{place}].detail"
    return None


def _find_in_call(item: Json, where: str, called: list[str], answered: list[str]) -> Fault | None:
    call_id = item["call_id"]
    if not 1 <= len(call_id) <= 64:
        return f"Invalid '{where}.call_id': string too long.", f"{where}.call_id"
    if item["type"] == "function_call_output":
        if call_id not in called:
            return f"No tool call found for function call output with call_id {call_id}.", "input"
        answered.append(call_id)
        return None
    if not NAME.fullmatch(item.get("name", "")) or not isinstance(item.get("arguments"), str):
        return f"Invalid '{where}.name'", f"{where}.name"
    if call_id in called:
        return f"Duplicate item found with call_id {call_id}.", where
    called.append(call_id)
    return None


def _find_in_reasoning(
    item: Json, following: Json | None, where: str, followers: Followers, *, raw: bool
) -> Fault | None:
    encrypted = item.get("encrypted_content")
    if raw and encrypted is None and item.get("content"):
        return None
    if item.get("content"):
        return "Unknown parameter: content", f"{where}.content"
    if encrypted is None:
        return f"Item with id '{item.get('id')}' not found. Items are not persisted when store is false.", "input"
    if encrypted not in followers:
        return f"The encrypted content {encrypted[:5]}... could not be verified.", "encrypted_content"
    sent, follower = followers[encrypted]
    if not is_unchanged(item, sent):
        return f"The reasoning item {sent['id']} was changed.", where
    if not _is_in_answer(following) or (follower is not None and not _is_same(following, follower)):
        return f"Item {sent['id']!r} of type 'reasoning' was provided without its required following item.", "input"
    return None


def _is_in_answer(item: Json | None) -> TypeGuard[Json]:
    """Return whether an item after reasoning is of the same answer."""
    if item is None or item["type"] == "function_call_output":
        return False
    return item["type"] != "message" or item.get("role") == "assistant"


def is_unchanged(item: Json, sent: Json) -> bool:
    """Return whether reasoning came back as it was sent. Summaries after the first item are not kept."""
    summaries = [sent["summary"], []] if sent["late"] else [sent["summary"]]
    same = all(item.get(key) == sent[key] for key in ("id", "encrypted_content"))
    return same and item["summary"] in summaries


def _is_same(item: Json, sent: Json) -> bool:
    """Return whether an item of the input is one that was sent, whose id and form may differ.

    A text may be cut, or joined with the next one.
    """
    if item["type"] != sent["type"]:
        return False
    if sent["type"] == "message":
        texts = sorted([written_in(item), written_in(sent)], key=len)
        return texts[1].startswith(texts[0]) and item.get("phase") == sent.get("phase")
    keys = ("call_id",) if sent["type"] == "function_call" else ("encrypted_content",)
    return all(item.get(key) == sent.get(key) for key in keys)


def written_in(item: Json) -> str:
    """Return the text of a message or an output."""
    content = item["output"] if item["type"] == "function_call_output" else item["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or part.get("refusal") or "" for part in content)
