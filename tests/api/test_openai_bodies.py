"""Bodies of OpenAI's API: what is read from which JSON type, and what must be there."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config
from tests.api.responses_client import WEATHER, assert_refused, get, post, respond, user

Body = dict[str, Any]
RESPONSE = {"model": "scripted/demo", "input": "say: x"}
CHAT = {"model": "scripted/demo", "messages": [{"role": "user", "content": "say: x"}]}
SCHEMA = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
CONSENT = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"}


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        *(("responses", {field: "true"}, field) for field in ("stream", "store", "background", "parallel_tool_calls")),
        *(("responses", {field: 1}, field) for field in ("stream", "store", "background", "parallel_tool_calls")),
        *(("responses", {field: "1"}, field) for field in ("temperature", "top_p", "frequency_penalty")),
        *(("responses", {field: "20"}, field) for field in ("max_output_tokens", "max_tool_calls", "max_infer_iters")),
        *(("responses", {field: True}, field) for field in ("temperature", "max_output_tokens", "max_tool_calls")),
        ("responses", {"max_output_tokens": 20.5}, "max_output_tokens"),
        ("responses", {"top_logprobs": "0"}, "top_logprobs"),
        ("responses", {"stream_options": {"include_obfuscation": "false"}}, "stream_options.include_obfuscation"),
        ("responses", {"text": {"format": SCHEMA | {"strict": "true"}}}, "text.format.strict"),
        ("responses", {"tools": [WEATHER | {"strict": "true"}]}, "tools[0].strict"),
        ("responses", {"input": [CONSENT | {"approve": "yes"}]}, "input[0].approve"),
        ("responses/input_tokens", {"parallel_tool_calls": "true"}, "parallel_tool_calls"),
        *(("chat/completions", {field: "true"}, field) for field in ("stream", "parallel_tool_calls")),
        *(("chat/completions", {field: "1"}, field) for field in ("temperature", "top_p", "presence_penalty")),
        *(("chat/completions", {field: "5"}, field) for field in ("max_tokens", "max_completion_tokens", "seed")),
        *(("chat/completions", {field: "1"}, field) for field in ("n", "logprobs", "store")),
        ("chat/completions", {"n": True}, "n"),
        ("chat/completions", {"stream_options": {"include_usage": "true"}}, "stream_options.include_usage"),
    ],
)
def test_truth_values_and_numbers_are_not_taken_from_other_types(
    http: httpx.Client, path: str, body: Body, param: str
) -> None:
    whole = (CHAT if path == "chat/completions" else RESPONSE) | body

    for base in ("/v1", "/v1/openai/v1"):
        assert assert_refused(http.post(f"{base}/{path}", json=whole), 400, "invalid_request")["param"] == param


def test_an_integer_is_a_valid_float(http: httpx.Client) -> None:
    fields = {"temperature": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": -1}

    shown = respond(http, "say: x", **fields)

    assert {name: shown[name] for name in fields} == fields
    assert http.post("/v1/chat/completions", json=CHAT | fields).status_code == 200


def test_llama_stacks_own_api_reads_numbers_from_text_as_ever(http: httpx.Client) -> None:
    assert http.post("/v1/agents", json={"agent_config": agent_config(max_infer_iters="5")}).status_code == 200


@pytest.mark.parametrize("body", [{}, {"input": None}, {"input": []}, {"instructions": "Be brief."}])
@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"background": True}, {"store": False}])
def test_a_request_with_nothing_to_answer_is_refused(http: httpx.Client, body: Body, fields: Body) -> None:
    for path in ("/v1/responses", "/v1/openai/v1/responses", "/v1/responses/input_tokens"):
        error = assert_refused(
            http.post(path, json={"model": "scripted/demo"} | body | fields), 400, "missing_required_parameter"
        )

        assert error["param"] == "input"
        assert "previous_response_id" in error["message"]
    assert http.get("/v1/responses").json()["data"] == []


def test_what_continues_needs_no_input(http: httpx.Client) -> None:
    first = respond(http, "say: x")
    conversation = http.post("/v1/conversations", json={"items": [user("say: x")]}).json()["id"]

    assert post(http, None, previous_response_id=first["id"]).status_code == 200
    assert post(http, None, conversation=conversation).status_code == 200


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"background": True}])
def test_a_conversation_without_items_needs_input(http: httpx.Client, fields: Body) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]

    refused = post(http, None, conversation=conversation, **fields)

    assert assert_refused(refused, 400, "missing_required_parameter")["param"] == "input"
    assert http.get("/v1/responses").json()["data"] == []
    assert post(http, "say: x", conversation=conversation).status_code == 200


def test_a_web_search_without_an_action_is_an_item(http: httpx.Client) -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    answer = {"type": "message", "role": "assistant", "content": "Found it."}

    created = post(http, [user("find"), search, answer, user("say: thanks")])
    conversation = http.post("/v1/conversations", json={"items": [search]})

    assert created.status_code == conversation.status_code == 200
    [kept] = http.get(f"/v1/conversations/{conversation.json()['id']}/items").json()["data"]
    assert kept["type"] == "web_search_call"
    assert get(http, created.json()["id"])["status"] == "completed"


@pytest.mark.parametrize(("base", "approval"), [("/v1", "always"), ("/v1/openai/v1", "never")])
def test_calls_of_mcp_servers_need_consent_as_their_address_has_it(
    http: httpx.Client, mcp_server: str, mcp: str, base: str, approval: str
) -> None:
    tool = {"type": "mcp", "server_label": "sums", "server_url": f"{mcp_server}/mcp"}
    asked = {"model": "scripted/demo", "input": 'call: add {"a": 2, "b": 3}'}

    for given in ({}, {"require_approval": None}):
        answer = http.post(f"{base}/responses", json=asked | {"tools": [tool | given]}).json()

        kinds = [item["type"] for item in answer["output"]]
        assert answer["tools"][0]["require_approval"] == approval
        assert ("mcp_approval_request" in kinds) == (approval == "always")
        assert ("mcp_call" in kinds) == (approval == "never")
    for said in ("always", "never"):
        answer = http.post(f"{base}/responses", json=asked | {"tools": [tool | {"require_approval": said}]}).json()
        assert ("mcp_call" in [item["type"] for item in answer["output"]]) == (said == "never")
