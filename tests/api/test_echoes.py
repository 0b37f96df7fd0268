"""Answers of Stint, sent back unchanged: no field is unknown, so there is no header x-stint-warning."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import TIME, agent_config, create_session, open_session, resume, turn, user
from tests.api.api_client import WEATHER as CLIENT_TOOL
from tests.api.app_fixture import Served
from tests.api.responses_client import MODEL, WEATHER, openai_client
from tests.unit.domain.openai.request_bodies import INPUT_ITEMS

WARNING = "x-stint-warning"
CALL = 'call: get_weather {"city": "Rome"}'
FUNCTION = {"type": "function", "function": {name: WEATHER[name] for name in ("name", "description", "parameters")}}
OF_OTHERS = {"audio": None, "function_call": None, "parsed": None}
"""The fields that a message of OpenAI's own servers, or of the `parse` of its client, has besides."""


def assert_no_warning(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    assert answer.headers.get(WARNING) is None
    return answer.json()


@pytest.mark.parametrize("more", [{}, OF_OTHERS])
@pytest.mark.parametrize("said", ["say: x", "think: hm\nsay: x", CALL, f"think: hm\nsay: x\n{CALL}", "refuse: No."])
def test_the_message_of_a_chat_completion(http: httpx.Client, said: str, more: dict[str, Any]) -> None:
    chat: dict[str, Any] = {"model": MODEL, "messages": [user(said)], "tools": [FUNCTION]}
    message = assert_no_warning(http.post("/v1/chat/completions", json=chat))["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "fine"} for call in message.get("tool_calls") or ()
    ]

    messages = [*chat["messages"], message | more, *results, user("say: y")]

    assert_no_warning(http.post("/v1/chat/completions", json=chat | {"messages": messages}))


@pytest.mark.parametrize("said", ["say: x", CALL])
def test_the_message_that_openais_client_read_from_a_stream(server: Served, said: str) -> None:
    chat: dict[str, Any] = {"model": MODEL, "messages": [user(said)], "tools": [FUNCTION]}
    with openai_client(server) as client:
        with client.chat.completions.stream(**chat) as stream:
            message = stream.get_final_completion().choices[0].message
        results = [{"role": "tool", "tool_call_id": call.id, "content": "fine"} for call in message.tool_calls or ()]
        messages = [*chat["messages"], message, *results, user("say: y")]

        answer = client.chat.completions.with_raw_response.create(**chat | {"messages": messages})

    assert answer.headers.get(WARNING) is None


@pytest.mark.parametrize("said", ["say: x", CALL, "refuse: No."])
def test_the_output_that_openais_client_read_from_a_stream(server: Served, said: str) -> None:
    settings: dict[str, Any] = {"model": MODEL, "tools": [WEATHER]}
    with openai_client(server) as client:
        with client.responses.stream(**settings, input=said) as stream:
            output = stream.get_final_response().output
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "fine"}
            for item in output
            if item.type == "function_call"
        ]

        settings["input"] = [user(said), *output, *results]
        answer = client.responses.with_raw_response.create(**settings)

    assert answer.headers.get(WARNING) is None


def test_items_of_every_kind(http: httpx.Client) -> None:
    # Without those that have the key of another tenant, or a URL of another host.
    given = [item for item in INPUT_ITEMS if not item.get("encrypted_content") and "file_url': 'h" not in str(item)]
    for part in (given[:20], given[20:]):
        conversation = assert_no_warning(http.post("/v1/conversations", json={"items": part}))["id"]
        include = ["file_search_call.results", "web_search_call.action.sources"]
        params: dict[str, Any] = {"limit": 100, "order": "asc", "include": include}
        items = http.get(f"/v1/conversations/{conversation}/items", params=params).json()["data"]

        assert len(items) == len(part)
        assert_no_warning(http.post("/v1/conversations", json={"items": items}))


def test_the_message_of_llama_stacks_chat_completion(http: httpx.Client) -> None:
    chat = {"model_id": MODEL, "messages": [user(CALL)], "tools": [{"tool_name": "get_weather"}]}
    message = assert_no_warning(http.post("/v1/inference/chat-completion", json=chat))["completion_message"]

    assert message["tool_calls"]
    result = {"role": "tool", "call_id": message["tool_calls"][0]["call_id"], "content": "fine"}
    assert_no_warning(
        http.post("/v1/inference/chat-completion", json=chat | {"messages": [user(CALL), message, result]})
    )


def test_the_input_of_a_turn_and_of_its_resume(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[CLIENT_TOOL])
    waiting = turn(http, session, CALL)
    resumed = assert_no_warning(resume(http, session, waiting, "fine"))
    stored = http.get(f"{session}/turn/{resumed['turn_id']}").json()
    responses = [answer for step in stored["steps"] for answer in step.get("tool_responses", ())]

    assert_no_warning(http.post(f"{session}/turn", json={"messages": stored["input_messages"]}))
    again = turn(http, session, CALL)
    call_id = again["output_message"]["tool_calls"][0]["call_id"]
    answers = [responses[0] | {"call_id": call_id}]
    assert_no_warning(http.post(f"{session}/turn/{again['turn_id']}/resume", json={"tool_responses": answers}))


def test_the_configuration_of_an_agent(http: httpx.Client) -> None:
    config = agent_config(
        name="n",
        client_tools=[CLIENT_TOOL, TIME, {"name": "find", "input_schema": {"type": "object"}}],
        toolgroups=["builtin::websearch", {"name": "builtin::rag/knowledge_search", "args": {"vector_db_ids": []}}],
        sampling_params={"strategy": {"type": "top_p", "temperature": 0.5, "top_p": 0.9}, "max_tokens": 9},
        tool_config={"tool_choice": "auto", "system_message_behavior": "append"},
        response_format={"type": "json_schema", "json_schema": {"type": "object"}},
        when_busy="enqueue",
        tool_shields={"get_time": {"input_shields": []}},
        context_management=[{"type": "compaction", "compact_threshold": 9_000}],
        reasoning={"effort": "low"},
        verbosity="low",
        service_tier="auto",
        metadata={"team": "a"},
    )
    agent = assert_no_warning(http.post("/v1/agents", json={"agent_config": config}))["agent_id"]
    read = http.get(f"/v1/agents/{agent}").json()["agent_config"]

    created = assert_no_warning(http.post("/v1/agents", json={"agent_config": read}))

    assert http.get(f"/v1/agents/{created['agent_id']}").json()["agent_config"] == read
    assert create_session(http, created["agent_id"])
