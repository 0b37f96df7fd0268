"""A response from its creation to its deletion."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import (
    RESPONSES,
    UNKNOWN,
    WEATHER,
    assert_refused,
    follow,
    get,
    openai_client,
    post,
    respond,
    text_of,
)

ECHOED: dict[str, Any] = {
    "metadata": {"topic": "plums"},
    "user": "someone",
    "safety_identifier": "someone-else",
    "prompt_cache_key": "plums",
    "prompt_cache_retention": "24h",
    "service_tier": "default",
    "temperature": 0.25,
    "top_p": 0.5,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "max_output_tokens": 100,
    "max_tool_calls": 3,
    "max_infer_iters": 4,
    "parallel_tool_calls": False,
    "truncation": "auto",
    "instructions": "Be brief.",
    "reasoning": {"effort": "low", "summary": "auto"},
    "tools": [WEATHER | {"strict": True}],
    "tool_choice": "none",
    "top_logprobs": 0,
    "text": {"format": {"type": "text"}, "verbosity": "low"},
}


def test_a_response_says_what_it_was_asked_for_and_is_read_as_it_was_answered(http: httpx.Client) -> None:
    created = respond(http, "say: Hi", **ECHOED)

    assert {name: created[name] for name in ECHOED} == ECHOED
    assert (created["status"], created["store"], created["background"]) == ("completed", True, False)
    assert text_of(created) == "Hi"
    assert get(http, created["id"]) == created


def test_a_response_to_a_plain_request_has_every_key_with_its_default(http: httpx.Client) -> None:
    created = respond(http, "say: Hi")

    assert created == created | {
        "object": "response",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "previous_response_id": None,
        "conversation": None,
        "prompt": None,
        "metadata": {},
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "truncation": "disabled",
        "text": {"format": {"type": "text"}},
        "reasoning": None,
        "service_tier": "default",
        "user": None,
    }
    assert created["usage"]["total_tokens"] == created["usage"]["input_tokens"] + created["usage"]["output_tokens"] > 0


def test_what_is_asked_of_the_model_reaches_it(http: httpx.Client, app_fixture: AppFixture) -> None:
    respond(http, **(ECHOED | {"tool_choice": {"type": "function", "name": "get_weather"}}), model="recorded/m")

    request = app_fixture.last_request
    decoding = request.decoding
    assert (decoding.temperature, decoding.top_p, decoding.max_tokens) == (0.25, 0.5, 100)
    assert (decoding.presence_penalty, decoding.frequency_penalty) == (0.5, -0.5)
    assert (request.parallel_tool_calls, request.tool_choice) == (False, "get_weather")
    assert request.reasoning is not None
    assert (request.reasoning.effort, request.reasoning.summary) == ("low", "auto")
    assert [(tool.name, tool.strict) for tool in request.tools] == [("get_weather", True)]
    assert request.model == "m"


def test_what_is_left_out_is_left_to_the_provider(http: httpx.Client, app_fixture: AppFixture) -> None:
    respond(http, model="recorded/m")

    request = app_fixture.last_request
    assert set(request.decoding.__slots__) == {
        name for name in request.decoding.__slots__ if getattr(request.decoding, name) is None
    }
    assert (request.parallel_tool_calls, request.reasoning, request.response_format) == (None, None, None)


def test_a_deleted_response_is_gone_for_every_reader(http: httpx.Client) -> None:
    kept, deleted = respond(http)["id"], respond(http)["id"]

    answer = http.delete(f"{RESPONSES}/{deleted}")

    assert answer.json() == {"id": deleted, "object": "response", "deleted": True}
    assert_refused(http.get(f"{RESPONSES}/{deleted}"), 404, "response_not_found")
    assert_refused(http.get(f"{RESPONSES}/{deleted}/input_items"), 404, "response_not_found")
    assert_refused(http.delete(f"{RESPONSES}/{deleted}"), 404, "response_not_found")
    assert [each["id"] for each in http.get(RESPONSES).json()["data"]] == [kept]


@pytest.mark.parametrize("missing", [UNKNOWN, "resp_x", "nonsense", "%20", "%00", "é", "0" * 3000, UNKNOWN.upper()])
def test_what_is_no_response_is_not_found(http: httpx.Client, missing: str) -> None:
    assert_refused(http.get(f"{RESPONSES}/{missing}"), 404, "response_not_found")
    assert_refused(http.delete(f"{RESPONSES}/{missing}"), 404, "response_not_found")
    assert_refused(http.get(f"{RESPONSES}/{missing}/input_items"), 404, "response_not_found")


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
def test_every_operation_is_under_both_addresses(server: Served, base: str) -> None:
    with openai_client(server, base) as openai:
        created = openai.responses.create(input="say: Hi", model="scripted/demo")
        with openai.responses.stream(input="say: Hi", model="scripted/demo") as stream:
            streamed = stream.get_final_response()
        items = openai.responses.input_items.list(created.id).data
        counted = openai.responses.input_tokens.count(input="two words", model="scripted/demo")
        compacted = openai.responses.compact(input="say: short", model="scripted/demo")
        listed: Any = openai.get("/responses", cast_to=object)
        openai.responses.delete(created.id)

        assert created.output_text == streamed.output_text == "Hi"
        assert len(items) == 1
        assert counted.input_tokens == 2
        assert compacted.output[-1].type == "compaction"
        assert [each["id"] for each in listed["data"]] == [streamed.id, created.id]
        assert [model.id for model in openai.models.list()]


def test_a_response_without_a_model_is_answered_by_the_servers(http: httpx.Client, app_fixture: AppFixture) -> None:
    assert respond(http, model=None)["model"] == app_fixture.settings.default_model


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_that_is_not_to_be_stored_leaves_nothing_behind(
    http: httpx.Client, app_fixture: AppFixture, stream: bool
) -> None:
    with app_fixture.proxy.watch() as sent:
        if stream:
            created = follow(http, "Please get_weather", tools=[WEATHER], store=False)[-1]["response"]
        else:
            created = respond(http, "Please get_weather", tools=[WEATHER], store=False)

    [call] = created["output"]
    assert (created["status"], created["store"]) == ("completed", False)
    assert [request for request in sent if "Query" not in request.split(" ")[0] and "#stop" not in request] == []
    assert_refused(http.get(f"{RESPONSES}/{created['id']}"), 404, "response_not_found")
    assert http.get(RESPONSES).json()["data"] == []
    continued = assert_refused(post(http, previous_response_id=created["id"]), 400, "previous_response_not_found")
    assert continued["param"] == "previous_response_id"
    referred = post(http, [{"type": "item_reference", "id": call["id"]}, {"role": "user", "content": "go"}])
    assert assert_refused(referred, 400, "item_not_found")["param"] == "input[0].id"


def test_a_websocket_handshake_is_told_that_there_is_none(http: httpx.Client) -> None:
    for headers in ({"sec-websocket-key": "x"}, {"upgrade": "websocket"}):
        answer = http.get(RESPONSES, headers=headers)

        assert "POST /v1/responses" in assert_refused(answer, 400, "websocket_not_supported")["message"]
