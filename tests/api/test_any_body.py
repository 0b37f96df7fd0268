"""Any JSON body: never a 5xx, and accepted objects can be read back."""

import json
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.api.api_client import JSON, WEATHER, create_agent, create_session

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
FIELDS = st.sampled_from(["type", "name", "content", "role", "text", "call_id", "image", "url", "uri", "args", "data"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.sampled_from(["user", "tool", "text", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS | ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def one_of(*samples: Any) -> st.SearchStrategy[Any]:
    """A sample that is right as often as anything at all."""
    return st.sampled_from(samples) | ANY_JSON


AGENT_CONFIG = st.fixed_dictionaries(
    {"model": one_of("scripted/demo", "m"), "instructions": one_of("", "Be brief.") | ANY_TEXT},
    optional={
        "sampling_params": one_of({"strategy": {"type": "top_k", "top_k": 1}}, {"stop": ["x"], "max_tokens": -1}),
        "toolgroups": one_of(["a", {"name": "b", "args": {}}]) | st.lists(ANY_JSON, max_size=2),
        "client_tools": one_of([WEATHER])
        | st.lists(
            st.fixed_dictionaries({"name": one_of("w"), "metadata": ANY_JSON, "parameters": ANY_JSON}), max_size=2
        ),
        "tool_choice": one_of("auto"),
        "tool_config": one_of({"tool_choice": "none"}),
        "max_infer_iters": one_of(0, 3),
        "name": one_of("n"),
        "response_format": one_of({"type": "json_schema", "json_schema": {}})
        | st.fixed_dictionaries({"type": st.just("json_schema"), "json_schema": ANY_JSON}),
    },
)
MESSAGE = st.fixed_dictionaries(
    {"role": one_of("user", "tool"), "content": one_of("Hello")}, optional={"call_id": ANY_JSON}
)
TURN = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE | ANY_JSON, max_size=3) | ANY_JSON},
    optional={
        "stream": one_of(True, False),
        "documents": one_of([{"content": "x", "mime_type": "text/plain"}]),
        "toolgroups": one_of([]),
        "instructions": one_of("Override."),
        "sampling_params": one_of({"max_tokens": 5}, {"strategy": {"type": "greedy"}}),
        "tool_config": one_of({"tool_choice": "required"}),
    },
)
BOUNDED = settings(
    max_examples=40,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@BOUNDED
@given(body=st.fixed_dictionaries({"agent_config": AGENT_CONFIG}) | ANY_JSON)
def test_any_agent_is_created_or_refused(http: httpx.Client, body: Any) -> None:
    response = http.post("/v1/agents", content=json.dumps(body), headers=JSON)

    assert response.status_code in (200, 400)
    if response.status_code == 200:
        shown = http.get(f"/v1/agents/{response.json()['agent_id']}")
        assert shown.status_code == 200
        assert shown.json()["agent_config"]["instructions"] == body["agent_config"]["instructions"]


@BOUNDED
@given(body=TURN)
def test_any_turn_runs_or_is_refused(http: httpx.Client, body: Any) -> None:
    session = create_session(http, create_agent(http, client_tools=[WEATHER]))

    response = http.post(f"{session}/turn", content=json.dumps(body), headers=JSON)

    shown = http.get(session)
    assert response.status_code in (200, 400)
    assert shown.status_code == 200
    assert len(shown.json()["turns"]) == (response.status_code == 200)
    assert "server_error" not in response.text


@BOUNDED
@given(name=ANY_JSON)
def test_any_session_name_is_taken_or_refused(http: httpx.Client, name: Any) -> None:
    agent = create_agent(http)

    response = http.post(f"/v1/agents/{agent}/session", content=json.dumps({"session_name": name}), headers=JSON)

    listed = http.get(f"/v1/agents/{agent}/sessions").json()["data"]
    assert response.status_code in (200, 400)
    assert [entry["session_name"] for entry in listed] == ([name] if response.status_code == 200 else [])
