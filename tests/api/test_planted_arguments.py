"""Arguments of calls that a caller writes as a text that no parser should trust: the history must stay usable."""

import json
from typing import Any

import httpx
import pytest
from tests.adversarial.hostile_answers import ARGUMENTS
from tests.servers.chat_completions import ChatCompletionsServer

MODEL = "openai/m"
TEXTS = {name: ARGUMENTS[name] for name in ARGUMENTS if not name.startswith(("many", "raw_surrogate"))}
GO = {"role": "user", "content": "go on"}


def items(arguments: str) -> list[dict[str, Any]]:
    """Return items of every type that has arguments."""
    hosted = {"server_label": "s", "name": "add", "arguments": arguments}
    return [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "call_1", "name": "lookup", "arguments": arguments},
        {"type": "function_call_output", "call_id": "call_1", "output": arguments},
        {"type": "mcp_call", "id": "mcp_1", "output": arguments, **hosted},
        {"type": "mcp_approval_request", "id": "mcpr_1", **hosted},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": arguments},
    ]


def chat_messages(arguments: str) -> list[dict[str, Any]]:
    call = {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": arguments}}
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": arguments},
    ]


def llama_messages(arguments: str) -> list[dict[str, Any]]:
    call = {"call_id": "call_1", "tool_name": "lookup", "arguments": arguments, "arguments_json": arguments}
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "stop_reason": "end_of_message", "tool_calls": [call]},
        {"role": "tool", "call_id": "call_1", "content": arguments},
    ]


def bodies(arguments: str) -> dict[str, dict[str, Any]]:
    """Return the body of each route that takes earlier calls."""
    responses = {"model": MODEL, "input": items(arguments)}
    chat = {"model_id": MODEL, "messages": llama_messages(arguments)}
    return {
        "/v1/responses": responses,
        "/v1/responses/compact": responses,
        "/v1/responses/input_tokens": responses,
        "/v1/chat/completions": {"model": MODEL, "messages": chat_messages(arguments), "store": True},
        "/v1/inference/chat-completion": chat,
        "/v1/inference/batch-chat-completion": {"model_id": MODEL, "messages_batch": [llama_messages(arguments)]},
        "/v1/conversations": {"items": items(arguments)},
    }


@pytest.mark.parametrize("name", TEXTS)
def test_every_route_takes_such_a_call_or_refuses_it_by_name(
    http: httpx.Client, chat: ChatCompletionsServer, name: str
) -> None:
    for path, body in bodies(TEXTS[name]).items():
        answer = http.post(path, json=body)

        assert answer.status_code in (200, 400), (path, answer.text)
        if path != "/v1/conversations" and answer.status_code == 200:
            assert_sent_well(chat)
    assert http.get("/v1/chat/completions").status_code == 200


@pytest.mark.parametrize("name", TEXTS)
def test_a_conversation_with_a_planted_call_goes_on(http: httpx.Client, chat: ChatCompletionsServer, name: str) -> None:
    conversation = http.post("/v1/conversations").json()["id"]
    planted = http.post(f"/v1/conversations/{conversation}/items", json={"items": items(TEXTS[name])})
    assert planted.status_code == 200, planted.text

    for _ in range(2):
        answer = http.post("/v1/responses", json={"model": MODEL, "input": [GO], "conversation": conversation})
        assert answer.status_code == 200, answer.text
        assert_sent_well(chat)
    assert http.get(f"/v1/conversations/{conversation}/items").status_code == 200


def assert_sent_well(chat: ChatCompletionsServer) -> None:
    """Assert that the arguments that the model's server got last are objects which any parser reads."""
    for message in chat.bodies[-1]["messages"]:
        for call in message.get("tool_calls") or []:
            arguments = json.loads(call["function"]["arguments"], parse_constant=pytest.fail)
            assert isinstance(arguments, dict)
