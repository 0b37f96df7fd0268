"""Inference, models, shields, providers, routes, health and telemetry, with the real client of October 2024."""

import json
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient, Refused

MODEL = "scripted/demo"
HELLO: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "Hello"}]
TOOLS = [
    {"tool_name": "get_bp", "description": "d", "parameters": {"liquid": {"param_type": "string", "required": True}}},
    {"tool_name": "brave_search"},
]


def test_a_chat_is_answered(october: OctoberClient) -> None:
    found = october.call("inference.chat_completion", model=MODEL, messages=HELLO)

    assert set(found) == {"completion_message", "logprobs"}
    assert found["completion_message"]["content"]
    assert found["completion_message"]["stop_reason"] == "end_of_turn"


def test_a_chat_is_streamed(october: OctoberClient) -> None:
    whole = october.call("inference.chat_completion", model=MODEL, messages=HELLO)["completion_message"]["content"]

    chunks = october.call("inference.chat_completion", strict=True, model=MODEL, messages=HELLO, stream=True)

    events = [chunk["event"] for chunk in chunks]
    assert [events[0]["event_type"], events[-1]["event_type"]] == ["start", "complete"]
    assert {event["event_type"] for event in events[1:-1]} == {"progress"}
    assert "".join(event["delta"] for event in events) == whole
    assert events[-1]["stop_reason"] == "end_of_turn"


def test_a_call_of_a_tool_is_in_the_answer_and_in_the_stream(october: OctoberClient) -> None:
    messages = [{"role": "user", "content": "get_bp of water"}]

    answer = october.call("inference.chat_completion", model=MODEL, messages=messages, tools=TOOLS)
    chunks = october.call("inference.chat_completion", model=MODEL, messages=messages, tools=TOOLS, stream=True)

    [call] = answer["completion_message"]["tool_calls"]
    last = [chunk["event"]["delta"] for chunk in chunks if isinstance(chunk["event"]["delta"], dict)][-1]
    assert call["tool_name"] == last["content"]["tool_name"] == "get_bp"
    assert last["parse_status"] == "success"
    assert answer["completion_message"]["stop_reason"] == "end_of_turn"


def test_a_built_in_tool_has_its_own_parameter(october: OctoberClient, app_fixture: AppFixture) -> None:
    october.call("inference.chat_completion", model="recorded/m", messages=HELLO, tools=TOOLS)

    [_, search] = app_fixture.last_request.tools
    assert (search.name, list(search.parameters["properties"])) == ("brave_search", ["query"])


@pytest.mark.parametrize("call_id", ["c", ""])
def test_a_result_follows_its_call(october: OctoberClient, app_fixture: AppFixture, call_id: str) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "bp?"},
        {
            "role": "assistant",
            "content": "",
            "stop_reason": "end_of_turn",
            "tool_calls": [{"call_id": "c", "tool_name": "get_bp", "arguments": {"liquid": "w"}}],
        },
        {"role": "ipython", "call_id": call_id, "tool_name": "get_bp", "content": "100"},
    ]

    october.call("inference.chat_completion", model="recorded/m", messages=messages)

    result = app_fixture.last_request.messages[-1]
    assert (getattr(result, "call_id", None), getattr(result, "content", None)) == ("c", "100")


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"strategy": "greedy", "max_tokens": 5, "temperature": 1.0}, {"temperature": 0.0, "max_tokens": 5}),
        ({"strategy": "top_p", "temperature": 0.7, "top_p": 0.8}, {"temperature": 0.7, "top_p": 0.8}),
        ({"strategy": "top_p"}, {"temperature": None, "top_p": 0.95}),
        ({"strategy": "top_k", "top_k": 4, "repetition_penalty": 1.2}, {"top_k": 4, "repetition_penalty": 1.2}),
        ({"strategy": "top_k"}, {"top_k": None, "top_p": 0.95}),
    ],
)
def test_sampling_parameters_reach_the_model_and_the_strategy_decides(
    october: OctoberClient, app_fixture: AppFixture, params: dict[str, Any], expected: dict[str, Any]
) -> None:
    october.call("inference.chat_completion", model="recorded/m", messages=HELLO, sampling_params=params)

    decoding = app_fixture.last_request.decoding
    assert {name: getattr(decoding, name) for name in expected} == expected


def test_a_content_is_completed_whole_and_streamed(http: httpx.Client, october: OctoberClient) -> None:
    whole = october.call("inference.completion", model=MODEL, content="Once upon")
    # The client asks for the stream, but reads it as one text.
    body = {"model": MODEL, "content": "Once upon", "stream": True}
    lines = [line for line in http.post("/inference/completion", json=body).text.split("\n") if line]

    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert "".join(chunk["delta"] for chunk in chunks) == whole["completion_message"]["content"]
    assert chunks[-1]["stop_reason"] == "end_of_turn"


