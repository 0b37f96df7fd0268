"""JSON schemas and regular expressions of callers: output formats and parameters of tools."""

import json
from functools import partial
from typing import Any

from tests.adversarial.case import CASES, Case, case, create_session, post

LETTERS = "".join("ab"[bin(number).count("1") % 2] for number in range(50_000))
NAMES = {f"name{number}": number for number in range(20_000)}


def doubled(keyword: str, steps: int = 40) -> dict[str, Any]:
    chain = {f"s{step}": {keyword: [{"$ref": f"#/$defs/s{step + 1}"}] * 2} for step in range(steps)}
    return {"$ref": "#/$defs/s0", "$defs": {**chain, f"s{steps}": {}}}


def doubled_properties(steps: int = 40, *, required: bool = True) -> dict[str, Any]:
    chain: dict[str, Any] = {
        f"s{step}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/s{step + 1}"} for name in "ab"},
            "required": ["a", "b"] if required else [],
            "additionalProperties": False,
        }
        for step in range(steps)
    }
    chain[f"s{steps}"] = {"type": "string"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/s0"}}, "required": ["x"], "$defs": chain}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


REFUSED: dict[str, dict[str, Any]] = {
    "look_ahead": {"type": "string", "pattern": "^(?=(a+)+$)"},
    "back_reference": {"type": "string", "pattern": r"^(a+)+\1$"},
    "look_behind_in_names": {"patternProperties": {"(?<=(a|a)*)b": {}}},
    "long_pattern": {"pattern": "(a|a)*" * 900_000},
    "nested_counts": {"pattern": "((((a{1000}){1000}){1000}){1000}){1000}"},
    "many_patterns": {"properties": {str(number): {"pattern": f"(a|b)*c{{900}}{number}"} for number in range(20_000)}},
    "doubled_all_of": doubled("allOf"),
    "doubled_any_of": doubled("anyOf"),
    "doubled_one_of": doubled("oneOf"),
    "endless": {"$ref": "#"},
    "endless_dynamic": {"$dynamicAnchor": "a", "$dynamicRef": "#a"},
    "remote": {"$ref": "https://example.com/schema.json"},
    "long_chain": {"$ref": "#/$defs/0", "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(40_000)}},
    "many_parts": {"properties": {f"p{number}": {"type": "string"} for number in range(60_000)}},
    "many_of_one_value": {"anyOf": [{"required": [f"p{number}"]} for number in range(40_000)]},
    "many_types": {"type": ["string"] * 150_000 + ["x" * 1_000_000]},
    "another_version_inside": {"allOf": [{"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "(a+)+$"}]},
    "wide_sets": {"pattern": "".join(f"[\\u{0x100 + number:04x}-\\uffff]" for number in range(130)) + "(?=a)"},
}


def refused(schema: dict[str, Any]) -> Case:
    name = {"name": "hostile", "schema": schema, "strict": True}
    text = {"format": {"type": "json_schema", **name}}
    answer = yield post("/v1/responses", {"model": "scripted/demo", "input": "hi", "text": text})
    assert (answer.status, answer.json()["error"]["param"]) == (400, "text.format.schema"), answer.body[:500]
    assert len(answer.body) < 10_000
    body: dict[str, Any] = {"model": "scripted/demo", "messages": [{"role": "user", "content": "hi"}]}
    answer = yield post(
        "/v1/chat/completions", {**body, "response_format": {"type": "json_schema", "json_schema": name}}
    )
    assert answer.json()["error"]["param"] == "response_format.json_schema.schema"
    session = yield from create_session()
    turn = {"messages": [{"role": "user", "content": "hi"}], "stream": False}
    answer = yield post(
        f"{session}/turn", {**turn, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    )
    assert (answer.status, answer.json()["error"]["param"]) == (400, "response_format.json_schema")


ANSWERED: dict[str, tuple[dict[str, Any], Any]] = {
    "wide_any_of": ({"items": {"anyOf": [{"const": number} for number in range(6_000)]}}, [5_999] * 20_000),
    "exploding_states": ({"items": {"pattern": "(a|b)*a(a|b){300}c"}}, [LETTERS] * 20),
    "backtracking": ({"pattern": r"^(\w+\s?)*$"}, "word " * 200_000 + "!"),
    "many_patterns_of_one_text": ({"allOf": [{"pattern": f"a.{{{n}}}b"} for n in range(1, 150)]}, "a" * 1_000_000),
    "pattern_properties": ({"patternProperties": {f"e{n}x*y": {} for n in range(2_000)}}, NAMES),
    "unevaluated": (
        {"allOf": [{"anyOf": [{"properties": dict.fromkeys(list(NAMES)[:500], True)}] * 20}] * 4}
        | {"unevaluatedProperties": False},
        NAMES,
    ),
    "unique": ({"items": {"allOf": [{"uniqueItems": True}] * 50}}, [[n * (2**61 - 1) for n in range(20_000)]]),
    "enum_of_numbers": ({"enum": [n * (2**61 - 1) for n in range(60_000)]}, 1),
    "enum_of_lists": ({"allOf": [{"enum": [[n]]} for n in range(3_000)]}, [1] * 100_000),
    "contains": ({"contains": {"allOf": [{"minimum": 0}] * 2_000}, "minContains": 10**9}, list(range(50_000))),
    "large_numbers": ({"items": {"multipleOf": 10**4_000 + 7}}, [10**4_200 + n for n in range(300)]),
    "small_divisor": ({"items": {"multipleOf": 5e-324}}, [1.7e308] * 50_000),
    "deep": (nested(90), ["x"]),
    "dependent": ({"dependentRequired": {name: list(NAMES)[:200] for name in list(NAMES)[:1_000]}}, NAMES),
    "recursive_union": (
        {"anyOf": [{"properties": {"c": {"$ref": "#"}, "k": {"const": n}}, "required": ["k"]} for n in range(12)]},
        json.loads('{"c":' * 60 + '{"k":11}' + ',"k":11}' * 60),
    ),
    "many_names": (
        {"properties": {f"p{n}": True for n in range(50_000)}, "required": [f"p{n}" for n in range(50_000)]},
        {},
    ),
}


def answered(schema: dict[str, Any], value: Any) -> Case:
    """Make the model answer with a value. The checks must end, with success or with a failed response."""
    form = {"type": "json_schema", "name": "hostile", "schema": schema, "strict": True}
    body = {"model": "scripted/demo", "input": f"say: {json.dumps(value)}", "text": {"format": form}}
    answer = yield post("/v1/responses", body)
    assert answer.status in (200, 400, 502), answer.body[:500]


@case
def schema_of_a_turn_with_many_names() -> Case:
    """Send a schema without a strict flag: all its names are read to find out whether it is strict."""
    names = [f"p{number}" for number in range(60_000)]
    schema = {
        "type": "object",
        "properties": dict.fromkeys(names, True),
        "required": names,
        "additionalProperties": False,
    }
    session = yield from create_session()
    for form in (schema, {"anyOf": [schema]}):
        turn = {"messages": [{"role": "user", "content": "hi"}], "stream": False}
        answer = yield post(f"{session}/turn", turn | {"response_format": {"type": "json_schema", "json_schema": form}})
        assert answer.status in (200, 400, 502), answer.body[:500]


def parameters(schema: dict[str, Any]) -> Case:
    """Make the model call a tool with these parameters."""
    tool = {"type": "function", "name": "lookup", "parameters": schema}
    body = {"model": "scripted/demo", "input": "lookup 1 and 'this' " + "that " * 10_000, "tools": [tool]}
    answer = yield post("/v1/responses", body)
    assert answer.status in (200, 400), answer.body[:500]


DOUBLED_INPUTS = ("hi", "lookup 1 and 'this'", "call: lookup {}", 'call: lookup {"x": {"a": {}, "b": {}}}')
"""Inputs for which the scripted model does not call a tool, calls it with made-up arguments, or with given ones."""


def doubled_in_every_place(schema: dict[str, Any]) -> Case:
    """Use a schema as an output format and as the parameters of tools, with and without a call."""
    form = {"type": "json_schema", "name": "hostile", "schema": schema, "strict": True}
    tool = {"name": "lookup", "description": "", "parameters": schema}
    endpoint = {**tool, "url": "http://127.0.0.1:9/", "method": "POST"}
    group = {"toolgroup_id": "g", "provider_id": "remote-execution", "args": {"tools": [endpoint]}}
    answer = yield post("/v1/toolgroups", group)
    assert answer.status == 200, answer.body[:500]
    session = yield from create_session(toolgroups=["g"])
    given = {"type": "json_schema", "json_schema": schema}
    for said in (*DOUBLED_INPUTS, 'say: {"x": {"a": {}, "b": {}}}'):
        response = {"model": "scripted/demo", "input": said}
        chat = {"model": "scripted/demo", "messages": [{"role": "user", "content": said}]}
        turn = {"messages": [{"role": "user", "content": said}], "stream": False}
        for path, body in (
            ("/v1/responses", response | {"text": {"format": form}}),
            ("/v1/responses", response | {"tools": [{"type": "function", **tool}]}),
            ("/v1/responses/input_tokens", response | {"text": {"format": form}}),
            ("/v1/chat/completions", chat | {"response_format": {"type": "json_schema", "json_schema": form}}),
            ("/v1/chat/completions", chat | {"tools": [{"type": "function", "function": tool}]}),
            (f"{session}/turn", turn),
            (f"{session}/turn", turn | {"response_format": given}),
            ("/v1/tool-runtime/invoke", {"tool_name": "lookup", "kwargs": {"x": {"a": {}}}}),
        ):
            answer = yield post(path, body)
            assert answer.status in (200, 400, 502), answer.body[:500]
            assert len(answer.body) < 100_000


for named, all_required in (("required", True), ("optional", False)):
    doubled_schema = doubled_properties(24, required=all_required)
    CASES[f"schema_doubled_properties_{named}"] = partial(doubled_in_every_place, doubled_schema)

PARAMETERS = {
    "doubled": doubled("anyOf"),
    "doubled_properties": doubled_properties(),
    "nested": nested(95),
    "enum": {"type": "object", "properties": {"x": {"enum": [f"e{n}" for n in range(150_000)]}}, "required": ["x"]},
    "long_enum": {"type": "object", "properties": {"x": {"enum": ["e" * 5_000_000]}}, "required": ["x"]},
    "required": {"type": "object", "properties": {}, "required": [f"p{n}" for n in range(150_000)]},
    "not_schemas": {"type": "object", "properties": {"x": 5, "y": {"anyOf": 5}}, "required": ["x", {}, "y"]},
}

for group, make, inputs in (("refused", refused, REFUSED), ("parameters", parameters, PARAMETERS)):
    for key, each in inputs.items():
        CASES[f"schema_{group}_{key}"] = partial(make, each)
for key, (schema, value) in ANSWERED.items():
    CASES[f"schema_answered_{key}"] = partial(answered, schema, value)
