from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, open_session, say, turn, turns_of
from tests.api.app_fixture import AppFixture

from stint.domain.inference import Decoding


def test_nulls_and_unknown_fields_of_a_turn_change_nothing(http: httpx.Client) -> None:
    session = open_session(http)
    nulls = dict.fromkeys(("documents", "toolgroups", "tool_config", "instructions", "sampling_params", "stream"))

    answer = turn(http, session, "say: fine", **nulls, colour="red")

    assert answer["output_message"]["content"] == "fine"


def test_only_fields_of_a_turn_that_are_present_and_not_null_override_the_agents(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    sampling = {"strategy": {"type": "top_k", "top_k": 3}, "max_tokens": 50, "repetition_penalty": 1.2, "stop": ["X"]}
    tool_config = {"tool_choice": "none", "tool_prompt_format": "json"}
    session = open_session(
        http,
        model="recorded/model",
        client_tools=[WEATHER],
        sampling_params=sampling,
        tool_config=tool_config,
    )

    turn(http, session, "say: a", sampling_params={"max_tokens": 7, "stop": None}, tool_config={"tool_choice": None})
    partly = app_fixture.last_request
    turn(
        http,
        session,
        "say: b",
        instructions="",
        sampling_params={"strategy": {"type": "greedy"}, "stop": []},
        tool_config={"tool_choice": "auto"},
    )
    wholly = app_fixture.last_request
    turn(http, session, "say: c")
    not_at_all = app_fixture.last_request

    assert partly.decoding == Decoding(top_k=3, max_tokens=7, repetition_penalty=1.2, stop=("X",))
    assert partly.tool_choice == "none"
    assert wholly.decoding == Decoding(temperature=0.0, max_tokens=50, repetition_penalty=1.2)
    assert wholly.tool_choice == "auto"
    assert not any(message.text == "Be brief." for message in wholly.messages if hasattr(message, "text"))
    assert not_at_all.decoding == Decoding(top_k=3, max_tokens=50, repetition_penalty=1.2, stop=("X",))
    assert not_at_all.tool_choice == "none"
    assert not_at_all.messages[0] == partly.messages[0] != wholly.messages[0]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"sampling_params": {"strategy": {"type": "beam"}}}, "sampling_params.strategy"),
        ({"sampling_params": {"max_tokens": -1}}, "sampling_params.max_tokens"),
        ({"client_tools": [{"name": "get.weather"}]}, "client_tools"),
        ({"tool_config": {"tool_prompt_format": "yaml"}}, "tool_config.tool_prompt_format"),
        ({"tool_config": {"tool_choice": "no_such_tool"}}, "tool_config.tool_choice"),
        ({"toolgroups": ["mcp::nowhere"]}, "toolgroups"),
        ({"toolgroups": [{"name": "mcp::nowhere", "args": {"a": 1}}]}, "toolgroups"),
        ({"documents": [{"content": "x", "mime_type": "application/pdf"}]}, "documents[0]"),
        ({"documents": [{"content": {"uri": "file:///etc/passwd"}, "mime_type": "text/plain"}]}, "documents[0]"),
    ],
)
def test_a_turn_that_cannot_be_begun_is_refused_before_its_stream(
    http: httpx.Client, body: dict[str, Any], field: str
) -> None:
    session = open_session(http)

    response = say(http, session, "Hello", stream=True, **body)

    assert response.status_code == 400
    assert response.headers["content-type"] == "application/json"
    assert response.json()["error"]["param"] == field
    assert turns_of(http, session) == []
    assert turn(http, session, "say: free")["status"] == "completed"


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"toolgroups": ["mcp::nowhere"]}, "mcp::nowhere"),
        ({"toolgroups": [{"name": "mcp::nowhere/add"}]}, "mcp::nowhere/add"),
        ({"model": "scripted/"}, "scripted/"),
    ],
)
def test_what_an_agent_names_and_nobody_knows_is_refused_in_the_turn(
    http: httpx.Client, config: dict[str, Any], name: str
) -> None:
    session = open_session(http, **config)

    response = say(http, session, "Hello", stream=True)

    assert response.status_code == 400
    assert repr(name) in response.json()["error"]["message"]
