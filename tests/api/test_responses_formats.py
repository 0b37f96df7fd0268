"""Structured output."""

from typing import Any, Literal

import httpx
import pytest
from pydantic import BaseModel
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import WEATHER, Body, follow, get, kinds, openai_client, respond, text_of
from tests.servers.chat_completions import ChatCompletionsServer, stream, words

from stint.domain.inference import AnswerFormat, JsonObjectResponseFormat, JsonSchemaResponseFormat

SCHEMA = {"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]}


class Weather(BaseModel):
    city: str
    degrees: int
    sky: Literal["clear", "cloudy"]


def schema(**fields: Any) -> Body:
    return {"format": {"type": "json_schema", "name": "weather", "schema": SCHEMA} | fields}


@pytest.mark.parametrize("fields", [{"strict": True}, {"strict": None, "description": "How warm."}])
def test_the_schema_reaches_the_model_and_is_shown(http: httpx.Client, app_fixture: AppFixture, fields: Body) -> None:
    response = respond(http, "It is 7", text=schema(**fields), model="recorded/m")

    asked = app_fixture.last_request.response_format
    assert isinstance(asked, JsonSchemaResponseFormat)
    strict = bool(fields.get("strict"))
    assert asked.json_schema["schema"] == SCHEMA
    assert (asked.json_schema["name"], asked.json_schema["strict"]) == ("weather", strict)
    assert asked.json_schema.get("description") == fields.get("description")
    assert text_of(response) == '{"degrees": 7}'
    shown = {"type": "json_schema", "name": "weather", "schema": SCHEMA, "description": None, "strict": strict}
    assert response["text"]["format"] == shown | {"description": fields.get("description")}


@pytest.mark.parametrize(
    ("asked", "form"),
    [
        ({"type": "json_object"}, JsonObjectResponseFormat),
        ({"type": "json_schema", "name": "x", "schema": None}, JsonSchemaResponseFormat),
    ],
)
def test_any_object_will_do_where_there_is_no_schema(
    http: httpx.Client, app_fixture: AppFixture, asked: Body, form: type[AnswerFormat]
) -> None:
    response = respond(http, "It is 7", text={"format": asked}, model="recorded/m")

    assert text_of(response) == "{}"
    assert isinstance(app_fixture.last_request.response_format, form)
    assert response["text"]["format"]["type"] == asked["type"]


@pytest.mark.parametrize(("strict", "status"), [(True, "failed"), (False, "completed")])
def test_an_answer_of_another_form_fails_where_the_form_is_strict(
    http: httpx.Client, strict: bool, status: str
) -> None:
    events = follow(http, "say: warm", text=schema(strict=strict))

    response = events[-1]["response"]
    assert response["status"] == status
    assert (response["error"] or {}).get("code") == ("response_format_mismatch" if strict else None)
    assert text_of(response) == "warm"
    assert ("error" in kinds(events)) is strict
    assert get(http, response["id"]) == response


def test_a_refusal_and_a_call_need_not_have_the_form(http: httpx.Client) -> None:
    refused = respond(http, "refuse: Not that", text=schema(strict=True))
    called = respond(http, "call: get_weather {}", text=schema(strict=True), tools=[WEATHER])

    assert refused["status"] == called["status"] == "completed"


def test_an_answer_cut_short_need_not_have_the_form(http: httpx.Client) -> None:
    response = respond(http, "long: 40 words", text=schema(strict=True), max_output_tokens=16)

    assert response["status"] == "incomplete"


def test_the_client_parses_into_its_own_class(server: Served) -> None:
    said = "7 and clear in Bern"
    with openai_client(server) as openai:
        response = openai.responses.parse(model="scripted/demo", input=said, text_format=Weather)
        with openai.responses.stream(model="scripted/demo", input=said, text_format=Weather) as events:
            streamed = events.until_done().get_final_response()

    assert response.output_parsed == streamed.output_parsed
    assert isinstance(response.output_parsed, Weather)
    assert response.output_parsed.degrees == 7


def test_the_form_reaches_a_provider_in_its_own_words(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    respond(http, "anything", text=schema(strict=False, description="How warm."), model="openai/m")
    chat.script(stream(*words('{"a": 1}')))
    respond(http, "anything", text={"format": {"type": "json_object"}}, model="openai/m")

    form, loose = (body["response_format"] for body in chat.bodies)
    named = {"name": "weather", "schema": SCHEMA, "description": "How warm."}
    assert form == {"type": "json_schema", "json_schema": named}
    assert loose == {"type": "json_object"}