def test_contents_are_embedded(october: OctoberClient) -> None:
    found = october.call("inference.embeddings.create", model="hashed/words-384", contents=["cat", ["a", "dog"]])

    assert [len(vector) for vector in found["embeddings"]] == [384, 384]


@pytest.mark.parametrize("stream", [True, False])
def test_an_unknown_model_is_400(october: OctoberClient, stream: bool) -> None:
    with pytest.raises(Refused) as refused:
        october.call("inference.chat_completion", model="nowhere/nothing", messages=HELLO, stream=stream)

    assert refused.value.status == 400


def test_models_are_listed_read_and_registered(october: OctoberClient) -> None:
    model = {"identifier": "mine", "llama_model": MODEL, "metadata": {"a": "b"}, "provider_id": "scripted"}

    registered = october.call("models.register", model=model)
    listed = {each["identifier"]: each for each in october.call("models.list")}
    unknown = october.call("models.retrieve", identifier="nope")

    assert (registered, unknown) == (None, None)
    assert listed["mine"] == model == october.call("models.retrieve", identifier="mine")
    assert listed[MODEL]["llama_model"] == MODEL
    assert not [name for name in listed if name.startswith("hashed/")]
    assert october.call("inference.chat_completion", model="mine", messages=HELLO)["completion_message"]["content"]


def test_shields_are_listed_read_registered_and_run(october: OctoberClient) -> None:
    shield = {"identifier": "words", "type": "deny_list", "params": {"phrases": ["bomb"]}, "provider_id": "meta0"}

    october.call("shields.register", shield=shield)
    safe = october.call("safety.run_shield", shield_type="words", messages=HELLO, params={})
    bad = [{"role": "user", "content": "make a bomb"}]
    unsafe = october.call("safety.run_shield", strict=True, shield_type="words", messages=bad, params={})

    known = shield | {"provider_id": "deny-list"}
    assert october.call("shields.list") == [known]
    assert october.call("shields.retrieve", shield_type="words") == known
    assert october.call("shields.retrieve", shield_type="nope") is None
    assert safe["violation"] is None
    assert unsafe["violation"]["violation_level"] == "error"


def test_the_shields_of_an_agent_are_steps_with_their_touchpoint(october: OctoberClient) -> None:
    shield = {"identifier": "words", "type": "deny_list", "params": {"phrases": ["bomb"]}, "provider_id": "deny-list"}
    october.call("shields.register", shield=shield)
    session = october.open_session(input_shields=["words"], output_shields=["words"])

    passed = october.say(session, "Hello")
    stopped = october.say(session, "make a bomb")

    starts = [each for each in passed if each["event_type"] == "step_start" and each["step_type"] == "shield_call"]
    assert [each["metadata"]["touchpoint"] for each in starts] == ["user-input", "assistant-output"]
    turn = stopped[-1]["turn"]
    assert [step["step_type"] for step in turn["steps"]] == ["shield_call"]
    assert turn["output_message"]["content"] == turn["steps"][0]["violation"]["user_message"]


def test_providers_and_routes_are_listed_by_their_apis(october: OctoberClient) -> None:
    providers, routes = october.call("providers.list"), october.call("routes.list")

    assert {"provider_id": "deny-list", "provider_type": "inline::deny-list"} in providers["safety"]
    assert "memory" in providers
    assert {"route": "/agents/turn/create", "method": "post", "provider_types": []} in routes["agents"]
    assert routes["safety"][0]["provider_types"] == sorted({each["provider_type"] for each in providers["safety"]})
    assert {route["route"] for route in routes["inspect"]} == {"/health", "/providers/list", "/routes/list"}
    assert {route["route"] for route in routes["models"]} == {"/models/list", "/models/get", "/models/register"}


def test_health_and_events_of_the_caller(october: OctoberClient, caplog: pytest.LogCaptureFixture) -> None:
    event = {"type": "unstructured_log", "message": "m" * 5_000, "severity": "info", "span_id": "1", "trace_id": "2"}

    assert october.call("inspect.health") == {"status": "OK"}
    assert october.call("telemetry.log_event", event=event | {"timestamp": "2024-10-10T00:00:00Z"}) is None
    with pytest.raises(Refused) as refused:
        october.call("telemetry.get_trace", trace_id="2")

    assert refused.value.status == 501
    [line] = [record for record in caplog.records if record.message == "An event of the caller"]
    assert len(line.__dict__["caller_event"]["message"]) < 1_100


@pytest.mark.parametrize("header", ["not JSON", "[1]", '{"brave_search_api_key": "k"}'])
def test_provider_data_that_is_no_object_is_ignored(http: httpx.Client, october: OctoberClient, header: str) -> None:
    agent_id, session_id = october.open_session()
    body = {"agent_id": agent_id, "session_id": session_id, "messages": [{"role": "user", "content": "Hi"}]}

    response = http.post("/agents/turn/create", json=body, headers={"X-LlamaStack-ProviderData": header})

    assert response.status_code == 200
