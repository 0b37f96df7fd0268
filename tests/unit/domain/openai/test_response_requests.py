from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import response_create_params
from pydantic import BaseModel, ValidationError
from tests.unit.domain.openai.request_bodies import INPUT_ITEMS, JSON, Json, bodies_near, check_refusal, items_near

from stint.domain.fields import UnsupportedField
from stint.domain.openai.conversations import CreateConversation, CreateItems, UpdateConversation
from stint.domain.openai.response_requests import CompactRequest, CreateResponse, InputTokensRequest

SCHEMA = {"type": "object", "properties": {"day": {"type": "string"}}}
MCP = {"type": "mcp", "server_label": "wiki", "server_url": "https://mcp.example.org"}
FULL: Json = {
    "model": "scripted/demo",
    "input": INPUT_ITEMS,
    "instructions": "Be brief.",
    "context_management": [{"type": "compaction", "compact_threshold": 1_000}],
    "previous_response_id": "resp_1",
    "include": ["reasoning.encrypted_content", "web_search_call.action.sources", "file_search_call.results"],
    "tools": [{"type": "function", "name": "get_weather", "parameters": SCHEMA}, MCP, {"type": "web_search"}],
    "tool_choice": {
        "type": "allowed_tools",
        "tools": [{"type": "function", "name": "get_weather"}, {"type": "web_search"}],
    },
    "metadata": {"topic": "cats"},
    "text": {"format": {"type": "json_schema", "name": "day", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
    "temperature": 2,
    "top_p": 0,
    "presence_penalty": -2,
    "frequency_penalty": 2,
    "parallel_tool_calls": False,
    "stream": True,
    "stream_options": {"include_obfuscation": True},
    "background": True,
    "background_options": {"completion_window": "soonest"},
    "max_output_tokens": 16,
    "max_tool_calls": 1,
    "max_infer_iters": 3,
    "reasoning": {"effort": "low", "summary": "auto", "context": "auto", "mode": "standard"},
    "safety_identifier": "u" * 64,
    "prompt_cache_key": "k" * 64,
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {"mode": "implicit", "ttl": "30m", "comparison_response_id": "resp_1"},
    "truncation": "auto",
    "store": True,
    "service_tier": "flex",
    "top_logprobs": 0,
    "user": "u",
}


def problems_of(body: object, kind: type[BaseModel] = CreateResponse) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(body)
    return {".".join(str(each) for each in problem["loc"]): problem["msg"] for problem in caught.value.errors()}


def request(**fields: Any) -> CreateResponse:
    return CreateResponse.model_validate({"model": "scripted/demo", "input": "Hi."} | fields)


def test_a_request_with_every_field_is_read() -> None:
    asked = CreateResponse.model_validate(FULL)

    settings = asked.to_settings()

    assert {name: value for name, value in settings.model_dump(mode="json").items() if value != FULL.get(name)} == {
        "tools": [each.model_dump(mode="json") for each in asked.tools],
        "tool_choice": FULL["tool_choice"] | {"mode": "auto"},
        "text": {"format": FULL["text"]["format"] | {"description": None}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "include_obfuscation": True,
    }
    decoding = settings.to_decoding()
    assert (decoding.temperature, decoding.top_p, decoding.max_tokens) == (2, 0, 16)
    assert (decoding.presence_penalty, decoding.frequency_penalty) == (-2, 2)


def test_a_plain_request_stores_no_settings() -> None:
    nulls = dict.fromkeys(CreateResponse.model_fields, None) | {"model": "scripted/demo"}

    assert CreateResponse.model_validate(nulls) == CreateResponse(model="scripted/demo")
    assert request().to_settings().model_dump() == {"tools": [], "include": [], "metadata": {}}


def test_credentials_stay_with_the_request() -> None:
    asked = request(tools=[MCP | {"authorization": "secret", "headers": {"x-key": "secret"}}])

    assert "secret" in str(asked)
    assert "secret" not in str(asked.to_settings())


def test_a_conversation_is_named_by_its_id_or_by_an_object() -> None:
    assert request(conversation="conv_1").conversation_id == "conv_1"
    assert request(conversation={"id": "conv_1"}).conversation_id == "conv_1"
    assert request().conversation_id is None


def test_a_json_schema_may_lack_its_name_and_its_schema() -> None:
    asked = request(text={"format": {"type": "json_schema"}})

    assert asked.text is not None
    assert asked.text.model_dump(mode="json")["format"] == {
        "type": "json_schema",
        "name": "response",
        "description": None,
        "schema": {"type": "object"},
        "strict": False,
    }


def test_a_summary_may_be_asked_for_by_its_older_name() -> None:
    settings = request(reasoning={"generate_summary": "detailed"}).to_settings()

    assert settings.model_dump(mode="json")["reasoning"] == {"effort": None, "summary": "detailed"}
    assert request(reasoning={}).to_settings().reasoning is None


@pytest.mark.parametrize("name", sorted(response_create_params.ResponseCreateParamsBase.__annotations__))
def test_each_field_of_the_openai_client_is_honoured_or_refused_by_its_name(name: str) -> None:
    field = CreateResponse.model_fields[name]
    refused = any(isinstance(each, UnsupportedField) for each in field.metadata)

    if refused:
        assert problems_of({"model": "m", name: {"any": "thing"}})[name]
    else:
        assert getattr(request(**{name: FULL.get(name, "conv_1")} | added_for(name)), name) is not None


def added_for(name: str) -> Json:
    return {
        "tool_choice": {"tools": FULL["tools"]},
        "top_logprobs": {"top_logprobs": 0, "user": "u"},
    }.get(name, {})


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"model": ""}, "model"),
        ({"input": 5}, "input"),
        ({"metadata": {str(each): "" for each in range(17)}}, "metadata"),
        ({"metadata": {"a": "b" * 513}}, "metadata.a"),
        ({"metadata": {"a" * 65: "b"}}, f"metadata.{'a' * 65}.[key]"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"max_output_tokens": 15}, "max_output_tokens"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
        ({"max_infer_iters": 0}, "max_infer_iters"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": 1}, "top_logprobs"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"safety_identifier": "u" * 65}, "safety_identifier"),
        ({"prompt_cache_key": "u" * 65}, "prompt_cache_key"),
        ({"truncation": "some"}, "truncation"),
        ({"service_tier": "gold"}, "service_tier"),
        ({"include": ["message.output_text.logprobs"]}, "include.0"),
        ({"include": ["web_search_call.results"]}, "include.0"),
        ({"include": ["everything"]}, "include.0"),
        ({"stream_options": {"include_usage": True}}, "stream_options.include_usage"),
        ({"text": {"verbosity": "chatty"}}, "text.verbosity"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
        ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
        ({"reasoning": {"context": "all_turns"}}, "reasoning.context"),
        ({"tools": [{"type": "custom", "name": "x"}]}, "tools.0"),
        ({"tools": [{"type": "function", "name": "f"}] * 2}, "tools"),
        ({"tools": [MCP] * 2}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "any"}, "tool_choice.mode"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tool_choice": {"type": "mcp", "server_label": "wiki"}}, "tool_choice"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"tool_choice": {"type": "shell"}}, "tool_choice.tool"),
        ({"tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice.allowed_tools.tools"),
        ({"conversation": "conv_1", "previous_response_id": "resp_1"}, "conversation"),
        ({"background": True, "store": False}, "background"),
        ({"background": True, "tools": [MCP | {"authorization": "secret"}]}, "background"),
        ({"background": True, "tools": [MCP | {"headers": {"a": "b"}}]}, "background"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_its_field(fields: Json, field: str) -> None:
    problems = problems_of({"model": "scripted/demo"} | fields)

    assert list(problems) == [field]
    assert problems[field][0].isupper()


def test_a_text_has_a_bound() -> None:
    problems = problems_of({"model": "scripted/demo", "input": "a" * 10_485_761})

    assert list(problems) == ["input.0.message.content.0.input_text.text"]


def test_a_page_of_items_for_a_conversation_has_a_bound_and_no_references() -> None:
    items = [{"role": "user", "content": "Hi."}] * 21

    assert list(problems_of({"items": items}, CreateItems)) == ["items"]
    assert list(problems_of({"items": items}, CreateConversation)) == ["items"]
    assert list(problems_of({"items": []}, CreateItems)) == ["items"]
    assert list(problems_of({"items": [{"id": "msg_1"}]}, CreateItems)) == ["items"]
    assert len(CreateItems.model_validate({"items": items[:20]}).items) == 20


REQUESTS: dict[type[BaseModel], Json] = {
    CreateResponse: FULL,
    CompactRequest: {name: FULL[name] for name in ("model", "input", "instructions", "prompt_cache_key")},
    InputTokensRequest: {name: FULL[name] for name in ("model", "input", "tools", "tool_choice", "text", "reasoning")},
    CreateConversation: {"items": INPUT_ITEMS[:2], "metadata": FULL["metadata"]},
    UpdateConversation: {"metadata": FULL["metadata"]},
    CreateItems: {"items": INPUT_ITEMS[:2]},
}


@given(kind=st.sampled_from(list(REQUESTS)), data=st.data())
def test_any_body_is_read_or_refused_by_a_field(kind: type[BaseModel], data: st.DataObject) -> None:
    body = data.draw(JSON | bodies_near(REQUESTS[kind]), label="body")

    check_refusal(kind, body)


@given(items=st.lists(items_near(), min_size=1, max_size=3), tool=st.sampled_from(FULL["tools"]).flatmap(bodies_near))
def test_any_item_and_tool_is_read_or_refused_by_a_field(items: list[Json], tool: Json) -> None:
    check_refusal(CreateResponse, {"model": "m", "input": items, "tools": [tool]})


def test_a_response_needs_no_model_and_a_compaction_does() -> None:
    assert CreateResponse.model_validate({"input": "Hi."}).model is None
    assert list(problems_of({"input": "Hi."}, CompactRequest)) == ["model"]
