"""Shapes of what the original servers (llama-stack 0.0.41, and 0.0.40 for /memory/create) answered, from recordings.

A type stands for any value of that type: an id, a time, a text of the model. Other values are those of the recordings.
A list with one shape is the shape of each of its items. The original left the times of steps empty.
"""

from collections.abc import Iterator
from typing import Any

STEP = {"turn_id": str, "step_id": str, "started_at": str, "completed_at": str}
"""The fields of each step. The original wrote null for both times."""

CALL = {"call_id": str, "tool_name": str, "arguments": dict}
RESULT = {"call_id": str, "tool_name": str, "content": str}
VIOLATION = {"violation_level": "error", "user_message": str, "metadata": dict}
ANSWER = {"role": "assistant", "content": str, "stop_reason": str, "tool_calls": [CALL]}
USER = {"role": "user", "content": (str, [(str, {"image": dict})]), "context": None}
RESPONSE = {"role": "ipython", **RESULT}

STEPS: dict[str, dict[str, Any]] = {
    "inference": {**STEP, "step_type": "inference", "model_response": ANSWER},
    "shield_call": {**STEP, "step_type": "shield_call", "violation": (None, VIOLATION)},
    "tool_execution": {**STEP, "step_type": "tool_execution", "tool_calls": [CALL], "tool_responses": [RESULT]},
    "memory_retrieval": {**STEP, "step_type": "memory_retrieval", "memory_bank_ids": [str]}
    | {"inserted_context": (str, [str])},
}
TURN = {
    "turn_id": str,
    "session_id": str,
    "input_messages": [(USER, RESPONSE)],
    "steps": [tuple(STEPS.values())],
    "output_message": ANSWER,
    "output_attachments": [],
    "started_at": str,
    "completed_at": str,
}
CALL_DELTA = (
    {"content": str, "parse_status": "started"},
    {"content": str, "parse_status": "in_progress"},
    {"content": CALL, "parse_status": "success"},
)
PROGRESS = {"step_id": str, "tool_response_text_delta": None}
EVENTS: dict[str, dict[str, Any]] = {
    "turn_start": {"turn_id": str},
    "step_start inference": {"step_id": str, "metadata": {}},
    "step_start tool_execution": {"step_id": str, "metadata": {}},
    "step_start memory_retrieval": {"step_id": str, "metadata": {}},
    "step_start shield_call": {"step_id": str, "metadata": {"touchpoint": ("user-input", "assistant-output")}},
    "step_progress inference": {**PROGRESS, "model_response_text_delta": str, "tool_call_delta": (None, *CALL_DELTA)},
    "step_progress tool_execution": {**PROGRESS, "model_response_text_delta": None, "tool_call_delta": None},
    **{f"step_complete {kind}": {"step_details": step} for kind, step in STEPS.items()},
    "turn_complete": {"turn": TURN},
}

MESSAGE = {"role": "assistant", "content": str, "stop_reason": "end_of_turn", "tool_calls": []}
CALLING = MESSAGE | {"tool_calls": [CALL]}
CHUNK = {"event": {"event_type": "progress", "delta": (str, *CALL_DELTA), "logprobs": None, "stop_reason": (None, str)}}
FIRST_CHUNK = {"event": {"event_type": "start", "delta": "", "logprobs": None, "stop_reason": None}}
LAST_CHUNK = {"event": {"event_type": "complete", "delta": "", "logprobs": None, "stop_reason": "end_of_turn"}}

CHUNKING = {"embedding_model": "all-MiniLM-L6-v2", "chunk_size_in_tokens": 64, "overlap_size_in_tokens": 16}
BANK = {"identifier": "bank1", "provider_id": "faiss", "type": "vector", **CHUNKING}
CREATED = {"bank_id": str, "name": "m", "config": {"type": "vector", **CHUNKING}, "url": None}
MODEL = {"identifier": str, "llama_model": str, "metadata": dict, "provider_id": str}
SHIELD = {"identifier": str, "type": str, "params": dict, "provider_id": str}
FOUND = {"chunks": [{"content": str, "token_count": int, "document_id": str}], "scores": [float]}
PROVIDERS = [{"provider_id": str, "provider_type": str}]
# Some routes take DELETE, as those of server 0.0.40 did.
ROUTES = [{"route": str, "method": ("get", "post", "delete"), "provider_types": [str]}]

ERROR = {"detail": str}
INVALID = {"detail": {"errors": [{"loc": [(str, int)], "msg": str, "type": str}]}}
"""What is wrong with a request. The original had it inside `error`, which has a message here."""


def differences(shape: Any, value: Any, place: str = "") -> Iterator[str]:
    """Yield where a value has another shape."""
    match shape:
        case type():
            known = isinstance(value, (int, float) if shape is float else shape) and not isinstance(value, bool)
        case tuple():
            known = any(not list(differences(one, value)) for one in shape)
        case dict() if isinstance(value, dict) and value.keys() == shape.keys():
            for name, part in shape.items():
                yield from differences(part, value[name], f"{place}.{name}")
            return
        case [one] if isinstance(value, list):
            for number, item in enumerate(value):
                yield from differences(one, item, f"{place}[{number}]")
            return
        case _:
            known = bool(shape == value)
    if not known:
        yield f"{place}: {value!r} is not {shape!r}"


def event_differences(payload: dict[str, Any]) -> list[str]:
    """Return where an event of a turn has not the shape of the recorded ones."""
    named = {name: payload[name] for name in ("event_type", "step_type") if name in payload}
    name = " ".join(named.values())
    return list(differences({**named, **EVENTS[name]}, payload, name))
