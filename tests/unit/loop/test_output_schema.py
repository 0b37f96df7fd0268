import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.domain.errors import InvalidRequest, ModelError
from stint.loop.structured_output import check_schema, validate_output

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer"},
        "friends": {"type": "array", "items": {"$ref": "#"}},
        "phone": {"type": "string", "pattern": r"^\d{3}-\d{4}$"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def refusal(schema: dict[str, Any]) -> str:
    with pytest.raises(InvalidRequest) as caught:
        check_schema(schema, "text.format.schema")
    assert (caught.value.code, caught.value.param) == ("invalid_json_schema", "text.format.schema")
    assert caught.value.message.startswith("text.format.schema is not a supported schema")
    assert len(caught.value.message) < 1000
    return caught.value.message


def problem(text: str, schema: dict[str, Any]) -> str:
    with pytest.raises(ModelError) as caught:
        validate_output(text, schema)
    assert caught.value.code == "response_format_mismatch"
    return caught.value.message


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "Ada"}',
        ' {"name": "Ada", "age": 3, "friends": [{"name": "Bob"}]}\n',
        '{"name":"A","phone":"555-1234"}',
    ],
)
def test_an_answer_of_the_right_form_passes(answer: str) -> None:
    check_schema(PERSON, "response_format")

    validate_output(answer, PERSON)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Sure! Here it is", "it is not JSON"),
        ('{"name": "Ada"', "it is not JSON"),
        ("", "it is not JSON"),
        ('{"name": NaN}', "it is not JSON"),
        ("[]", 'at $: it does not satisfy type "object"'),
        ("{}", "at $: 'name' is a required property"),
        ('{"name": "Ada", "age": "3"}', 'at $.age: it does not satisfy type "integer"'),
        (
            '{"name": "Ada", "friends": [{"name": "B"}, {"name": 1}]}',
            'at $.friends[1].name: it does not satisfy type "string"',
        ),
        ('{"name": "Ada", "phone": "x"}', "at $.phone: it does not satisfy pattern"),
        ('{"name": "Ada", "more": 1}', "at $: it does not satisfy additionalProperties false"),
        ('{"age": "3", "phone": 1}', "at $.age"),
    ],
)
def test_an_answer_that_departs_is_told_where(answer: str, said: str) -> None:
    assert said in problem(answer, PERSON)


def test_the_message_does_not_repeat_the_answer_as_it_is_logged() -> None:
    said = problem('{"name": ["hunter2"], "phone": "hunter2", "hunter2": 1}', PERSON) + problem("hunter2", PERSON)

    assert "hunter2" not in said


def test_the_message_stays_short_however_long_the_answer_is() -> None:
    wrong = json.dumps({"name": "Ada", "friends": [{"name": 1, "age": "x" * 5000}] * 500})

    assert len(problem(wrong, PERSON)) < 1000


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "objekt"}, "at $.type: 'objekt'"),
        ({"properties": {"a": {"minimum": "3"}}}, "at $.properties.a.minimum"),
        ({"properties": {"a": {"pattern": "("}}}, "at $.properties.a.pattern"),
        ({"properties": {"a": {"pattern": "^(?=.*x)y"}}}, "at $.properties.a.pattern: the regular expression"),
        ({"pattern": r"(a)\1"}, "back-references"),
        ({"patternProperties": {"(?<!a)b": {}}}, "look-around"),
        ({"items": {"pattern": "((a{1000}){1000}){1000}"}}, "too large"),
        ({"pattern": "a" * 6_000_000}, "at most 2000 are allowed"),
        ({"$schema": 5}, "$schema is not a string"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "unsupported version"),
        ({"allOf": [{"$schema": "http://json-schema.org/draft-07/schema#"}]}, "the same version"),
        ({"$ref": "https://example.com/person.json"}, "'https://example.com/person.json' refers outside the schema"),
        ({"items": {"anyOf": [{"$ref": "file:///etc/passwd"}]}}, "refers outside the schema"),
        ({"properties": {"const": {"$ref": "other.json"}}}, "refers outside the schema"),
        ({"properties": {"a": {"$ref": "#/$defs/nope"}}}, "'#/$defs/nope' refers to nothing"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "form a loop"),
        ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, "form a loop"),
        ({"anyOf": [{"type": "null"}, {"not": {"$ref": "#"}}]}, "form a loop"),
        ({"$ref": "#/examples/0", "examples": ["text"]}, "not a schema"),
        ({"$ref": "#/x-parts/a", "x-parts": {"a": {"minimum": "3"}}}, "at $.$ref.minimum"),
        ({"properties": {"x" * 100_000: {"type": "y" * 100_000}}}, "is not a type"),
        ({"required": ["a", 1]}, "not a list of strings"),
        ({"enum": {}}, "not a list"),
        ({"minLength": -1}, "whole number"),
        ({"multipleOf": 0}, "above 0"),
        ({"anyOf": []}, "at least one"),
        ({"type": ["string", "date"]}, "is not a type"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_and_told_where(schema: dict[str, Any], said: str) -> None:
    assert said in refusal(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "$ref": "#/definitions/a"},
        {"$schema": "https://example.com/unknown", "type": "object"},
        {"$id": "https://example.com/x", "$defs": {"a": {"$anchor": "here"}}, "properties": {"b": {"$ref": "#here"}}},
        {"properties": {"$ref": {"type": "string"}}, "required": ["$ref"]},
        {"const": {"$ref": "https://example.com/data"}},
        {"pattern": r"^(?<year>\d{4})-\d\d$"},
        {"properties": {"a": {"properties": {"b": {"$ref": "#"}}}}},
        {"$defs": {"node": {"anyOf": [{"type": "null"}, {"properties": {"next": {"$ref": "#/$defs/node"}}}]}}},
        {"format": "unknown", "x-own": {"type": 5}, "minimum": 10**4000, "multipleOf": 5e-324},
    ],
)
def test_what_only_looks_like_a_fault_is_accepted(schema: dict[str, Any]) -> None:
    check_schema(schema, "response_format")


def test_a_schema_that_doubles_at_every_step_is_refused() -> None:
    steps = {f"s{step}": {"allOf": [{"$ref": f"#/$defs/s{step + 1}"}] * 2} for step in range(40)}

    assert "form a chain" in refusal({"$ref": "#/$defs/s0", "$defs": {**steps, "s40": {}}})


def test_a_pattern_on_which_backtracking_never_ends_is_matched() -> None:
    schema = {"type": "string", "pattern": r"^(\w+\s?)*$"}

    assert "pattern" in problem(json.dumps("word " * 200 + "!"), schema)


def test_an_answer_that_is_too_much_work_is_a_mismatch() -> None:
    schema = {"items": {"anyOf": [{"const": number} for number in range(1000)]}}

    assert "too large" in problem(json.dumps([999] * 1000), schema)


def test_all_departures_are_told_up_to_three() -> None:
    said = problem('{"age": "3", "phone": 1, "friends": 2}', PERSON)

    assert said.count("at $") == 3


@given(st.text(max_size=30) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_every_answer_either_passes_or_is_a_mismatch(answer: str) -> None:
    try:
        validate_output(answer, PERSON)
    except ModelError as error:
        mismatch = error
    else:
        assert json.loads(answer)["name"]
        return
    assert mismatch.code == "response_format_mismatch"


def test_structured_output_costs_a_cold_start_none_of_the_library() -> None:
    code = "import sys; from stint.loop.structured_output import check_schema; check_schema({}, ''); "
    code += "print('jsonschema' in sys.modules, 'referencing' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "layers/core"}
    )

    assert done.stdout.split() == ["False", "False"]
