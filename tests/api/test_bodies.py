import json
from typing import Any

import httpx
import pytest
from tests.api.api_client import JSON, agent_config, assert_error, create_agent, open_session, turn, turns_of

from stint.domain.ids import new_id
from stint.domain.openai.response_requests import CreateResponse


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "required"),
        (b"{bad", "cannot be read as JSON"),
        (b'{"agent_config": ', "cannot be read as JSON"),
        (b"[]", "an object"),
        (b'"text"', "an object"),
        (b"null", "an object"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[" * 100_000, "deeper"),
        (b'{"agent_config": NaN}', "NaN and infinite numbers are not JSON"),
        (b'{"agent_config": ' + b"9" * 5_000 + b"}", "number out of range"),
    ],
)
def test_a_body_that_is_no_json_object_is_400(http: httpx.Client, session: str, body: bytes, words: str) -> None:
    for path in ("/v1/agents", f"{session}/turn", f"{session}/turn/{new_id()}/resume"):
        error = assert_error(http.post(path, content=body, headers=JSON), 400, "invalid_request")

        assert words in error["message"]
        assert error["param"] == "body"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("NaN", "NaN and infinite numbers are not JSON"),
        ("-Infinity", "NaN and infinite numbers are not JSON"),
        ("1e999", "too large"),
        ('"\\ud800"', "surrogate"),
        ('{"\\udfff": 1}', "surrogate"),
        ("[" * 150 + "]" * 150, "deeper"),
        ("[" * 250 + "]" * 250, "deeper"),
        ("[" * 900 + "]" * 900, "deeper"),
    ],
)
def test_values_that_could_not_be_read_back_are_400(http: httpx.Client, value: str, words: str) -> None:
    tool = json.dumps({"name": "w", "metadata": {"key": "HERE"}}).replace('"HERE"', value)
    body = json.dumps({"agent_config": agent_config(client_tools=["HERE"])}).replace('"HERE"', tool)

    response = http.post("/v1/agents", content=body, headers=JSON)

    assert words in assert_error(response, 400, "invalid_request")["message"]


def test_values_at_the_edge_of_json_are_kept(http: httpx.Client) -> None:
    deep: Any = "bottom"
    for _ in range(90):
        deep = [deep]
    metadata = {"deep": deep, "long": 10**300, "nul": "a\u0000b", "pair": "🙂", "": None, "tiny": 5e-324}

    agent = create_agent(http, client_tools=[{"name": "w", "metadata": metadata}])

    [tool] = http.get(f"/v1/agents/{agent}").json()["agent_config"]["client_tools"]
    assert tool["metadata"] == metadata


def test_numbers_without_measure_do_no_harm(http: httpx.Client) -> None:
    for config in (
        {"max_infer_iters": 0},
        {"sampling_params": {"strategy": {"type": "top_k", "top_k": 10**40}, "max_tokens": 10**40}},
    ):
        assert turn(http, open_session(http, **config), "say: fine")["status"] == "completed"


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"max_infer_iters": -1}, "max_infer_iters"),
        ({"sampling_params": {"max_tokens": -1}}, "sampling_params.max_tokens"),
    ],
)
def test_negative_numbers_are_refused_by_name(http: httpx.Client, config: dict[str, Any], field: str) -> None:
    body = {"agent_config": {"model": "scripted/demo", "instructions": "", **config}}

    error = assert_error(http.post("/v1/agents", json=body), 400, "invalid_request")

    assert error["param"] == f"agent_config.{field}"


def test_strange_text_is_said_and_shown(http: httpx.Client, session: str) -> None:
    text = "nul \u0000, pair 🙂, break \u2028, bell \u0007, right to left \u202e"

    shown = turn(http, session, text)

    assert shown["input_messages"][0]["content"] == text
    assert turns_of(http, session) == [shown]


def test_a_list_is_checked_up_to_its_first_fault(http: httpx.Client, session: str) -> None:
    messages = [{"role": "user", "content": "fine"}] + [{"role": "user"}] * 1_000

    response = http.post(f"{session}/turn", json={"messages": messages})

    assert assert_error(response, 400, "invalid_request")["message"] == "messages[1].content: Field required"
    assert len(response.json()["detail"]["errors"]) == 1


def test_many_faults_are_not_all_listed(http: httpx.Client) -> None:
    response = http.post("/v1/responses", json={key: [[]] for key in CreateResponse.model_fields})

    assert " more" in assert_error(response, 400, "invalid_request")["message"]
    assert len(response.json()["detail"]["errors"]) == 20


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/responses", {"input": "x", "metadata": {f"{place}": "" for place in range(17)}}, "metadata"),
        (
            "/v1/responses",
            {"input": "x", "stream_options": {f"{place}": 0 for place in range(1_001)}},
            "stream_options",
        ),
        ("/v1/conversations", {"metadata": {f"{place}": 0 for place in range(2_000)}}, "metadata"),
    ],
)
def test_an_object_with_too_many_entries_is_one_fault(
    http: httpx.Client, path: str, body: dict[str, Any], param: str
) -> None:
    response = http.post(path, json=body)

    assert assert_error(response, 400, "invalid_request")["param"] == param
    assert len(response.json()["detail"]["errors"]) == 1
