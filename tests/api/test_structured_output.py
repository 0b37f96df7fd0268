"""Structured output over HTTP."""

import json
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error, open_session, say, turn
from tests.api.app_fixture import AppFixture

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORMAT = {"type": "json_schema", "json_schema": SCHEMA}


def test_an_answer_of_the_form_that_the_turn_asks_for_completes_it(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="recorded/m")

    done = turn(http, session, "three is 3", response_format=FORMAT)

    assert isinstance(json.loads(done["output_message"]["content"])["n"], int)
    assert app_fixture.last_request.response_format is not None
    assert turn(http, session, "say: free text")["status"] == "completed"


FIELD = "response_format.json_schema"


@pytest.mark.parametrize(
    ("response_format", "param"),
    [
        ({"type": "grammar", "bnf": {"root": "x"}}, "response_format"),
        ({"type": "json_schema", "json_schema": {"type": "thing"}}, FIELD),
        ({"type": "json_schema", "json_schema": {"$ref": "https://elsewhere.example/schema"}}, FIELD),
        ({"type": "json_schema", "json_schema": {"type": "string", "pattern": "^(?=a)"}}, FIELD),
    ],
)
def test_a_form_that_cannot_be_asked_for_is_refused_before_the_stream(
    http: httpx.Client, response_format: dict[str, Any], param: str
) -> None:
    session = open_session(http)

    response = say(http, session, "hi", stream=True, response_format=response_format)

    assert assert_error(response, 400, response.json()["error"]["code"])["param"] == param
    assert turn(http, session, "say: free")["status"] == "completed"
