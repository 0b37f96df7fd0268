"""Requests with many or long errors, whose responses must be short."""

from functools import partial
from typing import Any

from tests.adversarial.case import CASES, Case, case, get, post

LONG = "x" * 5_000_000
TURN = "/v1/agents/00000000-0000-7000-8000-000000000000/session/00000000-0000-7000-8000-000000000000/turn"
RESPONSE = {"model": "scripted/demo", "input": "hi"}
CHAT = {"model": "scripted/demo", "messages": [{"role": "user", "content": "hi"}]}

BODIES: dict[str, tuple[str, Any]] = {
    "wrong_items": ("/v1/responses", RESPONSE | {"input": [1] * 190_000}),
    "wrong_objects": ("/v1/responses", RESPONSE | {"input": [{}] * 190_000}),
    "wrong_parts": ("/v1/responses", RESPONSE | {"input": [{"role": "user", "content": [{"type": "x"}] * 90_000}]}),
    "wrong_tools": ("/v1/responses", RESPONSE | {"tools": [{"type": "function"}] * 90_000}),
    "wrong_include": ("/v1/responses", RESPONSE | {"include": ["x"] * 190_000}),
    "long_type_of_item": ("/v1/responses", RESPONSE | {"input": [{"type": LONG}]}),
    "long_type_of_tool": ("/v1/responses", RESPONSE | {"tools": [{"type": LONG}]}),
    "long_choice": ("/v1/responses", RESPONSE | {"tool_choice": LONG}),
    "long_unknown_field": ("/v1/responses", RESPONSE | {LONG: 1}),
    "many_unknown_fields": ("/v1/responses", RESPONSE | {f"x{number}": 1 for number in range(190_000)}),
    "long_model": ("/v1/responses", RESPONSE | {"model": LONG}),
    "long_conversation": ("/v1/responses", RESPONSE | {"conversation": LONG}),
    "long_previous_response": ("/v1/responses", RESPONSE | {"previous_response_id": LONG}),
    "long_metadata": ("/v1/responses", RESPONSE | {"metadata": {LONG: "x"}}),
    "many_metadata": ("/v1/responses", RESPONSE | {"metadata": {f"x{number}": 1 for number in range(190_000)}}),
    "wrong_messages": ("/v1/chat/completions", CHAT | {"messages": [{"role": "user"}] * 90_000}),
    "wrong_calls": ("/v1/chat/completions", CHAT | {"messages": [{"role": "assistant", "tool_calls": [{}] * 90_000}]}),
    "long_role": ("/v1/chat/completions", CHAT | {"messages": [{"role": LONG, "content": "x"}]}),
    "long_call_id": (
        "/v1/chat/completions",
        CHAT | {"messages": [{"role": "tool", "tool_call_id": LONG, "content": "x"}]},
    ),
    "long_stop": ("/v1/chat/completions", CHAT | {"stop": [LONG] * 1}),
    "wrong_turn": (TURN, {"messages": [{"role": "user", "content": [{"type": "text"}] * 60_000}]}),
    "wrong_turn_messages": (TURN, {"messages": [{"role": "x"}] * 9_000}),
    "long_role_of_turn": (TURN, {"messages": [{"role": LONG, "content": "x"}]}),
    "wrong_agent": ("/v1/agents", {"agent_config": {"model": "m", "instructions": "", "toolgroups": [1] * 190_000}}),
    "wrong_client_tools": ("/v1/agents", {"agent_config": {"model": "m", "client_tools": [{}] * 190_000}}),
    "wrong_shields": (
        "/v1/agents",
        {"agent_config": {"model": "m", "input_shields": [1] * 190_000}},
    ),
    "long_strategy": ("/v1/agents", {"agent_config": {"sampling_params": {"strategy": {"type": LONG}}}}),
    "wrong_safety": ("/v1/safety/run-shield", {"shield_id": "x", "messages": [{}] * 100_000, "params": {}}),
    "long_shield": ("/v1/shields", {"shield_id": "x", "provider_id": LONG}),
    "long_provider": ("/v1/toolgroups", {"toolgroup_id": "x", "provider_id": LONG}),
    "long_kind_of_model": ("/v1/models", {"model_id": "x", "model_type": LONG}),
    "wrong_conversation_items": ("/v1/conversations", {"items": [{"type": "x"}] * 90_000}),
    "long_tool": ("/v1/tool-runtime/invoke", {"tool_name": LONG, "kwargs": {}}),
    "no_json": ("/v1/responses", b"[" * 6_000_000),
    "no_utf_8": ("/v1/responses", b'{"input": "' + b"\xff" * 5_000_000 + b'"}'),
    "long_number": ("/v1/responses", b'{"input": ' + b"1" * 5_000_000 + b"}"),
    "long_fraction": ("/v1/responses", b'{"temperature": 0.' + b"1" * 5_000_000 + b"}"),
    "half_pairs": ("/v1/responses", b'{"input": "' + b"\\ud800" * 900_000 + b'"}'),
}


def wrong(path: str, body: Any) -> Case:
    answer = yield post(path, body)
    assert len(answer.body) < 50_000, answer.body[:500]


for name, (path, body) in BODIES.items():
    CASES[f"error_{name}"] = partial(wrong, path, body)


@case
def error_long_paths() -> Case:
    for name in ("shields", "models", "responses", "agents", "tools", "toolgroups", "conversations", "nothing"):
        for path in (f"/v1/{name}/{'x' * 500_000}", f"/v1/{name}?limit={'9' * 500_000}", f"/v1/{'y' * 500_000}"):
            answer = yield get(path)
            assert len(answer.body) < 50_000, path[:50]
