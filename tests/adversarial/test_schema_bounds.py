"""The work of a check is bounded, whatever the schema and the value are."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from stint.json_schema.document import SchemaDocument
from stint.json_schema.errors import SchemaError
from stint.json_schema.evaluation import find_mismatches
from stint.regex.budget import Budget, StepLimitExceeded

STEPS = 500_000
SAME_LETTERS = "".join("ab"[bin(number).count("1") % 2] for number in range(20_000))
NAMES = {f"name{number}": 1 for number in range(2_000)}


def nest(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def links(count: int, **last: Any) -> dict[str, Any]:
    chain = {f"s{number}": {"$ref": f"#/$defs/s{number + 1}"} for number in range(count)}
    return {"$ref": "#/$defs/s0", "$defs": {**chain, f"s{count}": last}}


def doubled(keyword: str) -> dict[str, Any]:
    chain = {f"s{number}": {keyword: [{"$ref": f"#/$defs/s{number + 1}"}] * 2} for number in range(40)}
    return {"$ref": "#/$defs/s0", "$defs": {**chain, "s40": {}}}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {str(number): {"type": "string"} for number in range(100_000)}}, "too many parts"),
        ({"enum": list(range(200_000))}, "too many parts"),
        ({"properties": {str(number): {"pattern": f"a{{500}}{number}"} for number in range(1_000)}}, "too many parts"),
        ({"anyOf": [{"const": number} for number in range(10_000)]}, "simplify its alternatives"),
        (doubled("allOf"), "form a chain"),
        (doubled("anyOf"), "form a chain"),
        (doubled("oneOf"), "form a chain"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}, "form a loop"),
        ({"$recursiveRef": "#", "$schema": "https://json-schema.org/draft/2019-09/schema"}, "form a loop"),
        (links(10_000), "more than 50 steps"),
        ({"allOf": [nest({}, 3)]}, "not a list of schemas"),
    ],
)
def test_a_schema_that_is_too_much_work_is_refused(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        SchemaDocument(schema)

    assert said in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "make",
    [
        lambda: ({"items": {"anyOf": [{"const": number} for number in range(2_000)]}}, [1_999] * 10_000),
        lambda: ({"items": {"pattern": "(a|b)*a(a|b){300}c"}}, [SAME_LETTERS]),
        lambda: ({"allOf": [{"pattern": f"a.{{{number}}}b"} for number in range(100)]}, "a" * 1_000_000),
        lambda: ({"patternProperties": {f"a{number}b*c": {} for number in range(1_000)}}, NAMES),
        lambda: (
            {"additionalProperties": False, "patternProperties": {f"b{number}": {} for number in range(1_000)}},
            NAMES,
        ),
        lambda: ({"propertyNames": {"allOf": [{"minLength": 1}] * 1_000}}, NAMES),
        lambda: ({"contains": {"allOf": [{"minimum": 0}] * 1_000}, "minContains": 10_000}, list(range(9_000))),
        lambda: (
            {"allOf": [{"properties": dict.fromkeys(NAMES, True)}] * 1_000, "unevaluatedProperties": False},
            NAMES,
        ),
        lambda: ({"dependentSchemas": {name: {"required": list(NAMES)} for name in NAMES}}, NAMES),
        lambda: ({"dependentRequired": {name: list(NAMES) for name in NAMES}}, NAMES),
        lambda: ({"allOf": [{"uniqueItems": True}] * 100}, list(range(50_000))),
        lambda: ({"allOf": [{"enum": [[number]]} for number in range(1_000)] * 2}, [list(range(100_000))]),
    ],
)
def test_a_check_that_is_too_much_work_ends(make: Callable[[], tuple[dict[str, Any], Any]]) -> None:
    schema, value = make()
    try:
        document = SchemaDocument(schema)
    except SchemaError as error:
        pytest.fail(str(error))
    tracemalloc.start()
    try:
        mismatches = find_mismatches(document, value, Budget(100_000))
    except StepLimitExceeded:
        mismatches = []
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 20_000_000
    assert len(mismatches) <= 3


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"uniqueItems": True}, [number * (2**61 - 1) for number in range(20_000)]),
        ({"enum": [number * (2**61 - 1) for number in range(20_000)]}, 0),
        ({"multipleOf": 10**4_000 + 7}, 0),
        ({"multipleOf": 5e-324}, 1e308),
        ({"maximum": 10**4_000}, 1e308),
        (links(40, type="array"), nest(1, 99)),
        ({"items": {"$ref": "#"}}, nest(1, 99)),
        ({"patternProperties": {"^(a+)+$": {"pattern": r"^(\w+\s?)*$"}}}, {"a" * 10_000: "word " * 2_000}),
        ({"unevaluatedItems": False, "prefixItems": [True] * 20_000}, list(range(20_000))),
    ],
)
def test_what_looks_like_much_work_is_little(schema: dict[str, Any], value: Any) -> None:
    assert find_mismatches(SchemaDocument(schema), value, Budget(STEPS)) == []


def test_alternatives_inside_alternatives_are_checked_once_each() -> None:
    """The tag stands after the children, so that every alternative looks at them."""
    kinds = [
        {"properties": {"children": {"items": {"$ref": "#"}}, "kind": {"const": kind}}, "required": ["kind"]}
        for kind in "abcdefgh"
    ]
    tree: dict[str, Any] = {"kind": "h", "children": []}
    for _ in range(25):
        tree = {"kind": "h", "children": [tree]}

    assert find_mismatches(SchemaDocument({"anyOf": kinds}), tree, Budget(STEPS)) == []
